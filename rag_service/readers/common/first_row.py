"""Whether the first row of a table names the columns, or is a row like those below it.

    Country | Limit          Place | Town hall            Name | Ana Ruiz | Born | 4 May 1980
    France  | 120 €          Secretary | Karim Benali     Street | Mill Lane 3 | Town | Lleida

A wrong guess pairs unrelated values ("Place: Secretary", "Name: Street"), and a citation would then seem to prove it.
So a first row names the columns only if there is evidence for it; otherwise rows stay plain.
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
    """What the rows of a table are."""

    NAMED = "the first row names the columns"
    LABELS = "each row has labels, each with its value beside it"
    UNDECIDED = "unknown"


def read_first_row(rows: Sequence[Row]) -> Reading:
    """Classify the rows of a block without gaps, given that the first one has at least two values.

    Evidence in order: marks of the file (a header row, bold names); labels beside values (a final colon, bold, or words
    such as "Place"), as forms have them once or several times in a row; names above values of one kind. A form mixes
    names, dates and sums.
    """
    head, below = rows[0], [row for row in rows[1:] if len(row.values) > 1]
    if head.is_header or not below or _is_set_off(head.values, below):
        return Reading.NAMED
    if _are_pairs([head, *below]):
        return Reading.LABELS
    if are_names(head):
        return Reading.NAMED
    if len(head.values) == 2 and all(len(row.values) == 2 for row in below):
        return Reading.NAMED if _names_two(head, below) else Reading.UNDECIDED
    return Reading.NAMED if _names_several(head, below) else Reading.UNDECIDED


def _is_set_off(head: Sequence[Cell], below: Sequence[Row]) -> bool:
    """Whether a first row is bold or shaded, and neither the labels nor the values below it are."""
    if not all(cell.is_strong for cell in head):
        return False
    firsts, others = [row.values[0] for row in below], [cell for row in below for cell in row.values[1:]]
    return not all(cell.is_strong for cell in firsts) and not all(cell.is_strong for cell in others)


def _are_pairs(rows: Sequence[Row]) -> bool:
    """Whether labels and values alternate in all rows: "Name | Ana Ruiz | Born | 4 May 1980"."""
    width = max(len(row.values) for row in rows)
    if width % 2 or any(len(row.values) % 2 for row in rows):
        return False
    for place in range(0, width, 2):
        pairs = [row.values[place : place + 2] for row in rows if len(row.values) > place]
        if not _are_labels([label for label, _ in pairs], pairs[0][1], [value for _, value in pairs[1:]]):
            return False
    return True


def _names_two(head: Row, below: Sequence[Row]) -> bool:
    """Whether a row of two texts stands above numbers, dates, codes, repeated labels, or values of one kind."""
    name, other = head.values
    firsts, seconds = [row.values[0] for row in below], [row.values[1] for row in below]
    return all(cell.is_text for cell in head.values) and (
        sum(not cell.is_text for cell in firsts) >= len(firsts) * _MOSTLY  # numbers, dates and codes are not labels
        or _are_repeated(name, firsts)  # nor are repeated values
        or (_are_of_one_kind(seconds) and _kind(other.text) != _kind(seconds[0].text) and not _is_proper_name(other))
    )


def _names_several(head: Row, below: Sequence[Row]) -> bool:
    """Whether a row of several texts has common names, or one that stands above other things than itself.

    These are figures, the same text again and again, or long texts. Where all rows may be pairs of a form, the figures
    must be of one kind.
    """
    if sum(map(_is_name, head.values)) * 2 >= len(head.values):
        return True
    may_be_pairs = not any(len(row.values) % 2 for row in (head, *below))
    columns: dict[int, list[Cell]] = {}
    for row in below:
        for cell in row.cells:
            columns.setdefault(cell.column, []).append(cell)
    for name in head.cells:
        values = columns.get(name.column, [])
        if not values or _kind(name.text):
            continue
        figures = sum(not cell.is_text or bool(_kind(cell.text)) for cell in values)
        is_short = len(name.text.split()) <= _MAX_NAME_WORDS
        if (
            _are_repeated(name, values)
            or (_are_of_one_kind(values) if may_be_pairs else figures * 2 >= len(values))
            or (is_short and all(len(cell.text.split()) > _MAX_NAME_WORDS for cell in values))
        ):
            return True
    return False


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
    if figure is None or re.match(r"-[^\W\d]", text[figure.end() :]):  # "3-Year-Old" is a word
        return ""
    unit = fold(text[figure.end() :]).split()
    return f"# {unit[0]}" if unit else "#"
