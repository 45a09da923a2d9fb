"""Cells and rows of tables, in the form that all readers share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_DIGIT = re.compile(r"\d")
_FIGURE = re.compile(r"[\d\s.,:;/%€$£()+-]+")


@dataclass(frozen=True, slots=True)
class Cell:
    """A non-empty cell. `text` is one line and not blank."""

    column: int  # 1-based
    text: str
    is_text: bool  # words, as opposed to a number, date or truth value
    address: str | None = None  # of a merged range; None: its own column and row
    is_spanned: bool = False  # repeats a wide merged cell to its left: a column name, not a value
    is_strong: bool = False  # bold or shaded, as column names and labels often are


@dataclass(frozen=True, slots=True)
class Row:
    number: int  # 1-based
    cells: Sequence[Cell]  # left to right; never empty
    is_header: bool = False  # declared by the file

    @property
    def values(self) -> list[Cell]:
        return [cell for cell in self.cells if not cell.is_spanned]


@dataclass(frozen=True, slots=True)
class Records:
    """Rows that follow each other, of a format that knows of its cells only their texts: long files have many.

    All have the same width, a text in the first column and one in another. Empty cells are "". They stand in a file
    that has no other place than row and cell.
    """

    number: int  # of the first row, from 1
    rows: Sequence[Sequence[str]]

    def cut(self, start: int, stop: int | None = None) -> Records:
        """Return some of the rows."""
        return Records(self.number + start, self.rows[start:stop])


def row_of(number: int, texts: Sequence[str]) -> Row:
    """Return a row with its cells from the texts of its columns."""
    return Row(
        number, [Cell(column, text, not is_number_like(text)) for column, text in enumerate(texts, start=1) if text]
    )


def is_number_like(text: str) -> bool:
    """Whether a text is a figure, date or code without words, as data cells are and column names are not."""
    if not _DIGIT.search(text):
        return False
    if _FIGURE.fullmatch(text):
        return True
    return sum(map(str.isalpha, text)) <= sum(map(str.isdigit, text)) // 4
