"""Documents as their readers see them: listed, opened, taken apart. Expired ones are not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from rag_service.domain import Span
from rag_service.errors import NotFoundError, PermissionDeniedError
from rag_service.store.documents.documents import delete_document
from rag_service.store.documents.uploads import UploadStatus
from rag_service.store.paging import Page, Slice, read_page
from rag_service.store.search.hits import read_span
from rag_service.store.session import Connection

LIVE = "(d.expires_at IS NULL OR d.expires_at > now())"  # of `documents d`

_COLUMNS = """d.id, d.corpus_id, d.name, d.title, d.file_name, d.source, d.tags, d.language, d.media_type,
    d.content_hash, d.chunk_count, d.size_bytes, d.expires_at, d.created_at, d.updated_at, d.fields,
    d.fingerprint, u.id, u.status, u.code, u.reason, u.done, u.total"""
_FROM = """documents d LEFT JOIN LATERAL (
    SELECT * FROM uploads n WHERE n.document_id = d.id ORDER BY n.created_at DESC, n.id LIMIT 1) u ON true"""


@dataclass(frozen=True, kw_only=True)
class StoredDocument:
    """A document with the state of its newest upload."""

    id: UUID
    corpus_id: UUID
    name: str
    title: str
    file_name: str | None
    source: str | None
    tags: tuple[str, ...]
    language: str | None
    media_type: str | None
    content_hash: str  # of the version that is searched; before the first is stored, of that
    fingerprint: str  # of the settings that made this version; empty before the first is stored
    chunk_count: int  # 0 until it is indexed for the first time
    size_bytes: int
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    fields: Mapping[str, str] = field(default_factory=dict)
    upload_id: UUID | None = None  # None: stored directly, or not the reader's business
    status: UploadStatus = UploadStatus.INDEXED
    code: str | None = None
    reason: str | None = None
    done: int = 0
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class StoredChunk:
    """A chunk as stored: the slice [start, end) of the document's text."""

    id: str
    index: int
    text: str
    start: int
    end: int
    type: str | None
    spans: tuple[Span, ...]


async def list_documents(connection: Connection, corpus_id: UUID, part: Slice) -> Page[StoredDocument]:
    """Documents of a corpus, newest first; a corpus that the identity cannot see has none."""
    return await read_page(
        connection,
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE d.corpus_id = %(corpus)s AND {LIVE} ORDER BY d.created_at DESC, d.id",  # noqa: S608 - fixed text
        part,
        _to_document,
        {"corpus": corpus_id},
        counted=f"SELECT d.id FROM documents d WHERE d.corpus_id = %(corpus)s AND {LIVE}",  # noqa: S608 - fixed text
    )


async def read_document(connection: Connection, document_id: UUID) -> StoredDocument:
    """A document by id.

    Raises:
        NotFoundError: there is none, it has expired, or the identity may not see it.
    """
    cursor = await connection.execute(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE d.id = %s AND {LIVE}",  # noqa: S608 - fixed text
        [document_id],
    )
    row = await cursor.fetchone()
    if row is None:
        raise _not_found()
    return _to_document(row)


async def list_chunks(connection: Connection, document_id: UUID, part: Slice) -> Page[StoredChunk]:
    """Chunks of a document in order; a document that the identity cannot see has none."""
    return await read_page(
        connection,
        "SELECT c.node_id, c.chunk_index, c.text, c.char_start, c.char_end, c.chunk_type, c.spans"  # noqa: S608 - fixed text
        f" FROM data_chunks c JOIN documents d ON d.id = c.document_id"
        f" WHERE c.document_id = %(document)s AND {LIVE} ORDER BY c.chunk_index",
        part,
        _to_chunk,
        {"document": document_id},
    )


async def remove_document(connection: Connection, document_id: UUID) -> None:
    """Delete a document with everything of it; what waits to be indexed becomes void.

    Raises:
        NotFoundError: as `read_document`.
        PermissionDeniedError: its corpus is read-only for the identity.
    """
    await read_document(connection, document_id)
    if not await delete_document(connection, document_id):
        raise PermissionDeniedError("This corpus is read-only for you.")


async def set_expiry(connection: Connection, document_id: UUID, expires_at: datetime | None) -> None:
    """Set when a document expires; None keeps it for ever. From that second on no search finds it.

    Raises:
        NotFoundError: as `read_document`.
        PermissionDeniedError: its corpus is read-only for the identity.
    """
    await read_document(connection, document_id)
    cursor = await connection.execute("UPDATE documents SET expires_at = %s WHERE id = %s", [expires_at, document_id])
    if cursor.rowcount == 0:
        raise PermissionDeniedError("This corpus is read-only for you.")
    await connection.execute(
        "UPDATE uploads SET expires_at = %s WHERE document_id = %s AND status NOT IN ('indexed', 'failed')",
        [expires_at, document_id],
    )


def _not_found() -> NotFoundError:
    return NotFoundError("There is no such document.")


def _to_document(row: Sequence[Any]) -> StoredDocument:
    *shared, fields, fingerprint, upload_id, status, code, reason, done, total = row
    names = (
        "id", "corpus_id", "name", "title", "file_name", "source", "tags", "language", "media_type", "content_hash",
        "chunk_count", "size_bytes", "expires_at", "created_at", "updated_at",
    )  # fmt: skip
    values = dict(zip(names, shared, strict=True)) | {"tags": tuple(shared[6])}
    if status is None:  # no upload that the reader may see: judge by what is stored
        status = UploadStatus.INDEXED if fingerprint else UploadStatus.PENDING
    return StoredDocument(
        **values,
        fingerprint=fingerprint,
        fields=fields,
        upload_id=upload_id,
        status=UploadStatus(status),
        code=code,
        reason=reason,
        done=done or 0,
        total=total,
    )


def _to_chunk(row: Sequence[Any]) -> StoredChunk:
    id, index, text, start, end, chunk_type, spans = row
    return StoredChunk(
        id=id, index=index, text=text, start=start, end=end, type=chunk_type,
        spans=tuple(read_span(span) for span in spans or ()),
    )  # fmt: skip
