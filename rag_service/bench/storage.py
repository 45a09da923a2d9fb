"""The storage leg alone: nodes with their vectors into PostgreSQL, by ways that do more or less for it.

ours     under row-level security, with postings and statistics of BM25, beside a live HNSW index; and without that
         index, as bulk loads do, which build it afterwards
floor    COPY of the rows that stock would write, made into text beforehand, into a table of nothing else: no
         words, no keys, no identity; with a live HNSW index of stock's parameters, and without
stock    `PGVectorStore.async_add` as the owner of its table, which lets PostgreSQL make a tsvector, with HNSW

All write the same documents, one transaction each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import psycopg
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from psycopg import sql

from rag_service.bench.corpus import BenchCorpus
from rag_service.bench.load import (
    BENCH_USER,
    PREFIX,
    BenchDatabase,
    drop_vector_index,
    empty_database,
    finish_load,
    make_document,
)
from rag_service.bench.stock import HNSW, open_empty_store
from rag_service.domain import CorpusKind
from rag_service.store.corpora import create_corpus
from rag_service.store.documents.documents import NewDocument, store_document
from rag_service.store.search.dense import vector_literal

_TABLE = "bench_storage"  # of stock
_BARE = sql.Identifier("public", "bench_rows")  # of the floor
_SHARE = 0.1  # of the documents, written before the clock runs: prepared statements, caches, files that grow


@dataclass(frozen=True, kw_only=True)
class Rate:
    """So many in so many seconds."""

    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


@dataclass(frozen=True, kw_only=True)
class StorageMeasurement:
    """Nodes per second of each way."""

    ours: Rate
    ours_without_graph: Rate
    floor: Rate
    floor_without_graph: Rate
    stock: Rate | None  # None where it is not asked for


async def measure_storage(bench: BenchDatabase, corpus: BenchCorpus, *, stock: bool) -> StorageMeasurement:
    """Write the corpus in each way, one after the other; what ours wrote with the graph stays."""
    definition = drop_vector_index(bench.owner_conninfo)
    try:
        without_graph = await _write_ours(bench, corpus)
    finally:
        empty_database(bench.owner_conninfo)
        finish_load(bench.owner_conninfo, definition)
    return StorageMeasurement(
        ours=await _write_ours(bench, corpus),
        ours_without_graph=without_graph,
        floor=_copy_rows(bench, corpus, graph=True),
        floor_without_graph=_copy_rows(bench, corpus, graph=False),
        stock=await _write_stock(bench, corpus) if stock else None,
    )


async def _write_ours(bench: BenchDatabase, corpus: BenchCorpus) -> Rate:
    async with bench.database.transaction(BENCH_USER) as connection:
        made = await create_corpus(
            connection, BENCH_USER, name=f"{PREFIX}storage", kind=CorpusKind.PERSONAL, index_name="general"
        )
    documents = [make_document(corpus, chunks, made.id) for _, chunks in corpus.documents()]
    warm_up = _warm_up(len(documents))

    async def write(part: Sequence[tuple[NewDocument, list[TextNode]]]) -> int:
        for document, nodes in part:
            async with bench.database.transaction(BENCH_USER) as connection:
                await store_document(connection, document, nodes)
        return sum(len(nodes) for _, nodes in part)

    await write(documents[:warm_up])
    started = time.perf_counter()
    count = await write(documents[warm_up:])
    return Rate(count=count, seconds=time.perf_counter() - started)


def _copy_rows(bench: BenchDatabase, corpus: BenchCorpus, *, graph: bool) -> Rate:
    documents = [
        [
            (
                node.text,
                msgspec.json.encode(node_to_metadata_dict(node, remove_text=True, flat_metadata=False)).decode(),
                node.node_id,
                vector_literal(node.get_embedding()),
            )
            for node in make_document(corpus, chunks, BENCH_USER.user_id)[1]
        ]
        for _, chunks in corpus.documents()
    ]
    warm_up = _warm_up(len(documents))
    dimension = sql.Literal(corpus.vectors.shape[1])
    with psycopg.connect(bench.owner_conninfo, autocommit=True) as connection:

        def write(part: Sequence[Sequence[tuple[str, ...]]]) -> int:
            for rows in part:
                statement = sql.SQL("COPY {} (text, metadata_, node_id, embedding) FROM STDIN").format(_BARE)
                with connection.transaction(), connection.cursor() as cursor, cursor.copy(statement) as copy:
                    for row in rows:
                        copy.write_row(row)
            return sum(map(len, part))

        drop = sql.SQL("DROP TABLE IF EXISTS {}").format(_BARE)
        columns = "(id bigserial, text text, metadata_ json, node_id text, embedding vector({}))"
        connection.execute(drop)
        connection.execute(sql.SQL("CREATE TABLE {} " + columns).format(_BARE, dimension))
        try:
            if graph:
                index = (
                    "CREATE INDEX ON {} USING hnsw (embedding vector_cosine_ops) WITH (m = {}, ef_construction = {})"
                )
                values = HNSW["hnsw_m"], HNSW["hnsw_ef_construction"]
                connection.execute(sql.SQL(index).format(_BARE, *map(sql.Literal, values)))
            write(documents[:warm_up])
            started = time.perf_counter()
            count = write(documents[warm_up:])
            return Rate(count=count, seconds=time.perf_counter() - started)
        finally:
            connection.execute(drop)


async def _write_stock(bench: BenchDatabase, corpus: BenchCorpus) -> Rate:
    documents = [make_document(corpus, chunks, BENCH_USER.user_id)[1] for _, chunks in corpus.documents()]
    warm_up = _warm_up(len(documents))
    dimension = corpus.vectors.shape[1]
    async with open_empty_store(bench.owner_conninfo, table=_TABLE, dimension=dimension) as store:
        for nodes in documents[:warm_up]:
            await store.async_add(list(nodes))
        started = time.perf_counter()
        for nodes in documents[warm_up:]:
            await store.async_add(list(nodes))
        seconds = time.perf_counter() - started
    return Rate(count=sum(len(nodes) for nodes in documents[warm_up:]), seconds=seconds)


def _warm_up(documents: int) -> int:
    return min(max(1, round(documents * _SHARE)), documents - 1)
