"""Builds Ingestor and Worker from settings, for the application and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TransformComponent

from rag_service.indices import IndexDefinition
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.transformations import describe_transformation
from rag_service.ingest.upload_job import UploadJob, WorkerOptions
from rag_service.ingest.worker import Worker
from rag_service.models.prefixes import vectors_name
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import ReaderClass
from rag_service.settings import Settings
from rag_service.store.database import Database
from rag_service.store.documents.originals import Originals


def current_fingerprints(
    settings: Settings,
    indices: Mapping[str, IndexDefinition],
    *,
    transformations: Sequence[TransformComponent] = (),
) -> dict[str, str]:
    """Index name → fingerprint of documents ingested now; documents with others are stale.

    `transformations`: run for every index.
    """
    model, dimension = vectors_name(settings.embedding), settings.embedding.dimension
    more = [describe_transformation(component) for component in transformations]
    return {
        name: index.fingerprint(embedding_model=model, dimension=dimension, transformations=more)
        for name, index in indices.items()
    }


def build_ingestor(
    settings: Settings,
    database: Database,
    embedding: BaseEmbedding,
    indices: Mapping[str, IndexDefinition],
    *,
    originals: Originals | None = None,
    readers: Mapping[str, ReaderClass] | None = None,
    transformations: Sequence[TransformComponent] = (),
) -> Ingestor:
    """The Ingestor of a process. Raises ConfigurationError if a class that a definition names cannot be used.

    Args:
        indices: their readers and transformations are loaded now, so that errors show at start.
        originals: keeps the original bytes; None keeps only the text.
        readers: extension with its dot → reader, for every index.
        transformations: run for every index.
    """
    ingestor = Ingestor(
        database,
        embedding,
        FileReader(readers=readers, concurrency=settings.worker.parse_concurrency),
        model=vectors_name(settings.embedding),
        dimension=settings.embedding.dimension,
        originals=originals,
        transformations=transformations,
        keeps=settings.embedding.query_cache_size > 0,
    )
    ingestor.prepare(indices.values())
    return ingestor


def build_worker(
    settings: Settings,
    database: Database,
    originals: Originals,
    ingestor: Ingestor,
    indices: Mapping[str, IndexDefinition],
    *,
    grace_seconds: float | None = None,
) -> Worker:
    """A worker from existing parts, which it may share with the API.

    `grace_seconds` is the time that its jobs get to finish on shutdown; None: RAG_SHUTDOWN_SECONDS.
    """
    options = WorkerOptions(
        concurrency=settings.worker.concurrency,
        stalled_seconds=settings.worker.job_stalled_seconds,
        grace_seconds=settings.http.shutdown_seconds if grace_seconds is None else grace_seconds,
        attempts=settings.worker.job_attempts,
        backoff_seconds=settings.worker.job_backoff_seconds,
        backoff_max_seconds=settings.worker.job_backoff_max_seconds,
    )
    return Worker(UploadJob(database, originals, ingestor, indices, options))
