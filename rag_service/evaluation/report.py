"""Tables of an evaluation on the terminal, and bar charts of saved runs by matplotlib (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rag_service.errors import ConfigurationError, EvalSetError, InputError
from rag_service.evaluation.metrics import LESS_IS_BETTER, by_category
from rag_service.evaluation.run import SetResult
from rag_service.evaluation.saved import Difference, SavedRun, means_of, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def wide_console() -> Console:
    """Standard output; 160 columns wide in a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=160)


def progress_bar(console: Console) -> Progress:
    """A bar with counts and remaining time, removed at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def print_result(console: Console, result: SetResult, questions: int) -> None:
    """Print the measures of a set: a row per category and one for all."""
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
        reliability = Table(title="Reliability: answers by confidence")
        for column in ("confidence", "answers", "mean confidence", "right"):
            reliability.add_column(column, justify="right")
        for part in result.bins:
            shares = (f"{part.confidence:.3f}", f"{part.right:.3f}")
            reliability.add_row(f"{part.low:.2f}-{part.high:.2f}", str(part.count), *shares)
        console.print(reliability)
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


def print_comparison(console: Console, before: str, after: str, differences: Sequence[Difference]) -> None:
    """Print two runs side by side; significant differences are coloured."""
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


# Okabe and Ito's palette: distinct for readers with any colour vision.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")


def plot_runs(runs: Sequence[SavedRun], *, measures: Sequence[str] = ()) -> Figure:
    """A chart for each set that all of one to six runs have, a bar for each measure (empty: all) and run.

    Raises:
        EvalSetError: the runs have no set or measure in common.
        InputError: too many runs to tell apart.
        ConfigurationError: the extra `plot` is not installed.
    """
    if not 1 <= len(runs) <= len(_COLOURS):
        raise InputError(f"A plot shows 1 to {len(_COLOURS)} runs.")
    names = [part.set for part in runs[0].sets if all(part.set in {p.set for p in run.sets} for run in runs)]
    charts = {name: values for name in names if (values := _values(runs, name, measures))}
    if not charts:
        raise EvalSetError(f"{', '.join(run.name for run in runs)}: no set and measure in common; nothing to plot.")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigurationError(
            "Plots need the extra `plot`: install it with `pip install 'rag-service[plot]'`."
        ) from error
    widest = max(len(values) for values in charts.values())
    figure = Figure(figsize=(2 + widest * (0.5 + 0.3 * len(runs)), 3.5 * len(charts)), layout="constrained")
    for axes, (name, values) in zip(figure.subplots(len(charts), squeeze=False)[:, 0], charts.items(), strict=True):
        for number, run in enumerate(runs):
            places = [place + number * 0.8 / len(runs) for place in range(len(values))]
            heights = [means[number] for means in values.values()]
            bars = axes.bar(places, heights, 0.8 / len(runs), align="edge", color=_COLOURS[number], label=run.name)
            axes.bar_label(bars, fmt="%.3f", fontsize=6)
        axes.set_title(name)
        axes.set_xticks([place + 0.4 for place in range(len(values))], list(values), rotation=30, ha="right")
        axes.set_ylim(0, 1.08)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(runs))
    return figure


def write_plot(figure: Figure, file: Path) -> None:
    """Save the picture as .svg, .png or .pdf; InputError if the file cannot be written."""
    try:
        figure.savefig(file)
    except ValueError as error:
        raise InputError(f"{file}: name a file that ends in .svg, .png or .pdf.", field="output") from error
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.", field="output") from error


def _values(runs: Sequence[SavedRun], name: str, measures: Sequence[str]) -> dict[str, list[float]]:
    """Measure → a mean for each run, if all runs have one."""
    sets = [next(part for part in run.sets if part.set == name) for run in runs]
    shown: dict[str, list[float]] = {}
    for measure in measures or sets[0].measures:
        columns = [part.measures.get(measure) for part in sets]
        means = [column.mean() for column in columns if column is not None]
        found = [mean for mean in means if mean is not None]
        if len(found) == len(runs):
            shown[measure] = found
    return shown
