"""Embeddings around another one: limits, retries, checks, a circuit breaker, a meter and a cache of questions.

LlamaIndex's classes wait for ever or retry on their own, start every batch of a pipeline at once, and hand on
whatever they got. Here each call is bounded, and each vector is checked.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.errors import ConfigurationError, EmbeddingError, RagError
from rag_service.models.embedding.local import LocalEmbedding
from rag_service.models.local_runtime import user_waits
from rag_service.models.servers.failures import (
    BUSY_STATUSES,
    REFUSED_STATUSES,
    SERVER_STATUSES,
    ProviderError,
    is_connection_error,
    is_timeout,
    proxy_in_words,
    seconds_to_wait,
    status_of,
)
from rag_service.models.servers.resilience import CircuitBreaker, RetryPolicy, in_own_thread, isolated
from rag_service.recent import Recent
from rag_service.settings import Settings
from rag_service.turns import Turns
from rag_service.unpicklable import Unpicklable

IN_PROCESS = ("local", "huggingface")  # providers without a server

Vectors = list[list[float]]
# Called after each successful call: role, number of texts, seconds.
ObserveEmbedding = Callable[[Literal["query", "passage"], int, float], None]

# Servers refuse a blank text or return nothing for it. Every text must have a vector of some length,
# because a cosine with a zero vector is not a number.
BLANK = "."
PROBE = "warm up"  # a text that every model embeds
LARGEST = 65504.0  # number that PostgreSQL's halfvec can store


# Called after each batch: how many texts were found, how many were not.
ObserveCache = Callable[[int, int], None]


class WrappedEmbedding(Unpicklable, BaseEmbedding):
    """Passes everything on; subclasses override what they change.

    Batches are cut by the inner embedding, so that an override of `aget_text_embedding_batch` sees
    the texts of a call together.
    """

    _inner: BaseEmbedding = PrivateAttr()

    def __init__(self, inner: BaseEmbedding):
        super().__init__(model_name=inner.model_name, embed_batch_size=inner.embed_batch_size)
        self._inner = inner

    @property
    def inner(self) -> BaseEmbedding:
        """What is wrapped."""
        return self._inner

    async def warm_up(self) -> None:
        """Load or reach the model, so that the first question does not pay for it.

        Raises EmbeddingError if it cannot be used now, ConfigurationError if it never can with these settings.
        """
        await warm_up(self._inner)

    async def aclose(self) -> None:
        """Release its threads or connections."""
        await close_embedding(self._inner)

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[list[float]]:
        return await self._inner.aget_text_embedding_batch(texts, show_progress=show_progress, **kwargs)

    async def aget_query_embedding(self, query: str) -> list[float]:
        # Only the model itself emits LlamaIndex's events: once for each time that it is asked.
        return await self._inner.aget_query_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self.aget_query_embedding(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await self._inner.aget_text_embedding(text)

    # LlamaIndex code that is not async (a notebook) ends here, without what subclasses add.

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._inner.get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._inner.get_text_embedding(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._inner.get_text_embedding_batch(texts)


async def warm_up(model: object) -> None:
    """Load or reach a model, if its class can."""
    if load := getattr(model, "warm_up", None):
        await load()


async def close_embedding(embedding: BaseEmbedding) -> None:
    """Release threads or connections, if there are any."""
    if close := getattr(embedding, "aclose", None):
        await close()


class GuardedEmbedding(WrappedEmbedding):
    """Every failure is an EmbeddingError, its cause chained; fails at once while its server is known to be down."""

    _breaker: CircuitBreaker = PrivateAttr()
    _dimension: int = PrivateAttr()
    _turns: dict[bool, Turns] = PrivateAttr()
    _seconds: dict[bool, float | None] = PrivateAttr()
    _retries: RetryPolicy = PrivateAttr()
    _blocking: bool = PrivateAttr()
    _cached: Recent[list[float]] = PrivateAttr()  # of the last questions
    observe: ObserveEmbedding | None = None
    observe_cache: ObserveCache | None = None

    def __init__(
        self,
        inner: BaseEmbedding,
        settings: Settings,
        *,
        in_process: bool = False,
        blocking: bool = False,
        retries: RetryPolicy | None = None,
    ):
        """`in_process`: no limits and no breaker, because no server can be down. `blocking`: its methods are called in
        threads.
        """
        super().__init__(inner)
        failures = 0 if in_process else settings.servers.breaker_failures
        self._breaker = CircuitBreaker(
            "embedding service", failures=failures, seconds=settings.servers.breaker_seconds, error=EmbeddingError
        )
        self._dimension = settings.embedding.dimension
        concurrency = 1_000_000 if in_process else settings.chat.concurrency
        # By whether somebody waits: a question is not queued behind a folder of documents.
        self._turns = {
            awaited: Turns("embedding_server", limit=concurrency, share=concurrency) for awaited in (True, False)
        }
        self._seconds = {True: None, False: None}
        if not in_process:
            self._seconds = {True: settings.servers.first_token_timeout, False: settings.servers.answer_timeout}
        self._retries = retries or RetryPolicy()
        self._blocking = blocking
        self._cached = Recent(settings.embedding.query_cache_size)

    @property
    def breaker(self) -> CircuitBreaker:
        return self._breaker

    @property
    def dimension(self) -> int:
        """Length of the vectors, as set; every vector is checked against it."""
        return self._dimension

    async def warm_up(self) -> None:
        """Load or reach the model, and check the dimension before anything is stored."""
        await super().warm_up()
        await self._call("query", [PROBE])

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[list[float]]:
        size = self.embed_batch_size
        if 0 < len(texts) <= size:
            return await self._call("passage", texts)
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        tasks = [asyncio.create_task(self._call("passage", batch)) for batch in batches]
        try:
            return [vector for vectors in await asyncio.gather(*tasks) for vector in vectors]
        finally:
            for task in tasks:
                task.cancel()

    async def aget_query_embedding(self, query: str) -> list[float]:
        """The vector of a question; those of the last RAG_QUERY_CACHE_SIZE questions are kept, apart for each user."""
        vector = self._cached.get(query)
        if self.observe_cache is not None:
            self.observe_cache(*((1, 0) if vector is not None else (0, 1)))
        if vector is None:
            (vector,) = await self._call("query", [query])
            self._cached.keep(query, vector)
        return list(vector)

    async def embed_unhurried_query(self, query: str) -> list[float]:
        """The vector of a question that nobody waits for: it queues with the documents and is not kept."""
        return (await self._call("query", [query], awaited=False))[0]

    async def is_well(self) -> bool:
        """Ask for the vector of a text that every model embeds, past all caches."""
        try:
            await self._call("passage", [PROBE])
        except EmbeddingError:
            return False
        return True

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._call("passage", [text]))[0]

    async def _call(
        self, role: Literal["query", "passage"], texts: list[str], *, awaited: bool | None = None
    ) -> Vectors:
        started = time.perf_counter()
        if awaited is None:
            awaited = role == "query" or user_waits.get()
        with self._breaker.guard():
            async with self._turns[awaited].take():
                try:
                    async for attempt in self._retries.tries(SERVER_STATUSES):
                        with attempt:
                            async with asyncio.timeout(self._seconds[role == "query" and awaited]):
                                vectors = await isolated(self._ask(role, texts))
                except RagError:
                    raise
                except Exception as error:  # noqa: BLE001 - whatever a class raises, the caller sees one error
                    cause = ProviderError(error, texts)
                    raise _embedding_error(error, cause.said) from cause
            checked = self._checked(vectors, len(texts))
        if self.observe is not None:
            self.observe(role, len(texts), time.perf_counter() - started)
        return checked

    async def _ask(self, role: Literal["query", "passage"], texts: list[str]) -> Vectors:
        inner, filled = self._inner, [text if text.strip() else BLANK for text in texts]
        if role == "query":
            if self._blocking:
                return [await in_own_thread(partial(inner.get_query_embedding, filled[0]))]
            return [await inner.aget_query_embedding(filled[0])]
        if self._blocking:
            return await in_own_thread(partial(inner.get_text_embedding_batch, filled))
        return await inner.aget_text_embedding_batch(filled)

    def _checked(self, vectors: Vectors, count: int) -> Vectors:
        """The vectors, if they are as many and as long as they must be.

        Raises EmbeddingError if the count is wrong, a value cannot be stored or all are zero, ConfigurationError if the
        dimension differs.
        """
        if not isinstance(vectors, list) or len(vectors) != count:
            raise _unusable("The embedding model returned the wrong number of vectors.")
        for vector in vectors:
            try:
                usable = (
                    bool not in set(map(type, vector))  # true counts as 1 in sums
                    and math.isfinite(sum(vector))
                    and max(map(abs, vector), default=0.0) <= LARGEST  # NaN has no maximum
                )
            except (TypeError, OverflowError):
                usable = False
            if not usable:
                raise _unusable("The embedding model returned a vector that is not made of usable numbers.")
            if not any(vector):
                raise _unusable("The embedding model returned a vector of zeros.")
            if len(vector) != self._dimension:
                raise ConfigurationError(
                    f"The embedding model {self.model_name} returns {len(vector)} dimensions, but "
                    f"RAG_EMBEDDING_DIMENSION is {self._dimension}: set it to {len(vector)} and index again.",
                    field="RAG_EMBEDDING_DIMENSION",
                )
        return vectors


def guard_embedding(embedding: BaseEmbedding, settings: Settings) -> GuardedEmbedding:
    """The embedding with its limits."""
    if isinstance(embedding, GuardedEmbedding):
        return embedding
    return GuardedEmbedding(embedding, settings, in_process=settings.embedding.provider in IN_PROCESS)


def local_model(embedding: BaseEmbedding) -> LocalEmbedding | None:
    """The model inside of what wraps it, if it is computed in this process."""
    while isinstance(embedding, WrappedEmbedding):
        embedding = embedding.inner
    return embedding if isinstance(embedding, LocalEmbedding) else None


def breaker_of(embedding: BaseEmbedding) -> CircuitBreaker:
    """The breaker inside of what may be wrapped again; one that never opens where there is none."""
    guarded = guard_of(embedding)
    return CircuitBreaker("embedding service", failures=0, seconds=1) if guarded is None else guarded.breaker


def guard_of(embedding: BaseEmbedding) -> GuardedEmbedding | None:
    """The guarded embedding inside of what may be wrapped again."""
    while isinstance(embedding, WrappedEmbedding) and not isinstance(embedding, GuardedEmbedding):
        embedding = embedding.inner
    return embedding if isinstance(embedding, GuardedEmbedding) else None


def _unusable(message: str) -> EmbeddingError:
    error = EmbeddingError(message)
    error.about_text = message.rstrip(".")
    return error


def _embedding_error(error: Exception, said: str) -> EmbeddingError:
    """What a caller may know of a client package's error; `said` is its message without echoes of the texts."""
    status = status_of(error)
    if status in BUSY_STATUSES:
        return EmbeddingError("The embedding service is busy.", retry_after=seconds_to_wait(error))
    if status == 404:
        return EmbeddingError(
            "The embedding model is not available on its server; with Ollama, `rag-service models pull` fetches it."
        )
    if is_connection_error(error):
        return EmbeddingError(f"The embedding service cannot be reached{proxy_in_words(error)}.", retry_after=5)
    if is_timeout(error):
        return EmbeddingError("The embedding service did not answer in time.")
    failure = EmbeddingError(f"The embedding service failed{proxy_in_words(error)}.")
    if status not in REFUSED_STATUSES:
        failure.about_text = said
    return failure
