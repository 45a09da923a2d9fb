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


def is_number_like(text: str) -> bool:
    """Whether a text is a figure, date or code without words, as data cells are and column names are not."""
    if not _DIGIT.search(text):
        return False
    if _FIGURE.fullmatch(text):
        return True
    return sum(map(str.isalpha, text)) <= sum(map(str.isdigit, text)) // 4
