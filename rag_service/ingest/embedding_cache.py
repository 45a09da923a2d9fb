"""A cache of passage embeddings in the database.

    embedding = CachedEmbedding(model, database, dimension=384, ttl_seconds=86_400)
    bound = embedding.for_corpus(corpus, identity)   # for one document

The key covers text, model, dimension and role, and the owner of a personal corpus, so that response times do not reveal
whether another user has the same text. If the table cannot be used, everything is embedded.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal
from uuid import UUID

import numpy as np
import psycopg
import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.domain import CorpusKind, Identity
from rag_service.errors import RagError
from rag_service.models.embedding.guarded import ObserveCache, WrappedEmbedding, guard_embedding
from rag_service.models.prefixes import vectors_name
from rag_service.observability.metrics import Metrics
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus
from rag_service.store.database import Connection, Database
from rag_service.store.rows import fetch_value

log = structlog.get_logger(__name__)

BATCH = 100  # texts looked up in one round trip
PURGED_AT_ONCE = 1000  # rows; a purge holds its locks for some milliseconds


class CachedEmbedding(WrappedEmbedding):
    """Looks passages up before embedding them, once bound to a corpus."""

    _database: Database = PrivateAttr()
    _dimension: int = PrivateAttr()
    _ttl_seconds: int = PrivateAttr()
    _name: str = PrivateAttr()
    _observe: ObserveCache | None = PrivateAttr()
    _identity: Identity | None = PrivateAttr(default=None)
    _tenant: UUID | None = PrivateAttr(default=None)  # owner of a personal corpus; None: a shared one

    def __init__(
        self,
        inner: BaseEmbedding,
        database: Database,
        *,
        dimension: int,
        ttl_seconds: int,
        name: str | None = None,
        observe: ObserveCache | None = None,
    ):
        """
        Args:
            name: of what makes the vectors; None: of the model.
            ttl_seconds: how long a vector is used; 0 turns the cache off.
            observe: counts hits and misses.
        """
        super().__init__(inner)
        self._database = database
        self._dimension = dimension
        self._ttl_seconds = ttl_seconds
        self._name = name or self.model_name
        self._observe = observe

    def for_corpus(self, corpus: Corpus, identity: Identity) -> CachedEmbedding:
        """The same embedding for documents of one corpus; cheap."""
        return self.for_owner(corpus.owner_id if corpus.kind is CorpusKind.PERSONAL else None, identity)

    def for_owner(self, owner_id: UUID | None, identity: Identity) -> CachedEmbedding:
        """The same embedding for documents of a user's personal corpora; None: of global ones."""
        bound: CachedEmbedding = self.model_copy()
        bound._identity, bound._tenant = identity, owner_id
        return bound

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[list[float]]:
        """Vectors in the order of the texts. If some fail, the others are cached before EmbeddingError is raised."""
        if self._identity is None or self._ttl_seconds == 0:
            return await self._inner.aget_text_embedding_batch(texts, show_progress=show_progress, **kwargs)
        vectors: dict[bytes, list[float]] = {}
        failures: list[BaseException] = []
        keys = [
            embedding_key(text, model=self._name, dimension=self._dimension, role="passage", tenant=self._tenant)
            for text in texts
        ]
        for start in range(0, len(texts), BATCH):
            batch = dict(zip(keys[start : start + BATCH], texts[start : start + BATCH], strict=True))
            known = await self._read(list(batch))
            missing = [key for key in batch if key not in known]
            if self._observe is not None:
                self._observe(len(known), len(missing))
            fresh = await self._compute({key: batch[key] for key in missing}, failures)
            if fresh:
                await self._write(fresh)
            vectors |= known | fresh
        if failures:
            raise failures[0]
        return [vectors[key] for key in keys]

    async def _compute(self, missing: dict[bytes, str], failures: list[BaseException]) -> dict[bytes, list[float]]:
        """Vectors of the batches that succeeded; errors of the others are added to `failures`."""
        keys = list(missing)
        batches = [keys[start : start + self.embed_batch_size] for start in range(0, len(keys), self.embed_batch_size)]
        outcomes = await asyncio.gather(
            *(self._inner.aget_text_embedding_batch([missing[key] for key in batch]) for batch in batches),
            return_exceptions=True,
        )
        fresh: dict[bytes, list[float]] = {}
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                failures.append(outcome)
            else:
                fresh.update(zip(batch, outcome, strict=True))
        return fresh

    async def _read(self, keys: Sequence[bytes]) -> dict[bytes, list[float]]:
        try:
            async with self._database.transaction(self._identity) as connection:
                return await read_embeddings(connection, keys)
        except (RagError, psycopg.Error) as error:
            log.warning("embedding_cache_unreadable", exc_info=error)
            return {}

    async def _write(self, vectors: dict[bytes, list[float]]) -> None:
        try:
            async with self._database.transaction(self._identity) as connection:
                await write_embeddings(connection, vectors, tenant=self._tenant, ttl_seconds=self._ttl_seconds)
        except (RagError, psycopg.Error) as error:
            log.warning("embedding_cache_unwritable", exc_info=error)


async def read_embeddings(connection: Connection, keys: Sequence[bytes]) -> dict[bytes, list[float]]:
    """Vectors by key, as far as they are there, not expired, and the identity may read them."""
    cursor = await connection.execute(
        "SELECT key, vector FROM embedding_cache WHERE key = ANY(%s::bytea[]) AND expires_at > now()", [list(keys)]
    )
    return {bytes(key): np.frombuffer(vector, dtype="<f4").tolist() for key, vector in await cursor.fetchall()}


async def write_embeddings(
    connection: Connection, vectors: Mapping[bytes, Sequence[float]], *, tenant: UUID | None, ttl_seconds: int
) -> None:
    """Store or replace vectors by key for `ttl_seconds`.

    `tenant` is the owner of the personal corpus; None: a global one, for which only administrators may write.
    """
    keys = sorted(vectors)  # one order for all writers, so that none waits for another in a circle
    await connection.execute(
        """INSERT INTO embedding_cache AS c (key, tenant_id, vector, expires_at)
           SELECT n.key, %(tenant)s, n.vector, now() + make_interval(secs => %(ttl)s)
           FROM unnest(%(keys)s::bytea[], %(vectors)s::bytea[]) AS n(key, vector)
           ON CONFLICT (key) DO UPDATE SET vector = excluded.vector, expires_at = excluded.expires_at""",
        {
            "tenant": tenant,
            "ttl": ttl_seconds,
            "keys": keys,
            "vectors": [np.asarray(vectors[key], dtype="<f4").tobytes() for key in keys],
        },
    )


async def purge_embeddings(connection: Connection) -> int:
    """Delete expired rows of all tenants, `PURGED_AT_ONCE` at most; returns how many."""
    return int(await fetch_value(connection, "SELECT purge_embedding_cache(%s)", [PURGED_AT_ONCE]))


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


def wrap_embedding(
    model: BaseEmbedding, settings: Settings, database: Database, *, metrics: Metrics | None = None
) -> CachedEmbedding:
    """Wrap a model in limits, circuit breaker, query cache, passage cache and metrics."""
    guarded = guard_embedding(model, settings)
    if metrics is not None:
        guarded.observe, guarded.observe_cache = metrics.embedding, partial(metrics.cache, "query")
        metrics.watch_circuit(guarded.breaker.name, lambda: guarded.breaker.state == "open")
    return CachedEmbedding(
        guarded,
        database,
        dimension=settings.embedding.dimension,
        ttl_seconds=settings.embedding.cache_ttl,
        name=vectors_name(settings.embedding),
        observe=None if metrics is None else partial(metrics.cache, "passage"),
    )
