"""What a sync brought into a corpus: the files of a folder or the pages of a site, each with its document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import psycopg

from rag_service.errors import ConflictError
from rag_service.store.corpora import lock_corpora
from rag_service.store.database import Connection
from rag_service.store.documents.documents import delete_document
from rag_service.store.rows import fetch_all


@dataclass(frozen=True, kw_only=True)
class Version:
    """By what a file is known to be unchanged without reading it."""

    size_bytes: int
    mtime_ns: int = 0  # -1: too recent to be relied on
    etag: str = ""


@dataclass(frozen=True, kw_only=True)
class SyncedFile:
    """A file or page as it was when it was last taken."""

    path: str  # name of the document, unless another sync renamed it
    document_id: UUID
    size_bytes: int
    mtime_ns: int
    etag: str
    content_hash: str  # SHA-256 of the bytes, hex
    brought: bool  # by this sync; false: the document was there before
    document_name: str
    fingerprint: str  # of the stored document
    stored: bool  # the document still has this content

    @property
    def version(self) -> Version:
        return Version(size_bytes=self.size_bytes, mtime_ns=self.mtime_ns, etag=self.etag)


async def lock_target(connection: Connection, corpus_id: UUID, target: str) -> None:
    """Keep other syncs of this target away until the transaction ends, however long it lies idle.

    Raises ConflictError if another one works on it.
    """
    await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = '5s'")
    try:
        await connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"sync:{corpus_id}:{target}"]
        )
    except psycopg.errors.LockNotAvailable as error:
        raise ConflictError(f"Another sync of {target} into this corpus is running; wait for its end.") from error


async def read_synced(connection: Connection, corpus_id: UUID, target: str) -> dict[str, SyncedFile]:
    """The files of a target by path. Expired documents are gone, whether or not they are purged."""
    found = await fetch_all(
        connection,
        SyncedFile,
        """SELECT s.path, s.document_id, s.size_bytes, s.mtime_ns, s.etag, s.content_hash, s.brought,
                  d.name AS document_name, d.fingerprint, d.content_hash = s.content_hash AS stored
           FROM synced_files s JOIN documents d ON d.id = s.document_id
           WHERE s.corpus_id = %s AND s.target = %s AND (d.expires_at IS NULL OR d.expires_at > now())""",
        [corpus_id, target],
    )
    return {file.path: file for file in found}


async def read_foreign_paths(connection: Connection, corpus_id: UUID, target: str) -> dict[str, str]:
    """Path → target, for what syncs of other targets brought into the corpus."""
    query = "SELECT path, target FROM synced_files WHERE corpus_id = %s AND target <> %s AND brought"
    return dict(await (await connection.execute(query, [corpus_id, target])).fetchall())


async def record_file(
    connection: Connection,
    corpus_id: UUID,
    target: str,
    path: str,
    *,
    document_id: UUID,
    version: Version,
    content_hash: str,
    brought: bool | None,
) -> None:
    """Write down that a file was taken.

    `brought`: whether this sync stored the document; None: as its other files say, else no.
    """
    await connection.execute(
        """INSERT INTO synced_files (corpus_id, target, path, document_id, size_bytes, mtime_ns, etag, content_hash,
                                     brought)
           VALUES (%(corpus)s, %(target)s, %(path)s, %(document)s, %(size)s, %(mtime)s, %(etag)s, %(hash)s,
                   coalesce(%(brought)s, EXISTS (SELECT FROM synced_files o WHERE o.corpus_id = %(corpus)s
                            AND o.target = %(target)s AND o.document_id = %(document)s AND o.brought)))
           ON CONFLICT (corpus_id, target, path) DO UPDATE SET
               document_id = excluded.document_id, size_bytes = excluded.size_bytes, mtime_ns = excluded.mtime_ns,
               etag = excluded.etag, content_hash = excluded.content_hash, brought = excluded.brought""",
        {"corpus": corpus_id, "target": target, "path": path, "document": document_id, "size": version.size_bytes,
         "mtime": version.mtime_ns, "etag": version.etag, "hash": content_hash, "brought": brought},
    )  # fmt: skip


async def touch_files(
    connection: Connection, corpus_id: UUID, target: str, versions: Iterable[tuple[str, Version]]
) -> None:
    """Write down new versions of files whose content is the same."""
    rows = [(path, version.size_bytes, version.mtime_ns, version.etag) for path, version in versions]
    if rows:
        await connection.execute(
            """UPDATE synced_files s SET size_bytes = t.size, mtime_ns = t.mtime, etag = t.etag
               FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::text[]) AS t(path, size, mtime, etag)
               WHERE s.corpus_id = %s AND s.target = %s AND s.path = t.path""",
            [*(list(column) for column in zip(*rows, strict=True)), corpus_id, target],
        )


@dataclass(frozen=True, kw_only=True)
class DocumentName:
    """What of a document depends on the name of its file."""

    name: str  # in the corpus
    file_name: str
    title: str  # of a document without one of its own


async def move_file(
    connection: Connection, corpus_id: UUID, target: str, file: SyncedFile, *, old: DocumentName, new: DocumentName,
    version: Version,
) -> bool:  # fmt: skip
    """Give a file and its document another name, keeping the chunks; whether the name was free.

    The title follows where it was made from the file name.
    """
    await lock_corpora(connection, {str(corpus_id)})
    cursor = await connection.execute(
        """UPDATE documents SET name = %(name)s, file_name = %(file)s, updated_at = now(),
                  title = CASE WHEN title = %(old_title)s THEN %(new_title)s ELSE title END
           WHERE id = %(id)s AND NOT EXISTS (SELECT FROM documents o WHERE o.corpus_id = %(corpus)s
                                             AND o.name = %(name)s AND o.id <> %(id)s)""",
        {"id": file.document_id, "corpus": corpus_id, "name": new.name, "file": new.file_name, "old_title": old.title,
         "new_title": new.title},
    )  # fmt: skip
    if cursor.rowcount == 0:
        return False
    await connection.execute(
        "UPDATE synced_files SET path = %s, size_bytes = %s, mtime_ns = %s, etag = %s"
        " WHERE corpus_id = %s AND target = %s AND path = %s",
        [new.name, version.size_bytes, version.mtime_ns, version.etag, corpus_id, target, file.path],
    )
    return True


async def forget_file(connection: Connection, corpus_id: UUID, target: str, file: SyncedFile) -> None:
    """Forget a file that is gone, and delete its document if this sync brought it and no other sync has it."""
    await lock_corpora(connection, {str(corpus_id)})
    await connection.execute(
        "DELETE FROM synced_files WHERE corpus_id = %s AND target = %s AND path = %s", [corpus_id, target, file.path]
    )
    cursor = await connection.execute(
        "UPDATE synced_files SET brought = brought OR %s WHERE document_id = %s", [file.brought, file.document_id]
    )
    if cursor.rowcount == 0 and file.brought:
        await delete_document(connection, file.document_id)
