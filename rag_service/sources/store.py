"""A folder of an object store, or of whatever else fsspec reaches, as a source of documents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_service.errors import InputError, SourceError
from rag_service.readers.common.names import is_litter
from rag_service.sources.files import why_not
from rag_service.sources.folder import RECENT_NS
from rag_service.sources.source import Item, Listing, UnreadableFileError
from rag_service.store.documents.synced import SyncedFile, Version

# What file systems call the time of the last change, and the mark of a version.
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_MARKS = ("ETag", "etag", "md5Hash", "content_md5")


class StoreSource:
    """The documents below a URL of fsspec, found as in a folder."""

    poll_seconds = 30.0

    def __init__(self, url: str, extra_suffixes: Collection[str] = (), *, max_bytes: int):
        """Raises InputError if there is no such kind of URL, its package is missing, or it holds a password.

        `extra_suffixes`: further extensions of documents. `max_bytes`: of one file. Raises SourceError if it cannot be
        reached.
        """
        scheme = url.partition("://")[0]
        if (
            "::" in url or url.count("://") > 1 or scheme in ("http", "https")
        ):  # a chain could fetch from anywhere, past the guard of pages
            raise InputError(f"{url.partition('?')[0]} is not a folder that can be synced.", field="target")
        if urlsplit(url).password:
            raise InputError("Remove the password from the URL and set it in the environment.", field="target")
        import fsspec  # type: ignore[import-untyped]  # has no stubs

        try:
            self._files, root = fsspec.url_to_fs(url)
        except ImportError as error:
            extra = "'rag-service[s3]'" if scheme in ("s3", "s3a") else "the package that fsspec names for it"
            raise InputError(f"{scheme}:// needs another package: pip install {extra}.", field="target") from error
        except ValueError as error:
            raise InputError(f"{scheme}:// is not a source that can be synced.", field="target") from error
        except Exception as error:  # some connect at once, and each has errors of its own
            raise SourceError(f"{url.partition('?')[0]} cannot be reached. Nothing was deleted.") from error
        self._root = root.rstrip("/")
        self._extra_suffixes = extra_suffixes
        self._max_bytes = max_bytes
        self.target = self._files.unstrip_protocol(self._root)

    async def look(self) -> object:
        """Names and versions of all files."""
        listing = await asyncio.to_thread(self._list)
        return [(item.name, item.version) for item in listing.items]

    async def list(self, known: Mapping[str, SyncedFile], scratch: Path) -> Listing:
        """What is there now; raises SourceError if it is gone or may not be read."""
        return await asyncio.to_thread(self._list)

    def _list(self) -> Listing:
        try:
            self._files.invalidate_cache()
            if not self._files.isdir(self._root):
                raise FileNotFoundError(self._root)
            found = self._files.find(self._root, detail=True)
        except FileNotFoundError as error:
            raise SourceError(f"{self.target} is missing or empty. Nothing was deleted.") from error
        except PermissionError as error:
            raise SourceError(f"Access to {self.target} was denied. Nothing was deleted.") from error
        except Exception as error:  # each file system has errors of its own
            raise SourceError(f"{self.target} cannot be reached. Nothing was deleted.") from error
        listing = Listing()
        for path, info in sorted(found.items()):
            self._add(path, path[len(self._root) :].lstrip("/"), info, listing)
        return listing

    def _add(self, path: str, name: str, info: Mapping[str, Any], listing: Listing) -> None:
        size = int(info.get("size") or 0)
        reason = why_not(name, self._extra_suffixes)
        if not name or is_litter(name):
            listing.litter += 1
        elif reason is not None:
            listing.left.append((name, reason))
        elif size > self._max_bytes:
            listing.left.append((name, f"is larger than {self._max_bytes // 1024**2} MB (RAG_UPLOAD_MAX_MB)"))
        else:
            version = Version(size_bytes=size, mtime_ns=_modified(info), etag=_mark(info))
            read = partial(asyncio.to_thread, self._read, path, version)
            file_name = name.rpartition("/")[2]
            listing.items.append(
                Item(name=name, file_name=file_name, version=version, read=read, origin=f"{self.target}/{name}")
            )

    def _read(self, path: str, version: Version) -> tuple[bytes, Version]:
        try:
            data: bytes = self._files.cat_file(path)
        except PermissionError as error:
            raise UnreadableFileError("access was denied") from error
        except Exception as error:  # each file system has errors of its own
            raise UnreadableFileError("it cannot be read") from error
        if len(data) != version.size_bytes:
            raise UnreadableFileError("it changed while it was read; sync again")
        if version.etag or 0 < version.mtime_ns < time.time_ns() - RECENT_NS:
            return data, version
        return data, Version(size_bytes=version.size_bytes, mtime_ns=-1)


def _modified(info: Mapping[str, Any]) -> int:
    """Nanoseconds since 1970; 0 if the file system does not say."""
    for key in _TIMES:
        value = info.get(key)
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return int(aware.timestamp() * 1e9)
        if isinstance(value, int | float):
            return int(value * 1e9)
    return 0


def _mark(info: Mapping[str, Any]) -> str:
    return next((str(info[key]) for key in _MARKS if info.get(key)), "")
