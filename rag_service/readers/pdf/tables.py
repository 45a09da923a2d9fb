"""Ruled tables of a PDF as lines labelled with column names, like those of sheets and documents.

Only tables whose cells are separated by rules (`grids`) are labelled; the rows of others stay lines of the page.
"""

from __future__ import annotations

import bisect
import itertools
import re
import statistics
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rag_service.domain import Location, Span
from rag_service.readers.common.builder import TextBuilder, one_line
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.tables import find_header, write_table
from rag_service.readers.pdf.grids import Grid, GridCell, fill, find_frames
from rag_service.readers.pdf.rows import COLUMN, read_rows
from rag_service.readers.pdf.rows import Row as PageRow
from rag_service.readers.pdf.rules import Rule
from rag_service.readers.pdf.words import COLUMN_GAP, Lettered, Word, count_letters, letter, turn

_LONG = 400  # characters; a table with such a cell only divides the page
_LEVEL = 0.5  # of a word's height, between words of one line
_MIN_BESIDE = 2
_SAME_COLUMNS = 3.0  # points
_MAX_LINES_BETWEEN = 2  # page headers and footers between the parts of a table that continues on the next page


_Line = tuple[str, Sequence[Lettered]]


@dataclass(frozen=True, kw_only=True)
class _Open:
    """A table at the end of a page, which may continue on the next."""

    lefts: Sequence[float]
    header: Row


class TableReader:
    """Reads the tables of a document page by page; one that continues on the next page keeps its column names."""

    def __init__(self, name: str):
        self._name = name  # of the document, for messages
        self._open: _Open | None = None

    def read(
        self,
        words: Sequence[Word],
        read_rules: Callable[[], Sequence[Rule]],
        is_bold: Callable[[Word], bool],
        part: Callable[[Word, float], Sequence[Word]],
    ) -> list[Word]:
        """Replace the words of each table by a single word; all words have the same direction. `part`: see `fill`.

        Rules are only read if words stand beside each other, as in a table: it takes as long as reading the words.
        """
        before, self._open = self._open, None
        left = list(words)
        if not _stand_beside(left):
            return left
        turns = left[0].turns or 0
        rules = [_turned(rule, turns) for rule in read_rules()]
        for frame in find_frames(rules):
            grid = fill(frame, left, part=part)
            if grid is not None:
                left = self._replace(grid, left, is_bold, before)
        return left

    def _replace(
        self, grid: Grid, words: Sequence[Word], is_bold: Callable[[Word], bool], before: _Open | None
    ) -> list[Word]:
        outside = [word for word in words if not grid.holds(word)]
        above = _count_lines(word for word in outside if word.middle > grid.tops[0])
        lines = self._write(grid, is_bold, before if above <= _MAX_LINES_BETWEEN else None)
        if _count_lines(word for word in outside if word.middle < grid.tops[-1]) > _MAX_LINES_BETWEEN:
            self._open = None
        inside = [word for cell in grid.cells for word in cell.words]
        table = Word(
            text="\n".join(text for text, _ in lines),
            number=min(word.number for word in inside),
            spaced=False,
            turns=words[0].turns,
            left=grid.lefts[0],
            right=grid.lefts[-1],
            middle=max(word.middle for word in inside),
            height=statistics.median(word.height for word in inside),
            is_table=True,
            rows=[words for _, words in lines],
        )
        return [*outside, table]

    def _write(self, grid: Grid, is_bold: Callable[[Word], bool], before: _Open | None) -> list[_Line]:
        """The table's lines; a table with column names stays open for the next page."""
        if any(sum(len(word.text) + 1 for word in cell.words) > _LONG for cell in grid.cells):
            return list(_blocks(grid))
        rows = _rows(grid, is_bold)
        header = find_header(rows)[0]
        if before and _continues(before, grid, rows[0]):
            header = before.header
            rows = [header, *rows]
        if header is not None:
            self._open = _Open(lefts=grid.lefts, header=_without_places(header))
        builder = TextBuilder(self._name)
        write_table(builder, rows, place=lambda row, cell: Location(cell=cell))
        written = builder.build(title="", media_type="")
        return _place_words(written.text.rstrip("\n"), written.spans, grid)


def _stand_beside(words: Sequence[Word]) -> bool:
    """Whether words are far apart on two lines, or one column is drawn after the other, as in a table of two rows."""
    count = 0
    for before, word in itertools.pairwise(words):
        is_level = abs(word.middle - before.middle) <= _LEVEL * word.height
        gap = word.left - before.right if is_level else word.middle - before.middle
        count += gap > COLUMN_GAP * word.height
        if count == _MIN_BESIDE:
            return True
    return False


def _continues(before: _Open, grid: Grid, first: Row) -> bool:
    """Whether a table has the columns of the previous one and no column names of its own."""
    if len(before.lefts) != len(grid.lefts) or any(
        abs(one - other) > _SAME_COLUMNS for one, other in zip(before.lefts, grid.lefts, strict=True)
    ):
        return False
    names = all(cell.is_strong for cell in first.cells) and all(cell.is_strong for cell in before.header.cells)
    return not names and [cell.text for cell in first.cells] != [cell.text for cell in before.header.cells]


def _without_places(header: Row) -> Row:
    """A header for the next page, where none of its words stand."""
    return replace(header, number=0, is_header=True, cells=[replace(cell, address=None) for cell in header.cells])


def _rows(grid: Grid, is_bold: Callable[[Word], bool]) -> list[Row]:
    """Rows with text; vertically merged cells are repeated, horizontally merged ones name all their columns."""
    rows: dict[int, list[Cell]] = {}
    for number, cell in enumerate(grid.cells):
        text = _text_of(cell)
        if not text:
            continue
        is_text, is_strong = not is_number_like(text), is_bold(cell.words[0]) and is_bold(cell.words[-1])
        for row in range(cell.row, cell.row + cell.rows):
            for step in range(cell.columns):
                place = cell.column + step + 1
                rows.setdefault(row + 1, []).append(
                    Cell(place, text, is_text, address=str(number), is_spanned=step > 0, is_strong=is_strong)
                )
    found = [
        Row(number, sorted(rows[place], key=lambda cell: cell.column))
        for place, number in _numbers(grid, rows)
        if place in rows
    ]
    return [row for row in found if row.values]


def _numbers(grid: Grid, filled: Container[int]) -> Iterator[tuple[int, int]]:
    """The rows of a grid, from 1, and their numbers: a strip too low for a text only keeps two rows apart."""
    lowest = min(word.height for cell in grid.cells for word in cell.words)
    number = 0
    for place, (top, bottom) in enumerate(itertools.pairwise(grid.tops), start=1):
        number += place in filled or top - bottom >= lowest
        yield place, number


def _text_of(cell: GridCell) -> str:
    return one_line(" ".join(row.text() for row in read_rows(cell.words)))


def _words_of(cell: GridCell) -> list[Lettered]:
    words = [word for row in read_rows(cell.words) for word in row.in_order()]
    return letter(words, _text_of(cell)) if words else []


def _place_words(text: str, spans: Iterable[Span], grid: Grid) -> list[_Line]:
    """The lines of a table, each with the words of its cells and those of the columns' names."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    words: list[list[Lettered]] = [[] for _ in starts]
    before = 0  # where the value before a label ends
    for span in spans:
        if not (span.location.cell or "").isdigit():  # the place of a whole row
            continue
        cell = grid.cells[int(span.location.cell or "")]
        line = bisect.bisect_right(starts, span.start) - 1
        label_at = max(before, starts[line])
        for at, found in (
            (label_at, _words_of_label(text[label_at : span.start], cell, grid)),
            (span.start, _words_of(cell)),
        ):
            letters = count_letters(text[starts[line] : at])
            words[line] += [(letters + inside, word) for inside, word in found]
        before = span.end
    return list(zip(text.split("\n"), words, strict=True))


def _words_of_label(label: str, value: GridCell, grid: Grid) -> Iterator[Lettered]:
    """The words of the cells above a value that its label is made of; those of another page are not among them."""
    rest, letters = label.strip(" |:"), 0
    for cell in grid.cells:
        columns = range(cell.column, cell.column + cell.columns)
        is_above = cell.row < value.row and any(
            column in columns for column in range(value.column, value.column + value.columns)
        )
        name = _text_of(cell).rstrip(": ") if is_above and rest else ""
        if name and rest.startswith(name):
            yield from ((letters + at, word) for at, word in _words_of(cell))
            letters += count_letters(name)
            rest = rest.removeprefix(name).lstrip(" /")


def _blocks(grid: Grid) -> Iterator[_Line]:
    """Lines of a table that only divides the page: one-line cells of a row side by side, others one after the other."""
    for _, in_row in itertools.groupby(grid.cells, key=lambda cell: cell.row):
        cells = [list(read_rows(cell.words)) for cell in in_row if cell.words]
        inner = any(word.is_table for rows in cells for row in rows for word in row.words)
        if all(len(rows) == 1 for rows in cells) and not inner:
            yield _block_line([row for rows in cells for row in rows])
        else:
            for rows in cells:
                yield from (*itertools.chain.from_iterable(map(_block_lines, rows)), ("", ()))


def _block_lines(row: PageRow) -> Iterator[_Line]:
    """The lines of each table within a cell, then the words beside it."""
    for word in row.words:
        if word.is_table:
            yield from zip(word.text.split("\n"), word.rows, strict=True)
    others = [word for word in row.words if not word.is_table]
    if others:
        yield from (_block_line([beside]) for beside in read_rows(others))


def _block_line(rows: Sequence[PageRow]) -> _Line:
    text = COLUMN.join(row.text() for row in rows)
    return text, letter([word for row in rows for word in row.in_order()], text) if rows else ()


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
