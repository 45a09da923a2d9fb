"""The comparison: PGVectorStore as it comes, hybrid, on a table of its own with the same data.

It runs as the owner and without row-level security, which favours it. HNSW has the parameters of its
documentation (m 16, ef_construction 64, ef_search 40); everything else is its default. Only the rows
are written by COPY, since its own one INSERT a node would take minutes and is not what is measured.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from llama_index.vector_stores.postgres import PGVectorStore
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL, create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from rag_service.bench.corpus import BenchCorpus, BenchQuery
from rag_service.bench.load import Advance

_TABLE = "bench_stock"  # stored as data_bench_stock
TENANT = "tenant"
HNSW = {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40}


class StockStore:
    """PGVectorStore with hybrid search over the bench corpus."""

    def __init__(self, store: PGVectorStore):
        self._store = store

    async def search(self, query: BenchQuery, *, tenant: str | None, limit: int) -> list[int]:
        """Numbers of the chunks it returns, in its order; it may return up to twice the limit."""
        filters = None
        if tenant is not None:
            filters = MetadataFilters(filters=[MetadataFilter(key=TENANT, value=tenant)])
        result = await self._store.aquery(
            VectorStoreQuery(
                query_embedding=query.vector.tolist(),
                query_str=query.text,
                similarity_top_k=limit,
                mode=VectorStoreQueryMode.HYBRID,
                filters=filters,
            )
        )
        return [int(identifier) for identifier in result.ids or ()]


@asynccontextmanager
async def open_stock(owner_conninfo: str, corpus: BenchCorpus, advance: Advance) -> AsyncIterator[StockStore]:
    """Fill the table unless it holds this corpus, and open the store on it."""
    async with open_store(owner_conninfo, table=_TABLE, dimension=corpus.vectors.shape[1]) as store:
        if not _is_filled(owner_conninfo, corpus):
            _fill(owner_conninfo, store, corpus, advance)
        else:
            advance(len(corpus.texts))
        yield StockStore(store)


@asynccontextmanager
async def open_store(owner_conninfo: str, *, table: str, dimension: int) -> AsyncIterator[PGVectorStore]:
    """A hybrid PGVectorStore with an HNSW index on a table of its own, which it makes at first use."""
    parts = conninfo_to_dict(owner_conninfo)
    url = URL.create(
        "postgresql+psycopg",
        username=str(parts.get("user") or "") or None,
        password=str(parts.get("password") or "") or None,
        database=str(parts["dbname"]),
        query={key: str(parts[key]) for key in ("host", "port") if parts.get(key)},
    )
    engine = create_engine(url, poolclass=NullPool)
    async_engine = create_async_engine(url)
    try:
        yield PGVectorStore(
            table_name=table,
            schema_name="public",
            hybrid_search=True,
            embed_dim=dimension,
            hnsw_kwargs=HNSW,
            engine=engine,
            async_engine=async_engine,
        )
    finally:
        await async_engine.dispose()
        engine.dispose()


@asynccontextmanager
async def open_empty_store(owner_conninfo: str, *, table: str, dimension: int) -> AsyncIterator[PGVectorStore]:
    """The same on an empty table, made now and dropped at the end."""
    drop = sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier("public", f"data_{table}"))
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute(drop)
    try:
        async with open_store(owner_conninfo, table=table, dimension=dimension) as store:
            store._initialize()
            yield store
    finally:
        with psycopg.connect(owner_conninfo, autocommit=True) as connection:
            connection.execute(drop)


def _is_filled(owner_conninfo: str, corpus: BenchCorpus) -> bool:
    with psycopg.connect(owner_conninfo) as connection:
        row = connection.execute("SELECT obj_description(to_regclass(%s))", [f"public.data_{_TABLE}"]).fetchone()
    return row is not None and row[0] == f"{corpus.seed}-{len(corpus.texts)}"


def _fill(owner_conninfo: str, store: PGVectorStore, corpus: BenchCorpus, advance: Advance) -> None:
    table = sql.Identifier("public", f"data_{_TABLE}")
    index = sql.Identifier("public", f"data_{_TABLE}_embedding_idx")
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    store._initialize()
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        definition = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = %s", [f"data_{_TABLE}_embedding_idx"]
        ).fetchone()
        connection.execute(sql.SQL("DROP INDEX {}").format(index))
        columns = sql.SQL("COPY {} (text, metadata_, node_id, embedding) FROM STDIN").format(table)
        with connection.cursor() as cursor, cursor.copy(columns) as copy:
            for number, (text, vector, tenant) in enumerate(
                zip(corpus.texts, corpus.vectors, corpus.tenants, strict=True)
            ):
                node = TextNode(id_=str(number), text=text, metadata={TENANT: tenant})
                metadata = json.dumps(node_to_metadata_dict(node, remove_text=True, flat_metadata=False))
                copy.write_row((text, metadata, str(number), "[" + ",".join(f"{value:.5g}" for value in vector) + "]"))
                advance(1)
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute(definition[0] if definition else "")  # PostgreSQL's own text
        connection.execute(sql.SQL("VACUUM ANALYZE {}").format(table))
        note = sql.Literal(f"{corpus.seed}-{len(corpus.texts)}")
        connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, note))
