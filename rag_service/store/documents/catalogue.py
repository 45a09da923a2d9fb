"""Documents as users see them: listed, opened, with their chunks. Expired ones are left out."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, LiteralString
from uuid import UUID

from rag_service.domain import Span, read_spans
from rag_service.errors import ConflictError, PermissionDeniedError
from rag_service.store.database import Connection
from rag_service.store.documents.documents import delete_document
from rag_service.store.documents.uploads import UploadStatus
from rag_service.store.rows import LIMIT_MAX, Page, Slice, Table, contains, fetch_page

LIVE = "(d.expires_at IS NULL OR d.expires_at > now())"  # of `documents d`

PURPOSE = (
    "openai_purpose"  # key of the metadata of documents that were uploaded as files, and stay when their corpus goes
)
ANY_PURPOSE = "assistants"  # of other documents
_STATUS = "coalesce(u.status, CASE d.fingerprint WHEN '' THEN 'pending' ELSE 'indexed' END)"
_COLUMNS = f"""d.id, d.corpus_id, d.name, d.title, d.file_name, d.source, d.tags, d.language, d.media_type,
    d.content_hash, d.chunk_count, d.size_bytes, d.expires_at, d.created_at, d.updated_at, d.fields,
    d.metadata - 'reader_warnings' AS metadata,
    d.fingerprint, coalesce(d.metadata -> 'reader_warnings', '[]'::jsonb) AS warnings,
    u.id AS upload_id, u.code, u.reason, coalesce(u.done, 0) AS done, u.total,
    {_STATUS} AS status"""
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
    metadata: Mapping[str, Any] = field(default_factory=dict)  # what file and uploader say of it besides
    warnings: Sequence[str] = ()  # what of the file is not in the text
    upload_id: UUID | None = None  # None: stored directly, or not visible to the reader
    status: UploadStatus = UploadStatus.INDEXED
    code: str | None = None
    reason: str | None = None
    done: int = 0
    total: int | None = None


_DOCUMENTS = Table(_FROM, StoredDocument, columns=_COLUMNS, missing="This document does not exist.")


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


@dataclass(frozen=True, kw_only=True)
class StoredTag:
    """A tag of documents that can be searched."""

    name: str
    documents: int  # that have it


@dataclass(frozen=True, kw_only=True)
class FileChoice:
    """Which documents of one corpus or of all are listed as files, after which one, and in what order."""

    corpus_id: UUID | None = None
    purpose: str | None = None
    status: Sequence[UploadStatus] = ()  # of the newest upload; empty: any
    after: UUID | None = None  # the last one of the page before
    limit: int
    oldest_first: bool = False


class DocumentOrder(StrEnum):
    NEWEST = "newest"
    NAME = "name"
    LARGEST = "largest"


@dataclass(frozen=True, kw_only=True)
class DocumentChoice:
    """Which documents of a corpus are listed, and how."""

    words: str | None = None  # in name or title
    tag: str | None = None
    failed: bool = False  # only those whose newest upload failed
    order: DocumentOrder = DocumentOrder.NEWEST


_ORDERS = {
    DocumentOrder.NEWEST: "d.created_at DESC",
    DocumentOrder.NAME: "lower(coalesce(d.file_name, d.name))",
    DocumentOrder.LARGEST: "d.size_bytes DESC",
}


async def list_documents(
    connection: Connection, corpus_id: UUID, part: Slice, choice: DocumentChoice = DocumentChoice()
) -> Page[StoredDocument]:
    """Documents of a corpus; one that the identity cannot see has none."""
    values = {"corpus": corpus_id, "like": choice.words and contains(choice.words), "tag": choice.tag}
    where = f"WHERE d.corpus_id = %(corpus)s AND {LIVE}"
    if choice.words:
        where += " AND (d.name ILIKE %(like)s OR d.title ILIKE %(like)s OR d.file_name ILIKE %(like)s)"
    if choice.tag:
        where += " AND %(tag)s = ANY(d.tags)"
    if choice.failed:
        where += " AND u.status = 'failed'"
    counted = f"SELECT d.id FROM {_FROM if choice.failed else 'documents d'} {where}"  # noqa: S608 - fixed text
    rest = f"{where} ORDER BY {_ORDERS[choice.order]}, d.id"
    return await _DOCUMENTS.page(connection, part, rest, values, counted=counted)


async def read_documents(
    connection: Connection, corpus_id: UUID, choice: DocumentChoice = DocumentChoice()
) -> list[StoredDocument]:
    """Return all of them, as `list_documents` returns a page."""
    found: list[StoredDocument] = []
    while page := (
        await list_documents(connection, corpus_id, Slice(offset=len(found), limit=LIMIT_MAX), choice)
    ).items:
        found += page
    return found


async def list_files(connection: Connection, choice: FileChoice) -> tuple[StoredDocument, ...]:
    """Documents by the time they were stored; one more than the limit if there are more.

    Raises NotFoundError if the one to go on from is gone.
    """
    values: dict[str, Any] = {
        "corpus": choice.corpus_id,
        "status": list(choice.status),
        "limit": choice.limit + 1,
        "purpose": choice.purpose,
    }
    where = f"WHERE {LIVE}"
    if choice.corpus_id is not None:
        where += " AND d.corpus_id = %(corpus)s"
    if choice.purpose is not None:
        where += f" AND coalesce(d.metadata ->> '{PURPOSE}', '{ANY_PURPOSE}') = %(purpose)s"
    if choice.status:
        where += f" AND {_STATUS} = ANY(%(status)s)"
    if choice.after is not None:
        last = await read_document(connection, choice.after)
        where += f" AND (d.created_at, d.id) {'>' if choice.oldest_first else '<'} (%(at)s, %(after)s)"
        values |= {"at": last.created_at, "after": last.id}
    order = "d.created_at, d.id" if choice.oldest_first else "d.created_at DESC, d.id DESC"
    return await _DOCUMENTS.select(connection, f"{where} ORDER BY {order} LIMIT %(limit)s", values)


async def count_files(
    connection: Connection, corpus_ids: Sequence[UUID]
) -> Mapping[UUID, Mapping[UploadStatus, tuple[int, int]]]:
    """The number of documents and of their bytes, for each corpus that has any, by the state of the newest upload."""
    cursor = await connection.execute(
        f"SELECT d.corpus_id, {_STATUS},"  # noqa: S608 - fixed text
        f" count(*), sum(d.size_bytes)::bigint FROM {_FROM} WHERE d.corpus_id = ANY(%s) AND {LIVE} GROUP BY 1, 2",
        [list(corpus_ids)],
    )
    found: dict[UUID, dict[UploadStatus, tuple[int, int]]] = {}
    for corpus_id, status, number, size in await cursor.fetchall():
        found.setdefault(corpus_id, {})[UploadStatus(status)] = (number, size)
    return found


async def list_tags(connection: Connection, part: Slice) -> Page[StoredTag]:
    """Tags of the documents that the identity may ask about, those of most documents first."""
    return await fetch_page(
        connection,
        StoredTag,
        "SELECT tag AS name, count(DISTINCT d.id) AS documents"  # noqa: S608 - fixed text
        " FROM documents d JOIN corpora c ON c.id = d.corpus_id AND c.active, unnest(d.tags) tag"
        f" WHERE d.tags <> '{{}}' AND d.chunk_count > 0 AND {LIVE} GROUP BY tag ORDER BY documents DESC, name",
        part,
    )


async def read_document(connection: Connection, document_id: UUID) -> StoredDocument:
    """A document by id. Raises NotFoundError if there is none, it has expired, or the identity may not see it."""
    return await _DOCUMENTS.get(connection, f"WHERE d.id = %s AND {LIVE}", [document_id])


async def read_versions(connection: Connection, document_ids: Sequence[UUID]) -> Mapping[UUID, str]:
    """Content hash of each of these documents that the identity can read."""
    query = f"SELECT d.id, d.content_hash FROM documents d WHERE d.id = ANY(%s) AND {LIVE}"  # noqa: S608 - fixed text
    return dict(await (await connection.execute(query, [list(document_ids)])).fetchall())


async def list_chunks(connection: Connection, document_id: UUID, part: Slice) -> Page[StoredChunk]:
    """Chunks of a document in order; a document that the identity cannot see has none."""
    page = await fetch_page(
        connection,
        dict[str, Any],
        "SELECT c.node_id AS id, c.chunk_index AS index, c.text, c.char_start AS start, c.char_end AS end,"  # noqa: S608 - fixed text
        " c.chunk_type AS type, coalesce(c.spans, '[]'::jsonb) AS spans"
        f" FROM data_chunks c JOIN documents d ON d.id = c.document_id"
        f" WHERE c.document_id = %(document)s AND {LIVE} ORDER BY c.chunk_index",
        part,
        {"document": document_id},
    )
    chunks = (StoredChunk(**{**row, "spans": read_spans(row["spans"])}) for row in page.items)
    return Page(items=tuple(chunks), total=page.total)


async def remove_document(connection: Connection, document_id: UUID) -> None:
    """Delete a document with everything of it; what waits to be indexed becomes void.

    Raises NotFoundError like `read_document`, PermissionDeniedError if its corpus is read-only for the identity.
    """
    await read_document(connection, document_id)
    if not await delete_document(connection, document_id):
        raise PermissionDeniedError("You can read this corpus but not change it.")


async def set_expiry(connection: Connection, document_id: UUID, expires_at: datetime | None) -> None:
    """Set when a document expires; None keeps it without limit. After that moment no search finds it.

    Raises NotFoundError like `read_document`, PermissionDeniedError if its corpus is read-only for the identity.
    """
    await _change(connection, document_id, "expires_at = %s", expires_at)
    await connection.execute(
        "UPDATE uploads SET expires_at = %s WHERE document_id = %s AND status NOT IN ('indexed', 'failed')",
        [expires_at, document_id],
    )


async def set_tags(connection: Connection, document_id: UUID, tags: Sequence[str]) -> None:
    """Set the tags of a document, also for when its content is ingested again. Raises as `set_expiry`."""
    await _change(connection, document_id, "tags = %s", list(tags))
    await connection.execute("UPDATE uploads SET tags = %s WHERE document_id = %s", [list(tags), document_id])


async def set_attributes(
    connection: Connection, document_id: UUID, fields: Mapping[str, str], metadata: Mapping[str, Any]
) -> None:
    """Set filter fields and metadata of a document, also for when its content is ingested again.

    Raises as `set_expiry`, and ConflictError while it is being indexed: that would undo it.
    """
    document = await read_document(connection, document_id)
    if not document.status.final:
        raise ConflictError("The file is being indexed. Set its attributes when it is completed.")
    cursor = await connection.execute(
        "UPDATE documents SET fields = %s, metadata = (metadata - %s::text[]) || %s::jsonb WHERE id = %s",
        [json.dumps(fields), list(document.metadata), json.dumps(metadata), document_id],
    )
    if cursor.rowcount == 0:
        raise PermissionDeniedError("You can read this corpus but not change it.")
    await connection.execute(
        "UPDATE uploads SET fields = %s, metadata = %s WHERE document_id = %s",
        [json.dumps(fields), json.dumps(metadata), document_id],
    )


async def _change(connection: Connection, document_id: UUID, change: LiteralString, value: object) -> None:
    await read_document(connection, document_id)
    cursor = await connection.execute(f"UPDATE documents SET {change} WHERE id = %s", [value, document_id])  # noqa: S608 - fixed text
    if cursor.rowcount == 0:
        raise PermissionDeniedError("You can read this corpus but not change it.")


async def read_field_values(connection: Connection, corpus_ids: Sequence[UUID], name: str) -> list[str]:
    """The values of a filter field in the documents of some corpora that the identity may read, sorted."""
    cursor = await connection.execute(
        f"SELECT DISTINCT d.fields ->> %s AS value FROM documents d WHERE d.corpus_id = ANY(%s) AND {LIVE}"  # noqa: S608 - fixed text
        " AND d.fields ->> %s IS NOT NULL ORDER BY value",
        [name, list(corpus_ids), name],
    )
    return [value for (value,) in await cursor.fetchall()]


async def has_documents(connection: Connection, names: Collection[str] | None = None) -> bool:
    """Whether there is a document that the asker may ask about, with one of these file names; None: any."""
    cursor = await connection.execute(
        """SELECT EXISTS (SELECT FROM documents n JOIN corpora k ON k.id = n.corpus_id AND k.active
           WHERE n.chunk_count > 0 AND (n.expires_at IS NULL OR n.expires_at > now())
             AND (%(names)s::text[] IS NULL OR n.file_name = ANY(%(names)s)))""",
        {"names": None if names is None else list(names)},
    )
    return bool((await cursor.fetchone() or (False,))[0])
