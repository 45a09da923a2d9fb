"""Tables on a PDF page that have rules between their cells: which rules make a table, and which words stand in a cell.

Where rules part the rows, lines of one cell belong together however many there are. Read line by line, a cell of
three lines would be torn apart by the figures beside its middle.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rag_service.ingest.parse.pdf_rows import COLUMN, Row, read_rows
from rag_service.ingest.parse.pdf_rules import Rule
from rag_service.ingest.parse.pdf_words import Word
from rag_service.ingest.parse.tables import is_number_like

_SAME_PLACE = 2.5  # points between rules that are one: the edges of neighbouring boxes
_TOUCHING = 3.0  # points between the end of a rule and the one that it meets
_MOST_ROWS, _MOST_COLUMNS = 400, 60
_SPACE = 0.35  # of a line's height; somewhat more than a space, so that a line is rather taken to be full
_WIDEST_MARGIN = 8.0  # points between a rule and the text; centred text leaves more
_ASTRAY = 0.1  # of the words, that stand over a rule
_OVER = 0.25  # of a word's width, beyond its cell
_LEAST_FILLED = 0.3  # of the cells; the grid of a chart is empty
_MOST_WIDE = 0.1  # of the cells, with gaps in their lines as between columns
_LEAST_RULED = 0.7  # of the borders between neighbours; reports have rules below sums only
_MOST_LINES = 3_000  # on a page after those that are one have been joined


class GridCell(NamedTuple):
    """A cell and its words. Rows and columns count from 0, from the top left."""

    row: int
    column: int
    rows: int  # that it covers
    columns: int
    words: Sequence[Word] = ()


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table; lengths in points."""

    lefts: Sequence[float]  # of the columns, and the right end of the last one
    tops: Sequence[float]  # of the rows, and the bottom of the last one
    cells: Sequence[GridCell]  # row by row; those without words, too

    def holds(self, word: Word) -> bool:
        middle = (word.left + word.right) / 2
        return self.lefts[0] <= middle < self.lefts[-1] and self.tops[-1] < word.middle <= self.tops[0]


class Frame(NamedTuple):
    """Rules that meet, and the places that they give to rows and columns; lengths in points."""

    lefts: Sequence[float]
    tops: Sequence[float]
    level: Sequence[Rule]
    upright: Sequence[Rule]

    @property
    def area(self) -> float:
        return (self.lefts[-1] - self.lefts[0]) * (self.tops[0] - self.tops[-1])


def find_frames(rules: Sequence[Rule]) -> list[Frame]:
    """Tables of two rows and two columns at least, whatever may stand in them; one before the one that it is in."""
    level = _join([rule for rule in rules if rule.is_level and not rule.is_ground])
    upright = _join([rule for rule in rules if not rule.is_level and not rule.is_ground])
    if len(level) + len(upright) > _MOST_LINES:
        return []
    frames = []
    for group in _meeting(level, upright):
        sides = [rule for rule in group if not rule.is_level]
        across = [rule for rule in group if rule.is_level]
        tops, lefts = _places(across, sides)[::-1], _places(sides, across)
        if 3 <= len(tops) <= _MOST_ROWS + 1 and 3 <= len(lefts) <= _MOST_COLUMNS + 1:
            frame = Frame(lefts, tops, across, sides)
            if _is_ruled(frame):
                frames.append(frame)
    return sorted(frames, key=lambda frame: frame.area)


def _join(rules: Sequence[Rule]) -> list[Rule]:
    """Rules at one place, end to end, as one."""
    joined: list[Rule] = []
    for place in _clusters(rules):
        at = sum(rule.at for rule in place) / len(place)
        first, *others = sorted(place, key=lambda rule: rule.start)
        start, end = first.start, first.end
        for rule in others:
            if rule.start > end + _TOUCHING:
                joined.append(Rule(rule.is_level, at, start, end))
                start = rule.start
            end = max(end, rule.end)
        joined.append(Rule(first.is_level, at, start, end))
    return joined


def _clusters(rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    cluster: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if cluster and rule.at - cluster[0].at > _SAME_PLACE:
            yield cluster
            cluster = []
        cluster.append(rule)
    if cluster:
        yield cluster


def _meeting(level: Sequence[Rule], upright: Sequence[Rule]) -> Iterator[list[Rule]]:
    """Groups of rules that meet each other, directly or by way of others."""
    groups = list(range(len(level) + len(upright)))

    def group_of(number: int) -> int:
        while groups[number] != number:
            groups[number] = groups[groups[number]]
            number = groups[number]
        return number

    heights = [rule.at for rule in level]  # ascending, as `_join` leaves them
    for number, rule in enumerate(upright, start=len(level)):
        first = bisect.bisect_left(heights, rule.start - _TOUCHING)
        last = bisect.bisect_right(heights, rule.end + _TOUCHING)
        for other in range(first, last):
            if level[other].start - _TOUCHING <= rule.at <= level[other].end + _TOUCHING:
                groups[group_of(number)] = group_of(other)
    members: dict[int, list[Rule]] = {}
    for number, rule in enumerate((*level, *upright)):
        members.setdefault(group_of(number), []).append(rule)
    yield from members.values()


def _places(rules: Sequence[Rule], across: Sequence[Rule]) -> list[float]:
    """Where rows or columns begin and end, ascending; a table open to a side ends where the rules across end."""
    if not rules or not across:
        return []
    places = sorted(rule.at for rule in rules)
    low, high = min(rule.start for rule in across), max(rule.end for rule in across)
    places = [low] * (low < places[0] - 2 * _TOUCHING) + places + [high] * (high > places[-1] + 2 * _TOUCHING)
    apart = places[:1]
    for place in places[1:]:
        if place - apart[-1] > _SAME_PLACE:
            apart.append(place)
    return apart


def fill(frame: Frame, words: Sequence[Word]) -> Grid | None:
    """The table with its words; None where its rules do not part them: cells hold several rows or columns."""
    cells = _cells(frame)
    found: list[list[Word]] = [[] for _ in cells]
    number_of = {
        place: number
        for number, cell in enumerate(cells)
        for place in itertools.product(
            range(cell.row, cell.row + cell.rows), range(cell.column, cell.column + cell.columns)
        )
    }
    lefts, falling = frame.lefts, [-top for top in frame.tops]
    astray = inside = 0
    for word in words:
        column = bisect.bisect_right(lefts, (word.left + word.right) / 2) - 1
        row = bisect.bisect_right(falling, -word.middle) - 1
        if not (0 <= row < len(falling) - 1 and 0 <= column < len(lefts) - 1):
            continue
        number = number_of[row, column]
        found[number].append(word)
        cell = cells[number]
        beyond = max(lefts[cell.column] - word.left, word.right - lefts[cell.column + cell.columns])
        inside += 1
        astray += beyond > _OVER * (word.right - word.left)
    filled = [cell._replace(words=of_cell) for cell, of_cell in zip(cells, found, strict=True)]
    if astray > _ASTRAY * inside or not _is_table(filled, lefts):
        return None
    grid = Grid(lefts=lefts, tops=frame.tops, cells=filled)
    return None if _lacks_labels(grid, words) else grid


def _is_table(cells: Sequence[GridCell], lefts: Sequence[float]) -> bool:
    """Whether words stand beside each other in two rows at least, each row and column between rules of its own."""
    filled = [cell for cell in cells if cell.words]
    by_row = [list(in_row) for _, in_row in itertools.groupby(filled, key=lambda cell: cell.row)]
    if sum(len(in_row) > 1 for in_row in by_row) < 2 or len(filled) < _LEAST_FILLED * len(cells):
        return False
    # All lines of a text but the last may be stretched to the width of their cell.
    wide = sum(COLUMN in list(read_rows(cell.words))[-1].text() for cell in filled)
    if wide > _MOST_WIDE * len(filled):
        return False
    return not any(_holds_rows(in_row, lefts, is_all=len(by_row) == 2) for in_row in by_row)


def _holds_rows(cells: Sequence[GridCell], lefts: Sequence[float], *, is_all: bool) -> bool:
    """Whether the cells of a row hold several rows that no rule parts: figures, or lines that are as many in each.

    Lines of one text end where the next word would not have fitted; lines of several may end before.
    """
    lines = [list(read_rows(cell.words)) for cell in cells]
    early = [
        ends_early(of_cell, lefts[cell.column], lefts[cell.column + cell.columns])
        for cell, of_cell in zip(cells, lines, strict=True)
    ]
    if any(
        is_early and all(is_number_like(row.text()) for row in of_cell)
        for is_early, of_cell in zip(early, lines, strict=True)
    ):
        return True
    return (
        len(set(map(len, lines))) == 1
        and sum(early) * 2 >= len(cells)
        and (len(cells) > 2 or (len(cells) == 2 and is_all))
    )


def ends_early(rows: Sequence[Row], left: float, right: float) -> bool:
    """Whether a line of a cell ends though the first word of the next one would have fitted behind it."""
    margin = max(0.0, min(word.left for row in rows for word in row.words) - left)
    for row, below in itertools.pairwise(rows):
        end, first = max(word.right for word in row.words), below.in_order()[0]
        if end + _SPACE * row.anchor.height + first.right - first.left < right - min(margin, _WIDEST_MARGIN):
            return True
    return False


def _lacks_labels(grid: Grid, words: Sequence[Word]) -> bool:
    """Whether only the figures of a table have rules, and their labels stand to the left of them."""
    first = [" ".join(word.text for word in cell.words) for cell in grid.cells if cell.column == 0 and cell.words]
    if sum(map(is_number_like, first)) * 2 <= len(first):
        return False
    return any(word.right <= grid.lefts[0] and grid.tops[-1] < word.middle < grid.tops[0] for word in words)


def _cells(frame: Frame) -> list[GridCell]:
    """Its cells, still empty: places with no rule between them are one, where that is a box."""
    rows, columns = len(frame.tops) - 1, len(frame.lefts) - 1
    right_open, below_open = _open_sides(frame)
    taken: set[tuple[int, int]] = set()
    cells = []
    for row, column in itertools.product(range(rows), range(columns)):
        if (row, column) in taken:
            continue
        wide = high = 1
        while (row, column + wide - 1) in right_open and (row, column + wide) not in taken:
            wide += 1
        while all((row + high - 1, column + step) in below_open for step in range(wide)):
            high += 1
        taken.update(itertools.product(range(row, row + high), range(column, column + wide)))
        cells.append(GridCell(row, column, high, wide))
    return cells


def _is_ruled(frame: Frame) -> bool:
    """Whether rules part most neighbours, those side by side and those one above the other."""
    rows, columns = len(frame.tops) - 1, len(frame.lefts) - 1
    right_open, below_open = _open_sides(frame)
    return (
        len(right_open) <= (1 - _LEAST_RULED) * rows * (columns - 1)
        and len(below_open) <= (1 - _LEAST_RULED) * (rows - 1) * columns
    )


def _open_sides(frame: Frame) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Places (row, column) without a rule to the next column, and to the next row."""
    lefts, tops = frame.lefts, frame.tops
    middles = [(left + right) / 2 for left, right in itertools.pairwise(lefts)]
    heights = [(top + bottom) / 2 for top, bottom in itertools.pairwise(tops)]
    right_open = {
        (row, column)
        for column, rules in enumerate(_by_place(lefts[1:-1], frame.upright))
        for row, height in enumerate(heights)
        if not any(rule.start <= height <= rule.end for rule in rules)
    }
    below_open = {
        (row, column)
        for row, rules in enumerate(_by_place(tops[1:-1], frame.level))
        for column, middle in enumerate(middles)
        if not any(rule.start <= middle <= rule.end for rule in rules)
    }
    return right_open, below_open


def _by_place(places: Sequence[float], rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    for place in places:
        yield [rule for rule in rules if abs(rule.at - place) <= _SAME_PLACE]
