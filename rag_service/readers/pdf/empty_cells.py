"""Empty cells of tables without rules, so that each figure of a row stays below the name of its column.

    Dose   Number   Weight   Percent   Number         Dose  Number  Weight  Percent  Number
    0      39       5.8                10       →     0  39  5.8  —  10
    250    30       5.9      102       10             250  30  5.9  102  10

Only columns of figures count: what the page leaves empty there is written as a dash, as statements do.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rag_service.readers.common.cells import is_number_like
from rag_service.readers.pdf.rows import Row
from rag_service.readers.pdf.words import Word

MIN_COLUMNS = 3  # of figures
MIN_ROWS = 3  # with figures; one has them in all columns
_MIN_FILLED = 2  # figures of a column
_MAX_TITLE = 60  # characters of a row between others that has no figures: the title of a part
_DASHES = frozenset("-‐‑‒–—―−")
_YEARS = range(1900, 2100)


def find_empty_cells(rows: Sequence[Row]) -> Mapping[int, Sequence[float]]:
    """Place of a row → the middles of its empty cells, from the left."""
    found: dict[int, Sequence[float]] = {}
    for begin, end in find_tables(rows):
        found.update({begin + place: cells for place, cells in _empty_cells(rows[begin:end]).items()})
    return found


def find_tables(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Return (first, end) of rows with figures, with the titles of parts among them."""
    begin = end = 0
    for place, row in enumerate(rows):
        if figures_of(row):
            begin, end = (begin if begin < end else place), place + 1
        elif begin < end and (len(row.segments) > 1 or row.length > _MAX_TITLE):
            yield begin, end
            begin = end = place + 1
    if begin < end:
        yield begin, end


def _empty_cells(rows: Sequence[Row]) -> Mapping[int, Sequence[float]]:
    columns = columns_of(segment for row in rows for segment in figures_of(row))
    filled = [_filled(row, columns) for row in rows]
    counts = Counter(itertools.chain.from_iterable(filled))
    if (
        len(columns) < MIN_COLUMNS
        or sum(map(bool, filled)) < MIN_ROWS
        or any(len(set(places)) < len(places) for places in filled)  # two figures of a row in one
        or max(map(len, filled)) < len(columns)  # no row has all
        or min(counts.values()) < _MIN_FILLED
    ):
        return {}
    found: dict[int, Sequence[float]] = {}
    groups = _groups(columns, rows)
    for number, (row, places) in enumerate(zip(rows, filled, strict=True)):
        if any(places) and _has_label(row, columns) and not _names_years(row):
            empty = [
                place
                for group in groups
                if any(group.start <= word.left < group.end for word in row.words)
                for place in group.columns
                if (place or row.segments[0][-1].right <= columns[0][0]) and not _is_taken(row, columns[place])
            ]
            if empty != [0]:  # the first column alone may be of notes, which most rows lack
                found[number] = [sum(columns[place]) / 2 for place in empty]
    return found


class _Group(NamedTuple):
    """Columns with no text between them, and where they begin, with what stands left of them, and end."""

    columns: Sequence[int]
    start: float
    end: float


def _groups(columns: Sequence[tuple[float, float]], rows: Sequence[Row]) -> list[_Group]:
    """Lists side by side: texts part them from each other, and one may be longer than the others."""
    labels = Counter(
        place
        for row in rows
        for segment in row.segments
        for place in range(1, len(columns))
        if columns[place - 1][1] <= segment[0].left and segment[-1].right <= columns[place][0]
    )
    starts = [0, *(place for place in range(1, len(columns)) if labels[place] >= _MIN_FILLED), len(columns)]
    return [
        _Group(range(first, last), -math.inf if first == 0 else columns[first - 1][1], columns[last - 1][1])
        for first, last in itertools.pairwise(starts)
    ]


def _is_taken(row: Row, column: tuple[float, float]) -> bool:
    return any(word.left < column[1] and column[0] < word.right for word in row.words)


def columns_of(segments: Iterable[Sequence[Word]]) -> list[tuple[float, float]]:
    """Return where columns begin and end: what stands in one overlaps."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted((segment[0].left, segment[-1].right) for segment in segments):
        if columns and left < columns[-1][1]:
            columns[-1] = columns[-1][0], max(columns[-1][1], right)
        else:
            columns.append((left, right))
    return columns


def _filled(row: Row, columns: Sequence[tuple[float, float]]) -> list[int]:
    """The columns of a row's figures."""
    return [
        place
        for segment in figures_of(row)
        for place, (left, right) in enumerate(columns)
        if left <= segment[0].left and segment[-1].right <= right
    ]


def _has_label(row: Row, columns: Sequence[tuple[float, float]]) -> bool:
    """Whether something stands in the first column, or left of it."""
    return row.segments[0][0].left < columns[0][1]


def _names_years(row: Row) -> bool:
    """Whether the figures of a row are years, which may name several columns each."""
    texts = [_text(segment) for segment in figures_of(row)]
    return all(text.isdecimal() and int(text) in _YEARS for text in texts)


def figures_of(row: Row) -> list[Sequence[Word]]:
    """Return the parts of a row that are figures or say that there is none."""
    if any(word.is_table for word in row.words):
        return []
    return [
        segment for segment in row.segments if is_number_like(text := _text(segment)) or (text and set(text) <= _DASHES)
    ]


def _text(segment: Sequence[Word]) -> str:
    return " ".join(word.text for word in segment)
