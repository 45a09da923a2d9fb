"""The vector store: LlamaIndex's PGVectorStore on our schema, under row-level security.

What is kept of the parent is its table, its node serialisation and its place in LlamaIndex
(`IngestionPipeline(vector_store=...)`, `VectorStoreIndex.from_vector_store(...)`). What is
replaced, because it was seen to fail (the record is in CONTRIBUTING.md): filters pasted into SQL,
one INSERT per node, DDL at first use, session-wide settings, and connections without an identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn
from uuid import UUID

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQuery, VectorStoreQueryResult
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from llama_index.vector_stores.postgres import PGVectorStore

from rag_service.domain import Filters, Identity
from rag_service.errors import InputError
from rag_service.store.documents.chunks import CORPUS_ID, delete_chunks, write_chunks
from rag_service.store.search.dense import search_dense
from rag_service.store.session import Connection, Database

TABLE = "chunks"  # PGVectorStore stores it as data_chunks
SCHEMA = "rag"


class ChunkStore(PGVectorStore):
    """PGVectorStore bound to an identity; async only.

    `async_add` writes chunks and lexical index in one transaction and needs the metadata keys in
    `REQUIRED_KEYS`, which the ingestion pipeline sets.
    """

    _database: Database = PrivateAttr()
    _identity: Identity = PrivateAttr()

    def __init__(self, database: Database, identity: Identity, *, dimension: int):
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

    def bound_to(self, identity: Identity) -> ChunkStore:
        """The same store for another identity; cheap enough for every request."""
        bound: ChunkStore = self.model_copy()
        bound._identity = identity
        return bound

    @classmethod
    def class_name(cls) -> str:
        return "ChunkStore"

    @property
    def client(self) -> Any:
        """The database; part of LlamaIndex's interface."""
        return self._database

    async def async_add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        """Store embedded nodes with their lexical index in one transaction; returns their ids."""
        async with self._database.transaction(self._identity) as connection:
            return await write_chunks(connection, nodes)

    async def adelete(self, ref_doc_id: str, **_: Any) -> None:
        """Delete the chunks of a document by its id."""
        async with self._database.transaction(self._identity) as connection:
            await delete_chunks(connection, UUID(ref_doc_id))

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_: Any
    ) -> None:
        """Refused: the lexical index is kept per document."""
        raise InputError("Chunks are deleted with their document; delete the document instead.")

    async def aquery(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        """Dense search by cosine over everything the identity may read.

        Hybrid search is the retriever's; this serves LlamaIndex components that talk to a store.

        Raises:
            InputError: the query holds no embedding, or a filter other than equality.
        """
        if query.query_embedding is None:
            raise InputError("The store needs a query embedding; hybrid search is the retriever's.")
        async with self._database.transaction(self._identity) as connection:
            hits = await search_dense(
                connection,
                query.query_embedding,
                filters=_equality_filters(query.filters, query.doc_ids),
                limit=query.similarity_top_k,
            )
            rows = await _read_nodes(connection, [chunk_id for chunk_id, _ in hits])
        found = [(rows[chunk_id], cosine) for chunk_id, cosine in hits if chunk_id in rows]
        return VectorStoreQueryResult(
            nodes=[node for node, _ in found],
            similarities=[cosine for _, cosine in found],
            ids=[node.node_id for node, _ in found],
        )

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes by id, as far as the identity may read them."""
        if filters is not None or node_ids is None:
            raise InputError("Nodes are read by id.")
        async with self._database.transaction(self._identity) as connection:
            cursor = await connection.execute(
                "SELECT text, metadata_ FROM data_chunks WHERE node_id = ANY(%s)", [node_ids]
            )
            return [_to_node(text, metadata) for text, metadata in await cursor.fetchall()]

    async def close(self) -> None:
        """Nothing to do: the database belongs to who opened it."""

    async def aclear(self) -> None:
        self._refuse()

    # The parent's synchronous methods would open connections of their own, without an identity.

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        self._refuse()

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        self._refuse()

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **_: Any) -> None:
        self._refuse()

    def query(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        self._refuse()

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        self._refuse()

    def clear(self) -> None:
        self._refuse()

    def _initialize(self) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError("This store is asynchronous and scoped to an identity; use its async methods.")


async def _read_nodes(connection: Connection, chunk_ids: list[int]) -> dict[int, BaseNode]:
    cursor = await connection.execute("SELECT id, text, metadata_ FROM data_chunks WHERE id = ANY(%s)", [chunk_ids])
    return {chunk_id: _to_node(text, metadata) for chunk_id, text, metadata in await cursor.fetchall()}


def _to_node(text: str, metadata: dict[str, Any]) -> BaseNode:
    node: BaseNode = metadata_dict_to_node(metadata)
    node.set_content(text)
    return node


def _equality_filters(filters: MetadataFilters | None, document_ids: list[str] | None) -> Filters:
    """LlamaIndex filters as ours. Only equality, joined by AND, is understood; the rest is refused."""
    fields: dict[str, Any] = {}
    for item in filters.filters if filters is not None else ():
        if isinstance(item, MetadataFilters) or item.operator.value != "==":
            raise InputError("Filters on the store are equalities joined by AND.")
        fields[item.key] = str(item.value)
    corpus_id = fields.pop(CORPUS_ID, None)
    return Filters(
        corpus_ids=(UUID(corpus_id),) if corpus_id else (),
        document_ids=tuple(UUID(value) for value in document_ids or ()),
        file_name=fields.pop("file_name", None),
        source=fields.pop("source", None),
        fields=fields,
    )
