"""Report and progress of a sync."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class SyncProgress:
    """How far a sync, or the ingestion of files, has come."""

    done: int  # files that were looked into
    total: int  # files that are new or may have changed
    name: str  # the file that was begun last
    seconds_left: float | None  # None: too early to tell


class Pace:
    """Tell how long the rest of some files takes, at the pace since the first of them were done.

    The first ones also wait for models and readers to be loaded.
    """

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None  # files that were done first, and when that was told

    def seconds_left(self, done: int, total: int) -> float | None:
        """Return the seconds that the rest takes; None: too early to tell."""
        now = time.monotonic()
        if self._first is None:
            self._first = (done, now) if done else None
            return None
        before, began = self._first
        return (now - began) / (done - before) * (total - done) if done > before else None


@dataclass(kw_only=True)
class SyncReport:
    """What a sync did. Each list holds names of documents."""

    target: str
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)  # (old, new)
    deleted: list[str] = field(default_factory=list)
    unchanged: int = 0  # files
    kept: list[str] = field(default_factory=list)  # gone from the source, but not deleted
    left: list[tuple[str, str]] = field(default_factory=list)  # (name, why it was skipped)
    litter: int = 0  # hidden, lock and temporary files, skipped by name
    notes: list[tuple[str, str]] = field(default_factory=list)  # (name, what is missing from the text, …)
    seconds: float = 0.0

    @property
    def did_something(self) -> bool:
        return bool(self.added or self.changed or self.renamed or self.deleted)

    def lines(self) -> Iterator[str]:
        """The report, a line for each statement."""
        counts = (("added", self.added), ("changed", self.changed), ("renamed", self.renamed),
                  ("deleted", self.deleted))  # fmt: skip
        told = [f"{len(names)} {word}" for word, names in counts if names]
        yield f"{self.target}: {', '.join([*told, f'{self.unchanged} unchanged'])} ({self.seconds:.1f} s)."
        for old, new in self.renamed:
            yield f"  renamed: {old} → {new}"
        for name in self.deleted:
            yield f"  deleted: {name}"
        for name in self.kept:
            yield f"  kept: {name} is gone from the source, but its document was kept"
        for name, reason in self.left:
            yield f"  skipped: {name}: {reason.removesuffix('.')}"
        for name, note in self.notes:
            yield f"  note: {name}: {note}"
        if self.litter:
            yield f"  hidden, lock and temporary files skipped: {self.litter}"

    def __str__(self) -> str:
        return "\n".join(self.lines())
