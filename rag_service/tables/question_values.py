"""Numbers, dates and units in the words of a question."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation

from rag_service.language.dates import ORDINAL_ENDINGS, YEAR, month_of, read_day
from rag_service.language.languages import load_language
from rag_service.language.words import words as words_of
from rag_service.tables.model import Column, currency_of
from rag_service.tables.vocabulary import Word

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SCALES = {"thousand": Decimal(1_000), "million": Decimal(1_000_000), "billion": Decimal(1_000_000_000)}
_SHORT = {"thousand": "k"}  # "40k"
_MAX_DATE_WORDS = 7  # "12 th of the month of May 2024"


@dataclass(frozen=True, kw_only=True)
class Value:
    """A number or a date of a question."""

    number: Decimal  # or the ordinal of a day
    last: Decimal | None = None  # ordinal of the last day of a month
    end: int  # word after it
    is_date: bool = False
    is_year: bool = False  # a number that may be a year


def read_value(words: Sequence[Word], place: int, language: str) -> Value | None:
    """The number or date that begins at a word, words without meaning left out."""
    if not 0 <= place < len(words):
        return None
    place = _skip(words, place)
    if (found := read_date(words, place, language)) is not None:
        first, last, end = found
        return Value(number=first, last=last, end=end, is_date=True)
    text = words[place].text
    if (scale := _scale_of(words, place, language)) is not None:
        return Value(number=scale, end=place + 1)  # "a million"
    if not _NUMBER.fullmatch(text):
        written = load_language(language).proof.numbers
        spelt = next((number for number, names in written.items() if text in names), None)
        return None if spelt is None else Value(number=Decimal(spelt), end=place + 1)
    number = _decimal(text, language)
    year = YEAR.fullmatch(text) is not None
    if number is None:
        return None
    if (scale := _scale_of(words, place + 1, language)) is not None:
        return Value(number=number * scale, end=place + 2)
    return Value(number=number, end=place + 1, is_year=year)


def _scale_of(words: Sequence[Word], place: int, language: str) -> Decimal | None:
    """What a word multiplies a number by: "million"."""
    units, text = load_language(language).proof.units, words[place].text if place < len(words) else ""
    return next((factor for name, factor in _SCALES.items() if text in (*units.get(name, ()), _SHORT.get(name))), None)


def _skip(words: Sequence[Word], place: int) -> int:
    while place < len(words) - 1 and not words[place].is_content:
        place += 1  # "de", "the"
    return place


def read_date(words: Sequence[Word], place: int, language: str) -> tuple[Decimal, Decimal, int] | None:
    """(first day, last day, end) of a date, or of a month with its year: "2026-03-14", "14 de marzo de 2026"."""
    texts = [word.text for word in words[place : place + _MAX_DATE_WORDS]]
    try:
        year, month, day = texts[:3]
        if YEAR.fullmatch(year) and month.isdigit() and day.isdigit() and len(month) == len(day) == 2:
            ordinal = Decimal(date(int(year), int(month), int(day)).toordinal())
            return ordinal, ordinal, place + 3
    except ValueError:
        pass
    ends = [number for number, text in enumerate(texts) if text.isdigit() or month_of(text, language)]
    if not ends or ends[0]:
        return None
    for end in reversed(ends[1:]):
        if (found := read_day(texts[: end + 1], language)) is not None:
            first, has_day = found
            last = first if has_day else first.replace(day=monthrange(first.year, first.month)[1])
            return Decimal(first.toordinal()), Decimal(last.toordinal()), place + end + 1
    return None


def read_ordinal(words: Sequence[Word], place: int, language: str) -> Value | None:
    """The ordinal that begins at a word: "third", "3rd"."""
    text, after = [*(word.text for word in words), ""][place : place + 2]
    if text.isdigit() and after in ORDINAL_ENDINGS:
        return Value(number=Decimal(text), end=place + 2)
    names = enumerate(load_language(language).tables.ordinals, start=1)
    return next((Value(number=Decimal(number), end=place + 1) for number, one in names if text in one.split()), None)


def _decimal(text: str, language: str) -> Decimal | None:
    """A number as the question's language writes it; a single separator before other than three digits is decimal."""
    data = load_language(language).tables
    marks = [character for character in text if character in ".,"]
    if marks and (len(marks) > 1 or marks[0] != data.decimal):
        head, *groups = text.replace(",", ".").split(".")
        if len(set(marks)) == 1 and all(len(group) == 3 for group in groups):
            text = head + "".join(groups)
    mark = next((one for one in reversed(text) if one in ".,"), None)
    if mark is not None:
        whole, _, rest = text.rpartition(mark)
        text = whole.replace(",", "").replace(".", "") + "." + rest
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def has_unit(column: Column, word: str, language: str) -> bool:
    """Whether a folded word of a question is the unit of a column, or a part of it: "metres" for m."""
    if column.unit is None:
        return False
    if (sign := currency_of(word)) is not None:
        return column.unit == sign
    return unit_of(column.unit.lower(), language) == unit_of(word, language) or word in words_of(column.unit)


def unit_of(word: str, language: str) -> str:
    """The sign of the unit that a folded word names: "kg" for "kilos"; the word itself if it names none."""
    units = load_language(language).proof.units
    return next((unit for unit, names in units.items() if word in names), word)
