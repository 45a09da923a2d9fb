"""The bytes of uploaded documents, behind one interface: in PostgreSQL, or wherever fsspec reaches.

Every original has a row, wherever its bytes are: row-level security decides who may read it, and it
goes with its document. A file outside the database is removed later by the worker, from a list that
a trigger keeps.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from rag_service.errors import ConfigurationError, NotFoundError, StoreError
from rag_service.store.session import Connection


@dataclass(frozen=True, kw_only=True)
class OriginalKey:
    """Which original: a version of a document."""

    document_id: UUID
    content_hash: str  # SHA-256 of the bytes, hex


class OriginalStore(Protocol):
    """Where bytes are kept. All of it runs inside the caller's transaction and under its identity."""

    async def write(self, connection: Connection, key: OriginalKey, *, corpus_id: UUID, data: bytes) -> None:
        """Keep the bytes; the same version again is no error.

        Raises:
            StoreError: they cannot be kept now.
        """

    async def read(self, connection: Connection, key: OriginalKey) -> bytes:
        """The bytes.

        Raises:
            NotFoundError: there are none that the identity may read.
            StoreError: they cannot be read now.
        """

    async def discard(self, connection: Connection) -> int:
        """Remove files whose documents are gone; returns how many. Needs no identity."""


async def forget_earlier_originals(connection: Connection, key: OriginalKey) -> None:
    """Let go of the earlier versions of a document."""
    await connection.execute(
        "DELETE FROM originals WHERE document_id = %s AND content_hash <> %s", [key.document_id, key.content_hash]
    )


class DatabaseOriginals:
    """Bytes in PostgreSQL: one backup holds everything."""

    async def write(self, connection: Connection, key: OriginalKey, *, corpus_id: UUID, data: bytes) -> None:
        await connection.execute(
            "INSERT INTO originals (document_id, content_hash, corpus_id, data) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            [key.document_id, key.content_hash, corpus_id, data],
        )

    async def read(self, connection: Connection, key: OriginalKey) -> bytes:
        cursor = await connection.execute(
            "SELECT data FROM originals WHERE document_id = %s AND content_hash = %s",
            [key.document_id, key.content_hash],
        )
        row = await cursor.fetchone()
        if row is None:
            raise NotFoundError("The original of this document is not kept.")
        if row[0] is None:
            raise StoreError("The original is kept outside the database; set RAG_ORIGINALS_URL as it was.")
        return bytes(row[0])

    async def discard(self, connection: Connection) -> int:
        return 0


class FilesystemOriginals:
    """Bytes wherever an fsspec URL points: a folder, S3, Azure, Google Cloud Storage."""

    def __init__(self, url: str):
        """
        Args:
            url: of the folder, e.g. `s3://bucket/originals` or `file:///srv/originals`.

        Raises:
            ConfigurationError: fsspec or the package for this kind of URL is not installed.
        """
        try:
            import fsspec  # type: ignore[import-untyped]  # has no stubs; optional
        except ImportError as error:
            raise ConfigurationError(
                "RAG_ORIGINALS_URL needs the package fsspec: pip install fsspec.", field="RAG_ORIGINALS_URL"
            ) from error
        try:
            self._filesystem, self._root = fsspec.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ConfigurationError(f"RAG_ORIGINALS_URL cannot be used: {error}", field="RAG_ORIGINALS_URL") from error

    async def write(self, connection: Connection, key: OriginalKey, *, corpus_id: UUID, data: bytes) -> None:
        # An address of its own for each write: removing what was discarded never hits what came after.
        location = f"{corpus_id}/{key.document_id}/{key.content_hash}-{secrets.token_hex(4)}"
        cursor = await connection.execute(
            "INSERT INTO originals (document_id, content_hash, corpus_id, location) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            [key.document_id, key.content_hash, corpus_id, location],
        )
        if cursor.rowcount:
            # Before the commit: a row without its file would be a promise broken. After a rollback the
            # file stays behind, unreachable.
            await self._call(self._write, location, data)

    async def read(self, connection: Connection, key: OriginalKey) -> bytes:
        cursor = await connection.execute(
            "SELECT location, data FROM originals WHERE document_id = %s AND content_hash = %s",
            [key.document_id, key.content_hash],
        )
        row = await cursor.fetchone()
        if row is None:
            raise NotFoundError("The original of this document is not kept.")
        location, data = row
        if location is None:  # stored before the setting was made
            return bytes(data)
        found: bytes = await self._call(self._filesystem.cat_file, self._path(location))
        return found

    async def discard(self, connection: Connection) -> int:
        cursor = await connection.execute("SELECT rag.list_discarded_originals(100)")
        locations = [row[0] for row in await cursor.fetchall()]
        for location in locations:
            await self._call(self._remove, location)
        await connection.execute("SELECT rag.forget_discarded_originals(%s)", [locations])
        return len(locations)

    def _path(self, location: str) -> str:
        return f"{self._root.rstrip('/')}/{location}"

    def _write(self, location: str, data: bytes) -> None:
        path = self._path(location)
        self._filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._filesystem.pipe_file(path, data)

    def _remove(self, location: str) -> None:
        if self._filesystem.exists(self._path(location)):
            self._filesystem.rm_file(self._path(location))

    async def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(function, *arguments)
        except Exception as error:  # each file system has errors of its own
            raise StoreError("The store of the originals cannot be reached.", retry_after=5) from error


def build_originals(url: str | None) -> OriginalStore:
    """The store that RAG_ORIGINALS_URL names; None: the database."""
    return DatabaseOriginals() if url is None else FilesystemOriginals(url)
