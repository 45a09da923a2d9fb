"""Whether the first row of a two-column table names the columns, or is a label with its value like the rows below.

    Country | Limit          Place | Town hall
    France  | 120 €          Secretary | Karim Benali

A wrong guess pairs unrelated values ("Place: Secretary"), and a citation would then seem to prove it. So a first row
names the columns only if there is evidence for it; otherwise rows stay plain.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from functools import cache
from pathlib import Path

from rag_service.language.words import fold
from rag_service.readers.common.cells import Cell, Row

_MOSTLY = 0.8  # of a column; a missing figure or a remark is common
_MAX_NAME_WORDS = 4  # in a column name or label
_MAX_PARTICLE_LETTERS = 3  # "of", "des", "del"
_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}\.? (?:de )?[^\W\d]{3,10}\.? (?:de )?\d{4}")
_FIGURE = re.compile(r"[^\w\s]{0,2} ?\d[\d\s.,']*")


@cache
def _names() -> frozenset[str]:
    """Common labels in forms, minutes and small tables, without accents or plurals: "date", "nombre"."""
    text = (Path(__file__).parent / "column_names.txt").read_text(encoding="utf-8")
    return frozenset(word.removesuffix("s") for word in text.split())


class Reading(Enum):
    """What the rows of a two-column table are."""

    NAMED = "the first row names the columns"
    LABELS = "each row is a label and its value"
    UNDECIDED = "unknown"


def read_two_columns(rows: Sequence[Row]) -> Reading:
    """Classify rows of which the first has two cells and the others at most two.

    Evidence in order: marks of the file (a header row, bold names); labels in the first column (a final colon, or words
    such as "Place"); values of one kind in the second column; a form mixes names, dates and sums.
    """
    head, below = rows[0].values, [row.values for row in rows[1:] if len(row.values) == 2]
    firsts, seconds = [row[0] for row in below], [row[1] for row in below]
    if not below or rows[0].is_header:
        return Reading.NAMED
    is_first_strong = all(cell.is_strong for cell in (head[0], *firsts))
    if all(cell.is_strong for cell in head) and not is_first_strong and not all(cell.is_strong for cell in seconds):
        return Reading.NAMED
    if _are_labels([head[0], *firsts], head[1], seconds):
        return Reading.LABELS
    if are_names(rows[0]):
        return Reading.NAMED
    if all(cell.is_text for cell in head) and (
        sum(not cell.is_text for cell in firsts) >= len(firsts) * _MOSTLY  # numbers, dates and codes are not labels
        or _are_repeated(head[0], firsts)  # nor are repeated values
        or (_are_of_one_kind(seconds) and not _is_proper_name(head[1]))
    ):
        return Reading.NAMED
    return Reading.UNDECIDED


def is_label(cell: Cell) -> bool:
    """Whether a cell alone looks like a label."""
    return cell.text.endswith(":") or _is_name(cell)


def are_names(row: Row) -> bool:
    """Whether a row holds only column names: "Role | Person"."""
    return all(_is_name_throughout(cell) for cell in row.values)


def _are_labels(firsts: Sequence[Cell], value: Cell, values: Sequence[Cell]) -> bool:
    """Whether a first column labels the second, whose first cell is `value`."""
    if all(cell.is_strong for cell in firsts) and not any(cell.is_strong for cell in (value, *values)):
        return True
    if sum(cell.text.endswith(":") for cell in firsts) * 2 >= len(firsts):
        return True
    return sum(_is_name(cell) for cell in firsts[1:]) * 2 >= len(firsts[1:])


def _is_name(cell: Cell) -> bool:
    """Whether a text begins with a common label: "Fecha de alta"."""
    words = _words(cell)
    return bool(words) and len(words) <= _MAX_NAME_WORDS and words[0] in _names()


def _is_name_throughout(cell: Cell) -> bool:
    """Whether a text has no other words: "Salle Garonne" is a value."""
    return _is_name(cell) and all(word in _names() or len(word) <= _MAX_PARTICLE_LETTERS for word in _words(cell))


def _is_proper_name(cell: Cell) -> bool:
    words = cell.text.split()
    return len(words) > 1 and all(word[0].isupper() for word in words) and not set(_words(cell)) & _names()


def _words(cell: Cell) -> list[str]:
    return [word.removesuffix("s") for word in fold(cell.text).rstrip(": ").split()]


def _are_repeated(head: Cell, below: Sequence[Cell]) -> bool:
    texts = [fold(cell.text) for cell in below]
    return len(set(texts)) < len(texts) and fold(head.text) not in texts


def _are_of_one_kind(values: Sequence[Cell]) -> bool:
    kinds = Counter(_kind(cell.text) for cell in values)
    kind, count = kinds.most_common(1)[0]
    return kind != "" and count >= len(values) * _MOSTLY


def _kind(text: str) -> str:
    """`date`, a figure with its unit ("# %", "# euros"), or "" for words."""
    if _DATE.match(text):
        return "date"
    figure = _FIGURE.match(text)
    if figure is None:
        return ""
    unit = fold(text[figure.end() :]).split()
    return f"# {unit[0]}" if unit else "#"
