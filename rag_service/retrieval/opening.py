"""Opens what searches: the retriever, and its read replica where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.domain import LOCAL_ADMIN
from rag_service.indices import IndexDefinition
from rag_service.models.embedding.relevance import ModelRelevance
from rag_service.observability.metrics import Metrics
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.retrieval.query import PassageRetriever
from rag_service.retrieval.replica import ReplicatedRetriever
from rag_service.settings import Settings
from rag_service.store.database import Database
from rag_service.store.opening import make_database
from rag_service.store.replication.replica import CONNECT_SECONDS, Replica, replica_conninfo


@asynccontextmanager
async def open_search(
    settings: Settings,
    database: Database,
    embedding: BaseEmbedding,
    indices: Mapping[str, IndexDefinition],
    metrics: Metrics,
    relevance: ModelRelevance,
) -> AsyncIterator[tuple[PassageRetriever, Replica | None]]:
    """(what searches, its read replica or None). The database is open; the replica is closed at the end."""
    own = LOCAL_ADMIN if settings.auth.mode == "none" else None  # whose permissions a query without an identity has
    patience = settings.database.timeout

    def search_on(searched: Database) -> PassageRetriever:
        return HybridRetriever(
            searched,
            embedding,
            indices,
            default_index=settings.indices.default,
            mode="hybrid" if settings.retrieval.hybrid else "dense",
            lexical_fallback=settings.retrieval.lexical_fallback,
            relevance=relevance,
            identity=own,
        )

    primary, url = search_on(database), settings.database.replica_url
    if url is None:
        yield primary, None
        return
    standby = make_database(
        settings,
        replica_conninfo(url.get_secret_value()),
        timeout=min(CONNECT_SECONDS, patience),
        # A statement that takes long must not look like a replica that does not respond, which nobody uses any more.
        search_timeout=min(settings.database.search_timeout, patience / 2),
    )
    replica = Replica(database, standby, pause=settings.servers.breaker_seconds, timeout=patience)
    await replica.open()
    try:
        metrics.watch_circuit("replica", lambda: not replica.up)
        yield (
            ReplicatedRetriever(primary, replica, search_on, count=metrics.replica_search, identity=own),
            replica,
        )
    finally:
        await replica.close()
