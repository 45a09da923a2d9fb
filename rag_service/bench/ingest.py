"""`bench ingest`: documents from their bytes to the store, beside the embedder alone and stock LlamaIndex.

ours    Ingestor as the product wires it: parser in the sandbox, chunker, embedding with its cache
        (emptied before), one transaction a document under row-level security
floor   the embedder alone over the texts that ours embeds; run before and after, the mean counts
stock   IngestionPipeline + PGVectorStore with the same embedder and database, the same chunks given to it:
        parsing and chunking are not counted against it
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode, MetadataMode

from rag_service.bench.load import BENCH_USER, PREFIX, Advance, BenchDatabase, empty_database, open_bench_database
from rag_service.bench.stock import open_empty_store
from rag_service.bench.storage import Rate
from rag_service.definitions import IndexDefinition, load_index
from rag_service.domain import CorpusKind
from rag_service.errors import DocumentError, InputError
from rag_service.ingest.chunking import TITLE, Chunker, as_llama_document
from rag_service.ingest.embedding_cache import wrap_embedding
from rag_service.ingest.pipeline import DocumentInput, Ingestor, Parser
from rag_service.ingest.sandbox import parse_in_sandbox
from rag_service.models.embedding.embeddings import build_embedding, close_embedding, warm_up
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus, create_corpus
from rag_service.store.documents.chunks import CORPUS_ID, DOCUMENT_ID, LANGUAGE
from rag_service.store.documents.originals import DatabaseOriginals
from rag_service.text.tokens import count_tokens
from rag_service.text.words import detect_language

RUNS = 4  # that `measure_ingest` makes
_TABLE = "bench_ingest"  # of stock


@dataclass(frozen=True, kw_only=True)
class IngestBench:
    """The opened parts of a run."""

    database: BenchDatabase
    settings: Settings
    embedding: BaseEmbedding  # the model itself, without caches
    parser: Parser
    index: IndexDefinition


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Documents with what ingestion makes of them, found out before anything is timed."""

    documents: tuple[DocumentInput, ...]  # those that can be read
    nodes: tuple[tuple[BaseNode, ...], ...]  # the chunks of each
    parse_seconds: float  # of all documents, one after the other

    @property
    def texts(self) -> list[str]:
        """What is embedded, in order."""
        return [node.get_content(MetadataMode.EMBED) for nodes in self.nodes for node in nodes]


@dataclass(frozen=True, kw_only=True)
class IngestMeasurement:
    """Chunks per second of each way."""

    documents: int
    chunks: int
    tokens: int  # embedded
    ours: Rate
    floor: Rate
    stock: Rate | None
    parse_seconds: float  # part of ours, which does it beside the embedding

    @property
    def share_of_floor(self) -> float:
        """Of the embedder's own rate that ours reaches end to end; 1 would be nothing lost."""
        return self.ours.per_second / self.floor.per_second


@asynccontextmanager
async def open_ingest_bench(settings: Settings, *, chunks: int) -> AsyncIterator[IngestBench]:
    """The bench's own database and the parts that the settings name, the model loaded.

    Raises:
        InputError: the disk cannot hold so many chunks, or the database holds real data.
        ConfigurationError: a setting is wrong.
        EmbeddingError: the model cannot be used.
    """
    async with AsyncExitStack() as stack:
        database = await open_bench_database(settings, chunks=chunks)
        stack.push_async_callback(database.database.close)
        embedding = build_embedding(settings)
        stack.push_async_callback(close_embedding, embedding)
        await warm_up(embedding)
        yield IngestBench(
            database=database,
            settings=settings,
            embedding=embedding,
            parser=lambda data, name: parse_in_sandbox(data, file_name=name),
            index=load_index(settings.index, indices_path=settings.indices_path),
        )


async def prepare(bench: IngestBench, path: Path, *, limit: int | None, advance: Advance) -> Prepared:
    """Parse and chunk the documents below a path in the order of their names; at most `limit` of them.

    Raises:
        InputError: none can be read.
    """
    documents: list[DocumentInput] = []
    nodes: list[tuple[BaseNode, ...]] = []
    seconds = 0.0
    for name, file in await asyncio.to_thread(_find_files, path):
        if limit is not None and len(documents) >= limit:
            break
        source = DocumentInput(data=await asyncio.to_thread(file.read_bytes), file_name=file.name, name=name)
        started = time.perf_counter()
        try:
            cut = await _cut(source, bench)
        except DocumentError:
            continue  # a folder holds other files too
        seconds += time.perf_counter() - started
        if cut:
            documents.append(source)
            nodes.append(cut)
        advance(1)
    if not documents:
        raise InputError(f"{path} holds no document that can be read.", field="documents")
    return Prepared(documents=tuple(documents), nodes=tuple(nodes), parse_seconds=seconds)


def _find_files(path: Path) -> list[tuple[str, Path]]:
    """(name in the corpus, file) of everything below a path."""
    if path.is_file():
        return [(path.name, path)]
    return [(file.relative_to(path).as_posix(), file) for file in sorted(path.rglob("*")) if file.is_file()]


async def _cut(source: DocumentInput, bench: IngestBench) -> tuple[BaseNode, ...]:
    parsed = await bench.parser(source.data, source.file_name)
    index = bench.index
    language = parsed.language or detect_language(parsed.text) if index.ingest.language == "auto" else None
    metadata = {
        CORPUS_ID: str(uuid4()),
        DOCUMENT_ID: str(uuid4()),
        LANGUAGE: language or index.ingest.language,
        TITLE: parsed.title,
    }
    return tuple(Chunker(index.ingest)([as_llama_document(parsed.text, parsed.spans, metadata)]))


async def measure_ingest(bench: IngestBench, prepared: Prepared, *, stock: bool, advance: Advance) -> IngestMeasurement:
    """Run every way once, the floor twice; `advance` counts runs.

    Raises:
        InputError: ours stored other chunks than it was given, so that rates could not be compared.
    """
    texts = prepared.texts
    before = await _seconds(bench.embedding.aget_text_embedding_batch(texts))
    advance(1)
    corpus = await _empty_corpus(bench)
    ours = await _seconds(_ingest(bench, prepared.documents, corpus))
    advance(1)
    await _check_stored(bench, corpus, len(texts))
    empty_database(bench.database.owner_conninfo)
    stock_seconds = await _stock(bench, prepared.nodes) if stock else None
    advance(1)
    after = await _seconds(bench.embedding.aget_text_embedding_batch(texts))
    advance(1)
    return IngestMeasurement(
        documents=len(prepared.documents),
        chunks=len(texts),
        tokens=sum(map(count_tokens, texts)),
        ours=Rate(count=len(texts), seconds=ours),
        floor=Rate(count=len(texts), seconds=(before + after) / 2),
        stock=None if stock_seconds is None else Rate(count=len(texts), seconds=stock_seconds),
        parse_seconds=prepared.parse_seconds,
    )


async def ingest_prepared(bench: IngestBench, prepared: Prepared) -> Corpus:
    """Empty the bench's database and ingest the documents as the product does; they stay for searching."""
    corpus = await _empty_corpus(bench)
    await _ingest(bench, prepared.documents, corpus)
    # Autovacuum does so within a minute. Until then a search of a hundred chunks takes 20 ms, after it 10.
    with psycopg.connect(bench.database.owner_conninfo, autocommit=True) as connection:
        connection.execute("ANALYZE")
    return corpus


async def _seconds(work: Awaitable[object]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def _empty_corpus(bench: IngestBench) -> Corpus:
    empty_database(bench.database.owner_conninfo)
    with psycopg.connect(bench.database.owner_conninfo, autocommit=True) as connection:
        connection.execute("TRUNCATE rag.embedding_cache")
    async with bench.database.database.transaction(BENCH_USER) as connection:
        return await create_corpus(
            connection, BENCH_USER, name=f"{PREFIX}ingest", kind=CorpusKind.PERSONAL, index_name=bench.index.name
        )


async def _ingest(bench: IngestBench, documents: Sequence[DocumentInput], corpus: Corpus) -> None:
    database, settings = bench.database.database, bench.settings
    ingestor = Ingestor(
        database,
        wrap_embedding(bench.embedding, settings, database),
        bench.parser,
        model=settings.embedding_model,
        dimension=settings.embedding_dimension,
        originals=DatabaseOriginals(),  # never where RAG_ORIGINALS_URL keeps real ones
    )

    async def sources() -> AsyncIterator[DocumentInput]:
        for document in documents:
            yield document

    found = ingestor.ingest_all(sources(), corpus=corpus, index=bench.index, identity=BENCH_USER)
    async for _, outcome in found:
        if isinstance(outcome, DocumentError):
            raise outcome


async def _check_stored(bench: IngestBench, corpus: Corpus, expected: int) -> None:
    async with bench.database.database.transaction(BENCH_USER) as connection:
        cursor = await connection.execute("SELECT count(*) FROM data_chunks WHERE corpus_id = %s", [corpus.id])
        row = await cursor.fetchone()
    if row is None or row[0] != expected:
        raise InputError(
            f"Ingestion stored {row and row[0]} chunks of {expected}: are there two copies of a document?",
            field="documents",
        )


async def _stock(bench: IngestBench, documents: Sequence[Sequence[BaseNode]]) -> float:
    dimension = bench.settings.embedding_dimension
    async with open_empty_store(bench.database.owner_conninfo, table=_TABLE, dimension=dimension) as store:
        pipeline = IngestionPipeline(transformations=[bench.embedding], vector_store=store, disable_cache=True)
        started = time.perf_counter()
        for nodes in documents:
            # Copies: the pipeline writes the vectors into what it is given.
            await pipeline.arun(nodes=[node.model_copy() for node in nodes])
        return time.perf_counter() - started
