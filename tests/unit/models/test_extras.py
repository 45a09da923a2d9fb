"""An extra that is missing is named together with the setting that asked for it."""

from __future__ import annotations

import importlib.util

import pytest
from llama_index.core.llms import MockLLM

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.llm.model import build_chat
from rag_service.settings import Settings


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


def test_chat_without_its_extra() -> None:
    with pytest.raises(ConfigurationError, match=r"RAG_CHAT_PROVIDER=openai_like.*rag-service\[openai\]"):
        build_chat(Settings(chat_provider="openai_like"), extractive=MockLLM())


def test_embedding_without_its_extra() -> None:
    with pytest.raises(ConfigurationError, match=r"RAG_EMBEDDING_PROVIDER=openai_like.*rag-service\[openai\]"):
        build_embedding(Settings(embedding_provider="openai_like"))
