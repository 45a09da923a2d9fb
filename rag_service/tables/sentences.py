"""What a computed answer consists of: sentences with the cells behind them, and numbers as a language writes them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_PREC, ROUND_HALF_UP, Context, Decimal
from uuid import UUID

from rag_service.domain import Location
from rag_service.language.languages import TableWords
from rag_service.tables.model import Column, Kind

_PLACES = Decimal("0.01")  # of a mean
_ANY_LENGTH = Context(prec=MAX_PREC)  # a ratio to nearly nothing has more digits than Python's 28


@dataclass(frozen=True, kw_only=True)
class CitedCells:
    """The cells, or the text of a file, behind a part of the answer."""

    document_id: UUID
    start: int | None  # in the document's stored text; None: the row is not in it
    end: int | None
    location: Location
    formula: str  # empty: the answer quotes them
    text: str = ""  # of cells that are not in the stored text


Sentence = tuple["str | CitedCells", ...]


@dataclass(frozen=True, kw_only=True)
class Computed:
    """A computed answer, sentence by sentence; marks stand where its cells do."""

    sentences: tuple[Sentence, ...]
    warning: str = ""  # why it is not certain: several readings, mixed currencies, rows that may not be rows


def write_number(value: Decimal, data: TableWords, *, cell: str = "") -> str:
    """A number as the language writes it; four digits stay together.

    `cell`: the text that it was read from: it keeps all decimals, as 18,50, and the separator of 3.267,60.
    """
    whole, _, rest = f"{value:f}".partition(".")
    rest = rest if cell else rest.rstrip("0")
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    grouped = f"{int(digits):,}".replace(",", data.thousands)
    is_grouped = " ".join(grouped.split()) in " ".join(cell.split())  # French groups with any of several spaces
    if len(digits) > 4 or data.thousands == "," or is_grouped:
        digits = grouped
    return sign + digits + (f"{data.decimal}{rest}" if rest else "")


def write_duration(seconds: Decimal) -> str:
    """A duration as cells write it: "1:23:45", "3:45.2"."""
    whole, point, fraction = f"{seconds:f}".partition(".")
    minutes, rest = divmod(int(whole), 60)
    hours, minutes = divmod(minutes, 60)
    written = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return written + point + fraction


def write_unit(number: str, unit: str | None, data: TableWords) -> str:
    """A number with its unit on the side where the language has it: "$2,000", "2.000 $"."""
    if not unit:
        return number
    if unit not in data.signs_before.split():
        return f"{number} {unit}"
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    return f"{sign}{unit}{digits}"


def write_amount(value: Decimal, column: Column, data: TableWords, *, cell: str) -> str:
    """A figure of a column with its unit; tenths of a currency are written as hundredths."""
    number = write_number(value, data, cell=cell)
    if column.kind is Kind.CURRENCY and len(number.rpartition(data.decimal)[2]) == 1 and value % 1:
        number += "0"
    return write_unit(number, column.unit if column.kind.is_figure else None, data)


def rounded(value: Decimal) -> Decimal:
    """Two decimals, or four significant digits of small figures."""
    return round_to(value, Decimal("0.0001") if value and abs(value) < 1 else _PLACES)


def round_to(value: Decimal, places: Decimal) -> Decimal:
    """A value of any length with the decimals of `places`."""
    return value.quantize(places, rounding=ROUND_HALF_UP, context=_ANY_LENGTH)


def shortened(text: str, length: int) -> str:
    """A text cut to a length, with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"
