"""Days, months and years as texts write them, in numbers and in the words of every language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache, lru_cache
from typing import NamedTuple

from rag_service.language.languages import languages_of, union_of

# Behind the digits of an ordinal, folded: 3rd, 3º, 3ª, 3e, 1er.
ORDINAL_ENDINGS = frozenset(["st", "nd", "rd", "th", "o", "a", "e", "er", "re", "ere", "eme"])
YEAR = re.compile(r"(?:19|20)\d\d")
DAY = re.compile(r"\d{1,2}")
_ANY_YEAR = re.compile(r"[12]\d{3}")  # of a day: with its month it can be nothing else
_MIN_LETTERS = 3  # of the short form of a month
_BEGINS = re.compile(r"(?<!\w)(?:\d{1,4}|[a-z]{3,}(?=\.?\s))")
_DAY, _MONTH, _YEAR = r"(?P<day>\d{1,2})", r"(?P<month>[a-z]+)\.?", rf"(?P<year>{YEAR.pattern})(?!\d)"
_WRITTEN = tuple(
    map(
        re.compile,
        (
            rf"{_YEAR}(?P<sign>[-/.])(?P<month>\d\d)(?P=sign)(?P<day>\d\d)(?!\d)",
            rf"{_DAY}[./-](?P<month>\d{{1,2}})[./-]{_YEAR}",
            rf"{_DAY}(?:st|nd|rd|th|er|[oº.])?\s+(?:de\s+|of\s+)?{_MONTH},?\s+(?:de\s+|del\s+)?{_YEAR}",
            rf"{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?,?\s+{_YEAR}",
            rf"{_MONTH}\s+(?:de\s+|of\s+)?{_YEAR}",
            _YEAR,
        ),
    )
)


class Day(NamedTuple):
    """A day that a text writes."""

    date: date  # the first of a month or year where no day is told
    has_day: bool  # whether the text names the day itself, and not only its month or year


def day_at(text: str, start: int) -> Day | None:
    """The day, month or year that begins at a place of a folded text. In 3/4/2024 the day is first."""
    for pattern in _WRITTEN:
        if found := pattern.match(text, start):
            told = {"day": "1", "month": "1"} | found.groupdict()
            month = int(told["month"]) if told["month"].isdigit() else month_of(told["month"]) or 0
            try:
                return Day(date(int(told["year"]), month, int(told["day"])), "day" in pattern.groupindex)
            except ValueError:  # no such day, or another word than a month
                continue
    return None


def find_days(text: str) -> Iterator[Day]:
    """What begins at each place of a folded text where a day, month or year may: of "3 May 2024" all three."""
    return filter(None, (day_at(text, found.start()) for found in _BEGINS.finditer(text)))


def read_day(found: Sequence[str], language: str | None = None) -> Day | None:
    """The day or month that words, as `words` gives them, consist of.

    "January 12 2024", "12 de enero de 2024", "Tue 12 Jan 2024", "2024 Jan 12", "March 2024".
    """
    around, told = _around_days(language), [word for word in found if not word.isdigit()]
    named = [word for word in told if month_of(word, language)]
    months = named if len(named) == 1 else [word for word in named if word not in around]  # "mar": mardi, mars
    if len(months) != 1 or not around.issuperset(word for word in told if word != months[0]):
        return None
    numbers = [word for word in found if word.isdigit()]
    years, days = [one for one in numbers if _ANY_YEAR.fullmatch(one)], [one for one in numbers if DAY.fullmatch(one)]
    if len(years) != 1 or len(days) > 1 or len(numbers) != len(years) + len(days):
        return None
    try:
        month = month_of(months[0], language) or 0
        return Day(date(int(years[0]), month, int(days[0]) if days else 1), bool(days))
    except ValueError:
        return None


@lru_cache(maxsize=1_000)
def month_of(word: str, language: str | None = None) -> int | None:
    """The month that a folded word names, or shortens: "enero", "sept"; None if it may be none, or several."""
    months = [data.proof.months for data in languages_of(language)]
    named = {
        number
        for every in months
        for number, names in enumerate(every, start=1)
        for name in names
        if len(word) >= _MIN_LETTERS and name.startswith(word)
    }
    return next(iter(named)) if len(named) == 1 else None


@cache
def _around_days(language: str | None) -> frozenset[str]:
    """What may stand around the parts of a day: weekdays and their short forms, articles, endings of ordinals."""
    every = languages_of(language)
    weekdays = union_of(names for data in every for names in data.proof.weekdays)
    short = {name[:length] for name in weekdays for length in range(_MIN_LETTERS, len(name))}
    ends = {word for data in every for phrase in data.tables.phrases["weekday_ends"] for word in phrase.split()}
    return weekdays.union(short, ends, ORDINAL_ENDINGS, *(data.tables.before_nouns for data in every))
