"""Ranges of months or weekdays: "from June to August" means July too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from rag_service.language.languages import TableWords, languages_of, load_language
from rag_service.language.words import fold_words, words
from rag_service.tables.vocabulary import Word

_SHORT = 3  # letters of "Mar" in a cell, or in the name of a column
_KINDS = {"month": 12, "weekday": 7}


@dataclass(frozen=True, kw_only=True)
class CalendarRange:
    """Months or weekdays in a row, as a question names their first and last."""

    kind: str  # month or weekday
    numbers: tuple[int, ...]  # in order; the first is 1
    start: int  # first word of it
    end: int  # word after it

    @property
    def keys(self) -> list[str]:
        """What cells that are in it may hold, as values are compared."""
        names = _names(self.kind, "").items()
        return [fold_words(name) for name, numbers in names if numbers & set(self.numbers)]

    def is_within(self, values: Mapping[str, str]) -> bool:
        """Whether its first and its last are among values {key: text}."""
        found = {number_of(text, self.kind) for text in values.values()}
        return {self.numbers[0], self.numbers[-1]} <= found

    def keys_in(self, values: Mapping[str, str]) -> list[str]:
        """The values {key: text} that are in it, in order."""
        found = {key: number_of(text, self.kind) for key, text in values.items()}
        return [key for number in self.numbers for key in found if found[key] == number]


def read_calendar_ranges(asked: Sequence[Word], language: str) -> Iterator[CalendarRange]:
    """The ranges that a question names: "from June to August", "entre lunes y jueves"."""
    texts, data = [word.text for word in asked], load_language(language).tables
    for kind, size in _KINDS.items():
        names = _names(kind, language)
        start = 0
        while start < len(texts):
            first = names.get(texts[start])
            at = _after_joint(texts, _after(texts, start + 1, data, "weekday_ends"), start, data) if first else 0
            last = names.get(texts[at]) if 0 < at < len(texts) else None
            if not (first and last):
                start += 1
                continue
            (low,), (high,) = first, last
            length = (high - low) % size + 1
            numbers = tuple((low - 1 + step) % size + 1 for step in range(length))
            end = _after(texts, at + 1, data, "weekday_ends")
            yield CalendarRange(kind=kind, numbers=numbers, start=_opening(texts, start, data), end=end)
            start = end


def _after(texts: Sequence[str], start: int, data: TableWords, name: str) -> int:
    """The place behind the longest of some phrases that begins at a word; that place if none does."""
    sizes = [len(phrase) for one in data.phrases[name] if texts[start : start + len(phrase := one.split())] == phrase]
    return start + max(sizes, default=0)


def _opening(texts: Sequence[str], start: int, data: TableWords) -> int:
    """The place of "between" or "from" before a word; that of the word without one."""
    for phrase in (*data.phrases["between"], *data.phrases["since"]):
        size = len(phrase.split())
        if size <= start and " ".join(texts[start - size : start]) == phrase:
            return start - size
    return start


def _after_joint(texts: Sequence[str], start: int, first: int, data: TableWords) -> int:
    """The place behind "to", or behind the "and" of "between … and"; 0 if neither stands there."""
    end = _after(texts, start, data, "through")
    is_pair = texts[start : start + 1] == [data.answers["and"].strip()]
    if end == start and is_pair and set(data.phrases["between"]) & set(texts[max(0, first - 2) : first]):
        end += 1
    while start < end < len(texts) and texts[end] in data.before_nouns:
        end += 1
    return end if end > start else 0


def number_of(text: str, kind: str) -> int | None:
    """The number of the month or weekday that a cell, or a name, consists of; None if it is none."""
    found = words(text)
    numbers = _names(kind, "").get(found[0], frozenset()) if len(found) == 1 or _ends(found[1:]) else frozenset()
    return next(iter(numbers)) if len(numbers) == 1 else None


def _ends(found: Sequence[str]) -> bool:
    return any(" ".join(found) in data.tables.phrases["weekday_ends"] for data in languages_of(None))


@cache
def _names(kind: str, language: str) -> Mapping[str, frozenset[int]]:
    """The numbers that a word may name; short forms too where the language is not known."""
    found: dict[str, set[int]] = {}
    for data in languages_of(language):
        for number, names in enumerate(data.proof.months if kind == "month" else data.proof.weekdays, start=1):
            for name in names:
                for form in {name, name if language else name[:_SHORT]}:
                    found.setdefault(form, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in found.items()}
