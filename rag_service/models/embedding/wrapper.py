"""An embedding around another one: what caches, breakers and meters have in common."""

from __future__ import annotations

import hashlib
from typing import Any, Literal
from uuid import UUID

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.models.embedding.embeddings import Managed, close_embedding, warm_up


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

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        if not isinstance(self._inner, Managed):
            raise AttributeError("dimension")
        return self._inner.dimension

    async def warm_up(self) -> None:
        await warm_up(self._inner)

    async def aclose(self) -> None:
        await close_embedding(self._inner)

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[list[float]]:
        return await self._inner.aget_text_embedding_batch(texts, show_progress=show_progress, **kwargs)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self._inner.aget_query_embedding(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await self._inner.aget_text_embedding(text)

    # LlamaIndex code that is not async (a notebook) ends here, without what subclasses add.

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._inner.get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._inner.get_text_embedding(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._inner.get_text_embedding_batch(texts)


def embedding_key(
    content: str, *, model: str, dimension: int, role: Literal["query", "passage"], tenant: UUID | None = None
) -> bytes:
    """SHA-256 over everything that a vector depends on, and whose it is (requirement E2).

    Each part is preceded by its length, so that no two different lists of parts are hashed alike.
    """
    digest = hashlib.sha256()
    for part in (role, model, str(dimension), "" if tenant is None else str(tenant), content):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()
