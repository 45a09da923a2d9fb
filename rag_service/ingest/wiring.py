"""Settings to a ready worker and a ready front of the queue; used by the application and the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.definitions import IndexDefinition, load_indices
from rag_service.ingest.embedding_cache import wrap_embedding
from rag_service.ingest.jobs import JobPolicy, Uploads
from rag_service.ingest.sandbox import parse_in_sandbox
from rag_service.ingest.stages import EmbeddingModel, Stages
from rag_service.ingest.worker import Worker, WorkerOptions
from rag_service.models.embedding.embeddings import build_embedding, close_embedding
from rag_service.settings import Settings
from rag_service.store.documents.originals import OriginalStore
from rag_service.store.documents.originals import build_originals as _build_originals
from rag_service.store.session import Database


def embedding_model(settings: Settings, embedding: BaseEmbedding) -> EmbeddingModel:
    """The embedding with what its fingerprint is made of."""
    return EmbeddingModel(embedding=embedding, name=settings.embedding_model, dimension=settings.embedding_dimension)


def current_fingerprints(settings: Settings, indices: Mapping[str, IndexDefinition]) -> dict[str, str]:
    """Index name → what documents ingested now would carry; others are stale."""
    return {
        name: index.fingerprint(embedding_model=settings.embedding_model, dimension=settings.embedding_dimension)
        for name, index in indices.items()
    }


def build_originals(settings: Settings) -> OriginalStore:
    """Where RAG_ORIGINALS_URL says.

    Raises:
        ConfigurationError: the URL cannot be used here.
    """
    return _build_originals(settings.originals_url)


def build_uploads(
    settings: Settings,
    database: Database,
    originals: OriginalStore,
    embedding: BaseEmbedding,
    indices: Mapping[str, IndexDefinition],
) -> Uploads:
    """The front of the queue, for the API."""
    return Uploads(
        database,
        originals,
        embedding_model(settings, embedding),
        indices,
        default_ttl_seconds=settings.document_ttl_seconds,
    )


def build_worker(
    settings: Settings,
    conninfo: str,
    database: Database,
    originals: OriginalStore,
    embedding: BaseEmbedding,
    indices: Mapping[str, IndexDefinition],
    *,
    grace_seconds: float | None = None,
) -> Worker:
    """A worker on given parts: inside the API's process, it shares them.

    `grace_seconds` is what its jobs get to end when it is stopped; None: RAG_SHUTDOWN_SECONDS.
    """
    stages = Stages(
        database,
        originals,
        embedding_model(settings, embedding),
        lambda data, name: parse_in_sandbox(data, file_name=name),
        indices,
        parse_concurrency=settings.parse_concurrency,
    )
    options = worker_options(settings)
    if grace_seconds is not None:
        options = replace(options, grace_seconds=grace_seconds)
    return Worker(conninfo, database, stages, originals, options)


def worker_options(settings: Settings) -> WorkerOptions:
    """How the settings want workers to work."""
    return WorkerOptions(
        concurrency=settings.worker_concurrency,
        stalled_seconds=settings.job_stalled_seconds,
        grace_seconds=settings.shutdown_seconds,
        policy=JobPolicy(
            attempts=settings.job_attempts,
            backoff_seconds=settings.job_backoff_seconds,
            backoff_max_seconds=settings.job_backoff_max_seconds,
        ),
    )


@asynccontextmanager
async def open_worker(settings: Settings, conninfo: str) -> AsyncIterator[Worker]:
    """A worker with a database and an embedding model of its own, for a process of its own.

    The database may be unreachable; the worker waits for it.

    Raises:
        ConfigurationError: a setting or an index definition is wrong.
    """
    indices = load_indices(indices_path=settings.indices_path)
    originals = build_originals(settings)
    database = Database(
        conninfo,
        pool_size=settings.database_pool_size,
        timeout=settings.database_timeout,
        idle_timeout=settings.job_stalled_seconds,
    )
    embedding = wrap_embedding(build_embedding(settings), settings, database)
    await database.open()
    try:
        yield build_worker(settings, conninfo, database, originals, embedding, indices)
    finally:
        await database.close()
        await close_embedding(embedding)
