"""Exported corpora that tests take apart and put together again."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

import msgspec

from rag_service.ingest.transfer.archive import SUMS, ArchiveWriter

Change = Callable[[dict[str, bytes]], None]  # of the members of a file


def pack(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A file with these members, and their checksums."""
    with closing(ArchiveWriter()) as archive:
        return b"".join([*(archive.add(name, content) for name, content in members), *archive.finish()])


def members_of(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as file:
        return {entry.name: file.extractfile(entry).read() for entry in file}  # type: ignore[union-attr]  # plain files


def changed(data: bytes, change: Change) -> bytes:
    """The file with other members, and the checksums that belong to them."""
    members = members_of(data)
    del members[SUMS]
    change(members)
    return pack(members.items())


def edit(member: str, /, **values: Any) -> Change:
    """Changes values of a member of JSON, those of the first line if it has several."""

    def change(members: dict[str, bytes]) -> None:
        first, *rest = members[member].splitlines()
        members[member] = b"\n".join([msgspec.json.encode(msgspec.json.decode(first) | values), *rest])

    return change
