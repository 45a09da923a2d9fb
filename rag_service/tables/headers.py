"""Columns that a word may mean by what they hold, where none is called so: amounts for "cost", weeks for "how long"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_service.language.languages import language_codes
from rag_service.language.words import is_stop_word, words
from rag_service.tables.model import Column, Kind, StoredTable
from rag_service.tables.vocabulary import Word, column_word, concepts_of

FIGURES = (Kind.NUMBER, Kind.CURRENCY, Kind.PERCENTAGE)  # added up
NUMBERS = (*FIGURES, Kind.ORDER)  # compared with the numbers of a question
MONEY = frozenset({"price", "amount", "expense"})
EARNED = frozenset({"sales", "income"})
_QUANTITY = frozenset({"quantity"})
BY_KIND = MONEY | EARNED | {"percentage", "length"}
MAX_BY_KIND = 2  # columns that a word may mean
_TIME = frozenset({"time"})
_TIME_UNITS = _TIME | {"year"}


def find_by_kind(table: StoredTable, headers: Sequence[Sequence[Word]], concepts: frozenset[str]) -> tuple[int, ...]:
    """The columns that concepts of a word may mean by their kind; none if there are many.

    `headers`: the words of each column's name.
    """

    def holding(wanted: frozenset[str], kinds: Sequence[Kind]) -> list[int]:
        return [place for place in table.of_kind(*kinds) if any(word.concepts & wanted for word in headers[place])]

    if "percentage" in concepts:
        found = table.of_kind(Kind.PERCENTAGE)
    elif concepts & MONEY:
        found = holding(MONEY, FIGURES) or table.of_kind(Kind.CURRENCY)
    elif concepts & EARNED:  # "which store sold the most": the most money, or the most pieces
        pieces = holding(_QUANTITY, FIGURES) if "sales" in concepts else []
        found = sorted({*(holding(EARNED | {"amount"}, FIGURES) or table.of_kind(Kind.CURRENCY)), *pieces})
    elif "length" in concepts:
        timed = {place for place in table.of_kind(*FIGURES) if _is_time(table.columns[place].unit)}
        found = sorted(timed.union(holding(_TIME, FIGURES)))
    else:
        return ()
    return tuple(found) if len(found) <= MAX_BY_KIND else ()


def _is_time(unit: str | None) -> bool:
    return any(column_word(word).concepts & _TIME_UNITS for word in words(unit or ""))


def header_words(name: str) -> tuple[Word, ...]:
    """The words of a column's name that carry its meaning; all of them if none does. "Name" alone is a person's."""
    every = tuple(column_word(word) for word in words(name))
    found = (
        tuple(word for word in every if not any(is_stop_word(word.text, code) for code in language_codes())) or every
    )
    is_name = len(found) == 1 and "name" in found[0].concepts
    return (replace(found[0], concepts=found[0].concepts | {"person"}),) if is_name else found


def is_month(column: Column) -> bool:
    """Whether the dates of a column are those of months, "2024-03", which name rows as texts do."""
    return column.kind is Kind.DATE and "month" in concepts_of(column.name)


class Headers:
    """The columns of a table by their kind, and by what their names mean."""

    def __init__(self, table: StoredTable):
        self.table = table
        self.headers = [header_words(column.name) for column in table.columns]

    def is_unique(self, column: int) -> bool:
        """Whether each value of a column stands in one row."""
        return self.table.columns[column].distinct == self.table.columns[column].filled

    @property
    def months(self) -> list[int]:
        return [place for place in self.table.of_kind(Kind.DATE) if is_month(self.table.columns[place])]

    @property
    def labels(self) -> list[int]:
        """The columns whose values name rows or groups: texts, yes and no, months, running numbers."""
        return [*self.table.of_kind(Kind.TEXT, Kind.BOOLEAN, Kind.ORDER), *self.months]

    def has_concept(self, column: int, concepts: frozenset[str]) -> bool:
        """Whether a column holds one of these: prices, weights, dates."""
        if any(word.concepts & concepts for word in self.headers[column]):
            return True
        return "date" in concepts and self.table.columns[column].kind is Kind.DATE
