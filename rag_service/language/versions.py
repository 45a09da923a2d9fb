"""Versions of a document: since when one holds, what its name tells, and which one a question asks for."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from enum import Enum, auto
from functools import cache, lru_cache

from rag_service.language.dates import day_at, find_days
from rag_service.language.languages import languages_of, union_of
from rag_service.language.words import fold, word_forms, words
from rag_service.recent import kept_apart

_HEAD = 1_500  # characters of a document in which it says since when it holds
_OPENING, _CLOSING = 400, 150  # likewise, by a date alone: below the title, or beside a signature
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_NUMBER = re.compile(r"\b(?:v|ver|version|versao|rev|revision|revisao)[ ._-]?(\d{1,3})(?!\d)")
_COPY = re.compile(r"\(\d\)")  # "policy (1).docx"
_DIGITS = re.compile(r"\d+")
_IN_QUESTION = re.compile(rf"\(?(?P<year>{_YEAR.pattern})\)?|{_NUMBER.pattern}", re.IGNORECASE)
_SHORTEST = 3  # letters of a word that tells what a document is about
_BEFORE_DATE = r"[\s:]*(?:(?:the|el|le|o|dia|jour|day|de|del|du|on)\s+){0,2}"


class Asked(Enum):
    """Which version a question asks for, by its words."""

    IN_FORCE = auto()
    EARLIER = auto()
    SEVERAL = auto()


@dataclass(frozen=True, kw_only=True)
class Edition:
    """What the name and the title of a document tell of its version."""

    subject: tuple[frozenset[str], ...]  # words of the name that versions share, each in all its forms
    year: int | None
    number: int | None  # of "v3"
    standing: int  # -1: named "old", 1: named "new" or "final", else 0
    digits: tuple[str, ...]  # of the name, beside year and number: a day tells one of a series, such as minutes

    def is_of(self, other: Edition) -> bool:
        """Return whether two names are those of one document: the words of one are among those of the other."""
        if self.digits != other.digits and None in (self.number, other.number):
            return False
        few, many = sorted((self.subject, other.subject), key=len)
        return len(few) > (len(few) != len(many)) and all(any(word & one for one in many) for word in few)


@kept_apart(4_000)  # each search finds twenty documents, and often the same
def read_edition(file_name: str | None, title: str) -> Edition:
    """What a file name tells, and the title where the name has no year or no number."""
    name = fold(title if file_name is None else file_name.rpartition(".")[0] or file_name).replace("_", " ")
    texts = (name, fold(title))
    rest = _NUMBER.sub(" ", _YEAR.sub(" ", name, count=1))
    told = [word for word in words(rest) if len(word) >= _SHORTEST and not any(map(str.isdigit, word))]
    old, new, little = map(_name_words, ("old", "new", "name_words"))
    return Edition(
        subject=tuple(frozenset(word_forms(word)) for word in told if word not in old | new | little),
        year=next((year for text in texts for year in years_in(text)), None),
        number=next((number for text in texts for number in numbers_in(text)), None),
        standing=-1 if old.intersection(words(rest)) else int(not new.isdisjoint(words(rest))),
        digits=tuple(_DIGITS.findall(_COPY.sub("", rest))),
    )


def find_date(text: str, *, until: date) -> date | None:
    """The day since when a document holds, or of which it is; None: it does not say.

    The one behind "in force from" and its like at the beginning, else the last of the first and the last lines.

    Args:
        until: the last day that may be told without such words.
    """
    head = fold(text[:_HEAD])
    told = (day_at(head, found.end()) for found in _holds_from().finditer(head))
    if day := next(filter(None, told), None):
        return day.date
    edges = f"{head[:_OPENING]}\n{fold(text[_OPENING:][-_CLOSING:])}"
    return max((day.date for day in find_days(edges) if day.date <= until), default=None)


def asked_version(question: str) -> Asked:
    """Which version a question asks for. The version in force, unless it says otherwise."""
    folded = fold(question)
    if _expression("both").search(folded) or len(set(years_in(question))) > 1:
        return Asked.SEVERAL
    return Asked.EARLIER if _expression("earlier").search(folded) else Asked.IN_FORCE


def without_version(question: str, years: Collection[int | None]) -> str:
    """A question without the numbers of versions and these years, which no sentence of a version needs to hold."""
    return _IN_QUESTION.sub(
        lambda found: found[0] if found["year"] and int(found["year"]) not in years else " ", question
    )


def years_in(text: str) -> list[int]:
    """The years that a text names."""
    return list(map(int, _YEAR.findall(text)))


def numbers_in(text: str) -> list[int]:
    """The numbers of versions that a text names: "v2"."""
    return list(map(int, _NUMBER.findall(fold(text))))


@cache
def _holds_from() -> re.Pattern[str]:
    phrases = sorted((phrase for data in languages_of(None) for phrase in data.versions.holds_from), key=len)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, reversed(phrases)))})\b{_BEFORE_DATE}")


@lru_cache(3)
def _name_words(name: str) -> frozenset[str]:
    return union_of(getattr(data.versions, name) for data in languages_of(None))


@lru_cache(2)
def _expression(name: str) -> re.Pattern[str]:
    return re.compile("|".join(getattr(data.versions, name) for data in languages_of(None)))
