"""Chunks in the database: written whole, with their postings, and deleted with their document.

The metadata keys are those of LlamaIndex nodes; PGVectorStore's place in this is `chunk_store.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from rag_service.errors import InputError
from rag_service.language.words import frequencies
from rag_service.store.corpora import lock_corpora
from rag_service.store.database import Connection
from rag_service.store.rows import fetch_value
from rag_service.store.search.postings import insert_postings, pack

# Keys of a node's metadata that have a column of their own. Users have a `corpus_id`, too: ours have a prefix.
CORPUS_ID = "rag_corpus_id"
DOCUMENT_ID = "rag_document_id"
CHUNK_INDEX = "rag_chunk_index"
CHAR_START = "rag_char_start"
CHAR_END = "rag_char_end"
CHUNK_TYPE = "chunk_type"
LANGUAGE = "language"
WITHOUT_VECTOR = "rag_without_vector"  # of a node with the vector []: why the model gave none; not stored with it
SPANS = "rag_spans"  # [[start, end, {location}], ...] in document offsets
_VECTOR = "coalesce(embedding::vector::real[], '{}')"
# Chunks of a statement, which updates the frequencies of its terms: all documents of the corpus share them. psycopg
# writes it down on the event loop, some 40 ms for so many chunks of 1,500 characters.
_AT_ONCE = 500

REQUIRED_KEYS = (CORPUS_ID, DOCUMENT_ID, CHUNK_INDEX, CHAR_START, CHAR_END)


async def write_chunks(connection: Connection, nodes: Sequence[BaseNode]) -> list[str]:
    """Write nodes and their postings inside the caller's transaction; returns node ids.

    A node with the embedding [] is stored without a vector, and found by its words. Raises InputError if a node lacks
    one of `REQUIRED_KEYS` or its embedding.
    """
    if not nodes:
        return []
    for node in nodes:
        missing = [key for key in REQUIRED_KEYS if key not in node.metadata]
        if missing or node.embedding is None:
            raise InputError(f"Node {node.node_id} lacks {', '.join(missing) or 'its embedding'}.")
    await lock_corpora(connection, {str(node.metadata[CORPUS_ID]) for node in nodes})
    for start in range(0, len(nodes), _AT_ONCE):
        part = nodes[start : start + _AT_ONCE]
        cursor = await connection.execute(
            "SELECT nextval('rag.data_chunks_id_seq') FROM generate_series(1, %s)", [len(part)]
        )
        ids = [row[0] for row in await cursor.fetchall()]
        prepared = await asyncio.to_thread(_prepare, ids, part)
        await _insert_chunks(connection, prepared.columns)
        for corpus_id, documents in prepared.postings.items():
            await insert_postings(connection, corpus_id, documents)
    return [node.node_id for node in nodes]


async def delete_chunks(connection: Connection, document_id: UUID) -> None:
    """Delete the chunks and postings of a document inside the caller's transaction."""
    corpus_id = await fetch_value(connection, "SELECT corpus_id FROM documents WHERE id = %s", [document_id])
    if corpus_id is None:
        return
    await lock_corpora(connection, {str(corpus_id)})
    await connection.execute("DELETE FROM postings WHERE document_id = %s", [document_id])
    await connection.execute("DELETE FROM data_chunks WHERE document_id = %s", [document_id])


async def read_nodes(
    connection: Connection, where: str, parameters: dict[str, Any], *, with_vectors: bool = False
) -> dict[int, BaseNode]:
    """Nodes by chunk id, in the order of their documents; with vectors also their spans.

    `where` is fixed text with named parameters.
    """
    vector = _VECTOR if with_vectors else "NULL"
    cursor = await connection.execute(
        f"""SELECT id, text, metadata_, spans, {vector},
                   corpus_id::text, document_id::text, chunk_index, char_start, char_end
            FROM data_chunks WHERE {where} ORDER BY document_id, chunk_index""",  # noqa: S608 - fixed text
        parameters,
    )
    nodes = {}
    for chunk_id, text, metadata, spans, embedding, *columns in await cursor.fetchall():
        node = metadata_dict_to_node(metadata)
        node.set_content(text)
        node.metadata |= dict(zip(REQUIRED_KEYS, columns, strict=True))
        if with_vectors:
            node.metadata[SPANS], node.embedding = spans, embedding
        nodes[chunk_id] = node
    return nodes


async def read_vectors(connection: Connection, document_id: UUID) -> dict[str, list[float]]:
    """The vectors of a document's nodes, by node id; [] where there is none."""
    cursor = await connection.execute(
        f"SELECT node_id, {_VECTOR} FROM data_chunks WHERE document_id = %s",  # noqa: S608 - fixed text
        [document_id],
    )
    return dict(await cursor.fetchall())


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    """Chunks as the statements take them."""

    columns: list[list[Any]]
    postings: Mapping[UUID, Mapping[UUID, Mapping[str, bytes]]]  # corpus → document → term → entries


def _prepare(ids: Sequence[int], nodes: Sequence[BaseNode]) -> _Prepared:
    """Count and pack the words of chunks: what takes half a second for a megabyte of text, and runs in a thread."""
    counts = [frequencies(node.get_content(MetadataMode.EMBED), node.metadata.get(LANGUAGE) or "") for node in nodes]
    rows = [
        (
            chunk_id,
            node.get_content(MetadataMode.NONE),
            _json(_serialise(node)),
            node.node_id,
            _json(node.embedding) if node.embedding else None,  # as pgvector reads a vector, too
            str(node.metadata[CORPUS_ID]),
            str(node.metadata[DOCUMENT_ID]),
            node.metadata[CHUNK_INDEX],
            node.metadata.get(CHUNK_TYPE),
            node.metadata[CHAR_START],
            node.metadata[CHAR_END],
            _json(node.metadata.get(SPANS, [])),
            counter.total(),
        )
        for chunk_id, node, counter in zip(ids, nodes, counts, strict=True)
    ]
    return _Prepared(
        columns=[list(column) for column in zip(*rows, strict=True)], postings=_pack_postings(ids, nodes, counts)
    )


async def _insert_chunks(connection: Connection, columns: list[list[Any]]) -> None:
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
        columns,
    )


def _json(value: Any) -> str:
    """A fifth of the time of the standard library's, for the hundreds of numbers of a vector."""
    return msgspec.json.encode(value).decode()


def _serialise(node: BaseNode) -> dict[str, Any]:
    """The node as LlamaIndex stores it, less what has a column of its own."""
    lean = node.model_copy()
    lean.metadata = {key: value for key, value in node.metadata.items() if key not in (SPANS, *REQUIRED_KEYS)}
    serialised: dict[str, Any] = node_to_metadata_dict(lean, remove_text=True, flat_metadata=False)
    return serialised


def _pack_postings(
    ids: Sequence[int], nodes: Sequence[BaseNode], counts: Sequence[Mapping[str, int]]
) -> dict[UUID, dict[UUID, dict[str, bytes]]]:
    places: dict[UUID, dict[UUID, list[int]]] = {}  # corpus → document → places of its nodes
    for place, node in enumerate(nodes):
        corpus_id, document_id = UUID(str(node.metadata[CORPUS_ID])), UUID(str(node.metadata[DOCUMENT_ID]))
        places.setdefault(corpus_id, {}).setdefault(document_id, []).append(place)
    return {
        corpus_id: {
            document_id: pack([ids[place] for place in own], [counts[place] for place in own])
            for document_id, own in documents.items()
        }
        for corpus_id, documents in places.items()
    }
