"""The container of an exported corpus: a plain tar file whose last member lists the SHA-256 of all others.

Nothing but what `ArchiveWriter` writes is read: plain files with a ustar header, in the order in which they are
expected, and no links, folders or extended headers, which can point outside or fill the memory. A tar file is not
compressed, so that nothing can unpack to more than was sent.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from rag_service.errors import ArchiveError, ArchiveTooLargeError

SUMS = "SHA256SUMS"  # as `sha256sum --check` reads it
_BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * _BLOCK)
_PIECE = 2**20  # bytes


def open_unnamed(folder: Path | None) -> BinaryIO:
    """An empty file that is gone once it is closed, or the process has ended in whatever way.

    `folder` is made if it is missing; None, or one that cannot be written: that of the system for temporary files.
    """
    if folder is not None:
        with suppress(OSError):  # a container may have no other place to write to than /tmp
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _open_unnamed(folder)
    return _open_unnamed(None)


def _open_unnamed(folder: Path | None) -> BinaryIO:
    file: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    return file


class ArchiveWriter:
    """Makes the bytes of an archive, to be written in the order in which they are returned."""

    def __init__(self, folder: Path | None = None):
        """`folder`: for the temporary file of checksums; None: that of the system."""
        self._sums = open_unnamed(folder)
        self._name, self._left, self._padding = "", 0, b""
        self._digest = hashlib.sha256()

    def close(self) -> None:
        self._sums.close()

    def add(self, name: str, data: bytes) -> bytes:
        """A whole member."""
        return self.begin(name, len(data)) + self.feed(data)

    def begin(self, name: str, size: int) -> bytes:
        """The start of a member of `size` bytes, which `feed` is given in one or more pieces."""
        self._name, self._left, self._padding = name, size, bytes(-size % _BLOCK)
        self._digest = hashlib.sha256()
        return _header(name, size) + (b"" if size else self._end_member())

    def feed(self, data: bytes) -> bytes:
        """The next piece of the member that was begun."""
        if not data:
            return b""
        if len(data) > self._left:
            raise ValueError(f"{self._name} is longer than announced")
        self._digest.update(data)
        self._left -= len(data)
        return data if self._left else data + self._end_member()

    def _end_member(self) -> bytes:
        self._sums.write(_sum_line(self._digest.hexdigest(), self._name))
        return self._padding

    def finish(self) -> Iterator[bytes]:
        """The checksums, and the end of the archive."""
        if self._left:
            raise ValueError(f"{self._name} is shorter than announced")
        size = self._sums.tell()
        self._sums.seek(0)
        yield _header(SUMS, size)
        while piece := self._sums.read(_PIECE):
            yield piece
        yield bytes(-size % _BLOCK) + _END


def _header(name: str, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry.tobuf(tarfile.USTAR_FORMAT)


def _sum_line(digest: str, name: str) -> bytes:
    return f"{digest}  {name}\n".encode()


class ArchiveReader:
    """Reads an archive from its start, member by member, and compares the checksums at its end.

    All methods raise ArchiveError where the file is not as `ArchiveWriter` writes it.
    """

    def __init__(self, file: BinaryIO, *, max_members: int, folder: Path | None):
        """`file` is seekable; `folder` as for `ArchiveWriter`."""
        self._file = file
        self._max_members = max_members
        self._sums = open_unnamed(folder)
        self._members = 0
        self._next: tuple[str, int] | None = None  # name and size of the member whose header was read
        file.seek(0)

    def close(self) -> None:
        self._sums.close()

    def peek(self) -> str:
        """The name of the next member."""
        if self._next is None:
            self._next = self._read_header()
        return self._next[0]

    def read(self, name: str, *, limit: int, setting: str | None = None) -> bytes:
        """The content of the next member, which must have this name.

        Raises ArchiveTooLargeError, which names the `setting`, if it has more than `limit` bytes.
        """
        if self.peek() != name:
            raise ArchiveError(f"The file is not an export of a corpus: {name} is missing, or not in its place.")
        _, size = self._next or ("", 0)
        self._next = None
        self._members += 1
        if self._members > self._max_members:
            raise ArchiveTooLargeError(f"The file has more than {self._max_members:,} members.")
        if size > limit:
            raise ArchiveTooLargeError(f"{name} has {size:,} bytes; the limit is {limit:,}.", field=setting)
        data = self._read(size)
        self._skip_padding(size)
        self._sums.write(_sum_line(hashlib.sha256(data).hexdigest(), name))
        return data

    def finish(self) -> None:
        """Compare what was read with the checksums, which are the last member."""
        if self.peek() != SUMS:
            raise ArchiveError("The file has more members than its manifest says.")
        _, size = self._next or ("", 0)
        expected = self._sums.tell()
        self._sums.seek(0)
        matches = size == expected
        while matches and (piece := self._sums.read(_PIECE)):
            matches = self._read(len(piece)) == piece
        if not matches:
            raise ArchiveError("The file was changed or damaged: its checksums do not match its content.")
        self._skip_padding(size)
        if self._read(len(_END)) != _END or self._file.read(1):
            raise ArchiveError("The file does not end where an export ends.")

    def _read_header(self) -> tuple[str, int]:
        block = self._file.read(_BLOCK)
        if len(block) < _BLOCK and self._members:
            raise ArchiveError("The file is not complete.")
        try:
            entry = tarfile.TarInfo.frombuf(block, "ascii", "strict")
            expected = _header(entry.name, entry.size)
        except (tarfile.HeaderError, ValueError) as error:
            raise ArchiveError("The file is not an export of a corpus, or it was damaged.") from error
        if block != expected:  # a link, a folder, a long name, an owner
            raise ArchiveError("The file has a member that no export has; it may have been packed again.")
        return entry.name, entry.size

    def _skip_padding(self, size: int) -> None:
        if any(self._read(-size % _BLOCK)):
            raise ArchiveError("The file has something where an export has nothing.")

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise ArchiveError("The file is not complete.")
        return data
