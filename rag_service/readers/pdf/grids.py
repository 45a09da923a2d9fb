"""Ruled tables on a PDF page: which rules form a table, and which words belong to each cell.

Where rules separate the rows, all lines of a cell belong together. Read line by line, a cell of three lines would be
torn apart by the figures beside its middle.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rag_service.readers.common.cells import is_number_like
from rag_service.readers.pdf.rows import COLUMN, Row, read_rows
from rag_service.readers.pdf.rules import Rule
from rag_service.readers.pdf.words import Word

_SAME_PLACE = 2.5  # points between rules that count as one: the edges of neighbouring boxes
_TOUCHING = 3.0  # points between the end of a rule and the one it meets
_MAX_ROWS, _MAX_COLUMNS = 400, 60
_SPACE = 0.35  # of a line's height; slightly more than a space, so that a line counts as full when in doubt
_MAX_MARGIN = 8.0  # points between a rule and the text; centred text leaves more
_OVERHANG = 0.25  # of a word's width, outside its cell
_MAX_OVERHANGING = 0.1  # of the words
_MIN_FILLED = 0.3  # of the cells; the grid of a chart is empty
_MAX_WIDE = 0.1  # of the cells, with gaps in their lines as between columns
_MIN_ENDING = 2  # upright rules that end at a height where no level rule is
_MIN_RULED = 0.7  # of the borders between neighbours; reports have rules below sums only
_SAME_LINE = 0.3  # of a line's height, between lines of two cells; lines of a cell are 0.7 and more apart
_LEVEL_ENDS = 1.0  # points between the ends of lines that are aligned to the right
_MIN_EVEN = 4  # lines in every cell of a row, figures in one: no texts are wrapped so evenly
_MAX_LINES = 3_000  # on a page, after joining

_Places = set[tuple[int, int]]  # (row, column)


class GridCell(NamedTuple):
    """A cell and its words. Rows and columns count from 0, from the top left."""

    row: int
    column: int
    rows: int  # number of rows that it spans
    columns: int
    words: Sequence[Word] = ()


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table; lengths in points."""

    lefts: Sequence[float]  # of the columns, and the right end of the last one
    tops: Sequence[float]  # of the rows, and the bottom of the last one
    cells: Sequence[GridCell]  # row by row, including empty ones

    def holds(self, word: Word) -> bool:
        middle = (word.left + word.right) / 2
        return self.lefts[0] <= middle < self.lefts[-1] and self.tops[-1] < word.middle <= self.tops[0]


class Frame(NamedTuple):
    """A table by its rules alone; lengths in points."""

    lefts: Sequence[float]
    tops: Sequence[float]
    right_open: _Places  # with no rule to the next column
    below_open: _Places  # with no rule to the next row


def find_frames(rules: Sequence[Rule]) -> list[Frame]:
    """Frames of at least two rows and two columns, smallest first: nested ones come before those around them."""
    level = _join([rule for rule in rules if rule.is_level])
    upright = _join([rule for rule in rules if not rule.is_level])
    if len(level) + len(upright) > _MAX_LINES:
        return []
    frames = []
    for group in _connected(level, upright):
        sides = [rule for rule in group if not rule.is_level]
        across = [rule for rule in group if rule.is_level]
        tops, lefts = _places(across, sides)[::-1], _places(sides, across)
        ending = _ending_within(sides, tops)
        tops = sorted([*tops, *ending], reverse=True)
        rows, columns = len(tops) - 1, len(lefts) - 1
        if 2 <= rows <= _MAX_ROWS and 2 <= columns <= _MAX_COLUMNS:
            right_open, below_open = _open_sides(lefts, tops, across, sides)
            below_open -= {
                (tops.index(at) - 1, column)
                for at, places in ending.items()
                for column, beside in enumerate(itertools.pairwise(lefts))
                if any(abs(place - side) <= _SAME_PLACE for place in places for side in beside)
            }
            if (
                len(right_open) <= (1 - _MIN_RULED) * rows * (columns - 1)
                and len(below_open) <= (1 - _MIN_RULED) * (rows - 1) * columns
            ):
                frames.append(Frame(lefts, tops, right_open, below_open))
    return sorted(frames, key=lambda frame: (frame.lefts[-1] - frame.lefts[0]) * (frame.tops[0] - frame.tops[-1]))


def _join(rules: Sequence[Rule]) -> list[Rule]:
    """Join rules in the same place that touch end to end; the result is sorted by `at`."""
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


def _connected(level: Sequence[Rule], upright: Sequence[Rule]) -> Iterator[list[Rule]]:
    """Groups of rules that meet directly or through others (union-find)."""
    groups = list(range(len(level) + len(upright)))

    def group_of(number: int) -> int:
        while groups[number] != number:
            groups[number] = groups[groups[number]]
            number = groups[number]
        return number

    heights = [rule.at for rule in level]
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
    """Where rows or columns begin and end, ascending; on an open side, the table ends with the rules across."""
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


def _ending_within(upright: Sequence[Rule], tops: Sequence[float]) -> dict[float, list[float]]:
    """Heights at which upright rules end far from any level rule, and their places from the left.

    There a row begins: those that go on part the names of groups of columns above it.
    """
    found: dict[float, list[float]] = {}
    for rule in sorted(upright, key=lambda rule: rule.end):
        if tops and tops[-1] < rule.end < tops[0] and min(abs(rule.end - top) for top in tops) > 2 * _TOUCHING:
            at = next((at for at in found if rule.end - at <= _SAME_PLACE), rule.end)
            found.setdefault(at, []).append(rule.at)
    return {at: places for at, places in found.items() if len(places) >= _MIN_ENDING}


def _open_sides(
    lefts: Sequence[float], tops: Sequence[float], level: Sequence[Rule], upright: Sequence[Rule]
) -> tuple[_Places, _Places]:
    """Places without a rule to the next column, and those without a rule to the next row."""
    middles = [(left + right) / 2 for left, right in itertools.pairwise(lefts)]
    heights = [(top + bottom) / 2 for top, bottom in itertools.pairwise(tops)]
    right_open = {(row, column) for column, row in _uncovered(lefts[1:-1], heights, upright)}
    below_open = set(_uncovered(tops[1:-1], middles, level))
    return right_open, below_open


def _uncovered(borders: Sequence[float], middles: Sequence[float], rules: Sequence[Rule]) -> Iterator[tuple[int, int]]:
    """(border, place along it) without a rule there."""
    for border, at in enumerate(borders):
        there = [rule for rule in rules if abs(rule.at - at) <= _SAME_PLACE]
        for place, middle in enumerate(middles):
            if not any(rule.start <= middle <= rule.end for rule in there):
                yield border, place


def fill(frame: Frame, words: Sequence[Word], *, part: Callable[[Word, float], Sequence[Word]]) -> Grid | None:
    """The table with its words; None if its rules do not separate the words: cells hold several rows or columns.

    `part` parts a word at a rule that it crosses, if that is where a second text begins.
    """
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
    overhanging = inside = 0
    left = list(reversed(words))
    while left:
        word = left.pop()
        column = bisect.bisect_right(lefts, (word.left + word.right) / 2) - 1
        row = bisect.bisect_right(falling, -word.middle) - 1
        if not (0 <= row < len(falling) - 1 and 0 <= column < len(lefts) - 1):
            continue
        number = number_of[row, column]
        cell = cells[number]
        sides = lefts[cell.column], lefts[cell.column + cell.columns]
        crossed = next((side for side in sides if word.left < side < word.right), None)
        if crossed is not None and len(parts := part(word, crossed)) > 1:
            left += reversed(parts)
            continue
        found[number].append(word)
        beyond = max(sides[0] - word.left, word.right - sides[1])
        inside += 1
        overhanging += beyond > _OVERHANG * (word.right - word.left)
    filled = [cell._replace(words=of_cell) for cell, of_cell in zip(cells, found, strict=True)]
    if overhanging > _MAX_OVERHANGING * inside or not _is_table(filled):
        return None
    grid = _with_own_rows(Grid(lefts=lefts, tops=frame.tops, cells=filled))
    return None if grid is None or _lacks_labels(grid, words) else grid


def _cells(frame: Frame) -> list[GridCell]:
    """Its cells, still empty: rectangles of places with no rule between them are one."""
    taken: _Places = set()
    cells = []
    for row, column in itertools.product(range(len(frame.tops) - 1), range(len(frame.lefts) - 1)):
        if (row, column) in taken:
            continue
        wide = high = 1
        while (row, column + wide - 1) in frame.right_open and (row, column + wide) not in taken:
            wide += 1
        while all((row + high - 1, column + step) in frame.below_open for step in range(wide)):
            high += 1
        taken.update(itertools.product(range(row, row + high), range(column, column + wide)))
        cells.append(GridCell(row, column, high, wide))
    return cells


def _is_table(cells: Sequence[GridCell]) -> bool:
    """Whether at least two rows have several filled cells, and rules separate all columns."""
    filled = [cell for cell in cells if cell.words]
    by_row = [list(in_row) for _, in_row in itertools.groupby(filled, key=lambda cell: cell.row)]
    if sum(len(in_row) > 1 for in_row in by_row) < 2 or len(filled) < _MIN_FILLED * len(cells):
        return False
    # Only the last line of a text is sure not to be justified to the width of its cell.
    wide = sum(COLUMN in list(read_rows(cell.words))[-1].text() for cell in filled)
    return wide <= _MAX_WIDE * len(filled)


def _with_own_rows(grid: Grid) -> Grid | None:
    """The table with a row for each row of text where rules enclose several; None if the lines do not tell the rows."""
    boxes = {row: list(cells) for row, cells in itertools.groupby(grid.cells, key=lambda cell: cell.row)}
    is_all = sum(any(cell.words for cell in cells) for cells in boxes.values()) == 2
    tops, starts = list[float](), list[int]()  # of the new rows; number of the first new row in each box
    own: list[tuple[int, GridCell]] = []  # with the number of its new row
    for row, top in enumerate(grid.tops[:-1]):
        start = len(tops)
        starts.append(start)
        tops.append(top)
        cells = boxes.get(row, [])
        if not _holds_several_rows([cell for cell in cells if cell.words], grid.lefts, is_all=is_all):
            own += [(start, cell) for cell in cells]
            continue
        parts = _part([cell for cell in cells if cell.rows == 1], grid.lefts)
        if parts is None:
            return None
        own += [(start, cell) for cell in cells if cell.rows > 1]
        own += [(start + step, cell) for step, part in enumerate(parts) for cell in part]
        tops += [max(word.middle + word.height / 2 for cell in part for word in cell.words) for part in parts[1:]]
    starts.append(len(tops))
    spans = [
        cell._replace(row=row, rows=1 if cell.rows == 1 else starts[cell.row + cell.rows] - starts[cell.row])
        for row, cell in own
    ]
    return replace(grid, tops=[*tops, grid.tops[-1]], cells=spans)


def _part(cells: Sequence[GridCell], lefts: Sequence[float]) -> list[list[GridCell]] | None:
    """The cells of each row in a box: a row begins where lines of several columns stand side by side.

    Lines of a single column continue the row that they are nearest to. None if that leaves a row without its label, or
    with lines that are not those of a wrapped text.
    """
    lines = [(number, line) for number, cell in enumerate(cells) for line in read_rows(cell.words)]
    strips: list[list[tuple[int, Row]]] = []
    for number, line in sorted(lines, key=lambda entry: -entry[1].anchor.middle):
        if strips and strips[-1][0][1].distance(line) <= _SAME_LINE:
            strips[-1].append((number, line))
        else:
            strips.append([(number, line)])
    depths = [-strip[0][1].anchor.middle for strip in strips if len(strip) > 1]
    borders = [(above + below) / 2 for above, below in itertools.pairwise(depths)]
    if not borders:
        return None
    label = min(number for number, _ in lines)
    for nearer in (-_SAME_LINE / 2, _SAME_LINE / 2):  # midway, a line belongs to the row above, else to the one below
        parts: list[list[list[Row]]] = [[[] for _ in cells] for _ in depths]
        for number, line in lines:
            parts[bisect.bisect(borders, nearer * line.anchor.height - line.anchor.middle)][number].append(line)
        if all(part[label] for part in parts) and not any(
            _is_several(of_cell, lefts[cell.column], lefts[cell.column + cell.columns])
            for part in parts
            for cell, of_cell in zip(cells, part, strict=True)
        ):
            return [
                [
                    cell._replace(words=[word for line in of_cell for word in line.words])
                    for cell, of_cell in zip(cells, part, strict=True)
                ]
                for part in parts
            ]
    return None


def _holds_several_rows(cells: Sequence[GridCell], lefts: Sequence[float], *, is_all: bool) -> bool:
    """Whether the cells of a row hold several rows without rules: figures, or equally many short lines in each.

    A wrapped line ends where the next word would not have fitted; separate lines may end earlier.
    """
    lines = [list(read_rows(cell.words)) for cell in cells]
    early = [
        _ends_early(of_cell, lefts[cell.column], lefts[cell.column + cell.columns])
        for cell, of_cell in zip(cells, lines, strict=True)
    ]
    if any(
        is_early and all(is_number_like(row.text()) for row in of_cell)
        for is_early, of_cell in zip(early, lines, strict=True)
    ):
        return True
    is_even = len(cells) > 2 and len(set(map(len, lines))) == 1 and len(lines[0]) >= _MIN_EVEN
    if is_even and any(all(is_number_like(row.text()) for row in of_cell) for of_cell in lines):
        return True
    return (
        len(set(map(len, lines))) == 1
        and cells[0].column == 0  # names of columns are broken by hand, those of rows are not
        and sum(early) * 2 >= len(cells)
        and (len(cells) > 2 or (len(cells) == 2 and is_all))
    )


def _is_several(rows: Sequence[Row], left: float, right: float) -> bool:
    """Whether lines of a cell are entries of their own, given the sides of the cell: figures, or no wrapped text."""
    return len(rows) > 1 and (all(is_number_like(row.text()) for row in rows) or _ends_early(rows, left, right))


def _ends_early(rows: Sequence[Row], left: float, right: float) -> bool:
    """Whether a line of a cell ends although the first word of the next line would have fitted."""
    begins = [min(word.left for word in row.words) for row in rows]
    ends = [max(word.right for word in row.words) for row in rows]
    if max(ends) - min(ends) < _LEVEL_ENDS and right - max(ends) < min(begins) - left:  # look from the right instead
        left, right, begins, ends = -right, -left, [-end for end in ends], [-begin for begin in begins]
    margin = max(0.0, min(begins) - left)
    for end, (row, below) in zip(ends, itertools.pairwise(rows), strict=False):
        first = below.in_order()[0]
        if end + _SPACE * row.anchor.height + first.right - first.left < right - min(margin, _MAX_MARGIN):
            return True
    return False


def _lacks_labels(grid: Grid, words: Sequence[Word]) -> bool:
    """Whether the rules surround figures only, with their labels to the left of the table."""
    first = [" ".join(word.text for word in cell.words) for cell in grid.cells if cell.column == 0 and cell.words]
    if sum(map(is_number_like, first)) * 2 <= len(first):
        return False
    return any(word.right <= grid.lefts[0] and grid.tops[-1] < word.middle < grid.tops[0] for word in words)
