"""Retrieval that goes on by words alone while the embedding model is down.

What was left out is told: the timings carry `degraded_dense`, the milliseconds lost on the attempt,
which reaches `SourcesFound` and the metrics. Relevances then rest on the words alone, and tell what the
documents answer a little worse.
"""

from __future__ import annotations

import time
from dataclasses import replace

import structlog

from rag_service.domain import Filters, Identity
from rag_service.errors import EmbeddingError
from rag_service.query.retrieval.retriever import Mode, Retrieval, Retriever

log = structlog.get_logger(__name__)

DEGRADED_DENSE = "degraded_dense"  # key in `timings_ms`


class FallbackRetriever(Retriever):
    """A retriever whose hybrid mode survives the embedding model."""

    async def search(
        self,
        question: str,
        *,
        identity: Identity,
        filters: Filters,
        limit: int,
        mode: Mode = "hybrid",
        alpha: float | None = None,
    ) -> Retrieval:
        """As `Retriever.search`; EmbeddingError is raised in dense mode alone."""
        started = time.perf_counter()
        try:
            return await super().search(
                question, identity=identity, filters=filters, limit=limit, mode=mode, alpha=alpha
            )
        except EmbeddingError as error:
            if mode == "dense":
                raise
            log.warning("retrieval_degraded", without="dense", exc_info=error)
        lost = round((time.perf_counter() - started) * 1000, 2)
        retrieval = await super().search(question, identity=identity, filters=filters, limit=limit, mode="lexical")
        return replace(retrieval, timings_ms={**retrieval.timings_ms, DEGRADED_DENSE: lost})
