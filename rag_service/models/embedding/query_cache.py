"""The vectors of the last questions, in this process: the same question is not embedded twice.

Questions are kept as hashes, never as text. Passages are cached by `rag_service.ingest.embedding_cache`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.models.embedding.wrapper import WrappedEmbedding, embedding_key

# Told of each batch: how many texts were found, how many were not.
ObserveCache = Callable[[int, int], None]


class QueryCachedEmbedding(WrappedEmbedding):
    """Keeps the vectors of the last `size` questions, the least recently asked going first."""

    _vectors: OrderedDict[bytes, list[float]] = PrivateAttr(default_factory=OrderedDict)
    _size: int = PrivateAttr()
    _dimension: int = PrivateAttr()
    _observe: ObserveCache | None = PrivateAttr()

    def __init__(self, inner: BaseEmbedding, *, dimension: int, size: int, observe: ObserveCache | None = None):
        """
        Args:
            inner: embeds what is not found.
            dimension: length of its vectors, part of the key.
            size: questions kept; 4 bytes a dimension and some overhead each.
            observe: counts hits and misses.
        """
        super().__init__(inner)
        self._dimension = dimension
        self._size = size
        self._observe = observe

    async def _aget_query_embedding(self, query: str) -> list[float]:
        key = embedding_key(query, model=self.model_name, dimension=self._dimension, role="query")
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
