"""Who may write for an upload.

An upload is worked on under a *claim*, a number that rises with each claimant. Every later write
names its claim, so that a worker which was given up for dead and comes back changes nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from rag_service.errors import RagError
from rag_service.store.documents.originals import OriginalKey, forget_earlier_originals
from rag_service.store.documents.uploads import COLUMNS, Upload, UploadStatus, to_upload
from rag_service.store.session import Connection


class ClaimLostError(RagError):
    """The upload was deleted, replaced, finished, or taken over by another worker: stop, write nothing."""

    code = "claim_lost"


async def claim_upload(connection: Connection, upload_id: UUID) -> Upload | None:
    """Take an upload over, from whoever holds it; None when there is nothing left to do."""
    cursor = await connection.execute(
        f"""UPDATE uploads SET status = 'parsing', claim = claim + 1, attempts = attempts + 1, code = NULL,
                   reason = NULL, done = 0, total = NULL, updated_at = now()
            WHERE id = %s AND status NOT IN ('indexed', 'failed') RETURNING {COLUMNS}""",  # noqa: S608 - fixed text
        [upload_id],
    )
    row = await cursor.fetchone()
    return None if row is None else to_upload(row)


async def hold_claim(connection: Connection, upload: Upload) -> datetime | None:
    """Make sure that a claim still holds, and that nobody takes it before the transaction ends.

    Returns when the document expires, which may have been changed since the claim.

    Raises:
        ClaimLostError: it does not.
    """
    # Locks are taken in one order everywhere: corpus, document, upload.
    await connection.execute("SELECT FROM documents WHERE id = %s FOR NO KEY UPDATE", [upload.document_id])
    cursor = await connection.execute(
        "SELECT expires_at FROM uploads WHERE id = %s AND claim = %s AND status NOT IN ('indexed', 'failed')"
        " FOR NO KEY UPDATE",
        [upload.id, upload.claim],
    )
    row = await cursor.fetchone()
    if row is None:
        raise ClaimLostError("The upload is no longer this worker's.")
    expires_at: datetime | None = row[0]
    return expires_at


async def report_progress(
    connection: Connection, upload: Upload, status: UploadStatus, *, done: int = 0, total: int | None = None
) -> None:
    """Write how far a claimed upload has come.

    Raises:
        ClaimLostError: the claim no longer holds.
    """
    await _write(connection, upload, "status = %s, done = %s, total = %s", [status.value, done, total])


async def postpone_upload(connection: Connection, upload: Upload, error: RagError, *, count: bool = True) -> None:
    """Back to pending with the reason of the delay; an attempt that is not counted was not the document's fault.

    Raises:
        ClaimLostError: the claim no longer holds.
    """
    changes = "status = 'pending', code = %s, reason = %s, attempts = attempts - %s, claim = claim + 1"
    await _write(connection, upload, changes, [error.code, error.message, 0 if count else 1])


async def fail_upload(connection: Connection, upload: Upload, error: RagError) -> None:
    """Give an upload up, with a reason for its uploader.

    Raises:
        ClaimLostError: the claim no longer holds.
    """
    await _write(connection, upload, "status = 'failed', code = %s, reason = %s", [error.code, error.message])


async def finish_upload(connection: Connection, upload: Upload, *, chunk_count: int) -> None:
    """Mark an upload as indexed and let go of the originals of earlier versions.

    Raises:
        ClaimLostError: the claim no longer holds.
    """
    await _write(connection, upload, "status = 'indexed', done = %s, total = %s", [chunk_count, chunk_count])
    await forget_earlier_originals(
        connection, OriginalKey(document_id=upload.document_id, content_hash=upload.content_hash)
    )


async def _write(connection: Connection, upload: Upload, changes: str, values: list[Any]) -> None:
    cursor = await connection.execute(
        f"UPDATE uploads SET {changes}, updated_at = now()"  # noqa: S608 - fixed text
        " WHERE id = %s AND claim = %s AND status NOT IN ('indexed', 'failed')",
        [*values, upload.id, upload.claim],
    )
    if cursor.rowcount == 0:
        raise ClaimLostError("The upload is no longer this worker's.")
