"""Uploads that come while the database is down: kept in files, accepted when it is back."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import structlog
from msgspec import Struct, msgpack

from rag_service.domain import Identity
from rag_service.errors import AuthenticationError, RagError, StoreError
from rag_service.ingest.uploads import Uploads
from rag_service.store.accounts.keys import is_key_good
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.rows import clock_offset

log = structlog.get_logger(__name__)

_POLL_SECONDS = 2.0
_KEPT, _REFUSED, _UNFINISHED = ".upload", ".refused", ".part"
_UNFINISHED_SECONDS = 600.0  # a file is written in less; another process may be at it


class Postponed(Struct, frozen=True, kw_only=True):
    """An upload that is kept. Whether its corpus exists and may be written to is checked when it is accepted."""

    id: UUID  # of the upload to be
    source: DocumentInput
    corpus_id: UUID
    identity: Identity
    ttl_seconds: int | None
    key: bytes = b""  # hash of the API key that sent it, if one did


@dataclass(frozen=True)
class PostponedUploads:
    """A folder of uploads, oldest first: the name of each file begins with the time at which it was received, and ends
    with the user."""

    uploads: Uploads
    folder: Path  # made at the first upload; for the user of this process alone
    _: KW_ONLY
    max_bytes: int  # size of all files together; 0: nothing is kept
    shared: bool = False  # among users, of whom each may fill half

    async def keep(
        self,
        source: DocumentInput,
        *,
        corpus_id: UUID,
        identity: Identity,
        ttl_seconds: int | None,
        key: bytes = b"",
        received_ns: int | None = None,
    ) -> Postponed | None:
        """Keep an upload; None if there is no room for it or the folder cannot be written.

        `key`: hash of the API key, which may have been revoked before the database went: it is checked again.
        `received_ns`: when the request came, which may have waited for the database; None: now.
        """
        postponed = Postponed(
            id=uuid4(),
            source=source,
            corpus_id=corpus_id,
            identity=identity,
            ttl_seconds=ttl_seconds,
            key=key,
        )
        try:
            kept = await asyncio.to_thread(self._write, postponed, received_ns or time.time_ns())
        except OSError as error:
            log.warning("upload_not_postponed", exc_info=error)
            return None
        if kept:
            log.info("upload_postponed", upload_id=str(postponed.id))
        return postponed if kept else None

    async def run(self) -> None:
        """Accept what is kept as soon as the database is back, until cancelled."""
        await asyncio.to_thread(self._sweep)
        while True:
            try:
                await self.deliver()
            except Exception as error:
                log.warning("postponed_uploads_failed", exc_info=error)
            await asyncio.sleep(_POLL_SECONDS)

    async def deliver(self) -> None:
        """Accept what is kept, oldest first, until the database fails. Another process may do the same: the content
        is accepted once. A version that was accepted in the meantime stays the newest if it was received later."""
        offset: timedelta | None = None  # one for all, so that their order stays
        for file in await asyncio.to_thread(self._files):
            try:
                postponed = msgpack.decode(await asyncio.to_thread(file.read_bytes), type=Postponed)
            except FileNotFoundError:  # another process was faster
                continue
            try:
                if offset is None:
                    async with self.uploads.database.transaction(None) as connection:
                        offset = await clock_offset(connection)
                await self._check_key(postponed.key)
                await self.uploads.accept(
                    postponed.source,
                    corpus_id=postponed.corpus_id,
                    identity=postponed.identity,
                    ttl_seconds=postponed.ttl_seconds,
                    upload_id=postponed.id,
                    received_at=_received_at(file) + offset,
                )
            except StoreError:
                return
            except RagError as error:
                log.warning("postponed_upload_refused", upload_id=str(postponed.id), file=file.name, code=error.code)
                await asyncio.to_thread(self._refuse, file)
            else:
                await asyncio.to_thread(file.unlink, missing_ok=True)

    async def _check_key(self, key: bytes) -> None:
        if key:
            async with self.uploads.database.transaction(None) as connection:
                if not await is_key_good(connection, key):
                    raise AuthenticationError("The API key has been revoked or has expired.")

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_KEPT}"))

    def _refuse(self, file: Path) -> None:
        """Set an upload aside for the administrator; the oldest of those go, so that they take no room from others."""
        file.replace(file.with_suffix(_REFUSED))
        refused = sorted(self.folder.glob(f"*{_REFUSED}"))
        while len(refused) > 1 and _size(refused) > self.max_bytes // 4:
            refused.pop(0).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what a full disk or a killed process has left unfinished."""
        for file in self.folder.glob(f"*{_UNFINISHED}"):
            with suppress(OSError):
                if file.stat().st_mtime < time.time() - _UNFINISHED_SECONDS:
                    file.unlink()

    def _write(self, postponed: Postponed, received_ns: int) -> bool:
        if not self.max_bytes:
            return False
        data = msgpack.encode(postponed)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        user = str(postponed.identity.user_id)
        waiting = [file for file in self.folder.iterdir() if file.suffix != _REFUSED]
        own = _size(file for file in waiting if file.stem.endswith(user))
        if _size(waiting) + len(data) > self.max_bytes or (self.shared and own + len(data) > self.max_bytes // 2):
            return False
        file = self.folder / f"{received_ns:020}-{postponed.id}-{user}{_KEPT}"
        unfinished = file.with_suffix(_UNFINISHED)
        try:
            unfinished.touch(mode=0o600)
            with unfinished.open("wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            unfinished.replace(file)
        except OSError:  # a full disk
            unfinished.unlink(missing_ok=True)
            raise
        return True


def _received_at(file: Path) -> datetime:
    """When the upload in a file was received, by this machine's clock."""
    nanoseconds = int(file.name.partition("-")[0])
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=nanoseconds // 1000)


def _size(files: Iterable[Path]) -> int:
    """Bytes of some files."""
    return sum(file.stat().st_size for file in files)
