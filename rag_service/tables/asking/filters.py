"""What a question names in a table: columns, and the rows that it asks about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from rag_service.tables.asking.question import Bound, Comparison
from rag_service.tables.model import Column, Kind
from rag_service.tables.vocabulary import Word

Values = Mapping[int, Mapping[str, str]]  # column → {key: text}


@dataclass(frozen=True, kw_only=True)
class Filter:
    column: int
    comparison: Comparison
    values: tuple[str, ...] | tuple[Decimal, ...]  # keys of texts, or numbers
    shown: tuple[str, ...] = ()  # the texts as the table writes them


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A word, or words, of the question that name a column; several candidates where they do not tell which."""

    place: int
    columns: tuple[int, ...]


BY_TIME = (Comparison.GREATER, Comparison.GREATER_OR_EQUAL, Comparison.LESS, Comparison.LESS_OR_EQUAL)


def bind(bound: Bound, place: int, column: Column) -> Filter:
    """The comparison with a column; a year compared with dates is its first or last day."""
    values = bound.values
    if bound.is_year and column.kind is Kind.DATE:
        starts = [Decimal(date(int(value), 1, 1).toordinal()) for value in values]
        ends = [Decimal(date(int(value), 12, 31).toordinal()) for value in values]
        late = bound.comparison in (Comparison.GREATER, Comparison.LESS_OR_EQUAL)
        values = (starts[0], ends[1]) if bound.comparison is Comparison.BETWEEN else ((ends if late else starts)[0],)
    return Filter(column=place, comparison=bound.comparison, values=values)


def find_runs(words: Sequence[Word], values: Values) -> Iterator[tuple[int, int, int, str]]:
    """(number of words, first word, column, key) of each value that stands in a question as a whole."""
    keys = [word.key for word in words]
    for column, held in values.items():
        for key in held:
            parts = key.split()
            for start in range(len(keys) - len(parts) + 1):
                end = start + len(parts)
                if keys[start:end] == parts and any(word.is_content for word in words[start:end]):
                    yield len(parts), start, column, key
