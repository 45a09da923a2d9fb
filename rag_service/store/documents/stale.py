"""Stale documents: their chunks were made by other settings than those in force.

Searches go on finding them as they are. Chunks that another model embedded are compared with questions
all the same, to no good, so that whoever changes the settings has to be told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from rag_service.domain import Identity
from rag_service.store.documents.uploads import COLUMNS, Upload, to_upload
from rag_service.store.session import Connection

_BEFORE_ALL = UUID(int=0)


@dataclass(frozen=True, kw_only=True)
class StaleIndex:
    """What of an index is stale, in all corpora of all users."""

    index_name: str
    documents: int
    chunks: int


async def count_stale(connection: Connection, fingerprints: Mapping[str, str]) -> list[StaleIndex]:
    """The indexes with stale documents, by name; needs no identity.

    Args:
        connection: inside a transaction.
        fingerprints: index name → fingerprint of its settings in force.
    """
    cursor = await connection.execute(
        "SELECT index_name, documents, chunks FROM rag.count_stale(%s)", [json.dumps(dict(fingerprints))]
    )
    rows = await cursor.fetchall()
    return [StaleIndex(index_name=name, documents=documents, chunks=chunks) for name, documents, chunks in rows]


async def list_stale(
    connection: Connection, fingerprints: Mapping[str, str], *, after: UUID | None, limit: int
) -> list[tuple[UUID, UUID]]:
    """(document, user as whom to make it again) of stale documents that can be; needs no identity.

    Args:
        connection: inside a transaction.
        fingerprints: as for `count_stale`.
        after: the last document of the part before; None: from the first.
        limit: most given back.
    """
    cursor = await connection.execute(
        "SELECT document_id, user_id FROM rag.list_stale(%s, %s, %s)",
        [json.dumps(dict(fingerprints)), after or _BEFORE_ALL, limit],
    )
    return await cursor.fetchall()


async def reopen_upload(connection: Connection, identity: Identity, document_id: UUID) -> Upload | None:
    """An upload that makes a stored document again from its original, pending; its job is the caller's business.

    The document's own is put back; one that was stored without gets one. Until it is done, the document
    is found as it was.

    Returns:
        None where the document is gone, or something of it is waiting.
    """
    cursor = await connection.execute(
        "SELECT FROM documents WHERE id = %s AND NOT EXISTS (SELECT FROM uploads u WHERE u.document_id = %s"
        " AND u.status NOT IN ('indexed', 'failed')) FOR NO KEY UPDATE",
        [document_id, document_id],
    )
    if await cursor.fetchone() is None:
        return None
    cursor = await connection.execute(
        f"""UPDATE uploads u SET status = 'pending', attempts = 0, code = NULL, reason = NULL, done = 0, total = NULL,
                   claim = claim + 1, user_id = %(user)s, updated_at = now(),
                   expires_at = (SELECT d.expires_at FROM documents d WHERE d.id = u.document_id)
            WHERE u.id = (SELECT n.id FROM uploads n JOIN documents d ON d.id = n.document_id
                          WHERE n.document_id = %(document)s AND n.content_hash = d.content_hash
                          ORDER BY n.created_at DESC, n.id LIMIT 1)
            RETURNING {COLUMNS}""",  # noqa: S608 - fixed text
        {"user": identity.user_id, "document": document_id},
    )
    row = await cursor.fetchone()
    if row is None:
        cursor = await connection.execute(
            f"""INSERT INTO uploads (document_id, corpus_id, user_id, content_hash, file_name, title, source, tags,
                                     fields, metadata, size_bytes, expires_at)
                SELECT d.id, d.corpus_id, %(user)s, d.content_hash, coalesce(d.file_name, d.name), d.title, d.source,
                       d.tags, d.fields, d.metadata, d.size_bytes, d.expires_at
                FROM documents d WHERE d.id = %(document)s
                RETURNING {COLUMNS}""",  # noqa: S608 - fixed text
            {"user": identity.user_id, "document": document_id},
        )
        row = await cursor.fetchone()
    return to_upload(row)
