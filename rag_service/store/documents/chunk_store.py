"""The vector store: LlamaIndex's PGVectorStore on our schema, under row-level security.

The parent contributes its table, its node serialisation and its place in LlamaIndex. What it does in the database is
replaced, so that every value is bound and every transaction has an identity.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar, cast
from uuid import UUID

import psycopg
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.vector_stores.postgres import PGVectorStore

from rag_service.domain import Identity
from rag_service.errors import ConflictError, InputError
from rag_service.indices import IndexDefinition
from rag_service.store.corpora import find_default_corpus
from rag_service.store.database import Connection, Database
from rag_service.store.documents.chunks import delete_chunks, read_nodes, write_chunks
from rag_service.store.documents.documents import delete_document
from rag_service.store.documents.external_nodes import describe_conflict, store_nodes
from rag_service.store.documents.node_search import READABLE, find_chunks
from rag_service.store.search.conditions import tree_sql
from rag_service.store.search.metadata_filters import read_metadata_filters
from rag_service.unpicklable import Unpicklable

TABLE = "chunks"  # PGVectorStore stores it as data_chunks
SCHEMA = "rag"

NodeWriter = Callable[[Connection, Sequence[BaseNode]], Awaitable[None]]
_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")
_Method = Callable[_Parameters, Coroutine[Any, Any, _Result]]


def _on_database_loop(method: _Method[_Parameters, _Result]) -> _Method[_Parameters, _Result]:
    """Run a method of the store on the event loop that opened the database, which its connections belong to."""

    @wraps(method)
    async def run(*arguments: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        loop = cast("ChunkStore", arguments[0])._database.loop
        work = method(*arguments, **options)
        if loop is None or loop is asyncio.get_running_loop() or not loop.is_running():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    return run


class ChunkStore(Unpicklable, PGVectorStore):
    """PGVectorStore bound to an identity.

    Nodes of any pipeline are stored with their document, lexical index and statistics in one transaction. Those of one
    `ref_doc_id` are a document of the corpus. They may come in any order and in any batches: LlamaIndex's
    `VectorStoreIndex` sends 2,048 at a time. Nodes that come from another version of the document, which the hash in
    their source tells, replace it.

    The asynchronous methods run on any event loop. The synchronous ones wait for the loop that opened the
    database, so they must be called from another thread than that loop's.
    """

    _database: Database = PrivateAttr()
    _identity: Identity = PrivateAttr()
    _index: IndexDefinition = PrivateAttr()
    _fingerprint: str = PrivateAttr()
    _writer: NodeWriter | None = PrivateAttr(default=None)

    def __init__(
        self, database: Database, identity: Identity, *, dimension: int, index: IndexDefinition, fingerprint: str
    ):
        """`index` and `fingerprint` (of the ingest settings) are stored with what is written to the default corpus."""
        super().__init__(
            table_name=TABLE,
            schema_name=SCHEMA,
            embed_dim=dimension,
            use_jsonb=True,
            use_halfvec=True,
            perform_setup=False,
        )
        self._database = database
        self._identity = identity
        self._index = index
        self._fingerprint = fingerprint

    def bound_to(self, identity: Identity, *, writer: NodeWriter | None = None) -> ChunkStore:
        """The same store for another identity; cheap enough for every request.

        All readable corpora are read, and nodes go to the default one. `writer` stores nodes instead, inside the
        transaction.
        """
        bound: ChunkStore = self.model_copy()
        bound._identity, bound._writer = identity, writer
        return bound

    @classmethod
    def class_name(cls) -> str:
        return "ChunkStore"

    @property
    def client(self) -> Any:
        """The database; part of LlamaIndex's interface."""
        return self._database

    @_on_database_loop
    async def async_add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        """Store embedded nodes with their documents in one transaction; returns their ids.

        A node replaces the one of its id in the same document.

        Raises InputError if an embedding is missing or has another dimension, or if two versions of a document are
        given, ConflictError if another document has a node id, PermissionDeniedError if the identity may not write to
        the corpus.
        """
        # Our pipeline writes [] for a text that the model cannot embed; others have to bring a vector.
        if wrong := [
            node
            for node in nodes
            if len(node.embedding or ()) != self.embed_dim and not (self._writer and node.embedding == [])
        ]:
            raise InputError(
                f"Node {wrong[0].node_id} needs an embedding of {self.embed_dim} numbers; it has"
                f" {len(wrong[0].embedding or ())}."
            )
        try:
            async with self._database.transaction(self._identity) as connection:
                if self._writer is not None:
                    await self._writer(connection, nodes)
                else:
                    await store_nodes(connection, self._identity, nodes, self._index, self._fingerprint)
        except psycopg.errors.UniqueViolation as error:
            async with self._database.transaction(self._identity) as connection:
                raise ConflictError(await describe_conflict(connection, nodes)) from error
        except psycopg.DataError as error:
            raise InputError("A node contains values that cannot be stored.") from error
        return [node.node_id for node in nodes]

    @_on_database_loop
    async def adelete(self, ref_doc_id: str, **_: Any) -> None:
        """Delete a document with everything that belongs to it, by its name in the corpus or its id."""
        async with self._database.transaction(self._identity) as connection:
            corpus = await find_default_corpus(connection, self._identity)
            cursor = await connection.execute(
                "SELECT id FROM documents WHERE id::text = %(ref)s OR (corpus_id = %(corpus)s AND name = %(ref)s)",
                {"ref": ref_doc_id.replace("\0", ""), "corpus": None if corpus is None else corpus.id},
            )
            for (document_id,) in await cursor.fetchall():
                await delete_document(connection, document_id)

    @_on_database_loop
    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_: Any
    ) -> None:
        """Delete nodes by id, by filter, or those that satisfy both; a document without nodes is deleted, too.

        Without ids and filter, nothing is deleted, as in PGVectorStore.
        """
        if not node_ids and filters is None:
            return
        async with self._database.transaction(self._identity) as connection:
            where, parameters = self._conditions(node_ids, filters)
            cursor = await connection.execute(
                f"SELECT c.document_id, array_agg(c.node_id) FROM {READABLE} AND {where} GROUP BY c.document_id",  # noqa: S608 - fixed text
                parameters,
                prepare=False,
            )
            for document_id, gone in await cursor.fetchall():
                await _rewrite_without(connection, document_id, gone)

    @_on_database_loop
    async def aquery(self, query: VectorStoreQuery, **options: Any) -> VectorStoreQueryResult:
        """Search everything that the identity may read, in one of the modes of PGVectorStore (`find_chunks`).

        `options` are `mmr_threshold`, `mmr_prefetch_factor` and `mmr_prefetch_k` of mode `mmr`. A query with filters or
        document ids compares all chunks that satisfy them, without the vector index: exact, but slow where they leave
        tens of thousands. `node_ids` are ignored, as in PGVectorStore: `VectorStoreIndex` fills them with the nodes
        that it also keeps itself (index and image nodes), while all are to be searched.

        Raises InputError if the query lacks what its mode needs, has another mode, or an unsupported filter, and
        SearchTimeoutError if the search takes too long.
        """
        candidates = query.similarity_top_k
        if query.mode is VectorStoreQueryMode.MMR:
            try:
                candidates, threshold = self._prepare_mmr_query(query, **options)
            except ValueError as error:
                raise InputError(f"{error}.") from error
            query = replace(query, mmr_threshold=threshold)
        where = None
        if query.filters is not None or query.doc_ids is not None:
            condition, parameters = self._conditions(None, query.filters)
            if query.doc_ids is not None:
                condition += " AND (d.name = ANY(%(documents)s) OR d.id::text = ANY(%(documents)s))"
                parameters["documents"] = query.doc_ids
            where = condition, parameters
        async with self._database.transaction(self._identity, limited=True) as connection:
            hits = await find_chunks(connection, query, where, rules=self._index.query, candidates=candidates)
            rows = await read_nodes(connection, "id = ANY(%(ids)s)", {"ids": [chunk_id for chunk_id, _ in hits]})
        found = [(rows[chunk_id], score) for chunk_id, score in hits if chunk_id in rows]
        return VectorStoreQueryResult(
            nodes=[node for node, _ in found],
            similarities=[score for _, score in found],
            ids=[node.node_id for node, _ in found],
        )

    @_on_database_loop
    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes by id and filter, as far as the identity may read them. Raises like `aquery`."""
        if node_ids is None and filters is None:
            raise InputError("Name the nodes to read, or a filter.")
        async with self._database.transaction(self._identity, limited=True) as connection:
            where, parameters = self._conditions(node_ids, filters)
            statement = f"SELECT c.id FROM {READABLE} AND {where}"  # noqa: S608 - fixed text
            cursor = await connection.execute(statement, parameters, prepare=False)
            ids = [row[0] for row in await cursor.fetchall()]
            return list((await read_nodes(connection, "id = ANY(%(ids)s)", {"ids": ids})).values())

    async def close(self) -> None:
        """Nothing to do: whoever opened the database closes it."""

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        return self._wait(self.async_add(nodes))

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        self._wait(self.adelete(ref_doc_id))

    def delete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_: Any) -> None:
        self._wait(self.adelete_nodes(node_ids, filters))

    def query(self, query: VectorStoreQuery, **options: Any) -> VectorStoreQueryResult:
        return self._wait(self.aquery(query, **options))

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        return self._wait(self.aget_nodes(node_ids, filters))

    async def aclear(self) -> None:
        self._refuse()

    def clear(self) -> None:
        self._refuse()

    def _initialize(self) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError("This store cannot be set up or cleared through LlamaIndex; delete documents or the corpus.")

    def _wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        loop = self._database.loop
        if loop is None or not loop.is_running() or loop is asyncio._get_running_loop():
            work.close()
            raise InputError("Inside the database's own event loop, use the asynchronous methods of the store.")
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def _conditions(self, node_ids: list[str] | None, filters: MetadataFilters | None) -> tuple[str, dict[str, Any]]:
        """Conditions on nodes `c` and documents `d`, every value bound; no plan of them is worth keeping."""
        conditions, parameters = ["true"], dict[str, Any]()
        if node_ids is not None:
            conditions.append("c.node_id = ANY(%(nodes)s)")
            parameters["nodes"] = [node_id.replace("\0", "") for node_id in node_ids]
        tree = None if filters is None else read_metadata_filters(filters)
        if tree is not None:
            conditions.append(tree_sql(tree, parameters, nodes="c"))
        return " AND ".join(conditions), parameters


async def _rewrite_without(connection: Connection, document_id: UUID, gone: Sequence[str]) -> None:
    """Write a document's other chunks anew: postings are packed per document."""
    kept = await read_nodes(
        connection,
        "document_id = %(document)s AND node_id <> ALL(%(gone)s)",
        {"document": document_id, "gone": list(gone)},
        with_vectors=True,
    )
    if not kept:
        await delete_document(connection, document_id)
        return
    await delete_chunks(connection, document_id)
    await write_chunks(connection, list(kept.values()))
    await connection.execute("UPDATE documents SET chunk_count = %s WHERE id = %s", [len(kept), document_id])
