"""Uploads: accepted documents and their progress.

A worker processes an upload under a *claim*, a number that rises with each claimant. Every later write names its claim,
so a worker that was considered dead and comes back changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from rag_service.domain import Identity
from rag_service.errors import ConflictError, RagError
from rag_service.store.corpora import require_writable
from rag_service.store.database import Connection
from rag_service.store.documents.documents import DocumentInput, NewDocument, delete_document, write_row
from rag_service.store.documents.originals import Originals, forget_earlier_originals
from rag_service.store.rows import Table, fetch_one, fetch_value, find_one

_SUPERSEDED = "A newer version of this file was uploaded."
_MISSING = "This upload does not exist."


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
    """A document as it comes in."""

    source: DocumentInput  # its file name cleaned, its expiry decided
    corpus_id: UUID
    name: str  # unique in the corpus; the same name replaces
    content_hash: str  # SHA-256 of the bytes, hex
    fingerprint: str  # of the ingest settings in force
    id: UUID = field(default_factory=uuid4)
    document_id: UUID = field(default_factory=uuid4)  # of the document, if it is new in the corpus
    received_at: datetime | None = None  # by the database's clock, where it was kept in the meantime; None: now


@dataclass(frozen=True, kw_only=True)
class Upload:
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
    reason: str | None  # the same as a sentence
    done: int  # chunks embedded
    total: int | None  # chunks in all; None until they are cut
    attempts: int
    claim: int
    created_at: datetime  # when it was received: of the versions of a document, the newest counts
    updated_at: datetime


_UPLOADS = Table("uploads", Upload, missing=_MISSING)


class ClaimLostError(RagError):
    """The upload was deleted, replaced, finished, or taken over by another worker: stop, write nothing."""

    code = "claim_lost"


async def accept_upload(
    connection: Connection, identity: Identity, originals: Originals, new: NewUpload
) -> tuple[Upload, bool]:
    """Store document row, bytes and upload in the caller's transaction; whether there is work to do.

    The same content under the same name is accepted once: an indexed or waiting one is returned as it stands, with its
    lifetime renewed. A changed file supersedes what waits under its name; what is indexed under it stays searchable
    until the new version is stored. A file that was kept for a while, and received before another version that is
    indexed or waits, is superseded at once.

    Raises like `require_writable`, and StoreError if the bytes cannot be kept.
    """
    await _clear_expired(connection, new)
    await require_writable(connection, new.corpus_id)
    # Two uploads of one file at the same moment: the second waits, then finds the first.
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"upload:{new.corpus_id}"])
    found = await _find_same(connection, new)
    if found is not None:
        expiry = new.source.expires_at
        await connection.execute("UPDATE documents SET expires_at = %s WHERE id = %s", [expiry, found.document_id])
        await connection.execute("UPDATE uploads SET expires_at = %s WHERE id = %s", [expiry, found.id])
        return found, False
    if (overtaken := await _find_overtaken(connection, new)) is not None:
        return await _insert_upload(connection, identity, new, overtaken, status="failed", code="superseded"), False
    document_id, indexed = await _prepare_document(connection, new)
    await connection.execute(
        "UPDATE uploads SET status = 'failed', code = 'superseded', reason = %s, claim = claim + 1, updated_at = now()"
        " WHERE document_id = %s AND status NOT IN ('indexed', 'failed')",
        [_SUPERSEDED, document_id],
    )
    await originals.write(connection, document_id, new.content_hash, corpus_id=new.corpus_id, data=new.source.data)
    status = "indexed" if indexed else "pending"
    return await _insert_upload(connection, identity, new, document_id, status=status), not indexed


async def hold_upload(connection: Connection, originals: Originals, new: NewUpload) -> UUID:
    """Store document row and bytes without an upload: nobody indexes it. Raises as `accept_upload`."""
    document_id, _ = await _prepare_document(connection, new)
    await originals.write(connection, document_id, new.content_hash, corpus_id=new.corpus_id, data=new.source.data)
    return document_id


async def _find_overtaken(connection: Connection, new: NewUpload) -> UUID | None:
    """The document of this name if another version of it was received later than this one, which was kept.

    A version from the future is one of before the clock was set back.
    """
    query = """SELECT d.id FROM documents d WHERE d.corpus_id = %s AND d.name = %s AND EXISTS (
                   SELECT FROM uploads u WHERE u.document_id = d.id AND u.status <> 'failed'
                   AND u.created_at > %s AND u.created_at <= clock_timestamp())
               FOR KEY SHARE OF d"""
    found: UUID | None = await fetch_value(connection, query, [new.corpus_id, new.name, new.received_at])
    return found


async def _clear_expired(connection: Connection, new: NewUpload) -> None:
    """Delete a document of this name that has expired but is not yet purged."""
    query = "SELECT id FROM documents WHERE corpus_id = %s AND name = %s AND expires_at <= now()"
    expired = await fetch_value(connection, query, [new.corpus_id, new.name])
    if expired is not None:
        await delete_document(connection, expired)


async def _find_same(connection: Connection, new: NewUpload) -> Upload | None:
    """The newest upload of the document of this name and content: waiting, or indexed by the same settings."""
    return await find_one(
        connection,
        Upload,
        """SELECT u.*
           FROM documents d CROSS JOIN LATERAL (
               SELECT * FROM uploads n WHERE n.document_id = d.id ORDER BY n.created_at DESC, n.id LIMIT 1) u
           WHERE d.corpus_id = %(corpus)s AND d.name = %(name)s
             AND (d.expires_at IS NULL OR d.expires_at > now()) AND u.content_hash = %(hash)s
             AND (u.status NOT IN ('indexed', 'failed')
                  OR (u.status = 'indexed' AND d.content_hash = %(hash)s AND d.fingerprint = %(fingerprint)s))
           FOR KEY SHARE OF d""",
        {"corpus": new.corpus_id, "name": new.name, "hash": new.content_hash, "fingerprint": new.fingerprint},
    )


async def _prepare_document(connection: Connection, new: NewUpload) -> tuple[UUID, bool]:
    """(document id, whether this very content is indexed already): the document of this name, else a new row."""
    cursor = await connection.execute(
        "SELECT id, content_hash, fingerprint FROM documents WHERE corpus_id = %s AND name = %s FOR NO KEY UPDATE",
        [new.corpus_id, new.name],
    )
    row = await cursor.fetchone()
    if row is not None and row[2]:  # indexed: stays as it is until the new version is stored
        return row[0], (row[1], row[2]) == (new.content_hash, new.fingerprint)
    source = new.source
    document = NewDocument(
        id=new.document_id if row is None else row[0],
        corpus_id=new.corpus_id,
        name=new.name,
        title=source.title or source.file_name,
        content_hash=new.content_hash,
        fingerprint="",  # marks a document that no version of was ever indexed
        text="",
        file_name=source.file_name,
        source=source.source,
        tags=source.tags,
        fields=source.fields,
        metadata=source.metadata,
        size_bytes=len(source.data),
        expires_at=source.expires_at,
    )
    await write_row(connection, document, chunk_count=0)
    return document.id, False


async def _insert_upload(
    connection: Connection,
    identity: Identity,
    new: NewUpload,
    document_id: UUID,
    *,
    status: str,
    code: str | None = None,
) -> Upload:
    """Store the row of an upload; `code` is `superseded` where there is nothing left to do."""
    source = new.source
    return await fetch_one(
        connection,
        Upload,
        f"""INSERT INTO uploads (id, document_id, corpus_id, user_id, content_hash, file_name, title, source, tags,
                                 fields, metadata, size_bytes, expires_at, status, code, reason, created_at)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
                    least(%s, clock_timestamp()))
            RETURNING {_UPLOADS.columns}""",  # noqa: S608 - fixed text
        [
            new.id, document_id, new.corpus_id, identity.user_id, new.content_hash, source.file_name, source.title,
            source.source, list(source.tags), json.dumps(dict(source.fields)),
            json.dumps(dict(source.metadata), default=str), len(source.data), source.expires_at,
            status, code, _SUPERSEDED if code else None, new.received_at,
        ],
        missing=_MISSING,
    )  # fmt: skip


async def read_upload(connection: Connection, upload_id: UUID) -> Upload:
    """An upload by id. Raises NotFoundError if there is none in a corpus that the identity may write to."""
    return await _UPLOADS.read(connection, upload_id)


async def retry_upload(connection: Connection, upload_id: UUID) -> Upload:
    """Put a failed upload back to pending, its attempts forgotten.

    Raises like `read_upload` and `require_writable`, and ConflictError if it has not failed or was superseded.
    """
    upload = await read_upload(connection, upload_id)
    await require_writable(connection, upload.corpus_id)
    retried = await _UPLOADS.change(
        connection,
        """status = 'pending', attempts = 0, code = NULL, reason = NULL, claim = claim + 1, updated_at = now()
           WHERE id = %s AND status = 'failed' AND code <> 'superseded'""",
        [upload_id],
    )
    if retried is None:
        raise ConflictError("Only a failed upload that no newer one replaced can be tried again.")
    return retried


async def reopen_upload(connection: Connection, identity: Identity, document_id: UUID) -> Upload | None:
    """A pending upload that ingests a stored document again from its original; the caller enqueues its job.

    The newest upload of this version is reused, else one is made. The document stays searchable meanwhile. None if the
    document is gone or another upload of it is waiting.
    """
    cursor = await connection.execute(
        "SELECT FROM documents WHERE id = %s AND NOT EXISTS (SELECT FROM uploads u WHERE u.document_id = %s"
        " AND u.status NOT IN ('indexed', 'failed')) FOR NO KEY UPDATE",
        [document_id, document_id],
    )
    if await cursor.fetchone() is None:
        return None
    parameters = {"user": identity.user_id, "document": document_id}
    reopened = await _UPLOADS.change(
        connection,
        """status = 'pending', attempts = 0, code = NULL, reason = NULL, done = 0, total = NULL, claim = claim + 1,
           user_id = %(user)s, updated_at = now(),
           expires_at = (SELECT d.expires_at FROM documents d WHERE d.id = uploads.document_id)
           WHERE id = (SELECT n.id FROM uploads n JOIN documents d ON d.id = n.document_id
                       WHERE n.document_id = %(document)s AND n.content_hash = d.content_hash
                       ORDER BY n.created_at DESC, n.id LIMIT 1)""",
        parameters,
    )
    return reopened or await find_one(
        connection,
        Upload,
        f"""INSERT INTO uploads (document_id, corpus_id, user_id, content_hash, file_name, title, source, tags,
                                 fields, metadata, size_bytes, expires_at)
            SELECT d.id, d.corpus_id, %(user)s, d.content_hash, coalesce(d.file_name, d.name), d.title, d.source,
                   d.tags, d.fields, d.metadata, d.size_bytes, d.expires_at
            FROM documents d WHERE d.id = %(document)s
            RETURNING {_UPLOADS.columns}""",  # noqa: S608 - fixed text
        parameters,
    )


async def claim_upload(connection: Connection, upload_id: UUID) -> Upload | None:
    """Take over an upload from whoever holds it; None if there is nothing left to do."""
    return await _UPLOADS.change(
        connection,
        """status = 'parsing', claim = claim + 1, attempts = attempts + 1, code = NULL, reason = NULL, done = 0,
           total = NULL, updated_at = now() WHERE id = %s AND status NOT IN ('indexed', 'failed')""",
        [upload_id],
    )


async def hold_claim(connection: Connection, upload: Upload) -> tuple[datetime | None, tuple[str, ...]]:
    """Make sure that a claim holds until the transaction ends; ClaimLostError if it does not.

    Returns when the document expires and the tags that were given, which may have been changed since the claim.
    """
    # Locks are taken in one order everywhere: corpus, document, upload.
    await connection.execute("SELECT FROM documents WHERE id = %s FOR NO KEY UPDATE", [upload.document_id])
    cursor = await connection.execute(
        "SELECT expires_at, tags FROM uploads WHERE id = %s AND claim = %s AND status NOT IN ('indexed', 'failed')"
        " FOR NO KEY UPDATE",
        [upload.id, upload.claim],
    )
    row = await cursor.fetchone()
    if row is None:
        raise ClaimLostError("The upload is no longer this worker's.")
    expires_at, tags = row
    return expires_at, tuple(tags)


async def report_progress(
    connection: Connection, upload: Upload, status: UploadStatus, *, done: int = 0, total: int | None = None
) -> None:
    """Write how far a claimed upload has come. Raises ClaimLostError if the claim no longer holds."""
    await _write(connection, upload, "status = %s, done = %s, total = %s", [status.value, done, total])


async def postpone_upload(connection: Connection, upload: Upload, error: RagError, *, count: bool) -> None:
    """Back to pending with the reason of the delay; an attempt that is not counted was not the document's fault.

    Raises ClaimLostError if the claim no longer holds.
    """
    changes = "status = 'pending', code = %s, reason = %s, attempts = attempts - %s, claim = claim + 1"
    await _write(connection, upload, changes, [error.code, error.message, 0 if count else 1])


async def fail_upload(connection: Connection, upload: Upload, error: RagError) -> None:
    """Give an upload up, with a reason for its uploader. Raises ClaimLostError if the claim no longer holds."""
    await _write(connection, upload, "status = 'failed', code = %s, reason = %s", [error.code, error.message])


async def finish_upload(connection: Connection, upload: Upload, *, chunk_count: int) -> None:
    """Mark an upload as indexed and let go of the originals of earlier versions.

    Raises ClaimLostError if the claim no longer holds.
    """
    await _write(connection, upload, "status = 'indexed', done = %s, total = %s", [chunk_count, chunk_count])
    await forget_earlier_originals(connection, upload.document_id, upload.content_hash)


async def _write(connection: Connection, upload: Upload, changes: str, values: list[Any]) -> None:
    cursor = await connection.execute(
        f"UPDATE uploads SET {changes}, updated_at = now()"  # noqa: S608 - fixed text
        " WHERE id = %s AND claim = %s AND status NOT IN ('indexed', 'failed')",
        [*values, upload.id, upload.claim],
    )
    if cursor.rowcount == 0:
        raise ClaimLostError("The upload is no longer this worker's.")
