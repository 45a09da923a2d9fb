"""Embeddings around another one: what they have in common, whether a user waits, and the cache of questions."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal
from uuid import UUID

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

# LlamaIndex's calls take no priority, so it travels with the task that makes them.
_waiting: ContextVar[bool] = ContextVar("somebody_waits", default=False)


@contextmanager
def somebody_waits() -> Iterator[None]:
    """What is asked in here is asked for a person, and overtakes documents that are being ingested."""
    token = _waiting.set(True)
    try:
        yield
    finally:
        _waiting.reset(token)


def is_awaited() -> bool:
    """Whether a person waits for what the current task asks."""
    return _waiting.get()


class WrappedEmbedding(BaseEmbedding):
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


async def warm_up(embedding: BaseEmbedding) -> None:
    """Load or reach the model, if the class can."""
    if load := getattr(embedding, "warm_up", None):
        await load()


async def close_embedding(embedding: BaseEmbedding) -> None:
    """Release threads or connections, if there are any."""
    if close := getattr(embedding, "aclose", None):
        await close()


def embedding_key(
    content: str, *, model: str, dimension: int, role: Literal["query", "passage"], tenant: UUID | None = None
) -> bytes:
    """SHA-256 over everything that a vector depends on, and whose it is.

    Each part is preceded by its length, so that no two different lists of parts are hashed alike.
    """
    digest = hashlib.sha256()
    for part in (role, model, str(dimension), "" if tenant is None else str(tenant), content):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()


# Called after each batch: how many texts were found, how many were not.
ObserveCache = Callable[[int, int], None]


class QueryCachedEmbedding(WrappedEmbedding):
    """Keeps the vectors of the last `size` questions, the least recently asked going first."""

    _vectors: OrderedDict[bytes, list[float]] = PrivateAttr(default_factory=OrderedDict)
    _size: int = PrivateAttr()
    _observe: ObserveCache | None = PrivateAttr()

    def __init__(self, inner: BaseEmbedding, *, size: int, observe: ObserveCache | None = None):
        """`observe` counts hits and misses."""
        super().__init__(inner)
        self._size = size
        self._observe = observe

    async def aget_query_embedding(self, query: str) -> list[float]:
        key = hashlib.sha256(query.encode("utf-8", "surrogatepass")).digest()  # questions themselves are not kept
        vector = self._vectors.get(key)
        if self._observe is not None:
            self._observe(*((1, 0) if vector is not None else (0, 1)))
        if vector is None:
            vector = await self._inner.aget_query_embedding(query)
        self._vectors[key] = vector
        self._vectors.move_to_end(key)
        while len(self._vectors) > self._size:
            self._vectors.popitem(last=False)
        return list(vector)
