"""Rows of sheets, CSV files and document tables as lines that carry their header names.

    Product: Hex bolt M8 | Stock: 120 | Safety stock: 150

A line reads well on its own, for retrieval and for quoting, because the names of the columns travel
with each value. Each value is a span of its own, so that a quoted figure leads to exactly one cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from statistics import median

from rag_service.domain import Location
from rag_service.ingest.parse.builder import TextBuilder
from rag_service.ingest.parse.two_columns import Reading, are_names, is_label, read_two_columns

LOOK_AHEAD = 30  # rows searched for the header; titles and notes above a table are rarely longer
_MAX_LABEL = 100  # characters of a column name repeated with every value
_DIGIT = re.compile(r"\d")
_FIGURE = re.compile(r"[\d\s.,:;/%€$£()+-]+")
_DATE = re.compile(r"(?:19|20)\d\d(?:-\d\d-\d\d)?|\d{1,2}[/.]\d{1,2}(?:[/.](?:\d\d)?\d\d)?")
_TEXT_SHARE = 0.8  # "mostly text": a year or two among the column names is common

Place = Callable[[int, str | None], Location]  # (row number, cell or range) → where it stands


@dataclass(frozen=True, slots=True)
class Cell:
    """A non-empty cell. `text` is one line and not blank."""

    column: int  # 1-based
    text: str
    is_text: bool  # words, as opposed to a number, date or truth value
    address: str | None = None  # where it stands, if not at its own column and row: a merged range
    is_spanned: bool = False  # stands for a wide merged cell to its left: names a column, is no value
    is_strong: bool = False  # bold, or on a ground of its own, as names of columns and labels often are


@dataclass(frozen=True, slots=True)
class Row:
    number: int  # 1-based, as the reader of the file counts
    cells: Sequence[Cell]  # left to right; never empty
    is_header: bool = False  # the file itself says so

    @property
    def values(self) -> list[Cell]:
        return [cell for cell in self.cells if not cell.is_spanned]


def column_letters(column: int) -> str:
    """Spreadsheet name of a 1-based column: 1 is A, 27 is AA."""
    letters = ""
    while column > 0:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def is_number_like(text: str) -> bool:
    """Whether the text is a figure, a date or a code without words, as data cells are and names are not."""
    if not _DIGIT.search(text):
        return False
    if _FIGURE.fullmatch(text):
        return True
    letters = sum(char.isalpha() for char in text)
    digits = sum(char.isdigit() for char in text)
    return letters <= digits // 4


def write_table(builder: TextBuilder, rows: Iterable[Row], *, place: Place) -> None:
    """Write rows as labelled lines; rows above the header, and tables without one, keep plain values.

    So do rows of a single text in the first column: notes below a table, and titles of its parts.

    Only `LOOK_AHEAD` rows are held, so that a file of any length is stopped by the builder's limits.
    A block after a gap that brings its own header row (several tables in one sheet), below a title or not, is
    relabelled.
    """
    rows = iter(rows)
    ahead = list(islice(rows, LOOK_AHEAD))
    header, labelled = find_header(ahead)
    names: list[Row] = []  # header rows whose labels no row has used yet
    labels: dict[int, str] = {}
    previous: Row | None = None
    below_title = False  # of a block after a gap
    for row, following in _with_next(chain(ahead, rows)):
        after_gap = bool(labels) and previous is not None and row.number > previous.number + 1
        if after_gap and previous is not None and _ends_table(previous, row):
            labels = {}
        previous = row
        begins, below_title = after_gap or below_title, after_gap and len(row.values) == 1 and row.values[0].is_text
        if row is header or (begins and _starts_table(row, following)):
            _write_unused(builder, names, place)
            names, labels = [row], _labels(row)
        elif len(names) == 1 and _continues_header(names[0], row, following):
            names, labels = [*names, row], _joined_labels(labels, row)
        else:
            names = []
            _write_row(builder, row, labels, place, is_labelled=row.number in labelled)
    _write_unused(builder, names, place)


def _write_unused(builder: TextBuilder, names: Sequence[Row], place: Place) -> None:
    """Names without a row below them would be lost: write them as plain values."""
    for row in names:
        _write_row(builder, row, {}, place)


def find_header(rows: Sequence[Row]) -> tuple[Row | None, frozenset[int]]:
    """Return the header, and the numbers of rows that are a label and its value.

    The header is the first row of two or more cells, mostly text, more than half as wide as the rows below it. A
    block of two columns has one only if something says so.
    """
    labelled: set[int] = set()
    done = 0  # rows of blocks that have none
    for position, row in enumerate(rows):
        if position < done:
            continue
        below = [len(other.cells) for other in rows[position + 1 :]]
        if len(row.values) < 2 or (below and len(row.cells) <= median(below) / 2):
            continue
        block = _block(rows, position)
        if below and len(row.cells) < median(below) and any(map(_starts_table, block[1:], block[2:])):
            continue  # a line about the table, which begins further down
        if len(row.cells) == 2 and max(len(other.cells) for other in block) == 2:
            reading = read_two_columns(block)
            if reading is Reading.LABELS:
                labelled.update(other.number for other in (block[1:] if are_names(row) else block))
            if reading is not Reading.NAMED or not (row.is_header or _is_texts(row)):
                done = position + len(block)
                continue
        if row.is_header or _is_texts(row) or _names_series(row, block[1:]):
            return row, frozenset(labelled)
    return None, frozenset(labelled)


def _block(rows: Sequence[Row], position: int) -> Sequence[Row]:
    """The rows from this one to the next gap."""
    end = position + 1
    while end < len(rows) and rows[end].number == rows[end - 1].number + 1:
        end += 1
    return rows[position:end]


def _ends_table(last: Row, row: Row) -> bool:
    """Whether a table of two columns, the second of figures, ends with the gap: words follow, as below a form."""
    return (
        len(last.values) == len(row.values) == 2 and not last.values[1].is_text and all(c.is_text for c in row.values)
    )


def _is_texts(row: Row) -> bool:
    texts = sum(cell.is_text for cell in row.cells)
    return len(row.values) >= 2 and texts >= len(row.cells) * _TEXT_SHARE


def _names_series(row: Row, below: Sequence[Row]) -> bool:
    """Whether figures name columns beside a word: years and dates ("Income | 2024 | 2025"), or figures over words."""
    first, *others = row.values
    if not first.is_text or len(others) < 2 or any(cell.is_text for cell in others):
        return False
    if not below or not all(other.values and other.values[0].is_text for other in below):
        return False
    if len({cell.text for cell in others}) < len(others):
        return False
    columns = {cell.column for cell in others}
    named = [cell.is_text for other in below for cell in other.cells if cell.column in columns]
    return all(_DATE.fullmatch(cell.text) for cell in others) or (len(named) > 0 and sum(named) > len(named) / 2)


def _starts_table(row: Row, following: Row | None) -> bool:
    """All words, and figures right below: a header. Stricter than at the top, where a header is expected."""
    return (
        following is not None
        and following.number == row.number + 1
        and len(row.values) >= 2
        and all(cell.is_text for cell in row.cells)
        and len(following.values) >= 2
        and not all(cell.is_text for cell in following.cells)
        and not (len(row.values) == 2 and is_label(following.values[0]))
    )


def _continues_header(header: Row, row: Row, following: Row | None) -> bool:
    """A second line of names below merged ones ("2024" over "Stock" and "Orders")."""
    return (
        row.number == header.number + 1
        and any(cell.is_spanned for cell in header.cells)
        and all(cell.is_text for cell in row.cells)
        and following is not None
        and not all(cell.is_text for cell in following.cells)
    )


def _labels(row: Row) -> dict[int, str]:
    return {cell.column: _label(cell.text) for cell in row.cells}


def _joined_labels(labels: Mapping[int, str], row: Row) -> dict[int, str]:
    joined = dict(labels)
    for column, label in _labels(row).items():
        upper = labels.get(column)
        joined[column] = label if upper in (None, label) else f"{upper} {label}"
    return joined


def _label(text: str) -> str:
    text = text.rstrip(": ") or text
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…"


def _write_row(
    builder: TextBuilder, row: Row, labels: Mapping[int, str], place: Place, *, is_labelled: bool = False
) -> None:
    values = row.values
    if not values:
        return
    if len(values) == 1 and values[0].is_text and values[0].column == min(labels, default=0):
        labels = {}
    first, last = column_letters(values[0].column), column_letters(values[-1].column)
    extent = f"{first}{row.number}" if first == last else f"{first}{row.number}:{last}{row.number}"
    # The label that begins a line stands for the whole row, so that a quoted line names its range. The
    # others have no place: a quote of "Stock: 120" is then exactly the cell of 120.
    whole = place(row.number, extent)
    for cell in values:
        label = labels.get(cell.column)
        where = place(row.number, cell.address or f"{column_letters(cell.column)}{row.number}")
        is_first = cell is values[0]
        between = " | " if not is_labelled else " " if values[0].text.endswith(":") else ": "
        before = ("" if is_first else between) + (f"{label}: " if label else "")
        builder.write(before, whole if is_first or where is whole else None)
        builder.write(cell.text, where)
    builder.write("\n")


def _with_next(rows: Iterable[Row]) -> Iterator[tuple[Row, Row | None]]:
    previous: Row | None = None
    for row in rows:
        if previous is not None:
            yield previous, row
        previous = row
    if previous is not None:
        yield previous, None
