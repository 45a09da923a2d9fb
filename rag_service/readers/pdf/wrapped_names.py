"""Names of columns that go over several lines, above figures without rules, so that each name is read whole.

    Inhibitor           Current     Corrosion
    concentration (g)   (A/cm²)     rate          →   Inhibitor concentration (g)   Current (A/cm²)   Corrosion rate
    0                   0.0003      2.8163            0   0.0003   2.8163

Only if each part stands above one column and every column of figures has a name: a title or a line of prose ends the
names. A name in the middle above columns with names of their own is part of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rag_service.readers.pdf.empty_cells import MIN_COLUMNS, MIN_ROWS, columns_of, figures_of, find_tables
from rag_service.readers.pdf.rows import COLUMN, Row
from rag_service.readers.pdf.words import Word

_MAX_STEP, _MAX_STEP_TO_FIGURES = 1.75, 3.5  # between the middles of lines, in units of the smaller height
_MAX_LINES = 8  # of names
_CENTRED = 0.05  # of the width of the columns that a name stands above, between their middles


class WrappedNames(NamedTuple):
    """The rows of the names of a table, and the words of each name in reading order."""

    first: int
    end: int
    text: str
    words: Sequence[Word]


def find_wrapped_names(rows: Sequence[Row]) -> Iterator[WrappedNames]:
    """The names above each table of figures that go over several rows."""
    previous = 0
    for begin, end in find_tables(rows):
        table = [found for row in rows[begin:end] if (found := figures_of(row))]
        columns = columns_of(itertools.chain.from_iterable(table))
        if len(columns) >= MIN_COLUMNS and len(table) >= MIN_ROWS:
            first, names = _names(rows, previous, begin, columns)
            if max(map(len, names), default=0) > 1 and all(names[1:]):
                pieces = [piece for name in names for piece in name]
                text = COLUMN.join(" ".join(piece.text() for piece in name) for name in names if name)
                yield WrappedNames(first, begin, text, [word for piece in pieces for word in piece.in_order()])
        previous = end


def _names(
    rows: Sequence[Row], previous: int, begin: int, columns: Sequence[tuple[float, float]]
) -> tuple[int, list[list[Row]]]:
    """The first row of the names, and the parts of each name from the top: of the labels, then of each column."""
    names: list[list[Row]] = [[] for _ in range(len(columns) + 1)]
    extents = list(columns)  # of the columns and of the names above them
    first = begin
    while first > max(previous, begin - _MAX_LINES):
        row = rows[first - 1]
        most = _MAX_STEP if first < begin else _MAX_STEP_TO_FIGURES
        height = min(row.anchor.height, rows[first].anchor.height)
        if row.anchor.middle - rows[first].anchor.middle > most * height or any(word.is_table for word in row.words):
            break
        places = [_places(segment, extents, names) for segment in row.segments]
        taken = [place for found in places for place in found]
        if not all(places) or len(set(taken)) < len(taken) or taken == [0]:  # the title of a part
            break
        for found, segment in zip(places, row.segments, strict=True):
            piece = Row(segment[0])
            for word in segment[1:]:
                piece.add(word)
            for place in found:
                names[place].insert(0, piece)
            if len(found) == 1 and found[0]:
                left, right = extents[found[0] - 1]
                extents[found[0] - 1] = min(left, segment[0].left), max(right, segment[-1].right)
        first -= 1
        if any(len(found) > 1 for found in places):
            break  # the names of groups are the first line
    return first, names


def _places(segment: Sequence[Word], extents: Sequence[tuple[float, float]], names: Sequence[Sequence[Row]]) -> range:
    """The columns that a text names, from 1: one, or a group with names of their own; 0 is left of all, empty none."""
    left, right = segment[0].left, segment[-1].right
    below = [place for place, extent in enumerate(extents, start=1) if left < extent[1] and extent[0] < right]
    if right <= extents[0][0] or left >= extents[-1][1]:
        return range(right <= extents[0][0])
    if not below:  # in the gap between two
        before = sum(end <= left for _, end in extents)
        below = [before, before + 1]
    found = range(below[0], below[-1] + 1)
    start, end = extents[found[0] - 1][0], extents[found[-1] - 1][1]
    is_centred = abs((left + right) - (start + end)) / 2 < _CENTRED * (end - start)
    is_group = start <= left and right <= end and is_centred and all(names[place] for place in found)
    return found if len(found) == 1 or is_group else range(0)
