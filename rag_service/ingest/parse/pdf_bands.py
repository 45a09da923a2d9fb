"""Tables on a PDF page without rules between their columns, whose rows are parted by level rules, grounds or room.

Only of those with a cell of several lines: it would be read across its neighbours. Of all others the lines of the page
are the rows of the table, and stay as they are. Columns are what all lines of the table leave free.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_service.ingest.parse.pdf_grids import Frame, Grid, ends_early, fill
from rag_service.ingest.parse.pdf_rows import COLUMN, COLUMN_GAP, Row, read_rows
from rag_service.ingest.parse.pdf_rules import Rule
from rag_service.ingest.parse.pdf_words import Word

_NEAR = 1.5  # heights from one line of a name to the next
_FAR = 3.0  # heights from one line to the next that is of another table
_WIDER = 1.15  # times the step between lines of a cell, between rows that only room parts
_COVERED = 0.6  # of a table's width, by the rule or the ground between two rows
_MOST_LETTERS = 200  # of a cell; more are a column of prose
_MOST_EARLY = 0.2  # of the cells of several lines, with lines that end before they are full
_LEAST_COLUMNS = 3  # where only room parts the rows: two columns of prose have room between paragraphs, too
_LABELLED = 0.7  # of the rows
_BEGIN_TOGETHER = 0.5  # of the cells of a row, with their first lines on one height
_WORDS_OF_PROSE = 3  # spaces in its first line; where most of such lines begin in small letters, they go on
_CURRENCIES = frozenset("$€£¥%")
_ROOM = 6.0  # points above the first line and below the last


@dataclass(frozen=True, kw_only=True)
class _Block:
    """Lines with the same gaps between their words, from top to bottom."""

    rows: Sequence[Row]
    gaps: Sequence[tuple[float, float]]

    @property
    def left(self) -> float:
        return min(word.left for row in self.rows for word in row.words)

    @property
    def right(self) -> float:
        return max(word.right for row in self.rows for word in row.words)


def find_bands(words: Sequence[Word], rules: Sequence[Rule]) -> Iterator[Grid]:
    """Tables of three rows and two columns at least, none within another."""
    level = [rule for rule in rules if rule.is_level]
    for block in _blocks(list(read_rows(words))):
        ends = _ends_of_rows(block, level)
        by_room = len(ends) < 2
        if by_room:  # rules may part the names from the rest
            ends = sorted({*ends, *_ends_by_room(block.rows)})
        if len(ends) < 2 or (by_room and len(block.gaps) + 1 < _LEAST_COLUMNS):
            continue
        grid = fill(_frame(block, ends), words)
        if grid is None or not _holds_cells(grid):
            continue
        if (
            _is_torn(grid)
            and _early(grid) <= (0 if by_room else _MOST_EARLY)
            and (not by_room or _begin_together(grid))
        ):
            yield grid


def _blocks(rows: Sequence[Row]) -> Iterator[_Block]:
    start = done = 0
    while start < len(rows):
        gaps = _gaps(rows[start])
        end = start + 1
        while gaps and end < len(rows) and not _is_far(rows[end - 1], rows[end]):
            narrower = _keep_free(gaps, rows[end])
            if not narrower:
                break
            gaps, end = narrower, end + 1
        if gaps and end - start > 2:
            yield _Block(rows=rows[_top(rows, start, done, gaps) : end], gaps=gaps)
            start = done = end
        else:
            start += 1


def _top(rows: Sequence[Row], start: int, done: int, gaps: Sequence[tuple[float, float]]) -> int:
    """Place of the first line of the names: those of several lines may stand above the line that has them all."""
    while start > done:
        above, below = rows[start - 1].anchor, rows[start].anchor
        is_near = above.middle - below.middle <= _NEAR * min(above.height, below.height)
        if not is_near or len(_keep_free(gaps, rows[start - 1])) < len(gaps):
            break
        start -= 1
    return start


def _is_far(above: Row, below: Row) -> bool:
    return above.anchor.middle - below.anchor.middle > _FAR * min(above.anchor.height, below.anchor.height)


def _gaps(row: Row) -> list[tuple[float, float]]:
    words = sorted(row.words, key=lambda word: word.left)
    least = COLUMN_GAP * row.anchor.height
    gaps, right = [], words[0].right
    for word in words[1:]:
        if word.left - right > least:
            gaps.append((right, word.left))
        right = max(right, word.right)
    return gaps


def _keep_free(gaps: Sequence[tuple[float, float]], row: Row) -> list[tuple[float, float]]:
    """What a line leaves of the gaps; nothing where it goes on over all of them."""
    least = COLUMN_GAP * row.anchor.height
    kept = []
    for start, end in gaps:
        inside = [word for word in row.words if word.left < end and word.right > start]
        edges = sorted((max(start, word.left), min(end, word.right)) for word in inside)
        at = start
        for left, right in [*edges, (end, end)]:
            if left - at > least:
                kept.append((at, left))
            at = max(at, right)
    return kept


def _ends_of_rows(block: _Block, level: Sequence[Rule]) -> list[int]:
    """Places of the lines below which a rule or the edge of a ground runs."""
    left, right = block.left, block.right
    ends = []
    for place, (row, below) in enumerate(itertools.pairwise(block.rows)):
        between = [rule for rule in level if below.anchor.middle < rule.at < row.anchor.middle]
        covered = sum(max(0.0, min(rule.end, right) - max(rule.start, left)) for rule in between)
        if covered >= _COVERED * (right - left):
            ends.append(place)
    return ends


def _ends_by_room(rows: Sequence[Row]) -> list[int]:
    """Places of the lines with more room below than there is between the lines of a cell."""
    steps = [above.anchor.middle - below.anchor.middle for above, below in itertools.pairwise(rows)]
    least = _WIDER * min(steps)
    return [place for place, step in enumerate(steps) if step > least]


def _frame(block: _Block, ends: Sequence[int]) -> Frame:
    rows = block.rows
    inner = [(rows[end].anchor.middle + rows[end + 1].anchor.middle) / 2 for end in ends]
    top = max(row.anchor.middle for row in rows) + _ROOM
    tops = [top, *inner, min(row.anchor.middle for row in rows) - _ROOM]
    lefts = [block.left - 1, *((start + end) / 2 for start, end in block.gaps), block.right + 1]
    return Frame(
        lefts=lefts,
        tops=tops,
        level=[Rule(True, at, lefts[0], lefts[-1]) for at in tops],
        upright=[Rule(False, at, tops[-1], tops[0]) for at in lefts],
    )


def _holds_cells(grid: Grid) -> bool:
    """Whether no cell is a lone currency sign, a cell and its neighbour, or a column of prose."""
    lines = [[row.text() for row in read_rows(cell.words)] for cell in grid.cells if cell.words]
    if any(COLUMN in of_cell[-1] or of_cell[0] in _CURRENCIES for of_cell in lines):
        return False
    if any(sum(map(len, of_cell)) > _MOST_LETTERS for of_cell in lines):
        return False
    long = [of_cell[0] for of_cell in lines if of_cell[0].count(" ") >= _WORDS_OF_PROSE]
    return sum(line[0].islower() for line in long) * 2 <= len(long)


def _is_torn(grid: Grid) -> bool:
    """Whether lines of cells below the names would be read across others: all but those of a last cell alone."""
    for row, in_row in itertools.groupby(grid.cells, key=lambda cell: cell.row):
        lines = [sum(1 for _ in read_rows(cell.words)) for cell in in_row if cell.words]
        if row > 0 and any(count > 1 for count in lines[:-1]):
            return True
    return False


def _early(grid: Grid) -> float:
    """Share of the cells of several lines, below the names, that hold several texts."""
    lines = [(cell, list(read_rows(cell.words))) for cell in grid.cells if cell.row > 0]
    several = [
        ends_early(of_cell, grid.lefts[cell.column], grid.lefts[cell.column + cell.columns])
        for cell, of_cell in lines
        if len(of_cell) > 1
    ]
    return sum(several) / max(1, len(several))


def _begin_together(grid: Grid) -> bool:
    """Whether most cells of each row begin on its first line; names may end together."""
    for row, in_row in itertools.groupby(grid.cells, key=lambda cell: cell.row):
        firsts = [max(word.middle for word in cell.words) for cell in in_row if cell.words]
        height = statistics.median(word.height for cell in grid.cells for word in cell.words)
        if row and sum(max(firsts) - first < height / 2 for first in firsts) < _BEGIN_TOGETHER * len(firsts):
            return False
    return True


def _are_labelled(grid: Grid) -> bool:
    """Whether most rows have a first cell; paragraphs of columns side by side have one now and then."""
    firsts = [bool(cell.words) for cell in grid.cells if cell.column == 0]
    return sum(firsts) >= _LABELLED * len(firsts)
