"""What every embedding server needs around its client: slots, time limits, retries, checks.

Client packages wait for ever or retry on their own, start every batch of a pipeline at once, and hand
on whatever the server returned. Here each call is bounded, and each vector is looked at.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence

from rag_service.errors import ConfigurationError, EmbeddingError, RagError
from rag_service.models.embedding.urgency import is_awaited
from rag_service.models.servers.echoes import ProviderError
from rag_service.models.servers.resilience import (
    BUSY_STATUSES,
    SERVER_STATUSES,
    RetryPolicy,
    is_connection_error,
    is_timeout,
    isolated,
    retry_after_of,
    status_of,
)
from rag_service.settings import Settings

# Servers refuse a blank text or return nothing for it. Every text must have a vector of some length,
# because a cosine with a zero vector is not a number.
BLANK = "."

Vectors = list[list[float]]
# Sends one request for texts that are not blank; gives their vectors in order.
Send = Callable[[Sequence[str]], Awaitable[Vectors]]


class EmbeddingCalls:
    """Calls to one embedding server. Failures are EmbeddingError, cause chained."""

    def __init__(self, settings: Settings, *, retries: RetryPolicy | None = None):
        self.model = settings.embedding_model
        self.dimension = settings.embedding_dimension
        # Questions, and what else a person waits for, have slots of their own: not behind a folder of documents.
        self._passage_slots = asyncio.Semaphore(settings.model_concurrency)
        self._query_slots = asyncio.Semaphore(settings.model_concurrency)
        self._query_timeout = settings.first_token_timeout  # seconds for one try
        self._batch_timeout = settings.answer_timeout
        self._retries = retries or RetryPolicy()

    async def query(self, text: str, send: Send) -> list[float]:
        """The vector of a question."""
        async with self._query_slots:
            return (await self._call([text], send, self._query_timeout))[0]

    async def passages(self, texts: Sequence[str], send: Send) -> Vectors:
        """The vectors of passages, in their order."""
        if not texts:
            return []
        async with self._query_slots if is_awaited() else self._passage_slots:
            return await self._call(texts, send, self._batch_timeout)

    async def _call(self, texts: Sequence[str], send: Send, seconds: float) -> Vectors:
        filled = fill_blanks(texts)

        async def work() -> Vectors:
            return await send(filled)

        try:
            async for attempt in self._retries.tries(SERVER_STATUSES):
                with attempt:
                    async with asyncio.timeout(seconds):
                        vectors = await isolated(work)
        except RagError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a provider's package raises, the caller sees one error
            raise embedding_error(error) from ProviderError(error, filled)
        return self.checked(vectors, len(texts))

    def checked(self, vectors: Vectors, count: int) -> Vectors:
        """The vectors, if they are as many and as long as they must be.

        Raises:
            EmbeddingError: there are too many, too few, or some are not made of numbers.
            ConfigurationError: the model's dimension is not the one that is set.
        """
        if len(vectors) != count:
            raise EmbeddingError("The embedding service returned the wrong number of vectors.")
        for vector in vectors:
            if len(vector) != self.dimension:
                raise ConfigurationError(
                    f"The embedding model {self.model} returns {len(vector)} dimensions, but "
                    f"RAG_EMBEDDING_DIMENSION is {self.dimension}: set it to {len(vector)} and index again.",
                    field="RAG_EMBEDDING_DIMENSION",
                )
            if not all(map(math.isfinite, vector)):
                raise EmbeddingError("The embedding service returned a vector that is not made of numbers.")
        return vectors


def fill_blanks(texts: Sequence[str]) -> list[str]:
    """The texts with something in place of blank ones."""
    return [text if text.strip() else BLANK for text in texts]


def embedding_error(error: Exception) -> EmbeddingError:
    """What a caller may know of a client package's error."""
    status = status_of(error)
    if status in BUSY_STATUSES:
        wait = retry_after_of(error)
        return EmbeddingError(
            "The embedding service is busy.", retry_after=5 if wait is None else max(1, math.ceil(wait))
        )
    if status == 404:
        return EmbeddingError("The embedding model is not available on its server.")
    if is_connection_error(error):
        return EmbeddingError("The embedding service cannot be reached.", retry_after=5)
    if is_timeout(error):
        return EmbeddingError("The embedding service did not answer in time.")
    return EmbeddingError("The embedding service failed.")
