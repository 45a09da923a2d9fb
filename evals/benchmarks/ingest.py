"""Documents from their files to the store, beside the embedding model alone and stock LlamaIndex.

ours      the service's ingestor: sandboxed parser, chunker, embedding, one transaction per document
embedder  the model alone over the texts that ours embedded
stock     IngestionPipeline and PGVectorStore with the same model, given our chunks: parsing is not counted against it;
          with notes, also from the files: SimpleDirectoryReader and SentenceSplitter
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.readers import SimpleDirectoryReader
from llama_index.core.schema import TextNode
from llama_index.vector_stores.postgres import PGVectorStore

from evals.benchmarks.database import (
    BENCH_USER,
    BenchDatabase,
    empty_database,
    make_corpus,
    open_bench_database,
    vacuum,
)
from evals.benchmarks.stock import open_stock
from evals.benchmarks.timing import Row, milliseconds_of
from rag_service.domain import CorpusKind
from rag_service.errors import DocumentError, InputError
from rag_service.indices import IndexDefinition, load_index, shipped_folder
from rag_service.ingest.embedding_cache import wrap_embedding
from rag_service.ingest.ingestor import Ingestor
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import WrappedEmbedding, close_embedding, warm_up
from rag_service.readers.file_reader import FileReader
from rag_service.settings import Settings
from rag_service.store.corpora import find_corpus
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.originals import Originals

_CORPUS = "ingest"


@dataclass(frozen=True, kw_only=True)
class IngestBench:
    """The opened parts of a run."""

    database: BenchDatabase
    settings: Settings
    embedding: BaseEmbedding  # the model itself, without caches
    reader: FileReader
    index: IndexDefinition


class RecordingEmbedding(WrappedEmbedding):
    """Passes texts on to a model and keeps them in `texts`."""

    _texts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, inner: BaseEmbedding):
        super().__init__(inner)

    @property
    def texts(self) -> list[str]:
        """What was embedded, in order."""
        return self._texts

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[list[float]]:
        self._texts += texts
        return await super().aget_text_embedding_batch(texts, show_progress, **kwargs)


@asynccontextmanager
async def open_ingest_bench(settings: Settings) -> AsyncIterator[IngestBench]:
    """The benchmarks' database and the parts that the settings name, the model loaded.

    Raises:
        ConfigurationError: a setting is wrong.
        EmbeddingError: the model cannot be used.
    """
    async with open_bench_database(settings) as database:
        embedding = build_embedding(settings)
        try:
            await warm_up(embedding)
            yield IngestBench(
                database=database,
                settings=settings,
                embedding=embedding,
                reader=FileReader(),
                index=load_index(settings.indices.default, indices_path=settings.indices.path),
            )
        finally:
            await close_embedding(embedding)


async def measure_ingest(bench: IngestBench, folder: Path, *, notes: bool = False) -> list[Row]:
    """Chunks per second of each way; the embedder alone runs before and after, and its mean counts.

    `notes`: the folder holds text files only, which stock LlamaIndex reads, too.
    """
    started = time.perf_counter()
    texts = await ingest_folder(bench, folder)
    ours = time.perf_counter() - started
    embedder = await _embed(bench, texts)
    stock = await _ingest_into_stock(bench, texts)
    from_files = await _ingest_files_into_stock(bench, folder) if notes else None
    embedder = (embedder + await _embed(bench, texts)) / 2
    empty_database(bench.database.owner_conninfo)
    ways = {"ours, files to store": ours, "embedding model alone": embedder, "stock, chunks to store": stock}
    if from_files is not None:
        ways["stock, files to store"] = from_files
    return [
        {
            "way": way,
            "chunks": len(texts),
            "seconds": round(seconds, 2),
            "chunks per second": round(len(texts) / seconds, 1),
            "of the embedding model's rate": round(embedder / seconds, 2),
        }
        for way, seconds in ways.items()
    ]


async def ingest_folder(bench: IngestBench, folder: Path) -> list[str]:
    """Replace what the database holds by the documents below a folder; returns the texts that were embedded.

    Files that cannot be read are left out, since a folder holds other files, too.

    Raises:
        InputError: none can be read.
    """
    database, settings = bench.database.database, bench.settings
    empty_database(bench.database.owner_conninfo)
    await make_corpus(bench.database, _CORPUS)
    async with database.transaction(BENCH_USER) as connection:
        corpus = await find_corpus(connection, name=_CORPUS, kind=CorpusKind.PERSONAL)
    assert corpus is not None  # noqa: S101 - just made
    recording = RecordingEmbedding(bench.embedding)
    ingestor = Ingestor(
        database,
        wrap_embedding(recording, settings, database),
        bench.reader,
        model=settings.embedding.model,
        dimension=settings.embedding.dimension,
        originals=Originals(),  # never where RAG_ORIGINALS_URL keeps real ones
    )
    found = ingestor.ingest_all(_read(folder), corpus=corpus, index=bench.index, identity=BENCH_USER)
    async for _, outcome in found:
        if isinstance(outcome, Exception) and not isinstance(outcome, DocumentError):
            raise outcome
    if not recording.texts:
        raise InputError(f"{folder} holds no document that can be read.", field="documents")
    vacuum(bench.database.owner_conninfo)
    return recording.texts


async def _read(folder: Path) -> AsyncIterator[DocumentInput]:
    for file in await asyncio.to_thread(_find_files, folder):
        data = await asyncio.to_thread(file.read_bytes)
        yield DocumentInput(data=data, file_name=file.name, name=file.relative_to(folder).as_posix())


def _find_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def _embed(bench: IngestBench, texts: Sequence[str]) -> float:
    return await milliseconds_of(bench.embedding.aget_text_embedding_batch(list(texts))) / 1000


async def _ingest_into_stock(bench: IngestBench, texts: Sequence[str]) -> float:
    dimension, owner = bench.settings.embedding.dimension, bench.database.owner_conninfo
    async with open_stock(owner, table="bench_ingest", dimension=dimension) as store:
        pipeline = IngestionPipeline(transformations=[bench.embedding], vector_store=store, disable_cache=True)
        return await milliseconds_of(pipeline.arun(nodes=[TextNode(text=text) for text in texts])) / 1000


async def _ingest_files_into_stock(bench: IngestBench, folder: Path) -> float:
    """SimpleDirectoryReader, SentenceSplitter, the same model, PGVectorStore: all of it counts."""
    dimension, owner = bench.settings.embedding.dimension, bench.database.owner_conninfo

    async def ingest(store: PGVectorStore) -> None:
        documents = await asyncio.to_thread(SimpleDirectoryReader(str(folder), recursive=True).load_data)
        steps = [SentenceSplitter(), bench.embedding]
        await IngestionPipeline(transformations=steps, vector_store=store, disable_cache=True).arun(documents=documents)

    async with open_stock(owner, table="bench_ingest", dimension=dimension) as store:
        return await milliseconds_of(ingest(store)) / 1000


def write_notes(folder: Path, number: int, *, seed: int = 7) -> None:
    """Write small text files of 500 bytes from words of the sample documents."""
    chosen = random.Random(seed)  # noqa: S311 - not a secret
    samples = shipped_folder("indices") / "general" / "documents"
    words = " ".join(file.read_text() for file in sorted(samples.glob("*.md"))).split()
    for one in range(number):
        text = f"Note {one}\n\n{' '.join(chosen.choices(words, k=200))}".encode()[:499].decode(errors="ignore")
        (folder / f"note-{one:05}.txt").write_text(f"{text}\n")
