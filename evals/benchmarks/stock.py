"""The comparison: LlamaIndex's PGVectorStore as it comes, hybrid, on a table of its own with the same data.

It runs as the owner and without row-level security, which favours it. HNSW has the parameters of its documentation;
everything else is its default.
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

from evals.benchmarks.corpus import BenchCorpus, BenchQuery

_TENANT = "tenant"
_HNSW = {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40}


async def search_stock(store: PGVectorStore, query: BenchQuery, *, tenant: str | None, limit: int) -> None:
    """A hybrid search of the store's own, in a tenant's chunks or (None) in all."""
    filters = MetadataFilters(filters=[MetadataFilter(key=_TENANT, value=tenant)]) if tenant is not None else None
    await store.aquery(
        VectorStoreQuery(
            query_embedding=query.vector.tolist(),
            query_str=query.text,
            similarity_top_k=limit,
            mode=VectorStoreQueryMode.HYBRID,
            filters=filters,
        )
    )


@asynccontextmanager
async def open_stock(owner_conninfo: str, *, table: str, dimension: int) -> AsyncIterator[PGVectorStore]:
    """A hybrid store on a new, empty table `data_<table>`, which is dropped at the end."""
    parts = conninfo_to_dict(owner_conninfo)
    url = URL.create(
        "postgresql+psycopg",
        username=str(parts.get("user") or "") or None,
        password=str(parts.get("password") or "") or None,
        database=str(parts["dbname"]),
        query={key: str(parts[key]) for key in ("host", "port", "passfile") if parts.get(key)},
    )
    engine, async_engine = create_engine(url, poolclass=NullPool), create_async_engine(url)
    _drop(owner_conninfo, table)
    try:
        store = PGVectorStore(
            table_name=table,
            schema_name="public",
            hybrid_search=True,
            embed_dim=dimension,
            hnsw_kwargs=_HNSW,
            engine=engine,
            async_engine=async_engine,
        )
        store._initialize()
        yield store
    finally:
        await async_engine.dispose()
        engine.dispose()
        _drop(owner_conninfo, table)


def _drop(owner_conninfo: str, table: str) -> None:
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier("public", f"data_{table}")))


def fill_stock(owner_conninfo: str, corpus: BenchCorpus, *, table: str) -> None:
    """Copy the corpus into the table: the store's own one INSERT per node takes minutes and is not measured here."""
    name = sql.Identifier("public", f"data_{table}")
    columns = sql.SQL("COPY {} (text, metadata_, node_id, embedding) FROM STDIN").format(name)
    rows = zip(corpus.texts, corpus.vectors, corpus.tenants, strict=True)
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        with connection.cursor() as cursor, cursor.copy(columns) as copy:
            for number, (text, vector, tenant) in enumerate(rows):
                node = TextNode(id_=str(number), text=text, metadata={_TENANT: tenant})
                metadata = json.dumps(node_to_metadata_dict(node, remove_text=True, flat_metadata=False))
                copy.write_row((text, metadata, str(number), "[" + ",".join(f"{value:.5g}" for value in vector) + "]"))
        connection.execute(sql.SQL("VACUUM ANALYZE {}").format(name))
