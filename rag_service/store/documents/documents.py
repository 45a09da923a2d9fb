"""Documents: written whole or not at all, replaced in one transaction, deleted with everything they own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any
from uuid import UUID

import psycopg
from llama_index.core.schema import BaseNode

from rag_service.domain import EncodedTable
from rag_service.errors import PermissionDeniedError
from rag_service.store.corpora import lock_corpora
from rag_service.store.database import Connection
from rag_service.store.documents.chunks import delete_chunks, write_chunks
from rag_service.store.rows import fetch_value


@dataclass(frozen=True, kw_only=True)
class DocumentInput:
    """A document as submitted."""

    data: bytes  # the original file
    file_name: str  # untrusted
    name: str | None = None  # unique in the corpus; None: the cleaned file name
    title: str | None = None  # None: the document's own
    source: str | None = None
    tags: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)  # declared filter fields
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class NewDocument:
    """A document ready to be stored."""

    id: UUID  # kept when a document of the same name is replaced
    corpus_id: UUID
    name: str  # unique in the corpus: a relative path, or an id of the uploader's
    title: str
    content_hash: str  # SHA-256 of the original bytes, hex
    fingerprint: str  # of the ingest settings
    text: str  # what chunks are slices of
    file_name: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    language: str | None = None
    media_type: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    territory: str | None = None
    dated: date | None = None  # since when it holds, or of what day it is, as its text tells
    size_bytes: int = 0
    expires_at: datetime | None = None
    tables: tuple[EncodedTable, ...] = ()  # written by `ingest`, which knows how


_LAST_CHARACTER = 2**31 - 2  # PostgreSQL counts with 32 bits
_APART = ("text", "tables")  # in tables of their own
_COLUMNS = [*(field.name for field in fields(NewDocument) if field.name not in _APART), "chunk_count"]
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in ("id", "corpus_id", "name"))
_WRITE = f"""INSERT INTO documents ({", ".join(_COLUMNS)}) VALUES ({", ".join(f"%({name})s" for name in _COLUMNS)})
    ON CONFLICT (id) DO UPDATE SET {_CHANGED}, updated_at = now()
    RETURNING xmax = 0"""  # noqa: S608 - fixed text; a row that has only been inserted has no xmax


@dataclass(frozen=True, kw_only=True)
class DocumentState:
    """What ingestion needs to know of a stored document."""

    id: UUID
    content_hash: str
    fingerprint: str
    chunk_count: int


async def find_document(connection: Connection, corpus_id: UUID, *, name: str) -> DocumentState | None:
    """The document of this name in a corpus."""
    return (await find_documents(connection, corpus_id, names=[name])).get(name)


async def find_documents(connection: Connection, corpus_id: UUID, *, names: Sequence[str]) -> dict[str, DocumentState]:
    """The documents of these names in a corpus, as far as there are any."""
    cursor = await connection.execute(
        "SELECT name, id, content_hash, fingerprint, chunk_count FROM documents"
        " WHERE corpus_id = %s AND name = ANY(%s) AND (expires_at IS NULL OR expires_at > now())",
        [corpus_id, list(names)],
    )
    return {
        name: DocumentState(id=id, content_hash=content_hash, fingerprint=fingerprint, chunk_count=count)
        for name, id, content_hash, fingerprint, count in await cursor.fetchall()
    }


async def store_document(
    connection: Connection,
    document: NewDocument,
    nodes: Sequence[BaseNode],
    *,
    kept: int = 0,
) -> None:
    """Store a document with its chunks inside the caller's transaction, replacing an earlier version and its tables.

    `kept`: how many of its stored chunks stay; they are all of them, and the first of `nodes`.

    Raises PermissionDeniedError if the identity may not write to the corpus.
    """
    await store_documents(connection, [(document, nodes)], kept=kept)


async def store_documents(
    connection: Connection,
    documents: Sequence[tuple[NewDocument, Sequence[BaseNode]]],
    *,
    kept: int = 0,
) -> None:
    """Store documents with their chunks as `store_document` does one, with few statements."""
    ids = [document.id for document, _ in documents]
    corpora = [document.corpus_id for document, _ in documents]
    await lock_corpora(connection, set(map(str, corpora)))
    # A document of this name may have expired and not be purged yet.
    await connection.execute(
        "DELETE FROM documents d USING unnest(%b::uuid[], %b::text[], %b::uuid[]) AS n(corpus_id, name, id)"
        " WHERE d.corpus_id = n.corpus_id AND d.name = n.name AND d.id <> n.id AND d.expires_at <= now()",
        [corpora, [document.name for document, _ in documents], ids],
    )
    counted = [(document, len(nodes)) for document, nodes in documents]
    for document_id, is_new in zip(ids, await write_rows(connection, counted), strict=True):
        if not is_new and not kept:
            await delete_chunks(connection, document_id)
    await connection.execute(
        "INSERT INTO document_texts (document_id, corpus_id, text)"
        " SELECT * FROM unnest(%b::uuid[], %b::uuid[], %b::text[])"
        " ON CONFLICT (document_id) DO UPDATE SET text = excluded.text",
        [ids, corpora, [document.text for document, _ in documents]],
    )
    await write_chunks(connection, [node for _, nodes in documents for node in nodes[kept:]])
    await connection.execute("DELETE FROM tables WHERE document_id = ANY(%b)", [ids])


async def write_row(connection: Connection, document: NewDocument, *, chunk_count: int) -> bool:
    """Insert or update the row of a document, without its text and chunks; whether it is new.

    Raises PermissionDeniedError if the identity may not write to the corpus.
    """
    (is_new,) = await write_rows(connection, [(document, chunk_count)])
    return is_new


async def write_rows(connection: Connection, documents: Sequence[tuple[NewDocument, int]]) -> list[bool]:
    """Write rows of documents with their numbers of chunks as `write_row` does one."""
    values = [
        {
            **{field.name: getattr(document, field.name) for field in fields(document)},
            "tags": list(document.tags),
            "fields": json.dumps(dict(document.fields)),
            "metadata": json.dumps(dict(document.metadata), default=str),
            "chunk_count": chunk_count,
        }
        for document, chunk_count in documents
    ]
    try:
        if len(values) == 1:
            return [await fetch_value(connection, _WRITE, values[0])]
        cursor = connection.cursor()
        await cursor.executemany(_WRITE, values, returning=True)
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("You can read this corpus but not change it.") from error
    are_new: list[bool] = []
    while len(are_new) < len(values):
        are_new += [row[0] for row in await cursor.fetchall()]
        cursor.nextset()
    return are_new


async def read_text(connection: Connection, document_id: UUID) -> str | None:
    """The stored text of a document, which citation offsets count in; None if it does not exist or has expired."""
    text: str | None = await fetch_value(
        connection,
        "SELECT t.text FROM document_texts t JOIN documents d ON d.id = t.document_id"
        " WHERE t.document_id = %s AND (d.expires_at IS NULL OR d.expires_at > now())",
        [document_id],
    )
    return text


async def read_text_part(connection: Connection, document_id: UUID, start: int, end: int) -> tuple[str, int] | None:
    """Characters [start, end) of what `read_text` returns, and the length of the whole, which may be a book."""
    query = (
        "SELECT substring(t.text FROM %s::int FOR %s::int), length(t.text) FROM document_texts t"
        " JOIN documents d ON d.id = t.document_id"
        " WHERE t.document_id = %s AND (d.expires_at IS NULL OR d.expires_at > now())"
    )
    cursor = await connection.execute(query, [min(start, _LAST_CHARACTER) + 1, end - start, document_id])
    return await cursor.fetchone()


async def delete_document(connection: Connection, document_id: UUID) -> bool:
    """Delete a document with its text, chunks and postings; whether there was one."""
    corpus_id = await fetch_value(connection, "SELECT corpus_id FROM documents WHERE id = %s", [document_id])
    if corpus_id is None:
        return False
    await lock_corpora(connection, {str(corpus_id)})
    cursor = await connection.execute("DELETE FROM documents WHERE id = %s", [document_id])
    return cursor.rowcount > 0
