"""`bench growth`: what searching, writing, disk and memory cost as the corpus grows.

For each size the bench's database is filled anew by COPY (`bulk`), searched as the unprivileged role,
and written to as ingestion does, beside the live indexes. The law of each cost is the slope of its
logarithm over that of the size: 0 does not grow, 1 grows in proportion.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import numpy as np
import psycopg

from rag_service.bench.bulk import bulk_load
from rag_service.bench.corpus import EVERYTHING, BenchCorpus, BenchQuery, generate_corpus, generate_queries
from rag_service.bench.exact import nearest, overlap
from rag_service.bench.load import BENCH_USER, Advance, BenchDatabase, make_document
from rag_service.bench.retrieval import TOP, KnownVectors, Times, summarise
from rag_service.bench.storage import Rate
from rag_service.bench.wire import Client, served
from rag_service.definitions import IndexDefinition
from rag_service.domain import Filters
from rag_service.query.retrieval.retriever import Retriever
from rag_service.settings import Settings
from rag_service.store.documents.documents import store_document

TENANT = "1 %"
_WARM_UP = 8
_WRITTEN = 12  # documents written beside the live indexes
_ASKED = 60  # requests before the memory of the served application is read

# What lies in which relations.
_PARTS = {
    "chunks": ("data_chunks", "data_chunks_pkey", "data_chunks_node_id_key", "data_chunks_document_id_chunk_index_key",
               "data_chunks_corpus"),
    "vector index": ("data_chunks_embedding",),
    "postings": ("postings", "postings_term", "postings_document"),
    "statistics": ("term_statistics", "term_statistics_pkey", "corpus_statistics"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Step:
    """The figures of one size."""

    chunks: int
    tenant_chunks: int  # of the tenant with 1 %
    row_seconds: float  # of the bulk load
    index_seconds: float
    tenant: Times  # hybrid search inside the tenant, embedding not counted
    everything: Times
    tenant_recall: float  # of the best ten by cosine, against exact
    everything_recall: float
    write: Rate  # chunks by the way of ingestion, embedding not counted
    sizes: Mapping[str, int]  # part → bytes
    api_memory: int | None  # resident bytes of the served application after some searches
    database_memory: int | None  # bytes of all of PostgreSQL's processes, shared ones counted once


async def measure_growth(
    bench: BenchDatabase,
    settings: Settings,
    index: IndexDefinition,
    *,
    chunks: int,
    queries: int,
    words: int,
    advance: Advance,
) -> Step:
    """Fill the database with `chunks` chunks and measure; `advance` counts chunks loaded.

    Args:
        bench: the opened database; all it holds is replaced.
        settings: of the application that is served to see its memory.
        index: the definition that rules the searches.
        chunks: size of the corpus.
        queries: of each scope.
        words: of a question.
        advance: told of progress.
    """
    corpus = await asyncio.to_thread(generate_corpus, chunks, dimension=settings.embedding_dimension)
    loaded = await asyncio.to_thread(bulk_load, bench.owner_conninfo, corpus, advance)
    found: dict[str, tuple[Times, float]] = {}
    for selectivity in (TENANT, EVERYTHING):
        filters = Filters() if selectivity == EVERYTHING else Filters(corpus_ids=(loaded.tenants[selectivity],))
        asked = generate_queries(corpus, queries, words=words, selectivity=selectivity)
        found[selectivity] = await _search(bench, index, corpus, asked, filters, selectivity, loaded.first_id)
    api_memory = await _api_memory(bench, settings)
    database_memory = _database_memory(bench.owner_conninfo)
    sizes = _sizes(bench.owner_conninfo)
    return Step(
        chunks=chunks,
        tenant_chunks=len(corpus.members(TENANT)),
        row_seconds=round(loaded.row_seconds, 1),
        index_seconds=round(loaded.index_seconds, 1),
        tenant=found[TENANT][0],
        everything=found[EVERYTHING][0],
        tenant_recall=found[TENANT][1],
        everything_recall=found[EVERYTHING][1],
        write=await _write(bench, corpus, loaded.tenants[corpus.tenants[-1]]),
        sizes=sizes,
        api_memory=api_memory,
        database_memory=database_memory,
    )


async def _search(
    bench: BenchDatabase,
    index: IndexDefinition,
    corpus: BenchCorpus,
    queries: Sequence[BenchQuery],
    filters: Filters,
    selectivity: str,
    first_id: int,
) -> tuple[Times, float]:
    embedding = KnownVectors(queries)
    retriever = Retriever(bench.database, embedding, {index.name: index}, default_index=index.name)
    for query in queries[:_WARM_UP]:
        await retriever.search(query.text, identity=BENCH_USER, filters=filters, limit=TOP)
    spent = []
    for query in queries:
        started = time.perf_counter()
        await retriever.search(query.text, identity=BENCH_USER, filters=filters, limit=TOP)
        spent.append((time.perf_counter() - started) * 1000)
    members = corpus.members(selectivity)
    recalls = []
    for query in queries:
        hits = await retriever.search(query.text, identity=BENCH_USER, filters=filters, limit=TOP, mode="dense")
        numbers = await _numbers(bench, [hit.chunk.id for hit in hits.hits], first_id)
        recalls.append(overlap(numbers, nearest(corpus.vectors, members, query.vector, TOP)))
    return summarise(spent), round(float(np.mean(recalls)), 4)


async def _numbers(bench: BenchDatabase, node_ids: Sequence[str], first_id: int) -> list[int]:
    async with bench.database.transaction(BENCH_USER) as connection:
        cursor = await connection.execute("SELECT id FROM data_chunks WHERE node_id = ANY(%s)", [list(node_ids)])
        return [row[0] - first_id for row in await cursor.fetchall()]


async def _write(bench: BenchDatabase, corpus: BenchCorpus, corpus_id: UUID) -> Rate:
    documents = [chunks for _, chunks in corpus.documents()][-_WRITTEN - 1 :]
    count = 0
    started = time.perf_counter()
    for number, chunks in enumerate(documents):
        document, nodes = make_document(corpus, chunks, corpus_id)
        if number == 1:  # the first warms up
            started, count = time.perf_counter(), 0
        async with bench.database.transaction(BENCH_USER) as connection:
            await store_document(connection, document, nodes)
        count += len(nodes)
    return Rate(count=count, seconds=time.perf_counter() - started)


def _sizes(owner_conninfo: str) -> dict[str, int]:
    sizes = {}
    with psycopg.connect(owner_conninfo) as connection:
        for part, relations in _PARTS.items():
            row = connection.execute(
                "SELECT coalesce(sum(pg_table_size(c.oid)), 0) FROM pg_class c"
                " WHERE c.relnamespace = 'rag'::regnamespace AND c.relname = ANY(%s)",
                [list(relations)],
            ).fetchone()
            sizes[part] = int(row[0]) if row is not None else 0
    return sizes


async def _api_memory(bench: BenchDatabase, settings: Settings) -> int | None:
    same = {
        field: getattr(settings, field)
        for field in ("data_dir", "embedding_provider", "embedding_model", "embedding_dimension")
        if getattr(settings, field) is not None
    }
    async with served({**same, "database_url": bench.service_conninfo, "similarity_threshold": 0}) as service:
        async with Client(service.port) as client:
            for number in range(_ASKED):
                await client.post("/api/v1/query", {"query": f"which passage speaks of number {number}?"})
        return _resident(service.pid)


def _resident(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), None)


def _database_memory(owner_conninfo: str) -> int | None:
    """Proportional set size of the server's processes: shared pages are divided among who maps them."""
    with psycopg.connect(owner_conninfo) as connection:
        pids = [row[0] for row in connection.execute("SELECT pid FROM pg_stat_activity").fetchall()]
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace")
        except OSError:  # gone meanwhile, another machine, or another user's
            continue
        total += next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:")), 0)
    return total or None


def slope(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Exponent of the power law through costs over sizes, by least squares of the logarithms; both positive."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
