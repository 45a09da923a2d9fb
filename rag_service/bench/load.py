"""Loads the bench corpus through the functions that ingestion uses, into a database of its own."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
from llama_index.core.schema import TextNode
from psycopg import sql

from rag_service.bench.corpus import BenchCorpus
from rag_service.domain import CorpusKind, Identity, Role
from rag_service.errors import ConfigurationError, InputError
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus, find_corpus
from rag_service.store.documents.chunks import CHAR_END, CHAR_START, CHUNK_INDEX, CORPUS_ID, DOCUMENT_ID, LANGUAGE
from rag_service.store.documents.documents import NewDocument, store_document
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import LOCAL_ADMIN_ID, migrate
from rag_service.store.session import Database
from rag_service.store.warming import warm_buffers

Advance = Callable[[int], None]

BENCH_USER = Identity(user_id=UUID(LOCAL_ADMIN_ID), role=Role.ADMIN)
PREFIX = "bench "  # of the names of corpora that a bench made
BYTES_PER_CHUNK = 16_000  # ours and stock's tables with their indexes, and the log of writing them
_DOCUMENTS_A_TRANSACTION = 40


@dataclass(frozen=True, kw_only=True)
class BenchDatabase:
    """The bench's database and how to reach it."""

    database: Database  # as the unprivileged role
    owner_conninfo: str
    service_conninfo: str


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Where the corpus lies in the database."""

    tenants: dict[str, UUID]  # tenant → corpus
    rows: dict[int, int]  # id of the chunk's row → number of the chunk in the bench corpus
    seconds: float | None  # of writing, None when it was there already
    finish_seconds: float | None  # of index and order after the rows

    @property
    def speed(self) -> float | None:
        """Chunks written per second, vector index not counted."""
        return None if not self.seconds else len(self.rows) / self.seconds


async def open_bench_database(settings: Settings, *, chunks: int) -> BenchDatabase:
    """The bench's own database: a folder of its own with the embedded server, else an empty external one.

    Raises:
        InputError: the disk is too full, or the external database holds documents.
        ConfigurationError: an external database without RAG_DATABASE_OWNER_URL.
    """
    if settings.database_url is None:
        folder = settings.data_dir / "bench"
        check_disk(folder, chunks)
        server = await start_embedded_server(folder)
        owner, service = server.owner_conninfo, server.service_conninfo
        await asyncio.to_thread(warm_buffers, server)  # as the service does at its start
    else:
        if settings.database_owner_url is None:
            raise ConfigurationError(
                "The bench creates a table for comparison: set RAG_DATABASE_OWNER_URL.", field="RAG_DATABASE_OWNER_URL"
            )
        owner, service = settings.database_owner_url.get_secret_value(), settings.database_url.get_secret_value()
        refuse_real_data(owner)
    await migrate(owner, service, dimension=settings.embedding_dimension)
    refuse_real_data(owner)
    database = Database(service, pool_size=4, timeout=settings.database_timeout)
    await database.open()
    await database.check()
    return BenchDatabase(database=database, owner_conninfo=owner, service_conninfo=service)


def check_disk(folder: Path, chunks: int) -> None:
    """Refuse to start what the disk cannot hold.

    Raises:
        InputError: less is free than the bench may need.
    """
    folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(folder).free, chunks * BYTES_PER_CHUNK + 500_000_000
    if free < needed:
        raise InputError(
            f"{folder} has {free / 1e9:.1f} GB free, the bench may need {needed / 1e9:.1f} GB; use fewer --chunks."
        )


def check_memory(chunks: int, *, dimension: int) -> None:
    """Refuse to make what the memory cannot hold.

    Raises:
        InputError: texts and vectors of so many chunks take more than is there.
    """
    needed = chunks * (1_500 + 8 * dimension)  # texts; vectors with the noise that they are made of
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory * 3 // 4:
        raise InputError(
            f"{chunks:,} chunks need {needed / 1e9:.1f} GB of memory to make, this machine has {memory / 1e9:.1f} GB;"
            " use fewer."
        )


def refuse_real_data(owner_conninfo: str) -> None:
    """Make sure that the database holds nothing but what a bench put there.

    Raises:
        InputError: it holds a corpus that no bench made.
    """
    with psycopg.connect(owner_conninfo) as connection:
        if connection.execute("SELECT to_regclass('rag.corpora')").fetchone() == (None,):
            return
        found = connection.execute(
            "SELECT name FROM rag.corpora WHERE NOT starts_with(name, %s) LIMIT 1", [PREFIX]
        ).fetchone()
    if found is not None:
        raise InputError(
            f"The database holds the corpus {found[0]!r}; a bench runs in a database of its own, not beside real data."
        )


async def load_corpus(bench: BenchDatabase, corpus: BenchCorpus, advance: Advance) -> Loaded:
    """Write the corpus unless it is there; the vector index is built after the rows, as bulk loads do."""
    name = f"{PREFIX}{corpus.seed}-{len(corpus.texts)}"
    seconds = finish_seconds = None
    if not await _is_loaded(bench, name):
        definition = drop_vector_index(bench.owner_conninfo)
        empty_database(bench.owner_conninfo)
        started = time.perf_counter()
        try:
            await _write(bench.database, corpus, name, advance)
        finally:
            seconds = time.perf_counter() - started
            finish_seconds = finish_load(bench.owner_conninfo, definition)
        await _mark_loaded(bench, name)
    else:
        advance(len(corpus.texts))
    return Loaded(
        tenants=await _corpora(bench.database, name),
        rows=await _rows(bench.database),
        seconds=seconds,
        finish_seconds=finish_seconds,
    )


async def _mark_loaded(bench: BenchDatabase, name: str) -> None:
    async with bench.database.transaction(BENCH_USER) as connection:
        await create_corpus(connection, BENCH_USER, name=f"{name} done", kind=CorpusKind.PERSONAL, index_name="general")


async def _is_loaded(bench: BenchDatabase, name: str) -> bool:
    async with bench.database.transaction(BENCH_USER) as connection:
        return await find_corpus(connection, name=f"{name} done", kind=CorpusKind.PERSONAL) is not None


def empty_database(owner_conninfo: str) -> None:
    """Delete what earlier runs of a bench have left."""
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute("DELETE FROM rag.corpora WHERE starts_with(name, %s)", [PREFIX])
        connection.execute("VACUUM")


async def _write(database: Database, corpus: BenchCorpus, name: str, advance: Advance) -> None:
    tenants: dict[str, UUID] = {}
    async with database.transaction(BENCH_USER) as connection:
        for tenant in dict.fromkeys(corpus.tenants):
            made = await create_corpus(
                connection, BENCH_USER, name=f"{name} {tenant}", kind=CorpusKind.PERSONAL, index_name="general"
            )
            tenants[tenant] = made.id
    documents = list(corpus.documents())
    for start in range(0, len(documents), _DOCUMENTS_A_TRANSACTION):
        async with database.transaction(BENCH_USER) as connection:
            for tenant, chunks in documents[start : start + _DOCUMENTS_A_TRANSACTION]:
                document, nodes = make_document(corpus, chunks, tenants[tenant])
                await store_document(connection, document, nodes)
                advance(len(chunks))


def make_document(corpus: BenchCorpus, chunks: Sequence[int], corpus_id: UUID) -> tuple[NewDocument, list[TextNode]]:
    """A document of the chunks with these numbers, and its nodes with their vectors."""
    document_id = uuid4()
    nodes, start = [], 0
    for index, number in enumerate(chunks):
        metadata = {
            CORPUS_ID: str(corpus_id), DOCUMENT_ID: str(document_id), LANGUAGE: "en", CHUNK_INDEX: index,
            CHAR_START: start, CHAR_END: start + len(corpus.texts[number]),
        }  # fmt: skip
        start += len(corpus.texts[number]) + 1
        nodes.append(
            TextNode(
                id_=str(number), text=corpus.texts[number], metadata=metadata,
                    embedding=corpus.vectors[number].tolist(),
                excluded_embed_metadata_keys=list(metadata), excluded_llm_metadata_keys=list(metadata),
            )
        )  # fmt: skip
    text = "\n".join(corpus.texts[number] for number in chunks)
    document = NewDocument(
        id=document_id,
        corpus_id=corpus_id,
        name=f"{chunks[0]}-{chunks[-1]}",
        title=f"Document {chunks[0]}",
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        fingerprint="bench",
        text=text,
        language="en",
    )
    return document, nodes


def drop_vector_index(owner_conninfo: str) -> str:
    """How to make it again; kept with the table, too, for the run after one that was killed."""
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        row = connection.execute(
            "SELECT coalesce((SELECT indexdef FROM pg_indexes WHERE schemaname = 'rag'"
            " AND indexname = 'data_chunks_embedding'), obj_description('rag.data_chunks'::regclass, 'pg_class'))"
        ).fetchone()
        if row is None or row[0] is None:
            raise InputError("The bench database lacks its vector index; start again with an empty database.")
        note = sql.SQL("COMMENT ON TABLE rag.data_chunks IS {}").format(sql.Literal(row[0]))
        connection.execute(note)
        connection.execute("DROP INDEX IF EXISTS rag.data_chunks_embedding")
    return str(row[0])


def finish_load(owner_conninfo: str, definition: str) -> float:
    """What a bulk load ends with: the vector index, and what autovacuum does after a minute."""
    started = time.perf_counter()
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute(definition)
        connection.execute("VACUUM ANALYZE")
    return time.perf_counter() - started


async def _corpora(database: Database, name: str) -> dict[str, UUID]:
    async with database.transaction(BENCH_USER) as connection:
        cursor = await connection.execute(
            "SELECT substr(name, %s), id FROM corpora WHERE starts_with(name, %s) AND name <> %s",
            [len(name) + 2, f"{name} ", f"{name} done"],
        )
        return dict(await cursor.fetchall())


async def _rows(database: Database) -> dict[int, int]:
    async with database.transaction(BENCH_USER) as connection:
        cursor = await connection.execute("SELECT id, node_id::int FROM data_chunks")
        return dict(await cursor.fetchall())
