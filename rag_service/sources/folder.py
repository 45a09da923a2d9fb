"""A folder of this machine as a source of documents."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

from rag_service.errors import InputError, SourceError
from rag_service.sources.files import FoundFiles, look_into, readable
from rag_service.sources.source import Item, Listing, UnreadableFileError
from rag_service.store.documents.synced import SyncedFile, Version

# A file may change again within the resolution of its time, its size the same: what was modified less than this before
# it was read is read again the next time.
RECENT_NS = 2_000_000_000
_TRIES = 3  # at a file that changes while it is read
_PAUSE = 0.3  # seconds between them


class FolderSource:
    """The documents below a folder, found as `ingest` finds them."""

    poll_seconds = 1.0

    def __init__(self, folder: Path, extra_suffixes: Collection[str] = ()):
        """`extra_suffixes`: further extensions of documents. Raises InputError if there is no such folder."""
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder.", field="target")
        self._folder = folder.resolve()
        self._extra_suffixes = extra_suffixes
        self.target = readable(str(self._folder))

    async def list(self, known: Mapping[str, SyncedFile], scratch: Path) -> Listing:
        """What is there now; raises SourceError if the folder has gone."""
        return await asyncio.to_thread(self._list)

    async def look(self) -> object:
        """Names, sizes and times of all files."""
        listing = await asyncio.to_thread(self._list)
        return [(item.name, item.version) for item in listing.items], listing.left

    def _list(self) -> Listing:
        if not self._folder.is_dir():
            raise SourceError(f"{self.target} is missing or cannot be reached. Nothing was deleted.")
        found = FoundFiles()
        look_into(self._folder, found, self._extra_suffixes)
        if "" in found.unseen:
            raise SourceError(f"{self.target} cannot be opened. Nothing was deleted.")
        listing = Listing(left=found.left, litter=len(found.litter), unseen=found.unseen)
        seen: set[str] = set()
        for name, file in found.files:
            try:
                version = _version(file.stat())
            except OSError as error:  # deleted a moment ago, or a broken link
                listing.left.append((name, f"it cannot be opened: {error.strerror}"))
                continue
            if name in seen:
                listing.left.append((name, "another file has the same name in another encoding"))
                continue
            seen.add(name)
            read = partial(asyncio.to_thread, _read, file)
            listing.items.append(Item(name=name, file_name=readable(file.name), version=version, read=read))
        if not self._folder.is_dir():  # it went while it was listed
            raise SourceError(f"{self.target} is missing or cannot be reached. Nothing was deleted.")
        return listing


def _read(file: Path) -> tuple[bytes, Version]:
    """The bytes, and the version that they surely are of."""
    try:
        for _ in range(_TRIES):
            with file.open("rb") as opened:
                before = _version(os.fstat(opened.fileno()))
                data = opened.read()
                after = _version(os.fstat(opened.fileno()))
            if before == after and len(data) == after.size_bytes:
                if time.time_ns() - after.mtime_ns < RECENT_NS:
                    return data, Version(size_bytes=after.size_bytes, mtime_ns=-1)
                return data, after
            time.sleep(_PAUSE)
    except OSError as error:
        raise UnreadableFileError(f"it cannot be opened: {error.strerror}") from error
    raise UnreadableFileError("it changed while it was read; sync again when it is complete")


def _version(stat: os.stat_result) -> Version:
    return Version(size_bytes=stat.st_size, mtime_ns=stat.st_mtime_ns)
