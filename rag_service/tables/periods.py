"""Years and periods, as names of columns and headings write them."""

from __future__ import annotations

import re
from functools import cache

from rag_service.language.dates import DAY, YEAR
from rag_service.language.languages import languages_of
from rag_service.language.words import words

_DAY_AND_MONTH = re.compile(r"\b\d{1,2}[./-]\d{1,2}[./-](?=(?:19|20)\d\d\b)")  # of "31.12.2024"
FOOTNOTES = re.compile(r"(?:\s*\(\w\)|[*†‡])+$")


def period_year(text: str) -> int | None:
    """The year of a column's name such as "2022", "June 30, 2023" or "Q2 2023"; None if it is no period."""
    years = YEAR.findall(text)
    if len(years) != 1 or len(text) > 80:
        return None
    rest = [word for word in words(_DAY_AND_MONTH.sub("", FOOTNOTES.sub("", text))) if word != years[0]]
    known = _period_words()
    return int(years[0]) if all(word in known or DAY.fullmatch(word) for word in rest) else None


def is_period_text(text: str) -> bool:
    """Whether a text is a part of periods: "Years ended December 31,", "January 28,", "13 Weeks Ended"."""
    known, found = _period_words(), words(text)
    return any(word in known for word in found) and all(word in known or DAY.fullmatch(word) for word in found)


@cache
def _period_words() -> frozenset[str]:
    every = languages_of(None)
    months = [name for data in every for names in data.proof.months for name in names]
    return frozenset(months).union(*(data.tables.periods for data in every))
