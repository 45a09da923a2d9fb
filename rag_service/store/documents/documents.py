"""Documents: written whole or not at all, replaced in one transaction, deleted with all that is theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from llama_index.core.schema import BaseNode

from rag_service.errors import PermissionDeniedError
from rag_service.store.documents.chunks import delete_chunks, lock_corpora, write_chunks
from rag_service.store.session import Connection


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
    size_bytes: int = 0
    expires_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class DocumentState:
    """What ingestion needs to know of a stored document."""

    id: UUID
    name: str
    content_hash: str
    fingerprint: str
    chunk_count: int


async def find_document(
    connection: Connection, corpus_id: UUID, *, name: str, content_hash: str | None = None
) -> DocumentState | None:
    """The document of this name in a corpus, else one of the same content."""
    cursor = await connection.execute(
        "SELECT id, name, content_hash, fingerprint, chunk_count FROM documents"
        " WHERE corpus_id = %(corpus)s AND (name = %(name)s OR content_hash = %(hash)s)"
        " AND (expires_at IS NULL OR expires_at > now()) ORDER BY name <> %(name)s LIMIT 1",
        {"corpus": corpus_id, "name": name, "hash": content_hash},
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    return DocumentState(id=row[0], name=row[1], content_hash=row[2], fingerprint=row[3], chunk_count=row[4])


async def store_document(connection: Connection, document: NewDocument, nodes: Sequence[BaseNode]) -> None:
    """Store a document with its chunks inside the caller's transaction, replacing an earlier version.

    Raises:
        PermissionDeniedError: the identity may not write to the corpus.
    """
    await lock_corpora(connection, {str(document.corpus_id)})
    # One that has expired under this name is as good as gone, but not yet purged.
    await connection.execute(
        "DELETE FROM documents WHERE corpus_id = %s AND name = %s AND id <> %s AND expires_at <= now()",
        [document.corpus_id, document.name, document.id],
    )
    try:
        cursor = await connection.execute(
            """INSERT INTO documents (id, corpus_id, name, title, file_name, source, tags, language, media_type,
                                      content_hash, fingerprint, fields, metadata, territory, size_bytes,
                                      expires_at, chunk_count)
               VALUES (%(id)s, %(corpus_id)s, %(name)s, %(title)s, %(file_name)s, %(source)s, %(tags)s, %(language)s,
                       %(media_type)s, %(content_hash)s, %(fingerprint)s, %(fields)s, %(metadata)s, %(territory)s,
                       %(size_bytes)s, %(expires_at)s, %(chunk_count)s)
               ON CONFLICT (id) DO UPDATE SET
                   title = excluded.title, file_name = excluded.file_name, source = excluded.source,
                   tags = excluded.tags, language = excluded.language, media_type = excluded.media_type,
                   content_hash = excluded.content_hash, fingerprint = excluded.fingerprint,
                   fields = excluded.fields, metadata = excluded.metadata, territory = excluded.territory,
                   size_bytes = excluded.size_bytes, expires_at = excluded.expires_at,
                   chunk_count = excluded.chunk_count, updated_at = now()
               RETURNING xmax = 0""",
            {
                "id": document.id, "corpus_id": document.corpus_id, "name": document.name, "title": document.title,
                "file_name": document.file_name, "source": document.source, "tags": list(document.tags),
                "language": document.language, "media_type": document.media_type,
                "content_hash": document.content_hash, "fingerprint": document.fingerprint,
                "fields": json.dumps(dict(document.fields)),
                "metadata": json.dumps(dict(document.metadata), default=str),
                "territory": document.territory, "size_bytes": document.size_bytes,
                "expires_at": document.expires_at, "chunk_count": len(nodes),
            },
        )  # fmt: skip
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("This corpus is read-only for you.") from error
    if await cursor.fetchone() != (True,):  # a row that has only been inserted has no xmax
        await delete_chunks(connection, document.id)
    await connection.execute(
        "INSERT INTO document_texts (document_id, corpus_id, text) VALUES (%s, %s, %s)"
        " ON CONFLICT (document_id) DO UPDATE SET text = excluded.text",
        [document.id, document.corpus_id, document.text],
    )
    await write_chunks(connection, nodes)


async def read_text(connection: Connection, document_id: UUID) -> str | None:
    """The stored text of a document, which citation offsets count in; None when it is not there, or has expired."""
    cursor = await connection.execute(
        "SELECT t.text FROM document_texts t JOIN documents d ON d.id = t.document_id"
        " WHERE t.document_id = %s AND (d.expires_at IS NULL OR d.expires_at > now())",
        [document_id],
    )
    row = await cursor.fetchone()
    return None if row is None else str(row[0])


async def delete_document(connection: Connection, document_id: UUID) -> bool:
    """Delete a document with its text, chunks and postings; whether there was one."""
    cursor = await connection.execute("SELECT corpus_id FROM documents WHERE id = %s", [document_id])
    row = await cursor.fetchone()
    if row is None:
        return False
    await lock_corpora(connection, {str(row[0])})
    cursor = await connection.execute("DELETE FROM documents WHERE id = %s", [document_id])
    return cursor.rowcount > 0
