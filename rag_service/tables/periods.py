"""Years, periods and days, as names of columns, cells and questions write them in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import cache, lru_cache

from rag_service.language.languages import languages_of, union_of
from rag_service.language.words import words

# Behind the digits of an ordinal, folded: 3rd, 3º, 3ª, 3e, 1er.
ORDINAL_ENDINGS = frozenset(["st", "nd", "rd", "th", "o", "a", "e", "er", "re", "ere", "eme"])
YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"\d{1,2}")
_ANY_YEAR = re.compile(r"[12]\d{3}")  # of a day: with its month it can be nothing else
_MIN_LETTERS = 3  # of the short form of a month
_DAY_AND_MONTH = re.compile(r"\b\d{1,2}[./-]\d{1,2}[./-](?=(?:19|20)\d\d\b)")  # of "31.12.2024"
FOOTNOTES = re.compile(r"(?:\s*\(\w\)|[*†‡])+$")


def period_year(text: str) -> int | None:
    """The year of a column's name such as "2022", "June 30, 2023" or "Q2 2023"; None if it is no period."""
    years = YEAR.findall(text)
    if len(years) != 1 or len(text) > 80:
        return None
    rest = [word for word in words(_DAY_AND_MONTH.sub("", FOOTNOTES.sub("", text))) if word != years[0]]
    known = _period_words()
    return int(years[0]) if all(word in known or _DAY.fullmatch(word) for word in rest) else None


def is_period_text(text: str) -> bool:
    """Whether a text is a part of periods: "Years ended December 31,", "January 28,", "13 Weeks Ended"."""
    known, found = _period_words(), words(text)
    return any(word in known for word in found) and all(word in known or _DAY.fullmatch(word) for word in found)


@cache
def _period_words() -> frozenset[str]:
    every = languages_of(None)
    months = [name for data in every for names in data.proof.months for name in names]
    return frozenset(months).union(*(data.tables.periods for data in every))


def read_day(found: Sequence[str], language: str | None = None) -> tuple[date, bool] | None:
    """The day that words, as `words` gives them, consist of, and whether it is told: of a month it is the first.

    "January 12 2024", "12 de enero de 2024", "Tue 12 Jan 2024", "2024 Jan 12", "March 2024".
    """
    around, told = _around_days(language), [word for word in found if not word.isdigit()]
    named = [word for word in told if month_of(word, language)]
    months = named if len(named) == 1 else [word for word in named if word not in around]  # "mar": mardi, mars
    if len(months) != 1 or not around.issuperset(word for word in told if word != months[0]):
        return None
    numbers = [word for word in found if word.isdigit()]
    years, days = [one for one in numbers if _ANY_YEAR.fullmatch(one)], [one for one in numbers if _DAY.fullmatch(one)]
    if len(years) != 1 or len(days) > 1 or len(numbers) != len(years) + len(days):
        return None
    try:
        month = month_of(months[0], language) or 0
        return date(int(years[0]), month, int(days[0]) if days else 1), bool(days)
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
