"""Tables of an evaluation on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from rag_service.evaluation.compare import Difference
from rag_service.evaluation.metrics import LESS_IS_BETTER, by_category
from rag_service.evaluation.run import SetResult, Steps
from rag_service.evaluation.saved import means_of, title_of


class ProgressSteps(Steps):
    """Draws a bar per step on a terminal."""

    def __init__(self, progress: Progress):
        self._progress = progress
        self._task: TaskID | None = None

    def begin(self, step: str, total: int) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(step, total=total)

    def advance(self, count: int) -> None:
        if self._task is not None:
            self._progress.advance(self._task, count)


def wide_console() -> Console:
    """Standard output; into a file or a pipe it is wide enough for every table."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


def progress_bar(console: Console) -> Progress:
    """A bar with counts and the time that remains; gone when it is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def print_result(console: Console, result: SetResult, questions: int) -> None:
    """Measures of a set: a row per category and one for all."""
    asked = result.loaded.questions[:questions]
    title = f"{title_of(result)} · index {result.index.name} · threshold {result.threshold:g}"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    names = [name for name, measured in result.measures.items() if measured.mean() is not None]
    table.add_column("category", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", min_width=6)
    for category, members in by_category(asked).items():
        _add_row(table, category, len(members), means_of(result.measures, members), names)
    table.add_section()
    _add_row(table, "all", len(asked), means_of(result.measures), names)
    console.print(table)
    if result.bins:
        _print_reliability(console, result)
    times = sorted(result.milliseconds)
    if times:
        console.print(
            f"{result.chunk_count} chunks; search p50 {times[len(times) // 2]:.1f} ms,"
            f" p95 {times[int(len(times) * 0.95)]:.1f} ms, embedding not counted.",
            style="dim",
        )


def _add_row(table: Table, label: str, count: int, means: Mapping[str, float], names: Sequence[str]) -> None:
    cells = [f"{means[name]:.4f}" if name in means else "" for name in names]
    table.add_row(label, str(count), *cells)


def _print_reliability(console: Console, result: SetResult) -> None:
    table = Table(title="Reliability: is the confidence deserved?")
    for column in ("confidence", "answers", "mean confidence", "right"):
        table.add_column(column, justify="right")
    for part in result.bins:
        table.add_row(f"{part.low:.2f}-{part.high:.2f}", str(part.count), f"{part.confidence:.3f}", f"{part.right:.3f}")
    console.print(table)


def print_comparison(console: Console, before: str, after: str, differences: Sequence[Difference]) -> None:
    """Two runs side by side; differences that chance does not explain are marked."""
    table = Table(title=f"{before} → {after}")
    for column in ("set", "measure", "questions", before, after, "difference", "95 % interval", "p"):
        table.add_column(column, justify="left" if column in ("set", "measure") else "right")
    for row in differences:
        better = (row.difference > 0) is not (row.measure in LESS_IS_BETTER)
        style = "" if row.p_value >= 0.05 else "green" if better else "red"
        table.add_row(
            row.set, row.measure, str(row.questions), f"{row.before:.4f}", f"{row.after:.4f}",
            f"{row.difference:+.4f}", f"{row.low:+.4f} … {row.high:+.4f}", f"{row.p_value:.3f}", style=style,
        )  # fmt: skip
    console.print(table)
