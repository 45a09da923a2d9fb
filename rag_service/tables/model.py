"""Typed tables: columns with a kind and a unit, rows with the place of each cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

import msgspec

from rag_service.language.words import fold

# Signs of currencies by what stands for them in cells and questions.
CURRENCIES = {
    "€": "€", "eur": "€", "euro": "€", "euros": "€", "$": "$", "usd": "$", "us$": "$", "£": "£", "gbp": "£", "¥": "¥",
    "jpy": "¥", "₹": "₹", "inr": "₹", "chf": "CHF", "r$": "R$", "brl": "R$", "mxn": "MXN", "cad": "CAD", "aud": "AUD",
    "cny": "CNY", "sek": "SEK", "nok": "NOK", "dkk": "DKK", "pln": "PLN",
}  # fmt: skip
MAX_LISTED = 500  # row numbers of a result that are listed; an answer names fewer
_TABLE_FILES = (".csv", ".tsv")  # that hold nothing but one table


class Kind(StrEnum):
    """What the cells of a column are. What is not certain is text."""

    NUMBER = "number"
    CURRENCY = "currency"
    PERCENTAGE = "percentage"
    DATE = "date"  # its number is the proleptic ordinal: 1 is 1 January of the year 1
    DURATION = "duration"  # "1:23:45"; its number is in seconds
    ORDER = "order"  # "2nd", or the running number of the rows: compared, never added up
    BOOLEAN = "boolean"  # its number is 1 or 0
    TEXT = "text"

    @property
    def is_figure(self) -> bool:
        """Whether it can be summed."""
        return self in (Kind.NUMBER, Kind.CURRENCY, Kind.PERCENTAGE)

    @property
    def is_compared(self) -> bool:
        """Whether it has a highest and a lowest."""
        return self.is_figure or self in (Kind.DATE, Kind.DURATION, Kind.ORDER)


@dataclass(frozen=True, kw_only=True)
class Column:
    letter: str  # as a spreadsheet names it: "C"
    name: str  # header, with the header above it before it: "2025 Stock"
    kind: Kind
    unit: str | None = None  # "€", "kg", "%", as the header or the cells write it
    mixed: tuple[str, ...] = ()  # the currencies of a column that mixes them
    distinct: int = 0  # number of different values, totals left out
    filled: int = 0  # number of cells that are not empty, likewise


class Cell(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A filled cell. A structure of msgspec: long tables have millions."""

    text: str  # exactly as it stands in the stored text
    key: str  # its words as `fold_words` writes them
    number: Decimal | None  # None: it is not of the kind of its column
    start: int | None  # first character in the document's stored text; None: the row is not in it


@dataclass(frozen=True, kw_only=True)
class TableRow:
    number: int  # of the sheet or file, 1-based
    cells: tuple[Cell | None, ...]  # one for each column; None: empty
    is_total: bool = False  # states a total of other rows: never computed with
    is_heading: bool = False  # only its first cell is filled: a sub-heading, or a row without values
    section: str = ""  # the sub-headings above it: "Assets › Current assets"
    page: int | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table as it is stored with its document."""

    number: int  # position in the document, from 0
    sheet: str | None
    caption: str  # the lines above it
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    unit: str = ""  # of all figures, as the table says: "in millions, except per share data"
    by_period: bool = False  # its columns are years or periods
    page: int | None = None  # of its first row


@dataclass(frozen=True, kw_only=True)
class StoredTable:
    """A table without its rows, as a question finds it."""

    id: UUID
    document_id: UUID
    document: str  # file name, or title
    sheet: str | None
    caption: str
    columns: tuple[Column, ...]
    row_count: int  # without totals and headings
    page: int | None = None  # of its first row
    unit: str = ""  # of all figures: "in millions"

    @property
    def is_whole(self) -> bool:
        """Whether its document holds tables only, so that the name of the file is a title of the table."""
        return self.sheet is not None or self.document.lower().endswith(_TABLE_FILES)

    def of_kind(self, *kinds: Kind) -> list[int]:
        """The places of the columns of these kinds."""
        return [place for place, column in enumerate(self.columns) if column.kind in kinds]


def currency_of(word: str) -> str | None:
    """The sign of a currency that a word names."""
    return CURRENCIES.get(fold(word))


@dataclass(frozen=True, kw_only=True)
class RowNumbers:
    """Numbers of rows; at most `MAX_LISTED` are listed."""

    count: int = 0
    first: int = 0
    last: int = 0
    listed: tuple[int, ...] = ()  # in order; empty: too many

    def write(self, letter: str) -> str:
        """The cells of these rows in a column, as a formula names them: "D2:D9,D12"."""
        if self.count == self.last - self.first + 1:
            return write_range(letter, self.first, self.last)
        return write_cells(letter, self.listed) if self.listed else f"{letter}{self.first},…,{letter}{self.last}"


NO_ROWS = RowNumbers()


def write_cells(letter: str, rows: Iterable[int]) -> str:
    """Cells of one column as a formula names them: "D2:D9,D12"."""
    runs: list[list[int]] = []
    for row in sorted(rows):
        if runs and row == runs[-1][-1] + 1:
            runs[-1][1:] = [row]
        else:
            runs.append([row])
    return ",".join(write_range(letter, run[0], run[-1]) for run in runs)


def write_range(letter: str, first: int, last: int) -> str:
    """The cells of a column from a row to another: "D2:D9"."""
    return f"{letter}{first}" if first == last else f"{letter}{first}:{letter}{last}"
