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

LOOK_AHEAD = 30  # rows searched for the header; titles and notes above a table are rarely longer
_MAX_LABEL = 100  # characters of a column name repeated with every value
_DIGIT = re.compile(r"\d")
_FIGURE = re.compile(r"[\d\s.,:;/%€$£()+-]+")
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


@dataclass(frozen=True, slots=True)
class Row:
    number: int  # 1-based, as the reader of the file counts
    cells: Sequence[Cell]  # left to right; never empty

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

    Only `LOOK_AHEAD` rows are held, so that a file of any length is stopped by the builder's limits.
    A block after a gap that brings its own header row (several tables in one sheet) is relabelled.
    """
    rows = iter(rows)
    ahead = list(islice(rows, LOOK_AHEAD))
    header = find_header(ahead)
    names: list[Row] = []  # header rows whose labels no row has used yet
    labels: dict[int, str] = {}
    last_number = 0
    for row, following in _with_next(chain(ahead, rows)):
        after_gap = bool(labels) and row.number > last_number + 1
        last_number = row.number
        if row is header or (after_gap and _starts_table(row, following)):
            _write_unused(builder, names, place)
            names, labels = [row], _labels(row)
        elif len(names) == 1 and _continues_header(names[0], row, following):
            names, labels = [*names, row], _joined_labels(labels, row)
        else:
            names = []
            _write_row(builder, row, labels, place)
    _write_unused(builder, names, place)


def _write_unused(builder: TextBuilder, names: Sequence[Row], place: Place) -> None:
    """Names without a row below them would be lost: write them as plain values."""
    for row in names:
        _write_row(builder, row, {}, place)


def find_header(rows: Sequence[Row]) -> Row | None:
    """Return the first row of two or more cells, mostly text, more than half as wide as the rows below it."""
    for position, row in enumerate(rows):
        below = [len(other.cells) for other in rows[position + 1 :]]
        if _is_texts(row) and (not below or len(row.cells) > median(below) / 2):
            return row
    return None


def _is_texts(row: Row) -> bool:
    texts = sum(cell.is_text for cell in row.cells)
    return len(row.values) >= 2 and texts >= len(row.cells) * _TEXT_SHARE


def _starts_table(row: Row, following: Row | None) -> bool:
    """All words, and figures right below: a header. Stricter than at the top, where a header is expected."""
    return (
        following is not None
        and following.number == row.number + 1
        and len(row.values) >= 2
        and all(cell.is_text for cell in row.cells)
        and len(following.values) >= 2
        and not all(cell.is_text for cell in following.cells)
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


def _write_row(builder: TextBuilder, row: Row, labels: Mapping[int, str], place: Place) -> None:
    values = row.values
    if not values:
        return
    first, last = column_letters(values[0].column), column_letters(values[-1].column)
    extent = f"{first}{row.number}" if first == last else f"{first}{row.number}:{last}{row.number}"
    # The label that begins a line stands for the whole row, so that a quoted line names its range. The
    # others have no place: a quote of "Stock: 120" is then exactly the cell of 120.
    whole = place(row.number, extent)
    for cell in values:
        label = labels.get(cell.column)
        where = place(row.number, cell.address or f"{column_letters(cell.column)}{row.number}")
        is_first = cell is values[0]
        before = ("" if is_first else " | ") + (f"{label}: " if label else "")
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
