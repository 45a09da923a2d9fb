"""A breaker and a meter around an embedding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.errors import EmbeddingError
from rag_service.models.embedding.wrapper import WrappedEmbedding
from rag_service.models.servers.breaker import CircuitBreaker
from rag_service.settings import Settings

# Told of each call that went well: role, number of texts, seconds.
ObserveEmbedding = Callable[[Literal["query", "passage"], int, float], None]


class GuardedEmbedding(WrappedEmbedding):
    """Fails at once while its server is known to be down."""

    _breaker: CircuitBreaker = PrivateAttr()
    _observe: ObserveEmbedding | None = PrivateAttr()

    def __init__(self, inner: BaseEmbedding, breaker: CircuitBreaker, *, observe: ObserveEmbedding | None = None):
        super().__init__(inner)
        self._breaker = breaker
        self._observe = observe

    @property
    def breaker(self) -> CircuitBreaker:
        return self._breaker

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[list[float]]:
        with self._breaker.guard(), self._timed("passage", len(texts)):
            return await self._inner.aget_text_embedding_batch(texts, show_progress=show_progress, **kwargs)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        with self._breaker.guard(), self._timed("query", 1):
            return await self._inner.aget_query_embedding(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        with self._breaker.guard(), self._timed("passage", 1):
            return await self._inner.aget_text_embedding(text)

    @contextmanager
    def _timed(self, role: Literal["query", "passage"], count: int) -> Iterator[None]:
        started = time.perf_counter()
        yield
        if self._observe is not None:
            self._observe(role, count, time.perf_counter() - started)


def breaker_of(embedding: BaseEmbedding) -> CircuitBreaker:
    """The breaker inside of what may be wrapped again; one that never opens where there is none."""
    while isinstance(embedding, WrappedEmbedding):
        if isinstance(embedding, GuardedEmbedding):
            return embedding.breaker
        embedding = embedding.inner
    return CircuitBreaker("embedding service", failures=0, seconds=1)


def guard_embedding(
    embedding: BaseEmbedding, settings: Settings, *, observe: ObserveEmbedding | None = None
) -> GuardedEmbedding:
    """The embedding behind a breaker as the settings say; the local model needs none, but is timed."""
    failures = 0 if settings.embedding_provider == "local" else settings.breaker_failures
    breaker = CircuitBreaker(
        "embedding service", failures=failures, seconds=settings.breaker_seconds, error=EmbeddingError
    )
    return GuardedEmbedding(embedding, breaker, observe=observe)
