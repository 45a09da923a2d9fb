"""`bench growth` as a table, as JSON and as one SVG with logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rag_service.bench.growth import Step, slope
from rag_service.bench.retrieval import Times

# Okabe and Ito's palette, told apart by people with any colour vision.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 640, 220, 70, 40, 70  # pixels

_COSTS: dict[str, Callable[[Step], float]] = {
    "search in a tenant of 1 %, ms": lambda step: step.tenant.p50,
    "search of everything, ms": lambda step: step.everything.p50,
    "writing a chunk, ms": lambda step: 1000 * step.write.seconds / step.write.count,
    "indexes of a bulk load, s": lambda step: step.index_seconds,
    "disk, MB": lambda step: sum(step.sizes.values()) / 1e6,
    "memory of the API, MB": lambda step: (step.api_memory or 0) / 1e6,
    "memory of PostgreSQL, MB": lambda step: (step.database_memory or 0) / 1e6,
}
_CHARTS = {
    "Milliseconds": ("search in a tenant of 1 %, ms", "search of everything, ms", "writing a chunk, ms"),
    "Megabytes": ("disk, MB", "memory of the API, MB", "memory of PostgreSQL, MB"),
}


def describe_growth(steps: Sequence[Step]) -> dict[str, Any]:
    """Everything as `--json` prints it: the steps, and the law of each cost."""
    rows = [
        {**asdict(step), "write": {**asdict(step.write), "per_second": round(step.write.per_second, 1)}}
        for step in steps
    ]
    return {"steps": rows, "laws": laws(steps)}


def laws(steps: Sequence[Step]) -> dict[str, float]:
    """Cost → exponent over the size; costs that were not measured are left out."""
    found = {}
    for name, cost in _COSTS.items():
        values = [cost(step) for step in steps]
        if len(steps) > 1 and min(values) > 0:
            found[name] = round(slope([step.chunks for step in steps], values), 2)
    return found


def print_growth(console: Console, steps: Sequence[Step]) -> None:
    """One column per size."""
    table = Table(title="Cost by number of chunks", box=box.SIMPLE_HEAD)
    table.add_column("")
    for step in steps:
        table.add_column(f"{step.chunks:,}", justify="right")
    table.add_column("law", justify="right")
    exponents = laws(steps)

    def row(name: str, text: Callable[[Step], str], law: str = "") -> None:
        exponent = exponents.get(law)
        table.add_row(name, *map(text, steps), "" if exponent is None else f"n^{exponent:.2f}")

    row("search, tenant of 1 %: ms p50 / p95", lambda step: _times(step.tenant), "search in a tenant of 1 %, ms")
    row("search, everything: ms p50 / p95", lambda step: _times(step.everything), "search of everything, ms")
    row(
        "dense recall at 10, tenant / everything",
        lambda step: f"{step.tenant_recall:.3f} / {step.everything_recall:.3f}",
    )
    row("ingest beside live indexes, chunks/s", lambda step: f"{step.write.per_second:,.0f}", "writing a chunk, ms")
    row("bulk load by COPY, chunks/s", lambda step: f"{step.chunks / step.row_seconds:,.0f}")
    row("its indexes, seconds", lambda step: f"{step.index_seconds:,.1f}", "indexes of a bulk load, s")
    for part in steps[0].sizes if steps else ():
        row(f"disk, {part}: bytes a chunk", lambda step, part=part: f"{step.sizes[part] / step.chunks:,.0f}")  # type: ignore[misc]
    row("memory of the API, MB", lambda step: _megabytes(step.api_memory), "memory of the API, MB")
    row("memory of PostgreSQL, MB", lambda step: _megabytes(step.database_memory), "memory of PostgreSQL, MB")
    console.print(table)


def _times(times: Times) -> str:
    return f"{times.p50:.1f} / {times.p95:.1f}"


def _megabytes(value: int | None) -> str:
    return "-" if value is None else f"{value / 1e6:,.0f}"


def plot_growth(steps: Sequence[Step]) -> str:
    """An SVG with the costs over the size, both axes logarithmic."""
    height = len(_CHARTS) * (_HEIGHT + _GAP) + _TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12" role="img">',
        "<title>rag-service bench growth</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, (title, names) in enumerate(_CHARTS.items()):
        curves = {name: [(step.chunks, _COSTS[name](step)) for step in steps] for name in names}
        curves = {name: points for name, points in curves.items() if min(value for _, value in points) > 0}
        parts += _chart(title, curves, top=_TOP + number * (_HEIGHT + _GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _chart(title: str, curves: Mapping[str, Sequence[tuple[int, float]]], *, top: int) -> list[str]:
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return []
    left, right = (math.log10(pick(size for size, _ in points)) for pick in (min, max))
    low, high = (pick(math.log10(value) for _, value in points) for pick in (min, max))
    low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)

    def place(size: int, value: float) -> tuple[float, float]:
        across = (math.log10(size) - left) / (right - left or 1)
        up = (math.log10(value) - low) / (high - low)
        return _LEFT + across * (_WIDTH - _LEFT - 30), top + _HEIGHT - up * _HEIGHT

    parts = [f'<text x="10" y="{top - 14}" font-weight="bold">{escape(title)}</text>']
    for power in range(low, high + 1):
        _, y = place(round(10**left), 10.0**power)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 30}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for size in sorted({size for size, _ in points}):
        x, _ = place(size, 10.0**low)
        parts.append(f'<text x="{x:.1f}" y="{top + _HEIGHT + 16}" text-anchor="middle">{size:,}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[number]
        path = " ".join("{:.1f},{:.1f}".format(*place(size, value)) for size, value in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{_LEFT + 8}" y="{top + 14 + 15 * number}" fill="{colour}">{escape(name)}</text>')
    return parts
