"""The vector store: LlamaIndex's PGVectorStore on our schema, under row-level security.

What is kept of the parent is its table, its node serialisation and its place in LlamaIndex
(`IngestionPipeline(vector_store=...)`, `VectorStoreIndex.from_vector_store(...)`). What is
replaced, because it was seen to fail (the record is in CONTRIBUTING.md): filters pasted into SQL,
one INSERT per node, DDL at first use, session-wide settings, and connections without an identity.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn
from uuid import UUID

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQuery, VectorStoreQueryResult
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
from llama_index.vector_stores.postgres import PGVectorStore

from rag_service.domain import Filters, Identity
from rag_service.errors import InputError
from rag_service.store.dense import search_dense, vector_literal
from rag_service.store.postings import insert_postings, pack
from rag_service.store.session import Connection, Database
from rag_service.text.words import frequencies

TABLE = "chunks"  # PGVectorStore stores it as data_chunks
SCHEMA = "rag"

# Keys of a node's metadata that have a column of their own.
CORPUS_ID = "corpus_id"
DOCUMENT_ID = "document_id"
CHUNK_INDEX = "chunk_index"
CHUNK_TYPE = "chunk_type"
CHAR_START = "char_start"
CHAR_END = "char_end"
LANGUAGE = "language"
SPANS = "spans"  # [[start, end, {location}], ...] in document offsets
REQUIRED_KEYS = (CORPUS_ID, DOCUMENT_ID, CHUNK_INDEX, CHAR_START, CHAR_END)


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


async def write_chunks(connection: Connection, nodes: Sequence[BaseNode]) -> list[str]:
    """Write nodes and their postings inside the caller's transaction; returns node ids.

    Raises:
        InputError: a node lacks one of `REQUIRED_KEYS` or its embedding.
    """
    if not nodes:
        return []
    for node in nodes:
        missing = [key for key in REQUIRED_KEYS if key not in node.metadata]
        if missing or node.embedding is None:
            raise InputError(f"Node {node.node_id} lacks {', '.join(missing) or 'its embedding'}.")
    await lock_corpora(connection, {str(node.metadata[CORPUS_ID]) for node in nodes})
    cursor = await connection.execute(
        "SELECT nextval('rag.data_chunks_id_seq') FROM generate_series(1, %s)", [len(nodes)]
    )
    ids = [row[0] for row in await cursor.fetchall()]
    counts = [frequencies(node.get_content(MetadataMode.EMBED), node.metadata.get(LANGUAGE) or "") for node in nodes]
    await _insert_chunks(connection, ids, nodes, [counter.total() for counter in counts])
    await _insert_postings(connection, ids, nodes, counts)
    return [node.node_id for node in nodes]


async def delete_chunks(connection: Connection, document_id: UUID) -> None:
    """Delete the chunks and postings of a document inside the caller's transaction."""
    cursor = await connection.execute("SELECT corpus_id FROM documents WHERE id = %s", [document_id])
    row = await cursor.fetchone()
    if row is None:
        return
    await lock_corpora(connection, {str(row[0])})
    await connection.execute("DELETE FROM postings WHERE document_id = %s", [document_id])
    await connection.execute("DELETE FROM data_chunks WHERE document_id = %s", [document_id])


async def lock_corpora(connection: Connection, corpus_ids: Iterable[str]) -> None:
    """One writer per corpus at a time: the statistics' rows are shared by all its documents."""
    for corpus_id in sorted(corpus_ids):
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [corpus_id])


async def _insert_chunks(connection: Connection, ids: list[int], nodes: Sequence[BaseNode], lengths: list[int]) -> None:
    rows = [
        (
            chunk_id,
            node.get_content(MetadataMode.NONE),
            json.dumps(_serialise(node)),
            node.node_id,
            vector_literal(node.get_embedding()),
            str(node.metadata[CORPUS_ID]),
            str(node.metadata[DOCUMENT_ID]),
            node.metadata[CHUNK_INDEX],
            node.metadata.get(CHUNK_TYPE),
            node.metadata[CHAR_START],
            node.metadata[CHAR_END],
            json.dumps(node.metadata.get(SPANS, [])),
            length,
        )
        for chunk_id, node, length in zip(ids, nodes, lengths, strict=True)
    ]
    # One statement, its values as parallel arrays: PostgreSQL refuses COPY under row-level security.
    # Binary (%b), because psycopg escapes each text of a textual array with a regular expression.
    await connection.execute(
        """INSERT INTO data_chunks (id, text, metadata_, node_id, embedding, corpus_id, document_id,
                                    chunk_index, chunk_type, char_start, char_end, spans, length)
           OVERRIDING SYSTEM VALUE
           SELECT id, text, metadata::jsonb, node_id, embedding::halfvec, corpus_id::uuid, document_id::uuid,
                  chunk_index, chunk_type, char_start, char_end, spans::jsonb, length
           FROM unnest(%b::bigint[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[],
                       %b::int[], %b::text[], %b::int[], %b::int[], %b::text[], %b::int[])
                AS t(id, text, metadata, node_id, embedding, corpus_id, document_id,
                     chunk_index, chunk_type, char_start, char_end, spans, length)""",
        [list(column) for column in zip(*rows, strict=True)],
    )


def _serialise(node: BaseNode) -> dict[str, Any]:
    """The node as LlamaIndex stores it, less its places, which have a column of their own."""
    lean = node.model_copy()
    lean.metadata = {key: value for key, value in node.metadata.items() if key != SPANS}
    serialised: dict[str, Any] = node_to_metadata_dict(lean, remove_text=True, flat_metadata=False)
    return serialised


async def _insert_postings(
    connection: Connection, ids: list[int], nodes: Sequence[BaseNode], counts: Sequence[Mapping[str, int]]
) -> None:
    documents: dict[tuple[str, str], list[int]] = {}  # (corpus, document) → places of its nodes
    for place, node in enumerate(nodes):
        documents.setdefault((str(node.metadata[CORPUS_ID]), str(node.metadata[DOCUMENT_ID])), []).append(place)
    for (corpus_id, document_id), places in documents.items():
        packed = pack([ids[place] for place in places], [counts[place] for place in places])
        await insert_postings(connection, UUID(corpus_id), UUID(document_id), packed)


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
