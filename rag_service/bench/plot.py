"""The rates of `bench all` as one SVG: ours beside its peer and its floor, each chart on its own scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

# Okabe and Ito's palette, told apart by people with any colour vision: ours, floor, stock.
_COLOURS = {"ours": "#0072b2", "floor": "#009e73", "stock": "#e69f00"}
_WIDTH, _LABEL, _ROW, _HEAD, _NUMBERS = 640, 150, 24, 34, 80  # pixels

Bar = tuple[str, str, float]  # (label, colour's name, value)


def plot_rates(described: Mapping[str, Any]) -> str:
    """An SVG with a chart for each bench that ran.

    Args:
        described: what `bench all --json` prints.
    """
    charts = list(_charts(described))
    height = sum(_HEAD + _ROW * len(bars) + 10 for _, bars in charts) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12" role="img">',
        "<title>rag-service bench</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    top = 10
    for title, bars in charts:
        parts += _chart(title, bars, top)
        top += _HEAD + _ROW * len(bars) + 10
    return "\n".join([*parts, "</svg>"]) + "\n"


def _charts(described: Mapping[str, Any]) -> Sequence[tuple[str, list[Bar]]]:
    ingest, answer, retrieval = (described.get(name) for name in ("ingest", "answer", "retrieval"))
    charts: list[tuple[str, list[Bar]]] = []
    if ingest:
        rows = (
            ("ours", "ours", "end_to_end"),
            ("embedder alone", "floor", "embedder_alone"),
            ("stock", "stock", "stock"),
        )
        charts.append(
            (
                "Ingest, chunks a second (more is better)",
                [(label, colour, ingest[key]["per_second"]) for label, colour, key in rows if ingest[key]],
            )
        )
        storage = ingest["storage"]
        rows = (("ours", "ours", "ours"), ("COPY of bare rows", "floor", "floor"), ("stock", "stock", "stock"))
        charts.append(
            (
                "Storage alone, chunks a second (more is better)",
                [(label, colour, storage[key]["per_second"]) for label, colour, key in rows if storage[key]],
            )
        )
    if answer:
        rows = (
            ("search alone", "floor", "search_ms"),
            ("retrieval", "ours", "retrieval_ms"),
            ("answer", "ours", "answer_ms"),
        )
        charts.append(
            (
                "Requests, milliseconds at the median (less is better)",
                [(label, colour, answer[key]["p50"]) for label, colour, key in rows],
            )
        )
    for row in retrieval["measurements"] if retrieval else ():
        rows = (("ours", "ours", "ours"), ("bare SQL", "floor", "floor"), ("stock", "stock", "stock"))
        title = f"Hybrid search of {row['chunks']:,} chunks, milliseconds at the median (less is better)"
        charts.append((title, [(label, colour, row[key]["p50"]) for label, colour, key in rows if row[key]]))
    return charts


def _chart(title: str, bars: Sequence[Bar], top: int) -> list[str]:
    longest = max((value for _, _, value in bars), default=0.0) or 1.0
    parts = [f'<text x="10" y="{top + 16}" font-weight="bold">{escape(title)}</text>']
    for number, (label, colour, value) in enumerate(bars):
        y = top + _HEAD - 6 + number * _ROW
        width = (_WIDTH - _LABEL - _NUMBERS) * value / longest
        parts += [
            f'<text x="{_LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{_LABEL}" y="{y}" width="{width:.1f}" height="{_ROW - 6}" fill="{_COLOURS[colour]}"/>',
            f'<text x="{_LABEL + width + 6:.1f}" y="{y + 13}">{value:,.1f}</text>',
        ]
    return parts
