"""The bytes of uploaded documents: in PostgreSQL, or wherever fsspec reaches.

Every original has a row, wherever its bytes are: row-level security decides who may read it, and it is deleted with its
document. A trigger lists the files of deleted rows, and the worker removes them later.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from rag_service.errors import ConfigurationError, NotFoundError, StoreError
from rag_service.store.corpora import try_lock_corpus
from rag_service.store.database import Connection
from rag_service.store.rows import fetch_value

_IMPORTS = "imports"  # folder of the ids of corpora whose import is not committed
_POLL_SECONDS = 3600.0  # between two looks for lost ones: most object stores charge for each
MAX_SIZE = 2**30  # bytes; as many as PostgreSQL holds in a value


class Original(NamedTuple):
    """The bytes of a version of a document."""

    document_id: UUID
    content_hash: str  # SHA-256 of the bytes, in hexadecimal
    corpus_id: UUID
    data: bytes


class Originals:
    """Keeps originals, inside the caller's transaction and under its identity."""

    def __init__(self, url: str | None = None):
        """`url` is a folder, such as `s3://bucket/originals` or `file:///srv/originals`; None: the database.

        Raises ConfigurationError if the package for this kind of URL is not installed.
        """
        self._filesystem: Any = None
        self._looked = float("-inf")
        if url is None:
            return
        import fsspec  # type: ignore[import-untyped]  # has no stubs

        try:
            self._filesystem, self._root = fsspec.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ConfigurationError(f"RAG_ORIGINALS_URL cannot be used: {error}", field="RAG_ORIGINALS_URL") from error

    async def write(
        self, connection: Connection, document_id: UUID, content_hash: str, *, corpus_id: UUID, data: bytes
    ) -> None:
        """Keep a version of a document; writing the same one again is no error. Raises StoreError.

        `content_hash` is the SHA-256 of the bytes, in hexadecimal.
        """
        # Each write gets a new location, so removing a discarded file never hits a later one.
        location = None
        if self._filesystem is not None:
            location = f"{corpus_id}/{document_id}/{content_hash}-{secrets.token_hex(4)}"
        cursor = await connection.execute(
            "INSERT INTO originals (document_id, content_hash, corpus_id, location, data) VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            [document_id, content_hash, corpus_id, location, None if location else data],
        )
        if location and cursor.rowcount:
            # Before the commit, so that no row lacks its file. After a rollback the file stays behind, unreachable.
            path = self._path(location)
            await self._call(partial(self._filesystem.makedirs, path.rpartition("/")[0], exist_ok=True))
            await self._call(self._filesystem.pipe_file, path, data)

    async def write_all(self, connection: Connection, originals: Sequence[Original]) -> None:
        """Keep versions of several documents as `write` does one."""
        if self._filesystem is not None:
            for one in originals:
                await self.write(connection, one.document_id, one.content_hash, corpus_id=one.corpus_id, data=one.data)
            return
        await connection.execute(
            "INSERT INTO originals (document_id, content_hash, corpus_id, data)"
            " SELECT * FROM unnest(%b::uuid[], %b::text[], %b::uuid[], %b::bytea[]) ON CONFLICT DO NOTHING",
            [list(column) for column in zip(*originals, strict=True)],
        )

    async def read(self, connection: Connection, document_id: UUID, content_hash: str) -> bytes:
        """The bytes. Raises NotFoundError if there are none that the identity may read, else StoreError."""
        data, _ = await self.read_part(connection, document_id, content_hash, 0, MAX_SIZE)
        return data

    async def read_part(
        self, connection: Connection, document_id: UUID, content_hash: str, start: int, length: int
    ) -> tuple[bytes, int]:
        """Up to `length` bytes from `start` on, and the number of all. Raises as `read`."""
        cursor = await connection.execute(
            "SELECT location, substring(data FROM %s FOR %s), octet_length(data) FROM originals"
            " WHERE document_id = %s AND content_hash = %s",
            [start + 1, length, document_id, content_hash],
        )
        row = await cursor.fetchone()
        if row is None:
            raise NotFoundError("The original of this document is not kept.")
        location, data, size = row
        if location is None:
            return bytes(data), size
        if self._filesystem is None:
            raise StoreError("The original is kept outside the database; set RAG_ORIGINALS_URL as it was.")
        path = self._path(location)
        size = await self._call(self._filesystem.size, path)
        found = await self._call(partial(self._filesystem.cat_file, start=start, end=min(size, start + length)), path)
        return found, size

    async def begin_import(self, corpus_id: UUID) -> None:
        """Note that files of a corpus are written whose rows nobody sees before all are committed.

        The caller holds the lock of the corpus until then.
        """
        if self._filesystem is not None:
            await self._call(partial(self._filesystem.makedirs, self._path(_IMPORTS), exist_ok=True))
            await self._call(self._filesystem.pipe_file, self._path(f"{_IMPORTS}/{corpus_id}"), b"")

    async def end_import(self, connection: Connection, corpus_id: UUID) -> bool:
        """Forget what `begin_import` noted; whether the files were removed, as the corpus was not committed.

        Needs no identity, and does nothing while the import runs.
        """
        if self._filesystem is None or not await try_lock_corpus(connection, corpus_id):
            return False
        is_lost = await fetch_value(connection, "SELECT rag.corpus_kind(%s)", [corpus_id]) is None
        if is_lost and await self._call(self._filesystem.exists, self._path(str(corpus_id))):
            await self._call(partial(self._filesystem.rm, self._path(str(corpus_id)), recursive=True))
        await self._call(self._filesystem.rm_file, self._path(f"{_IMPORTS}/{corpus_id}"))
        return is_lost

    async def end_lost_imports(self, connection: Connection) -> int:
        """Remove the files of imports whose process was killed; returns how many. Looks once an hour."""
        if self._filesystem is None or time.monotonic() - self._looked < _POLL_SECONDS:
            return 0
        self._looked = time.monotonic()
        folder = self._path(_IMPORTS)
        if not await self._call(self._filesystem.exists, folder):
            return 0
        noted = await self._call(partial(self._filesystem.ls, folder, detail=False))
        return sum([await self.end_import(connection, UUID(path.rpartition("/")[2])) for path in noted])

    async def discard(self, connection: Connection) -> int:
        """Remove files whose documents are gone; returns how many. Needs no identity."""
        if self._filesystem is None:
            return 0
        cursor = await connection.execute("SELECT rag.list_discarded_originals(100)")
        locations = [row[0] for row in await cursor.fetchall()]
        for location in locations:
            if await self._call(self._filesystem.exists, self._path(location)):
                await self._call(self._filesystem.rm_file, self._path(location))
        await connection.execute("SELECT rag.forget_discarded_originals(%s)", [locations])
        return len(locations)

    def _path(self, location: str) -> str:
        return f"{self._root.rstrip('/')}/{location}"

    async def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(function, *arguments)
        except Exception as error:  # each file system has errors of its own
            raise StoreError("The store of the originals cannot be reached.", retry_after=5) from error


async def forget_earlier_originals(connection: Connection, document_id: UUID, content_hash: str) -> None:
    """Delete the originals of all other versions of a document."""
    await connection.execute(
        "DELETE FROM originals WHERE document_id = %s AND content_hash <> %s", [document_id, content_hash]
    )
