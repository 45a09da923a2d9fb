"""What a search found, with its text and places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_service.domain import Chunk, DocumentRef, Location, Span
from rag_service.store.parameters import BigIntegers
from rag_service.store.session import Connection

ChunkRow = tuple[Any, ...]  # a chunk as it is stored, with its document


async def read_rows(connection: Connection, chunk_ids: Sequence[int]) -> list[ChunkRow]:
    """Chunks by id with the documents they belong to, for `to_chunks`; expired ones are left out."""
    cursor = await connection.execute(
        """SELECT c.id, c.node_id, c.chunk_index, c.text, c.char_start, c.char_end, c.chunk_type,
                  c.spans, d.id, d.corpus_id, d.title, d.file_name, d.source, d.tags,
                  d.content_hash, d.updated_at, d.fields
           FROM data_chunks c JOIN documents d ON d.id = c.document_id
           WHERE c.id = ANY(%s) AND (d.expires_at IS NULL OR d.expires_at > now())""",
        [BigIntegers(chunk_ids)],
    )
    return await cursor.fetchall()


def to_chunks(rows: Sequence[ChunkRow]) -> dict[int, Chunk]:
    """Chunks by id."""
    return {row[0]: _to_chunk(row) for row in rows}


def _to_chunk(row: ChunkRow) -> Chunk:
    _, node_id, index, text, start, end, chunk_type, spans, document_id, corpus_id, *rest = row
    title, file_name, source, tags, content_hash, updated_at, fields = rest
    return Chunk(
        id=node_id,
        document=DocumentRef(
            id=document_id, corpus_id=corpus_id, title=title, file_name=file_name, source=source,
            tags=tuple(tags), content_hash=content_hash, updated_at=updated_at,
        ),
        index=index, text=text, start=start, end=end, spans=tuple(read_span(span) for span in spans or ()),
        type=chunk_type, metadata=fields or {},
    )  # fmt: skip


def write_span(span: Span) -> list[Any]:
    """A span as stored in a node's metadata: [start, end, {the location's fields that are set}]."""
    location = span.location
    fields = {
        "page": location.page, "headings": list(location.headings), "sheet": location.sheet,
        "cell": location.cell, "row": location.row, "paragraph": location.paragraph,
    }  # fmt: skip
    return [span.start, span.end, {key: value for key, value in fields.items() if value}]


def read_span(stored: Sequence[Any]) -> Span:
    """The inverse of `write_span`."""
    start, end, fields = stored
    headings = tuple(fields.get("headings", ()))
    location = Location(**{**fields, "headings": headings})
    return Span(start=start, end=end, location=location)
