"""Progress of work: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from rag_service.sources.report import SyncProgress

_LINE_SECONDS = 5.0  # between two lines

ShowProgress = Callable[[SyncProgress], None]


@contextmanager
def show_progress(console: Console, what: str) -> Iterator[ShowProgress]:
    """Tells how far the work has come; `what` names it, such as "Ingesting"."""
    if not console.is_terminal:
        yield _lines(console, what)
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)

        def show(step: SyncProgress) -> None:
            description = f"{_pace(step)} {escape(step.name)}"
            is_visible = step.done < step.total
            bar.update(task, completed=step.done, total=step.total, description=description, visible=is_visible)

        yield show


def _lines(console: Console, what: str) -> ShowProgress:
    said = time.monotonic()

    def show(step: SyncProgress) -> None:
        nonlocal said
        if step.done < step.total and time.monotonic() - said >= _LINE_SECONDS:
            said = time.monotonic()
            parts = filter(None, (f"{what}: {step.done} of {step.total}", _pace(step), step.name))
            console.print(", ".join(parts), markup=False, highlight=False, soft_wrap=True)

    return show


def _pace(step: SyncProgress) -> str:
    """Files a second, and what is left."""
    if step.seconds_left is None:
        return ""
    minutes, rest = divmod(round(step.seconds_left), 60)
    left = f"{minutes} min {rest} s left" if minutes else f"{rest} s left"
    rate = (step.total - step.done) / step.seconds_left if step.seconds_left else 0.0
    return f"{rate:.3g} files/s, {left}" if rate else left
