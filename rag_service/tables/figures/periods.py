"""The years and periods that the columns of a statement are for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from rag_service.language.languages import languages_of
from rag_service.language.words import words
from rag_service.recent import kept_apart
from rag_service.tables.periods import period_year

YEARLY = 3  # place of a year in `durations`
_EARLY = (1, 2)  # months at whose end a year of 52 weeks ends, which is often named after the year before


@dataclass(frozen=True, kw_only=True)
class Period:
    year: int
    month: int = 0  # 0: not told
    day: int = 0
    duration: int | None = None  # place in `durations`; None: not told

    @property
    def ends(self) -> tuple[int, int, int]:
        return self.year, self.month, self.day

    @property
    def may_be_named_otherwise(self) -> bool:
        return self.month in _EARLY

    def is_asked(self, year: int, months: Collection[int], days: Collection[int]) -> bool:
        """Whether it is a period of a year, and ends on the day that the question tells."""
        if months:
            return self.year == year and self.month in months and (not days or self.day in days)
        return self.year == year or (self.may_be_named_otherwise and self.year - 1 == year)

    def follows(self, other: Period, *, years: int) -> bool:
        """Whether it is the same period some years later."""
        same = (self.month, self.duration) == (other.month, other.duration)
        return same and self.year - other.year == years


@kept_apart(5_000)
def read_period(name: str) -> Period | None:
    """The period of a column's name; None if it is none."""
    year = period_year(name)
    if year is None:
        return None
    found = [word for word in words(name) if word != str(year)]
    months, days = read_dates(found)
    return Period(year=year, month=max(months, default=0), day=max(days, default=0), duration=read_duration(found))


def read_dates(found: Sequence[str]) -> tuple[frozenset[int], frozenset[int]]:
    """(months, days) that words name; a day stands beside its month."""
    names = _months()
    months = {names[word] for word in found if word in names}
    return frozenset(months), frozenset(int(found[place]) for place in _days(found))


def _days(found: Sequence[str]) -> set[int]:
    names = _months()
    return {
        at
        for place, word in enumerate(found)
        if word in names
        for at in (place - 2, place - 1, place + 1)  # "29 de julio", "29 July", "July 29"
        if 0 <= at < len(found) and found[at].isdigit() and int(found[at]) <= 31
    }


def read_duration(found: Sequence[str], *, besides: Collection[str] = ()) -> int | None:
    """The length of time that words name: a quarter before half a year, that before a year."""
    days = _days(found)
    spoken = {word for place, word in enumerate(found) if place not in days and word not in besides}
    every = [data.tables.figures.durations for data in languages_of(None)]
    return next((n for n in range(YEARLY + 1) if any(spoken & durations[n] for durations in every)), None)


@cache
def _months() -> dict[str, int]:
    every = (enumerate(data.proof.months, start=1) for data in languages_of(None))
    return {name: number for months in every for number, names in months for name in names}
