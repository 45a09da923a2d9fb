"""Line plots as inline SVG: enough to compare settings, without a plotting library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 34, 44  # margins; the right one holds the legend
_COLOURS = ("#3b82f6", "#e0762f", "#2e9e5b", "#a855f7", "#d64545", "#14a3a8")
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4")  # told apart without colour, too
_TICKS = 5

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class LinePlot:
    """A plot; the last expression of a notebook cell shows it."""

    title: str
    series: Mapping[str, Points]  # name → (x, y) in order of x
    x_label: str
    y_label: str

    def _repr_html_(self) -> str:
        return _draw(self)

    def __repr__(self) -> str:
        lines = [
            f"{name}: " + ", ".join(f"({x:g}, {y:.3f})" for x, y in points) for name, points in self.series.items()
        ]
        return "\n".join([f"{self.title} ({self.y_label} by {self.x_label})", *lines])


def line_plot(series: Mapping[str, Points], *, title: str, x_label: str, y_label: str) -> LinePlot:
    """A plot of named series.

    Args:
        series: name → points, at least one point in all.
        title: what it shows.
        x_label: what the horizontal axis counts.
        y_label: what the vertical axis counts.

    Raises:
        ValueError: there is no point.
    """
    if not any(series.values()):
        raise ValueError("There is nothing to plot: every series is empty.")
    return LinePlot(title=title, series=series, x_label=x_label, y_label=y_label)


@dataclass(frozen=True)
class _Axis:
    """Maps values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return round(self.start + (value - self.low) / span * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        return [self.low + (self.high - self.low) * step / (_TICKS - 1) for step in range(_TICKS)]


def _draw(plot: LinePlot) -> str:
    points = [point for series in plot.series.values() for point in series]
    x = _Axis(min(p[0] for p in points), max(p[0] for p in points), _LEFT, _WIDTH - _RIGHT)
    y = _padded([p[1] for p in points])
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    lines = "".join(
        _series(number, name, series, x, y) for number, (name, series) in enumerate(plot.series.items()) if series
    )
    return (
        f"<svg role='img' aria-label='{escape(repr(plot), quote=True)}' viewBox='0 0 {_WIDTH} {_HEIGHT}' "
        f"style='max-width:{_WIDTH}px;width:100%;color:inherit' font-size='11' font-family='sans-serif' "
        f"fill='currentColor'><text x='{_LEFT}' y='16' font-size='13' font-weight='600'>{escape(plot.title)}</text>"
        f"{_grid(x, y)}{lines}"
        f"<text x='{middle}' y='{_HEIGHT - 8}' text-anchor='middle'>{escape(plot.x_label)}</text>"
        f"<text transform='translate(14 {_HEIGHT / 2}) rotate(-90)' text-anchor='middle'>{escape(plot.y_label)}</text>"
        "</svg>"
    )


def _padded(values: Sequence[float]) -> _Axis:
    low, high = min(values), max(values)
    pad = (high - low) * 0.1 or 0.05
    return _Axis(low - pad, high + pad, _HEIGHT - _BOTTOM, _TOP)


def _grid(x: _Axis, y: _Axis) -> str:
    rows = "".join(
        f"<line x1='{_LEFT}' x2='{_WIDTH - _RIGHT}' y1='{y.at(value)}' y2='{y.at(value)}' stroke='currentColor' "
        f"stroke-opacity='.2'/><text x='{_LEFT - 6}' y='{y.at(value) + 4}' text-anchor='end'>{value:.2f}</text>"
        for value in y.ticks()
    )
    columns = "".join(
        f"<text x='{x.at(value)}' y='{_HEIGHT - _BOTTOM + 16}' text-anchor='middle'>{value:.2g}</text>"
        for value in x.ticks()
    )
    return rows + columns


def _series(number: int, name: str, points: Points, x: _Axis, y: _Axis) -> str:
    colour, dash = _COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)]
    path = " ".join(f"{x.at(px)},{y.at(py)}" for px, py in points)
    dots = "".join(f"<circle cx='{x.at(px)}' cy='{y.at(py)}' r='3' fill='{colour}'/>" for px, py in points)
    left, top = _WIDTH - _RIGHT + 12, _TOP + 8 + 18 * number
    stroke = f"stroke='{colour}' stroke-width='2' stroke-dasharray='{dash}'"
    return (
        f"<polyline points='{path}' fill='none' {stroke}/>{dots}"
        f"<line x1='{left}' x2='{left + 22}' y1='{top}' y2='{top}' {stroke}/>"
        f"<text x='{left + 28}' y='{top + 4}'>{escape(name)}</text>"
    )
