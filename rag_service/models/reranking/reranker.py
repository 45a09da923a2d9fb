"""What a reranker is: a second, closer look at the hits.

It reorders and never drops. It fills `scores.rerank` (0..1) and leaves the other scores as
they are. A reranker that fails raises RerankError and must not cost the user the answer: call it
through `rerank_or_keep`, which logs the failure and keeps the incoming order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import attrgetter
from typing import Protocol

import structlog

from rag_service.domain import Hit
from rag_service.errors import RerankError

log = structlog.get_logger(__name__)


class Reranker(Protocol):
    """One strategy. `name` is its value of RAG_RERANK_STRATEGY."""

    name: str

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        """All hits, best first. `language` is the question's, ISO 639-1.

        Raises RerankError if the hits cannot be rated; the incoming order then stands.
        """


class NoReranker:
    """The order of the fusion as it is; `scores.rerank` stays None, because nothing was rated."""

    name = "none"

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        return list(hits)


def by_score(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """The hits with these rerank scores, best first; equal scores keep the incoming order."""
    rated = [
        dataclasses.replace(hit, scores=dataclasses.replace(hit.scores, rerank=float(score)))
        for hit, score in zip(hits, scores, strict=True)
    ]
    return sorted(rated, key=attrgetter("scores.rerank"), reverse=True)


async def rerank_or_keep(reranker: Reranker, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
    """Rerank; if that fails, log `rerank_failed` and return the hits as they came."""
    try:
        return await reranker.rerank(question, hits, language=language)
    except RerankError as error:
        log.error("rerank_failed", strategy=reranker.name, hits=len(hits), exc_info=error)
        return list(hits)
