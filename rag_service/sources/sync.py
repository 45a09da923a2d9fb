"""Keeps a corpus equal to a source: new, changed, renamed and deleted files.

Each file is written down in the transaction that stores its document, so a sync may be killed at any point: the next
one goes on. Unchanged is what has the size, time and ETag that were written down; else the content decides.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from uuid import UUID

from rag_service.domain import Identity
from rag_service.errors import ConflictError, DocumentError, RagError, SourceError
from rag_service.indices import IndexDefinition
from rag_service.ingest.documents import Ingested, Outcome
from rag_service.ingest.ingestor import Ingestor
from rag_service.readers.common.names import choose_title, clean_file_name
from rag_service.sources.report import Pace, SyncProgress, SyncReport
from rag_service.sources.source import Item, Listing, Source, UnreadableFileError
from rag_service.store.corpora import Corpus, require_writable
from rag_service.store.database import Connection, Database
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.synced import (
    DocumentName,
    SyncedFile,
    Version,
    forget_file,
    lock_target,
    move_file,
    read_foreign_paths,
    read_synced,
    record_file,
    touch_files,
)

_SETTLE = 3  # looks after which a watch no longer waits for a folder to come to rest
_RETRY_SECONDS = 10.0  # after a failure, in a watch
_SCRATCH = "rag-sync-"  # then the process id

OnProgress = Callable[[SyncProgress], None]


def sweep_scratch() -> None:
    """Remove the temporary folders of killed processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        process_id = folder.name.removeprefix(_SCRATCH).partition("-")[0]
        with suppress(OSError):
            if process_id.isdecimal() and folder.stat().st_uid == os.geteuid() and not _is_running(int(process_id)):
                shutil.rmtree(folder)


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@dataclass
class Sync:
    """One source and one corpus."""

    source: Source
    _: KW_ONLY
    database: Database
    ingestor: Ingestor
    corpus: Corpus
    index: IndexDefinition
    identity: Identity
    # Whether documents that a sync of this target brought in go with their files; None: yes, unless the source is
    # all of a sudden empty.
    delete: bool | None = None
    on_progress: OnProgress | None = None  # called before each file
    # Called when the source is listed and no other sync of it can begin; raises if nothing is to be stored any more.
    confirm: Callable[[], Awaitable[None]] | None = None
    refused: dict[str, tuple[Version, str]] = field(default_factory=dict, init=False)  # unreadable files, and why

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        return self.database.transaction(self.identity)

    async def run(self) -> SyncReport:
        """Make the corpus equal to the source, once.

        Raises:
            SourceError: the source cannot be listed, or only in part; nothing was deleted.
            ConflictError: another sync of it runs.
            EmbeddingError, StoreError: nothing more can be stored now; what was done stays done.
        """
        self.refused.clear()
        return await self._run()

    async def watch(self) -> AsyncIterator[SyncReport | RagError]:
        """Sync, then again whenever the source has changed, until cancelled.

        Yields a report when something was done, and an error that may pass, once, when it comes up.
        """
        seen: object = None
        left: list[tuple[str, str]] = []
        failed = ""
        while True:
            try:
                before, seen = seen, await self._settled(seen)
                if seen is None or seen != before or failed:
                    report = await self._run()
                    if report.did_something or report.left != left or before is None or failed:
                        yield report
                    left = report.left
                failed = ""
                await asyncio.sleep(self.source.poll_seconds)
            except RagError as error:
                if not (error.retryable or isinstance(error, ConflictError)):
                    raise
                if error.message != failed:
                    yield error
                failed = error.message
                await asyncio.sleep(min(_RETRY_SECONDS, self.source.poll_seconds * 2))

    async def _settled(self, before: object) -> object:
        """How the source looks; a change that goes on is waited for, a little."""
        seen = await self.source.look()
        for _ in range(_SETTLE):
            if before is None or seen == before:
                break
            await asyncio.sleep(self.source.poll_seconds)
            before, seen = seen, await self.source.look()
        return seen

    async def _run(self) -> SyncReport:
        async with self.transaction() as connection:
            await require_writable(connection, self.corpus.id)
        with tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-", ignore_cleanup_errors=True) as scratch:
            work = _Work(self)
            listing = await work.list(Path(scratch))
            # From here on it holds a connection; a site may have taken an hour to list.
            async with self.transaction() as holder:
                await lock_target(holder, self.corpus.id, self.source.target)
                if self.confirm is not None:
                    await self.confirm()
                return await work.take(listing)


@dataclass
class _Work:
    """One run of a sync."""

    sync: Sync
    known: dict[str, SyncedFile] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)  # names that other syncs brought in → their target
    missing: dict[str, SyncedFile] = field(default_factory=dict)  # content hash → a file that is gone
    taken: dict[str, tuple[Version, str]] = field(default_factory=dict)  # name → version and hash of what was read
    touched: dict[str, Version] = field(default_factory=dict)  # new versions of the same content
    left: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.report = SyncReport(target=self.sync.source.target)
        self.started, self.pace = time.monotonic(), Pace()

    async def list(self, scratch: Path) -> Listing:
        """Look what the source has now; the files themselves may come with it, into a folder."""
        await self._read_known()
        current = {path: file for path, file in self.known.items() if self._is_stored(file)}
        return await self.sync.source.list(current, scratch)

    async def take(self, listing: Listing) -> SyncReport:
        """Store what has changed since."""
        await self._read_known()  # another sync may have ended meanwhile
        self.left.update([*listing.left, *listing.gone])
        self._note_missing(listing)
        if items := [item for item in listing.items if self._is_due(item)]:
            await self._take(items)
            await self._read_known()
        async with self.sync.transaction() as connection:
            await touch_files(connection, self.sync.corpus.id, self.sync.source.target, self.touched.items())
        await self._forget_missing(listing)
        if listing.failure:
            raise SourceError(listing.failure)
        return self._finish(listing)

    async def _read_known(self) -> None:
        async with self.sync.transaction() as connection:
            self.known = await read_synced(connection, self.sync.corpus.id, self.sync.source.target)
            self.foreign = await read_foreign_paths(connection, self.sync.corpus.id, self.sync.source.target)

    def _is_due(self, item: Item) -> bool:
        """Whether a file is to be read: it is new, or may have changed, or its document is no longer what it was."""
        if item.name in self.left:
            return False
        if item.name in self.sync.refused and self.sync.refused[item.name][0] == item.version:
            self.left[item.name] = self.sync.refused[item.name][1]
            return False
        known = self.known.get(item.name)
        if known is None or not self._is_stored(known):
            return True
        return known.version != item.version

    def _is_stored(self, file: SyncedFile) -> bool:
        return file.stored and file.fingerprint == self.sync.ingestor.fingerprint(self.sync.index)

    def _note_missing(self, listing: Listing) -> None:
        there = _Present(listing)
        self.missing = {
            file.content_hash: file
            for path, file in self.known.items()
            if path not in there and file.brought and self._is_stored(file) and file.document_name == path
        }

    async def _take(self, items: Sequence[Item]) -> None:
        """Read and ingest files. What cannot be read is left aside, and does not stop the others."""
        ingesting = self.sync.ingestor.ingest_all(
            self._sources(items),
            corpus=self.sync.corpus,
            index=self.sync.index,
            identity=self.sync.identity,
            stored=self._record,
        )
        async with aclosing(ingesting):
            async for source, outcome in ingesting:
                name = str(source.name)
                if isinstance(outcome, DocumentError):
                    self.left[name] = outcome.message
                    self.sync.refused[name] = next(item.version for item in items if item.name == name), outcome.message
                else:
                    await self._note(name, outcome)

    async def _sources(self, items: Sequence[Item]) -> AsyncIterator[DocumentInput]:
        for number, item in enumerate(items):
            self._tell(number, len(items), item.name)
            if item.name in self.foreign:
                self.left[item.name] = f"the sync of {self.foreign[item.name]} brought a document of this name"
                continue
            try:
                data, version = await item.read()
            except UnreadableFileError as error:
                self.left[item.name] = str(error)
                continue
            content_hash = hashlib.sha256(data).hexdigest()
            known = self.known.get(item.name)
            if known is not None and known.content_hash == content_hash and self._is_stored(known):
                self.touched[item.name] = version
            elif known is not None or not await self._moved(item, version, content_hash):
                self.taken[item.name] = version, content_hash
                yield DocumentInput(data=data, file_name=item.file_name, name=item.name, source=item.origin)
        self._tell(len(items), len(items), "")

    async def _moved(self, item: Item, version: Version, content_hash: str) -> bool:
        """Whether a new file is one that is gone under its old name, which its document then leaves."""
        file = self.missing.pop(content_hash, None)
        if file is None:
            return False
        target = self.sync.source.target
        old, new = _document_name(file.path, file.path), _document_name(item.name, item.file_name)
        async with self.sync.transaction() as connection:
            moved = await move_file(connection, self.sync.corpus.id, target, file, old=old, new=new, version=version)
        if moved:
            self.report.renamed.append((file.path, item.name))
        return moved

    async def _record(self, connection: Connection, source: DocumentInput, document_id: UUID) -> None:
        """In the transaction that stores a document."""
        await self._write_down(connection, str(source.name), document_id, brought=True)

    async def _write_down(self, connection: Connection, name: str, document_id: UUID, *, brought: bool | None) -> None:
        version, content_hash = self.taken[name]
        await record_file(
            connection, self.sync.corpus.id, self.sync.source.target, name, document_id=document_id, version=version,
            content_hash=content_hash, brought=brought,
        )  # fmt: skip

    async def _note(self, name: str, outcome: Ingested) -> None:
        if outcome.outcome is Outcome.UNCHANGED:  # stored before, by hand
            async with self.sync.transaction() as connection:
                await self._write_down(connection, name, outcome.document_id, brought=None)
        elif name not in self.known:
            self.report.added.append(name)
        else:
            self.report.changed.append(name)
        self.report.notes += [(name, warning) for warning in outcome.warnings]

    async def _forget_missing(self, listing: Listing) -> None:
        delete = self.sync.delete
        there = _Present(listing)
        gone = [file for path, file in self.known.items() if path not in there]
        emptied = delete is None and not listing.items and not listing.left
        if delete is False or emptied:
            self.report.kept += [file.path for file in gone]
            if gone and emptied:
                self.report.notes.append(
                    (self.sync.source.target, "is empty now; use `--delete` to delete its documents")
                )
            return
        for file in gone:
            async with self.sync.transaction() as connection:
                await forget_file(connection, self.sync.corpus.id, self.sync.source.target, file)
            self.report.deleted.append(file.path)

    def _tell(self, done: int, total: int, name: str) -> None:
        if self.sync.on_progress is not None:
            left = self.pace.seconds_left(done, total)
            self.sync.on_progress(SyncProgress(done=done, total=total, name=name, seconds_left=left))

    def _finish(self, listing: Listing) -> SyncReport:
        report = self.report
        worked_on = {*report.added, *report.changed, *(new for _, new in report.renamed), *self.left}
        report.unchanged = sum(item.name not in worked_on for item in listing.items)
        report.left = sorted(self.left.items())
        report.litter = listing.litter
        report.seconds = time.monotonic() - self.started
        return report


class _Present:
    """The names of what is in a source, or may still be."""

    def __init__(self, listing: Listing):
        self._names = {*(item.name for item in listing.items), *(name for name, _ in listing.left)}
        self._unseen = listing.unseen

    def __contains__(self, name: str) -> bool:
        return name in self._names or any(not part or name.startswith(f"{part}/") for part in self._unseen)


def _document_name(name: str, file: str) -> DocumentName:
    file_name = clean_file_name(file)
    return DocumentName(name=name, file_name=file_name, title=choose_title(file_name))
