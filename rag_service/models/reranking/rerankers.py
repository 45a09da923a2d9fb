"""Rerankers: a second, closer look at the hits, chosen by RAG_RERANK_STRATEGY.

A reranker reorders and never drops. It fills `scores.rerank` (0..1) and leaves the other scores as
they are. A reranker that fails raises RerankError and must not cost the user the answer: call it
through `rerank_or_keep`, which logs the failure and keeps the incoming order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from rag_service.domain import Hit
from rag_service.errors import ConfigurationError, RerankError
from rag_service.models.chat.chat import ChatModel
from rag_service.models.extras import require_extra
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

# Words of a text as the lexical index sees them: stems, stop words left out, in order.
Analyse = Callable[[str], list[str]]


class Reranker(Protocol):
    """One strategy. `name` is its value of RAG_RERANK_STRATEGY."""

    name: str

    async def rerank(self, query: str, hits: Sequence[Hit], *, query_terms: Sequence[str]) -> list[Hit]:
        """All hits, best first. `query_terms` are the query's stems as `Analyse` gives them.

        Raises:
            RerankError: the hits could not be rated; the incoming order stands.
        """
        ...

    async def warm_up(self) -> None:
        """Load what the first call would otherwise wait for."""
        ...


class NoReranker:
    """The order of the fusion as it is; `scores.rerank` stays None, because nothing was rated."""

    name = "none"

    async def rerank(self, query: str, hits: Sequence[Hit], *, query_terms: Sequence[str]) -> list[Hit]:
        return list(hits)

    async def warm_up(self) -> None:
        return


def by_score(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """The hits with these rerank scores, best first; equal scores keep the incoming order."""
    rated = [
        dataclasses.replace(hit, scores=dataclasses.replace(hit.scores, rerank=score))
        for hit, score in zip(hits, scores, strict=True)
    ]
    return sorted(rated, key=lambda hit: -(hit.scores.rerank or 0.0))


async def rerank_or_keep(
    reranker: Reranker, query: str, hits: Sequence[Hit], *, query_terms: Sequence[str]
) -> list[Hit]:
    """Rerank; if that fails, log `rerank_failed` and return the hits as they came."""
    try:
        return await reranker.rerank(query, hits, query_terms=query_terms)
    except RerankError as error:
        log.error("rerank_failed", strategy=reranker.name, hits=len(hits), exc_info=error)
        return list(hits)


def build_reranker(settings: Settings, *, analyse: Analyse, chat: ChatModel) -> Reranker:
    """The reranker that RAG_RERANK_STRATEGY names. Nothing is loaded yet.

    Raises:
        ConfigurationError: the extra that the strategy needs is not installed, or the chat model
            cannot do what it needs.
    """
    # Strategies are imported when chosen: some bring packages that the others do without.
    match settings.rerank_strategy:
        case "none":
            return NoReranker()
        case "heuristic":
            from rag_service.models.reranking.heuristic import HeuristicReranker

            return HeuristicReranker(analyse)
        case "llm":
            from rag_service.models.reranking.llm import LLMReranker

            if not chat.structured_output:
                raise ConfigurationError(
                    f"RAG_RERANK_STRATEGY=llm needs a model with structured output; the chat provider "
                    f"`{chat.provider}` has none. Choose `heuristic`, or RAG_CHAT_PROVIDER=ollama.",
                    field="RAG_RERANK_STRATEGY",
                )
            return LLMReranker(chat)
        case "sbert":
            from rag_service.models.reranking.postprocessor import cross_encoder

            _require("llama_index.postprocessor.sbert_rerank", extra="sbert", strategy="sbert")
            _require("sentence_transformers", extra="local", strategy="sbert")
            return cross_encoder(settings.rerank_model)
        case "cohere":
            from rag_service.models.reranking.postprocessor import cohere

            _require("llama_index.postprocessor.cohere_rerank", extra="cohere", strategy="cohere")
            return cohere(settings.rerank_model)


def _require(package: str, *, extra: str, strategy: str) -> None:
    require_extra(package, extra=extra, setting="RAG_RERANK_STRATEGY", value=strategy)
