"""Progress of exports and imports, told as that of a sync."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_service.sources.report import Pace, SyncProgress

if TYPE_CHECKING:
    from rag_service.sources.sync import OnProgress


def to_transfer_progress(on_progress: OnProgress | None) -> Callable[[int, int, str], None]:
    """What an export or import calls with documents done, documents in all, and the name of the next."""
    pace = Pace()

    def tell(done: int, total: int, name: str) -> None:
        if on_progress is not None:
            left = pace.seconds_left(done, total)
            shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in name)
            on_progress(SyncProgress(done=done, total=total, name=shown, seconds_left=left))

    return tell
