"""The rows of a document's stored text, and the blocks of rows that have one header.

Readers write each row as a line, `Product: Hex bolt M8 | Stock: 120`, and give every value the place of its cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby

from rag_service.domain import Span, column_number
from rag_service.tables.reading.page_lines import PageLine
from rag_service.tables.reading.page_rows import find_rows

_CAPTION_LINES = 3
_CAPTION_LENGTH = 200  # characters of each
_SENTENCE_END = re.compile(r"[.!?…。](?:$|(?<!\b\w\.)\s)")  # not behind an initial
_NUMBERED = re.compile(r"\A\W*(?:[^\W\d]+\W+){0,2}\d+\.\s")  # "Table 1. Depots"
_BETWEEN = re.compile(r" \| (?:(?P<label>.*): )?", re.DOTALL)
_LETTERS = re.compile(r"[A-Z]+")


@dataclass(kw_only=True)
class Line:
    """A row of the stored text."""

    sheet: str | None
    number: int
    above: str = ""  # the paragraph before the table, in formats that flow
    page: int | None = None
    values: dict[int, tuple[str, int | None]] = field(default_factory=dict)  # column → (text, start)
    labels: Mapping[int, str] = field(default_factory=dict)  # column → its name; empty: no header is above the row


@dataclass(frozen=True, slots=True)
class PlainRows:
    """Rows of a long table that follow each other and are not in the stored text."""

    number: int  # of the first row
    columns: Mapping[int, Sequence[str]]  # column → its texts, "" where a cell is empty; all of one length


def read_lines(text: str, spans: Sequence[Span]) -> Iterator[Line]:
    above = ""
    for place, group in groupby(spans, key=_row_of):
        if place is None:
            *_, last = group
            above = text[last.start : last.end].strip()
            continue
        labels: dict[int, str] = {}
        sheet, number = place
        line = Line(sheet=sheet, number=number, above=above if sheet is None else "", labels=labels)
        label: str | None = None
        end = 0
        for span in group:
            value = text[span.start : span.end]
            if not line.values and value.endswith(": "):  # no value ends with a space: the name of the first column
                label, end = value.removesuffix(": "), span.end
                continue
            if line.values:
                match = _BETWEEN.fullmatch(text[end : span.start])
                label = match["label"] if match else None
            letters = _LETTERS.match(span.location.cell or "")
            if letters is not None:
                column = column_number(letters[0])
                line.values.setdefault(column, (value, span.start))
                if label:
                    labels.setdefault(column, label)
            label, end = None, span.end
        if line.values:
            yield line


def _row_of(span: Span) -> tuple[str | None, int] | None:
    """(sheet, row) of a span that is a cell."""
    place = span.location
    return (place.sheet, place.row) if place.cell and place.row is not None else None


def rows_of_pages(lines: Sequence[PageLine], used: Set[int]) -> Iterator[Line]:
    """The rows of ruled tables, whose reader writes column names, and of aligned ones below a line of names."""
    above, number = "", 0
    for row in find_rows([line for line in lines if not any(part.start in used for part in line.parts)]):
        if row.begins:
            number, above = 0, row.above
        number += 1
        values: dict[int, tuple[str, int | None]] = {
            place: (part.text, part.start) for place, part in row.cells.items()
        }
        labels = {place: row.names[place] for place in values} if row.names else {}
        yield Line(sheet=None, number=number, above=above, page=row.page, values=values, labels=labels)


@dataclass(kw_only=True)
class Block:
    """Rows under one header."""

    sheet: str | None
    above: tuple[str, ...]  # the last texts before it
    names: dict[int, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    @property
    def caption(self) -> tuple[str, ...]:
        """The titles above it. A paragraph is none: its words tell of other things as well."""
        return tuple(
            text
            for text in self.above
            if len(text) < _CAPTION_LENGTH and not _SENTENCE_END.search(_NUMBERED.sub("", text))
        )


def read_blocks(lines: Iterator[Line]) -> Iterator[Block]:
    """Rows with the same column names; a single text among them is a sub-heading, above them a caption."""
    block: Block | None = None
    loose: list[Line] = []  # without column names, since the last row with them
    for line in lines:
        if not line.labels:
            if block is None or loose or not _names_empty_columns(block, line):
                loose.append(line)
            continue
        headings = [one for one in loose if one.sheet == line.sheet and one.number < line.number]
        names = {} if block is None else block.names
        same_sheet = block is not None and block.sheet == line.sheet and line.number > block.lines[-1].number
        agrees = all(names.get(column, name) == name for column, name in line.labels.items())
        alone = all(len(one.values) == 1 for one in headings)
        if block is not None and same_sheet and agrees and alone and set(names) & set(line.labels):
            block.lines += headings
        else:
            if block is not None:
                yield block
            captions = [value for one in headings[-_CAPTION_LINES:] for value, _ in one.values.values()]
            captions = captions or [line.above][: bool(line.above)]
            block = Block(sheet=line.sheet, above=tuple(text[-_CAPTION_LENGTH:] for text in captions))
        block.names.update(line.labels)
        block.lines.append(line)
        loose = []
    if block is not None:
        block.lines += [one for one in loose[:1] if _continues(block, one)]
        yield block


def _names_empty_columns(block: Block, line: Line) -> bool:
    """Whether a line after a block has the names of its empty columns, from above its rows."""
    is_above = line.sheet == block.sheet and line.number < block.lines[0].number
    return is_above and block.names.keys().isdisjoint(line.values)


def _continues(block: Block, line: Line) -> bool:
    """Whether a single text right below the last row is a row without values, not a note."""
    last = block.lines[-1]
    below = line.sheet == last.sheet and line.number == last.number + 1
    return below and len(line.values) == 1 and min(line.values) == min(block.names)


def side_by_side(lines: Sequence[Line]) -> Iterator[list[int]]:
    """The columns of each table: an empty column parts two."""
    used = sorted({column for line in lines for column in line.labels})
    group: list[int] = []
    for column in used:
        if group and column > group[-1] + 1:
            yield group
            group = []
        group.append(column)
    if group:
        yield group
