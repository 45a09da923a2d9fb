"""Tables of a PDF as lines that carry the names of their columns, like those of sheets and documents (`tables`).

Only of tables with rules between their cells (`pdf_grids`); of all others the rows are lines as the page has them.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag_service.domain import Location
from rag_service.ingest.parse.builder import TextBuilder, one_line
from rag_service.ingest.parse.pdf_bands import find_bands
from rag_service.ingest.parse.pdf_grids import Grid, GridCell, fill, find_frames
from rag_service.ingest.parse.pdf_rows import COLUMN, COLUMN_GAP, read_rows
from rag_service.ingest.parse.pdf_rules import Rule
from rag_service.ingest.parse.pdf_words import Word, turn
from rag_service.ingest.parse.tables import Cell, Row, find_header, is_number_like, write_table

_NOWHERE = Location()  # lines of a table have the place of their page
_LONG = 400  # characters of a cell that holds paragraphs: such a table only divides the page
_LEVEL = 0.5  # of a word's height: words of one line
_LEAST_BESIDE = 2
_SAME_COLUMNS = 3.0  # points
_MOST_LINES_BETWEEN = 2  # above and below a table that goes on overleaf: running titles, page numbers


@dataclass(frozen=True, kw_only=True)
class _Open:
    """A table at the end of a page, which may go on on the next."""

    lefts: Sequence[float]
    header: Row


class TableReader:
    """Reads the tables of a document, page by page: one that goes on overleaf keeps the names of its columns.

    Args:
        name: Of the document, for messages.
    """

    def __init__(self, name: str):
        self._name = name
        self._open: _Open | None = None

    def read(
        self, words: Sequence[Word], read_rules: Callable[[], Sequence[Rule]], is_bold: Callable[[Word], bool]
    ) -> list[Word]:
        """The words of a page, all of one direction, with one word in place of those of each table.

        Rules are only read where words stand beside each other, as in a table: to read them takes as long as the words.
        """
        before, self._open = self._open, None
        left = list(words)
        if not _stand_beside(left):
            return left
        turns = left[0].turns or 0
        rules = [_turned(rule, turns) for rule in read_rules()]
        for frame in find_frames(rules):
            grid = fill(frame, left)
            if grid is not None:
                left = self._replace(grid, left, is_bold, before)
        for grid in list(find_bands(left, rules)):
            left = self._replace(grid, left, is_bold, before)
        return left

    def _replace(
        self, grid: Grid, words: Sequence[Word], is_bold: Callable[[Word], bool], before: _Open | None
    ) -> list[Word]:
        outside = [word for word in words if not grid.holds(word)]
        above = _count_lines(word for word in outside if word.middle > grid.tops[0])
        text = self._write(grid, is_bold, before if above <= _MOST_LINES_BETWEEN else None)
        if _count_lines(word for word in outside if word.middle < grid.tops[-1]) > _MOST_LINES_BETWEEN:
            self._open = None
        return [*outside, _as_word(grid, text, words[0].turns)]

    def _write(self, grid: Grid, is_bold: Callable[[Word], bool], before: _Open | None) -> str:
        """The table's lines; it stays open for the next page."""
        if any(sum(len(word.text) + 1 for word in cell.words) > _LONG for cell in grid.cells):
            return "\n".join(_blocks(grid))
        rows = _rows(grid, is_bold)
        header = find_header(rows)[0]
        if before and _goes_on(before, grid, rows[0]):
            header = before.header
            rows = [header, *rows]
        if header is not None:
            self._open = _Open(lefts=grid.lefts, header=replace(header, number=0, is_header=True))
        builder = TextBuilder(self._name)
        write_table(builder, rows, place=lambda row, cell: _NOWHERE)
        return builder.text().rstrip("\n")


def _stand_beside(words: Sequence[Word]) -> bool:
    """Whether the page has what a table of two rows has: words far apart on a line, or columns one after the other."""
    count = 0
    for before, word in itertools.pairwise(words):
        is_level = abs(word.middle - before.middle) <= _LEVEL * word.height
        gap = word.left - before.right if is_level else word.middle - before.middle
        count += gap > COLUMN_GAP * word.height
        if count == _LEAST_BESIDE:
            return True
    return False


def _goes_on(before: _Open, grid: Grid, first: Row) -> bool:
    """Whether a table has the columns of the one before, and no names of its own."""
    if len(before.lefts) != len(grid.lefts) or any(
        abs(one - other) > _SAME_COLUMNS for one, other in zip(before.lefts, grid.lefts, strict=True)
    ):
        return False
    names = all(cell.is_strong for cell in first.cells) and all(cell.is_strong for cell in before.header.cells)
    return not names and [cell.text for cell in first.cells] != [cell.text for cell in before.header.cells]


def _rows(grid: Grid, is_bold: Callable[[Word], bool]) -> list[Row]:
    """Rows with text; what is merged downwards is repeated, what is merged sideways names all its columns."""
    rows: dict[int, list[Cell]] = {}
    for cell in grid.cells:
        text = _text_of(cell)
        if not text:
            continue
        is_text, is_strong = not is_number_like(text), is_bold(cell.words[0]) and is_bold(cell.words[-1])
        for row in range(cell.row, cell.row + cell.rows):
            for step in range(cell.columns):
                place = cell.column + step + 1
                rows.setdefault(row + 1, []).append(
                    Cell(place, text, is_text, is_spanned=step > 0, is_strong=is_strong)
                )
    found = [Row(number, sorted(rows[number], key=lambda cell: cell.column)) for number in sorted(rows)]
    return [row for row in found if row.values]


def _text_of(cell: GridCell) -> str:
    return one_line(" ".join(row.text() for row in read_rows(cell.words)))


def _blocks(grid: Grid) -> Iterator[str]:
    """Lines of a table that only divides the page: short cells of a row side by side, long ones one after the other."""
    for _, in_row in itertools.groupby(grid.cells, key=lambda cell: cell.row):
        cells = [[row.text() for row in read_rows(cell.words)] for cell in in_row if cell.words]
        if all(len(lines) == 1 for lines in cells):
            yield COLUMN.join(line for lines in cells for line in lines)
        else:
            for lines in cells:
                yield from (*lines, "")


def _as_word(grid: Grid, text: str, turns: int | None) -> Word:
    words = [word for cell in grid.cells for word in cell.words]
    height = statistics.median(word.height for word in words)
    top = max(word.middle for word in words)
    first = min(word.number for word in words)
    return Word(text, first, False, turns, grid.lefts[0], grid.lefts[-1], top, height, is_table=True)


def _count_lines(words: Iterable[Word]) -> int:
    return sum(1 for _ in read_rows(list(words)))


def _turned(rule: Rule, turns: int) -> Rule:
    if turns == 0:
        return rule
    box = (rule.start, rule.at, rule.end, rule.at) if rule.is_level else (rule.at, rule.start, rule.at, rule.end)
    left, bottom, right, top = turn(box, turns)
    if rule.is_level is (turns % 2 == 0):
        return Rule(True, bottom, left, right)
    return Rule(False, left, bottom, top)
