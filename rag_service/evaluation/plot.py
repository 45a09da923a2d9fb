"""Bars per measure and run as an SVG file, written by hand: no plotting package, no fonts, no scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from rag_service.errors import InputError
from rag_service.evaluation.eval_set import EvalSetError
from rag_service.evaluation.saved import SavedRun

# Okabe and Ito's palette, told apart by people with any colour vision.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_BAR, _GAP, _HEIGHT = 18, 22, 220  # pixels
_LEFT, _TOP, _BOTTOM, _TITLE = 46, 34, 64, 26


def plot_runs(runs: Sequence[SavedRun], *, measures: Sequence[str] = ()) -> str:
    """An SVG with one chart for each set that all runs have.

    Args:
        runs: one to six of them.
        measures: which to show; empty shows those that every run has.

    Raises:
        EvalSetError: the runs have no set or measure in common.
        InputError: too many runs to tell apart.
    """
    if not 1 <= len(runs) <= len(_COLOURS):
        raise InputError(f"A plot shows 1 to {len(_COLOURS)} runs.")
    names = [part.set for part in runs[0].sets if all(part.set in {p.set for p in run.sets} for run in runs[1:])]
    charts = [(name, values) for name in names if (values := _values(runs, name, measures))]
    if not charts:
        raise EvalSetError(f"{', '.join(run.name for run in runs)}: no set and measure in common; nothing to plot.")
    width = max(_chart_width(len(values), len(runs)) for _, values in charts)
    height = _TITLE + len(charts) * (_TOP + _HEIGHT + _BOTTOM)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(' / '.join(run.name for run in runs))}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *_legend(runs),
    ]
    for number, (name, values) in enumerate(charts):
        parts += _chart(name, values, top=_TITLE + number * (_TOP + _HEIGHT + _BOTTOM) + _TOP, width=width)
    return "\n".join([*parts, "</svg>"]) + "\n"


def write_plot(svg: str, file: Path) -> None:
    """Save the picture.

    Raises:
        InputError: the name is not that of an SVG file, or it cannot be written.
    """
    if file.suffix.lower() != ".svg":
        raise InputError(f"{file}: plots are SVG; name a file that ends in .svg.", field="output")
    try:
        file.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.", field="output") from error


_Values = list[tuple[str, list[float]]]  # measure → a mean for each run


def _values(runs: Sequence[SavedRun], name: str, measures: Sequence[str]) -> _Values:
    sets = [next(part for part in run.sets if part.set == name) for run in runs]
    shown: _Values = []
    for measure in measures or sets[0].measures:
        columns = [part.measures.get(measure) for part in sets]
        means = [column.mean() if column is not None else None for column in columns]
        if all(mean is not None for mean in means):
            shown.append((measure, [mean for mean in means if mean is not None]))
    return shown


def _chart_width(measures: int, runs: int) -> int:
    return max(360, _LEFT + measures * (runs * _BAR + _GAP) + _GAP)


def _legend(runs: Sequence[SavedRun]) -> list[str]:
    parts, x = [], _LEFT
    for run, colour in zip(runs, _COLOURS, strict=False):
        parts.append(f'<rect x="{x}" y="10" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="20">{escape(run.name)}</text>')
        x += 30 + 7 * len(run.name)
    return parts


def _chart(name: str, values: _Values, *, top: int, width: int) -> list[str]:
    parts = [f'<text x="{_LEFT}" y="{top - 12}" font-weight="bold">{escape(name)}</text>']
    for step in range(6):
        y = top + _HEIGHT - step * _HEIGHT / 5
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{width - 8}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{step / 5:.1f}</text>')
    x = float(_LEFT + _GAP)
    for measure, means in values:
        middle = x + len(means) * _BAR / 2
        for mean, colour in zip(means, _COLOURS, strict=False):
            height = max(0.0, min(1.0, mean)) * _HEIGHT
            parts.append(
                f'<rect x="{x:.1f}" y="{top + _HEIGHT - height:.1f}" width="{_BAR - 2}" height="{height:.1f}"'
                f' fill="{colour}"><title>{escape(measure)}: {mean:.4f}</title></rect>'
            )
            parts.append(
                f'<text x="{x + _BAR / 2:.1f}" y="{top + _HEIGHT - height - 3:.1f}" font-size="7"'
                f' text-anchor="middle">{mean:.3f}</text>'
            )
            x += _BAR
        parts.append(
            f'<text transform="translate({middle:.1f},{top + _HEIGHT + 14}) rotate(30)">{escape(measure)}</text>'
        )
        x += _GAP
    return parts
