"""Names of columns that are years or periods, and what a table says about the unit of its figures."""

from __future__ import annotations

import re
from functools import cache

from rag_service.language.languages import languages_of, union_of
from rag_service.language.words import words

_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY = re.compile(r"\d{1,2}")
_DAY_AND_MONTH = re.compile(r"\b\d{1,2}[./-]\d{1,2}[./-](?=(?:19|20)\d\d\b)")  # of "31.12.2024"
FOOTNOTES = re.compile(r"(?:\s*\(\w\)|[*†‡])+$")


def period_year(text: str) -> int | None:
    """The year of a column's name such as "2022", "June 30, 2023" or "Q2 2023"; None if it is no period."""
    years = _YEAR.findall(text)
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


@cache
def _scale_words() -> frozenset[str]:
    return union_of(names for data in languages_of(None) for names in data.tables.scales.values())


def find_unit(text: str) -> str:
    """What a line says about the unit of all figures: "Dollars in millions, except per share data"; empty: nothing."""
    bare = text.strip().strip("()[]").strip()
    if len(bare) > 100:
        inside = re.findall(r"\(([^()]{4,80})\)", text)
        bare = next((one for one in inside if _scale_words() & set(words(one))), "")
    elif "(" in bare:
        inside = re.findall(r"\(([^()]{4,80})\)?", bare)
        bare = next((one for one in inside if _scale_words() & set(words(one))), bare)
    return bare if _scale_words() & set(words(bare)) and not re.search(r"\d{3}", bare) else ""
