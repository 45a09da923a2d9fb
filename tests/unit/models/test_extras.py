"""An extra that is missing is named together with the setting that asked for it."""

from __future__ import annotations

import importlib.util
from typing import cast

import pytest

from rag_service.errors import ConfigurationError
from rag_service.models.llm.gguf import LlamaServer
from rag_service.models.llm.model import ChatModel
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.settings import Settings


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


def test_a_model_in_a_file_without_its_extra() -> None:
    with pytest.raises(ConfigurationError, match=r"RAG_CHAT_PROVIDER=gguf.*rag-service\[gguf\]"):
        LlamaServer.of(Settings(chat_provider="gguf"))


@pytest.mark.parametrize("strategy", ["sbert", "cohere"])
def test_a_reranker_without_its_extra(strategy: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"RAG_RERANK_STRATEGY={strategy}.*rag-service\[{strategy}\]"):
        build_reranker(Settings(rerank_strategy=strategy), chat=cast("ChatModel", None))
