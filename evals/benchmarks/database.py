"""The benchmarks' own database, and loading a generated corpus into it the way ingestion writes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg
from llama_index.core.schema import TextNode

from evals.benchmarks.corpus import BenchCorpus
from rag_service.domain import LOCAL_ADMIN, CorpusKind
from rag_service.settings import Settings
from rag_service.store.corpora import create_corpus, find_corpus
from rag_service.store.database import Database
from rag_service.store.documents.chunks import CHAR_END, CHAR_START, CHUNK_INDEX, CORPUS_ID, DOCUMENT_ID, LANGUAGE
from rag_service.store.documents.documents import NewDocument, store_document
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import migrate
from rag_service.store.warming import warm_buffers

BENCH_USER = LOCAL_ADMIN
_DOCUMENTS_PER_TRANSACTION = 40


@dataclass(frozen=True, kw_only=True)
class BenchDatabase:
    """An open database and how to reach it."""

    database: Database  # as the unprivileged role
    owner_conninfo: str
    service_conninfo: str


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Where a generated corpus is in the database."""

    tenants: dict[str, UUID]  # tenant → corpus
    rows: dict[int, int]  # id of the chunk's row → number of the chunk in the generated corpus


@asynccontextmanager
async def open_bench_database(settings: Settings) -> AsyncIterator[BenchDatabase]:
    """An embedded server in RAG_DATA_DIR/bench, whatever RAG_DATABASE_URL says: real data are never touched.

    Raises:
        StoreError: the server does not start.
    """
    server = await start_embedded_server(settings.database.data_dir / "bench")
    await asyncio.to_thread(warm_buffers, server)  # as the service does when it starts
    await migrate(server.owner_conninfo, server.service_conninfo, dimension=settings.embedding.dimension)
    database = Database(server.service_conninfo, pool_size=4, timeout=settings.database.timeout)
    await database.open()
    try:
        yield BenchDatabase(
            database=database, owner_conninfo=server.owner_conninfo, service_conninfo=server.service_conninfo
        )
    finally:
        await database.close()


async def load_corpus(bench: BenchDatabase, corpus: BenchCorpus) -> Loaded:
    """Write the corpus unless an earlier run completed it; anything else in the database is deleted."""
    name = f"{corpus.seed}-{len(corpus.texts)}"
    marker = f"{name} complete"
    async with bench.database.transaction(BENCH_USER) as connection:
        is_complete = await find_corpus(connection, name=marker, kind=CorpusKind.PERSONAL)
    if not is_complete:
        empty_database(bench.owner_conninfo)
        await _write(bench.database, corpus, name)
        await make_corpus(bench, marker)
        vacuum(bench.owner_conninfo)
    async with bench.database.transaction(BENCH_USER) as connection:
        tenants = await connection.execute(
            "SELECT substr(name, %s), id FROM corpora WHERE starts_with(name, %s) AND name <> %s",
            [len(name) + 2, f"{name} ", marker],
        )
        rows = await connection.execute("SELECT id, node_id::int FROM data_chunks")
        return Loaded(tenants=dict(await tenants.fetchall()), rows=dict(await rows.fetchall()))


async def make_corpus(bench: BenchDatabase, name: str) -> UUID:
    """A new personal corpus of the benchmarks' user."""
    async with bench.database.transaction(BENCH_USER) as connection:
        made = await create_corpus(connection, BENCH_USER, name=name, kind=CorpusKind.PERSONAL, index_name="general")
        return made.id


def empty_database(owner_conninfo: str) -> None:
    """Delete all corpora, with what is in them, and the cached embeddings."""
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute("DELETE FROM rag.corpora")
        connection.execute("TRUNCATE rag.embedding_cache")
        connection.execute("VACUUM")


def vacuum(owner_conninfo: str) -> None:
    """Do now what autovacuum does within a minute of a load; until then searches are twice as slow."""
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


async def _write(database: Database, corpus: BenchCorpus, name: str) -> None:
    tenants: dict[str, UUID] = {}
    async with database.transaction(BENCH_USER) as connection:
        for tenant in dict.fromkeys(corpus.tenants):
            made = await create_corpus(
                connection, BENCH_USER, name=f"{name} {tenant}", kind=CorpusKind.PERSONAL, index_name="general"
            )
            tenants[tenant] = made.id
    documents = list(corpus.documents())
    for start in range(0, len(documents), _DOCUMENTS_PER_TRANSACTION):
        async with database.transaction(BENCH_USER) as connection:
            for tenant, chunks in documents[start : start + _DOCUMENTS_PER_TRANSACTION]:
                document, nodes = _make_document(corpus, chunks, tenants[tenant])
                await store_document(connection, document, nodes)


def _make_document(corpus: BenchCorpus, chunks: Sequence[int], corpus_id: UUID) -> tuple[NewDocument, list[TextNode]]:
    document_id = uuid4()
    nodes, start = [], 0
    for index, number in enumerate(chunks):
        text = corpus.texts[number]
        metadata = {
            CORPUS_ID: str(corpus_id), DOCUMENT_ID: str(document_id), LANGUAGE: "en", CHUNK_INDEX: index,
            CHAR_START: start, CHAR_END: start + len(text),
        }  # fmt: skip
        start += len(text) + 1
        nodes.append(
            TextNode(
                id_=str(number), text=text, metadata=metadata, embedding=corpus.vectors[number].tolist(),
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
