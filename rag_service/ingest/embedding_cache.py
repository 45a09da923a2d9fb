"""Passages that were embedded before are not embedded again (requirement E2).

    embedding = CachedEmbedding(model, database, dimension=384, ttl_seconds=86_400)
    bound = embedding.for_corpus(corpus, identity)   # for one document

The key covers content, model, dimension and role, and for a personal corpus its owner: one person's
texts never show, by speed or otherwise, whether another has the same. The cache is a help and no more:
when its table cannot be used, everything is embedded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.domain import CorpusKind, Identity
from rag_service.errors import StoreError
from rag_service.metrics import Metrics
from rag_service.models.embedding.guarded import guard_embedding
from rag_service.models.embedding.query_cache import ObserveCache, QueryCachedEmbedding
from rag_service.models.embedding.wrapper import WrappedEmbedding, embedding_key
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus
from rag_service.store.documents.embedding_cache import read_embeddings, write_embeddings
from rag_service.store.session import Database

log = structlog.get_logger(__name__)

BATCH = 100  # texts looked up in one round trip


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """Whose cache is used."""

    identity: Identity  # on whose behalf the table is read and written
    tenant: UUID | None  # owner of a personal corpus; None for global ones


class CachedEmbedding(WrappedEmbedding):
    """Looks passages up before it embeds them. Caches nothing until it is bound to a corpus."""

    _database: Database = PrivateAttr()
    _dimension: int = PrivateAttr()
    _ttl_seconds: int = PrivateAttr()
    _observe: ObserveCache | None = PrivateAttr()
    _scope: _Scope | None = PrivateAttr(default=None)

    def __init__(
        self,
        inner: BaseEmbedding,
        database: Database,
        *,
        dimension: int,
        ttl_seconds: int,
        observe: ObserveCache | None = None,
    ):
        """
        Args:
            inner: embeds what is not found.
            database: where the cache is.
            dimension: length of its vectors, part of the key.
            ttl_seconds: how long a vector is used; 0 turns the cache off.
            observe: counts hits and misses.
        """
        super().__init__(inner)
        self._database = database
        self._dimension = dimension
        self._ttl_seconds = ttl_seconds
        self._observe = observe

    def for_corpus(self, corpus: Corpus, identity: Identity) -> CachedEmbedding:
        """The same embedding for documents of one corpus; cheap enough for every document."""
        bound: CachedEmbedding = self.model_copy()
        tenant = corpus.owner_id if corpus.kind is CorpusKind.PERSONAL else None
        bound._scope = _Scope(identity=identity, tenant=tenant)
        return bound

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[list[float]]:
        """Vectors in the order of the texts.

        Raises:
            EmbeddingError: some texts could not be embedded; the vectors of the others are kept, so
                that another try embeds only what is missing.
        """
        if self._scope is None or self._ttl_seconds == 0:
            return await self._inner.aget_text_embedding_batch(texts, show_progress=show_progress, **kwargs)
        vectors: list[list[float]] = []
        failures: list[Exception] = []
        for start in range(0, len(texts), BATCH):
            try:
                vectors += await self._embed(texts[start : start + BATCH], self._scope)
            except Exception as error:  # noqa: BLE001 - raised below, after the other batches
                failures.append(error)
        if failures:
            raise failures[0]
        return vectors

    async def _embed(self, texts: Sequence[str], scope: _Scope) -> list[list[float]]:
        keys = [self._key(text, scope) for text in texts]
        known = await self._read(keys, scope)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if self._observe is not None:
            found = sum(key in known for key in keys)
            self._observe(found, len(keys) - found)
        failure: BaseException | None = None
        if missing:
            fresh, failure = await self._compute(missing)
            await self._write(fresh, scope)
            known |= fresh
        if failure is not None:
            raise failure
        return [known[key] for key in keys]

    def _key(self, text: str, scope: _Scope) -> bytes:
        return embedding_key(
            text, model=self.model_name, dimension=self._dimension, role="passage", tenant=scope.tenant
        )

    async def _compute(self, missing: dict[bytes, str]) -> tuple[dict[bytes, list[float]], BaseException | None]:
        """Vectors of the texts whose batch went well, and the first failure of the others."""
        keys = list(missing)
        batches = [keys[start : start + self.embed_batch_size] for start in range(0, len(keys), self.embed_batch_size)]
        outcomes = await asyncio.gather(
            *(self._inner.aget_text_embedding_batch([missing[key] for key in batch]) for batch in batches),
            return_exceptions=True,
        )
        fresh: dict[bytes, list[float]] = {}
        failure = None
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                failure = failure or outcome
            else:
                fresh.update(zip(batch, outcome, strict=True))
        return fresh, failure

    async def _read(self, keys: Sequence[bytes], scope: _Scope) -> dict[bytes, list[float]]:
        try:
            async with self._database.transaction(scope.identity) as connection:
                return await read_embeddings(connection, keys)
        except (StoreError, psycopg.Error) as error:
            log.warning("embedding_cache_unreadable", exc_info=error)
            return {}

    async def _write(self, vectors: dict[bytes, list[float]], scope: _Scope) -> None:
        if not vectors:
            return
        try:
            async with self._database.transaction(scope.identity) as connection:
                await write_embeddings(connection, vectors, tenant=scope.tenant, ttl_seconds=self._ttl_seconds)
        except (StoreError, psycopg.Error) as error:
            log.warning("embedding_cache_unwritable", exc_info=error)


def wrap_embedding(
    model: BaseEmbedding, settings: Settings, database: Database, *, metrics: Metrics | None = None
) -> CachedEmbedding:
    """A model as the service uses it: behind a breaker, with both caches, and counted."""
    guarded = guard_embedding(model, settings, observe=None if metrics is None else metrics.embedding)
    if metrics is not None:
        metrics.watch_circuit(guarded.breaker.name, lambda: guarded.breaker.state == "open")
    questions = QueryCachedEmbedding(
        guarded,
        dimension=settings.embedding_dimension,
        size=settings.query_cache_size,
        observe=None if metrics is None else partial(metrics.cache, "query"),
    )
    return CachedEmbedding(
        questions,
        database,
        dimension=settings.embedding_dimension,
        ttl_seconds=settings.embedding_cache_ttl,
        observe=None if metrics is None else partial(metrics.cache, "passage"),
    )
