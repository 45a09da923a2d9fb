"""The chunks that a search found, read with their documents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rag_service.domain import READER_WARNINGS, Chunk, DocumentRef, read_spans_json
from rag_service.store.database import BigIntegers, Connection

# What LlamaIndex stores of a node besides its metadata.
_NODE_KEYS = ["_node_content", "_node_type", "doc_id", "document_id", "ref_doc_id"]

ChunkRow = tuple[Any, ...]  # a chunk as it is stored, with its document


async def read_chunk_rows(connection: Connection, chunk_ids: Sequence[int]) -> list[ChunkRow]:
    """Chunks by id with the documents they belong to, for `to_chunks`; expired ones are left out."""
    cursor = await connection.execute(
        """SELECT c.id, c.node_id, c.chunk_index, c.text, c.char_start, c.char_end, c.chunk_type,
                  c.spans::text, d.id, d.corpus_id, d.title, d.file_name, d.source, d.tags,
                  d.content_hash, d.updated_at, d.language, d.dated,
                  EXISTS (SELECT FROM tables t WHERE t.document_id = d.id), d.fields,
                  d.metadata - %s::text[], c.metadata_ - %s::text[]
           FROM data_chunks c JOIN documents d ON d.id = c.document_id
           WHERE c.id = ANY(%s) AND (d.expires_at IS NULL OR d.expires_at > now())""",
        [[READER_WARNINGS], _NODE_KEYS, BigIntegers(chunk_ids)],
    )
    return await cursor.fetchall()


async def read_passages(connection: Connection, node_ids: Sequence[str]) -> dict[str, Chunk]:
    """Passages by the id that the API calls `chunkId`; those that the identity cannot search are left out."""
    cursor = await connection.execute(
        """SELECT c.id
           FROM data_chunks c JOIN documents d ON d.id = c.document_id JOIN corpora r ON r.id = d.corpus_id
           WHERE r.active AND c.node_id = ANY(%s)""",
        [[node_id.replace("\0", "") for node_id in node_ids]],
    )
    rows = await read_chunk_rows(connection, [row[0] for row in await cursor.fetchall()])
    return {chunk.id: chunk for chunk in (await asyncio.to_thread(to_chunks, rows)).values()}


MANY_SPANS = 100_000  # characters of all spans of some rows, which take some 30 ms; more are read in a thread


def has_many_spans(rows: Sequence[ChunkRow]) -> bool:
    """Whether `to_chunks` would hold up the event loop."""
    return sum(len(row[7] or "") for row in rows) > MANY_SPANS


def to_chunks(rows: Sequence[ChunkRow]) -> dict[int, Chunk]:
    """Chunks by id."""
    chunks = {}
    for row in rows:
        number, node_id, index, text, start, end, chunk_type, spans, document_id, corpus_id, *rest = row
        title, file_name, source, tags, content_hash, updated_at, language, dated, has_tables, *given = rest
        fields, of_document, of_node = given
        document = DocumentRef(
            id=document_id, corpus_id=corpus_id, title=title, file_name=file_name, source=source,
            tags=tuple(tags), content_hash=content_hash, updated_at=updated_at, language=language,
            dated=dated, has_tables=has_tables,
        )  # fmt: skip
        chunks[number] = Chunk(
            id=node_id, document=document, index=index, text=text, start=start, end=end,
            spans=read_spans_json(spans or "[]"), type=chunk_type, metadata=fields or {},
            extra={**(of_document or {}), **(of_node or {})},
        )  # fmt: skip
    return chunks
