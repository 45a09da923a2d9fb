"""Engines and models as agents want them: one for each combination of provider, model and limits."""

from __future__ import annotations

from collections.abc import Callable

from rag_service.query.agents.chat import ChatParts
from rag_service.settings import Settings
from rag_service.store.people.agents import Agent, AgentSpec

_KEPT = 64  # combinations held at a time; the one used longest ago makes room

_Key = tuple[str | None, str | None, float | None, int | None]


class AgentModels:
    """Hands out parts by agent; what an agent leaves open follows the settings."""

    def __init__(self, settings: Settings, base: ChatParts, build: Callable[[Settings], ChatParts]):
        """
        Args:
            settings: of the service.
            base: parts for agents that leave everything open.
            build: parts for other settings; their chat models are closed by `aclose`.
        """
        self._settings = settings
        self._base = base
        self._build = build
        self._built: dict[_Key, ChatParts] = {}  # the one used last stands last
        self._retired: list[ChatParts] = []  # a stream may still read from them: closed at the end

    def parts_for(self, agent: Agent) -> ChatParts:
        """The parts of an agent; built at first use."""
        key = _key_of(agent.spec)
        if not any(value is not None for value in key):
            return self._base
        parts = self._built.pop(key, None) or self._build(_adapt(self._settings, agent.spec))
        self._built[key] = parts
        if len(self._built) > _KEPT:
            oldest = next(iter(self._built))
            self._retired.append(self._built.pop(oldest))
        return parts

    async def aclose(self) -> None:
        """Close the models that were built here."""
        for parts in (*self._built.values(), *self._retired):
            await parts.chat.aclose()
        self._built.clear()
        self._retired.clear()


def _key_of(spec: AgentSpec) -> _Key:
    return spec.provider, spec.model_name, spec.temperature, spec.max_tokens


def _adapt(settings: Settings, spec: AgentSpec) -> Settings:
    changes = {
        "chat_provider": spec.provider,
        "model_name": spec.model_name,
        "temperature": spec.temperature,
        # An answer must leave room for the question, whatever an administrator wrote.
        "max_tokens": None if spec.max_tokens is None else min(spec.max_tokens, settings.context_window // 2),
    }
    return settings.model_copy(update={name: value for name, value in changes.items() if value is not None})
