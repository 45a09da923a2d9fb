"""Which chat model an agent gets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from llama_index.core.llms import MockLLM

from rag_service.agents.models import AgentModels
from rag_service.errors import ConfigurationError
from rag_service.models.llm.model import build_chat
from rag_service.settings import Settings
from rag_service.store.accounts.agents import Agent, AgentSpec

MOCK = "llama_index.core.llms:MockLLM"


def agent(**fields: Any) -> Agent:
    now = datetime.now(UTC)
    return Agent(id=uuid4(), spec=replace(AgentSpec(name="A"), **fields), created_at=now, updated_at=now)


def models(**settings: Any) -> AgentModels:
    chosen = Settings(**settings)
    base = build_chat(chosen)
    return AgentModels(chosen, base, lambda adapted: build_chat(adapted))


def test_a_class_path_that_the_administrator_lists_is_used_with_the_agents_own_limits() -> None:
    model = models(agent_providers=f"ollama, {MOCK}").model_for(agent(provider=MOCK, max_tokens=40))
    assert isinstance(model.llm, MockLLM)
    assert model.llm.max_tokens == 40


def test_a_class_path_that_is_not_listed_is_never_loaded() -> None:
    with pytest.raises(ConfigurationError, match="RAG_AGENT_PROVIDERS does not allow"):
        models().model_for(agent(provider=MOCK))


def test_the_list_takes_providers_only() -> None:
    with pytest.raises(ValueError, match="'clippy' must be extractive, ollama"):
        Settings(agent_providers="ollama,clippy")
