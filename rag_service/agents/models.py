"""Chat models of agents: one for each combination of provider, model and limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from rag_service.errors import ConfigurationError
from rag_service.models.llm.model import ChatModel
from rag_service.models.plugins import parse_options
from rag_service.settings import Settings
from rag_service.settings.models import CHAT_PROVIDERS
from rag_service.store.accounts.agents import Agent, AgentSpec

_KEPT = 64  # models kept; the least recently used one is dropped

_Key = tuple[str | None, str | None, float | None, int | None]


@dataclass
class AgentModels:
    """Builds and keeps the models of agents; the settings give what an agent does not set."""

    settings: Settings  # of the service
    base: ChatModel  # for agents that set nothing
    build: Callable[[Settings], ChatModel]  # makes a model for other settings
    _built: dict[_Key, ChatModel] = field(default_factory=dict, init=False)  # least recently used first
    _retired: list[ChatModel] = field(default_factory=list, init=False)  # streams may read from them: closed at the end

    def model_for(self, agent: Agent) -> ChatModel:
        """The model of an agent; built at first use."""
        spec = agent.spec
        key = spec.provider, spec.model_name, spec.temperature, spec.max_tokens
        if not any(value is not None for value in key):
            return self.base
        model = self._built.pop(key, None) or self.build(_adapt(self.settings, spec))
        self._built[key] = model
        if len(self._built) > _KEPT:
            self._retired.append(self._built.pop(next(iter(self._built))))
        return model

    async def aclose(self) -> None:
        """Close the models that were built here."""
        for model in (*self._built.values(), *self._retired):
            await model.aclose()
        self._built.clear()
        self._retired.clear()


def _adapt(settings: Settings, spec: AgentSpec) -> Settings:
    provider = spec.provider or settings.chat.provider
    if spec.provider is not None and spec.provider not in settings.chat.agent_providers_list:
        raise ConfigurationError(
            f"RAG_AGENT_PROVIDERS does not allow the provider {spec.provider} of the agent {spec.name!r}.",
            field="RAG_AGENT_PROVIDERS",
        )
    if provider == "gguf" and (
        settings.chat.provider != "gguf" or spec.model_name not in (None, settings.chat.model)
    ):  # a file that an agent names would be read, and loaded beside the other
        raise ConfigurationError(
            f"The agent {spec.name!r} names another model for the provider gguf than the service, which runs only that"
            " of RAG_MODEL_NAME.",
            field="RAG_MODEL_NAME",
        )
    changes = {
        "chat_provider": spec.provider,
        "model_name": spec.model_name,
        "temperature": spec.temperature,
        # An answer must leave room for the question, whatever an administrator wrote.
        "max_tokens": None if spec.max_tokens is None else min(spec.max_tokens, settings.chat.context_window // 2),
    }
    adapted: dict[str, object] = {key: value for key, value in changes.items() if value is not None}
    if provider != settings.chat.provider:
        adapted["chat_options"] = None  # those of another class
    if provider not in CHAT_PROVIDERS:
        options = (
            parse_options(settings.chat.options, setting="RAG_CHAT_OPTIONS") if "chat_options" not in adapted else {}
        )
        own = {"model": spec.model_name, "temperature": spec.temperature, "max_tokens": spec.max_tokens}
        adapted["chat_options"] = json.dumps(options | {key: value for key, value in own.items() if value is not None})
    return settings.replace(adapted)
