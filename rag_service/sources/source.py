"""What a source of documents gives: the files or pages that are there, and their bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rag_service.store.documents.synced import SyncedFile, Version


class UnreadableFileError(Exception):
    """A file or page cannot be read now; the text is a reason that fits behind its name."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """A file or page."""

    name: str  # of its document
    file_name: str
    version: Version
    read: Callable[[], Awaitable[tuple[bytes, Version]]]  # raises UnreadableFileError
    origin: str | None = None  # address of a page


@dataclass(kw_only=True)
class Listing:
    """What is there."""

    items: list[Item] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)  # (name, why it is not taken)
    gone: list[tuple[str, str]] = field(default_factory=list)  # (name, how it is known that it is there no longer)
    litter: int = 0  # hidden, lock and temporary files
    unseen: list[str] = field(default_factory=list)  # what is below these names may still be there; "": all of it
    failure: str = ""  # why the listing broke off: what it has is taken, then the sync fails


class Source(Protocol):
    """A folder, site, store or reader."""

    target: str  # by which its documents are known in the database; without credentials
    poll_seconds: float  # between two looks of a watch

    async def list(self, known: Mapping[str, SyncedFile], scratch: Path) -> Listing:
        """What is there now; raises SourceError if that cannot be told, InputError if the target is of no use.

        Args:
            known: what the last sync took, by name; a site is asked for its changes since.
            scratch: an empty folder for what was fetched; items are read from it.
        """

    async def look(self) -> object:
        """What changes whenever something in the source does, at little cost; None: only `list` can tell.

        Raises like `list`.
        """
