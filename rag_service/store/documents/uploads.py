"""Uploads: what was accepted, and how far it has come."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from rag_service.domain import Identity
from rag_service.errors import ConflictError, NotFoundError
from rag_service.store.corpora import require_writable
from rag_service.store.documents.documents import delete_document
from rag_service.store.documents.originals import OriginalKey, OriginalStore
from rag_service.store.session import Connection

_SUPERSEDED = "A newer version of this file was uploaded."
COLUMNS = """id, document_id, corpus_id, user_id, content_hash, file_name, title, source, tags, fields, metadata,
    size_bytes, expires_at, status, code, reason, done, total, attempts, claim, created_at, updated_at"""
_NAMES = tuple(name.strip() for name in COLUMNS.split(","))


class UploadStatus(StrEnum):
    PENDING = "pending"  # waits for a worker, also between two tries
    PARSING = "parsing"
    CHUNKING = "chunking"
    EMBEDDING = "embedding"
    STORING = "storing"
    INDEXED = "indexed"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        return self in (UploadStatus.INDEXED, UploadStatus.FAILED)


@dataclass(frozen=True, kw_only=True)
class NewUpload:
    """A document as it comes in, names already cleaned."""

    corpus_id: UUID
    name: str  # unique in the corpus; the same name replaces
    file_name: str
    data: bytes
    content_hash: str  # SHA-256 of `data`, hex
    fingerprint: str  # of the ingest settings in force
    title: str | None = None  # None: the document's own
    source: str | None = None
    tags: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Upload:
    """An accepted upload."""

    id: UUID
    document_id: UUID
    corpus_id: UUID
    user_id: UUID | None  # who uploaded; None: deleted since
    content_hash: str
    file_name: str
    title: str | None
    source: str | None
    tags: tuple[str, ...]
    fields: Mapping[str, str]
    metadata: Mapping[str, Any]
    size_bytes: int
    expires_at: datetime | None
    status: UploadStatus
    code: str | None  # of the error that failed or delays it
    reason: str | None  # the same for people
    done: int  # chunks embedded
    total: int | None  # chunks in all; None until they are cut
    attempts: int
    claim: int
    created_at: datetime
    updated_at: datetime


async def accept_upload(
    connection: Connection, identity: Identity, originals: OriginalStore, new: NewUpload
) -> tuple[Upload, bool]:
    """Store document row, bytes and upload in the caller's transaction; whether there is work to do.

    The same content twice is accepted once: an indexed or waiting one is returned as it stands, with
    its lifetime renewed. A changed file supersedes what waits under its name; what is indexed under it
    stays searchable until the new version is stored.

    Raises:
        NotFoundError, PermissionDeniedError, ConflictError: as `require_writable`.
        StoreError: the bytes cannot be kept.
    """
    await _clear_expired(connection, new)
    await require_writable(connection, new.corpus_id)
    # Two uploads of one file at the same moment: the second waits, then finds the first.
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"upload:{new.corpus_id}"])
    found = await _find_same(connection, new)
    if found is not None:
        await _renew(connection, found, new.expires_at)
        return found, False
    document_id, indexed = await _prepare_document(connection, new)
    await connection.execute(
        "UPDATE uploads SET status = 'failed', code = 'superseded', reason = %s, claim = claim + 1, updated_at = now()"
        " WHERE document_id = %s AND status NOT IN ('indexed', 'failed')",
        [_SUPERSEDED, document_id],
    )
    key = OriginalKey(document_id=document_id, content_hash=new.content_hash)
    await originals.write(connection, key, corpus_id=new.corpus_id, data=new.data)
    return await _insert_upload(connection, identity, new, document_id, indexed=indexed), not indexed


async def _clear_expired(connection: Connection, new: NewUpload) -> None:
    """What has expired under this name, but is not yet purged, must not stand in the way."""
    cursor = await connection.execute(
        "SELECT id FROM documents WHERE corpus_id = %s AND name = %s AND expires_at <= now()",
        [new.corpus_id, new.name],
    )
    row = await cursor.fetchone()
    if row is not None:
        await delete_document(connection, row[0])


async def _find_same(connection: Connection, new: NewUpload) -> Upload | None:
    """The newest upload of a document with the same content: waiting, or indexed by the same settings."""
    cursor = await connection.execute(
        f"""SELECT {", ".join("u." + name for name in _NAMES)}
            FROM documents d CROSS JOIN LATERAL (
                SELECT * FROM uploads n WHERE n.document_id = d.id ORDER BY n.created_at DESC, n.id LIMIT 1) u
            WHERE d.corpus_id = %(corpus)s AND (d.name = %(name)s OR d.content_hash = %(hash)s)
              AND (d.expires_at IS NULL OR d.expires_at > now()) AND u.content_hash = %(hash)s
              AND (u.status NOT IN ('indexed', 'failed')
                   OR (u.status = 'indexed' AND d.content_hash = %(hash)s AND d.fingerprint = %(fingerprint)s))
            ORDER BY d.name <> %(name)s LIMIT 1 FOR KEY SHARE OF d""",  # noqa: S608 - fixed text
        {
            "corpus": new.corpus_id, "name": new.name, "hash": new.content_hash, "fingerprint": new.fingerprint,
        },
    )  # fmt: skip
    row = await cursor.fetchone()
    return None if row is None else to_upload(row)


async def _renew(connection: Connection, upload: Upload, expires_at: datetime | None) -> None:
    await connection.execute("UPDATE documents SET expires_at = %s WHERE id = %s", [expires_at, upload.document_id])
    await connection.execute("UPDATE uploads SET expires_at = %s WHERE id = %s", [expires_at, upload.id])


async def _prepare_document(connection: Connection, new: NewUpload) -> tuple[UUID, bool]:
    """(document id, whether this very content is indexed already): the document of this name, else a new row."""
    cursor = await connection.execute(
        "SELECT id, content_hash, fingerprint FROM documents WHERE corpus_id = %s AND name = %s FOR NO KEY UPDATE",
        [new.corpus_id, new.name],
    )
    row = await cursor.fetchone()
    if row is not None and row[2]:  # indexed: stays as it is until the new version is stored
        return row[0], (row[1], row[2]) == (new.content_hash, new.fingerprint)
    document_id = uuid4() if row is None else row[0]
    # An empty fingerprint marks a document that no version of was ever indexed.
    await connection.execute(
        """INSERT INTO documents (id, corpus_id, name, title, file_name, source, tags, content_hash, fingerprint,
                                  fields, metadata, size_bytes, expires_at)
           VALUES (%(id)s, %(corpus)s, %(name)s, %(title)s, %(file_name)s, %(source)s, %(tags)s, %(hash)s, '',
                   %(fields)s, %(metadata)s, %(size)s, %(expires_at)s)
           ON CONFLICT (id) DO UPDATE SET title = excluded.title, file_name = excluded.file_name,
               source = excluded.source, tags = excluded.tags, content_hash = excluded.content_hash,
               fields = excluded.fields, metadata = excluded.metadata, size_bytes = excluded.size_bytes,
               expires_at = excluded.expires_at, updated_at = now()""",
        {
            "id": document_id, "corpus": new.corpus_id, "name": new.name, "title": new.title or new.file_name,
            "file_name": new.file_name, "source": new.source, "tags": list(new.tags), "hash": new.content_hash,
            "fields": json.dumps(dict(new.fields)), "metadata": json.dumps(dict(new.metadata), default=str),
            "size": len(new.data), "expires_at": new.expires_at,
        },
    )  # fmt: skip
    return document_id, False


async def _insert_upload(
    connection: Connection, identity: Identity, new: NewUpload, document_id: UUID, *, indexed: bool
) -> Upload:
    cursor = await connection.execute(
        f"""INSERT INTO uploads (document_id, corpus_id, user_id, content_hash, file_name, title, source, tags, fields,
                                 metadata, size_bytes, expires_at, status, created_at)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, clock_timestamp())
            RETURNING {COLUMNS}""",  # noqa: S608 - fixed text
        [
            document_id, new.corpus_id, identity.user_id, new.content_hash, new.file_name, new.title, new.source,
            list(new.tags), json.dumps(dict(new.fields)), json.dumps(dict(new.metadata), default=str), len(new.data),
            new.expires_at, "indexed" if indexed else "pending",
        ],
    )  # fmt: skip
    return to_upload(await cursor.fetchone())


async def read_upload(connection: Connection, upload_id: UUID) -> Upload:
    """An upload by id.

    Raises:
        NotFoundError: there is none, or its corpus is not the identity's to write to.
    """
    cursor = await connection.execute(f"SELECT {COLUMNS} FROM uploads WHERE id = %s", [upload_id])  # noqa: S608 - fixed text
    return to_upload(await cursor.fetchone())


async def retry_upload(connection: Connection, upload_id: UUID) -> Upload:
    """Put a failed upload back to pending, its attempts forgotten.

    Raises:
        NotFoundError: as `read_upload`.
        PermissionDeniedError: as `require_writable`.
        ConflictError: likewise, or it has not failed, or was superseded.
    """
    upload = await read_upload(connection, upload_id)
    await require_writable(connection, upload.corpus_id)
    cursor = await connection.execute(
        f"""UPDATE uploads SET status = 'pending', attempts = 0, code = NULL, reason = NULL, claim = claim + 1,
                   updated_at = now()
            WHERE id = %s AND status = 'failed' AND code <> 'superseded' RETURNING {COLUMNS}""",  # noqa: S608 - fixed text
        [upload_id],
    )
    row = await cursor.fetchone()
    if row is None:
        raise ConflictError("Only a failed upload that no newer one replaced can be tried again.")
    return to_upload(row)


def to_upload(row: Sequence[Any] | None) -> Upload:
    """An upload from its `COLUMNS`.

    Raises:
        NotFoundError: there is no row.
    """
    if row is None:
        raise NotFoundError("There is no such upload.")
    values = dict(zip(_NAMES, row, strict=True))
    return Upload(**{**values, "status": UploadStatus(values["status"]), "tags": tuple(values["tags"])})
