"""The closed set of operations over a table, and what of it a question names: columns, and the rows it asks about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum

from rag_service.language.words import words
from rag_service.tables.asking.planning.question import Bound, Comparison
from rag_service.tables.headers import FIGURES, is_month
from rag_service.tables.model import Column, Kind, StoredTable, currency_of
from rag_service.tables.reading.statements import total_words
from rag_service.tables.vocabulary import Word

Values = Mapping[int, Mapping[str, str]]  # column → {key: text}


class Relation(StrEnum):
    """What rows have to do with the row that a filter names, which are not those rows themselves."""

    NEXT = "next"  # the row right behind it
    PREVIOUS = "previous"
    SAME = "same"  # the others with its value in a column
    OTHER = "other"  # all others


@dataclass(frozen=True, kw_only=True)
class Filter:
    column: int
    comparison: Comparison
    values: tuple[str, ...] | tuple[Decimal, ...]  # keys of texts, or numbers
    shown: tuple[str, ...] = ()  # the texts as the table writes them
    relation: Relation | None = None
    shared: int | None = None  # the column whose value is the same
    other: int | None = None  # the column that it is compared with, instead of values


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A word, or words, of the question that name a column; several candidates where they do not tell which."""

    place: int
    columns: tuple[int, ...]


def narrowed(mentions: Iterable[Mention], table: StoredTable, kinds: Sequence[Kind]) -> list[Mention]:
    """Mentions of columns of these kinds, narrowed to them."""
    return narrowed_to(mentions, table.of_kind(*kinds))


def narrowed_to(mentions: Iterable[Mention], columns: Collection[int]) -> list[Mention]:
    """Mentions of these columns, narrowed to them."""
    kept = [replace(one, columns=tuple(filter(columns.__contains__, one.columns))) for one in mentions]
    return [one for one in kept if one.columns]


BY_TIME = (
    Comparison.GREATER,
    Comparison.GREATER_OR_EQUAL,
    Comparison.LESS,
    Comparison.LESS_OR_EQUAL,
    Comparison.BETWEEN,
)
PERIODS = (Comparison.BETWEEN, Comparison.MONTH)


class Operation(StrEnum):
    LOOKUP = "lookup"  # the values of a column in the rows that match
    COUNT = "count"
    DISTINCT = "distinct"  # number of different values
    SUM = "sum"
    MEAN = "mean"
    MEDIAN = "median"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    DIFFERENCE = "difference"  # between the sums of two values of a column
    RATIO = "ratio"
    SHARE = "share"  # of the sum of the rows that match in that of all
    MIXED = "mixed"  # several currencies: told, not computed


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One operation over one table."""

    table: StoredTable
    operation: Operation
    column: int | None = None  # that is computed or looked up; None: rows are counted
    filters: tuple[Filter, ...] = ()
    group: int | None = None  # the operation is done for each of its values
    best: Operation | None = None  # only the group with the maximum or minimum; of a look-up the last or the first row
    order: int | None = None  # the column that tells which row is the first; None: they are in the order of the table
    limit: int | None = None  # how many of the highest or lowest
    named: int | None = None  # the column that is asked for by "which", where it does not name the rows
    is_doubtful: bool = False  # a word of the question was not understood
    is_part: bool = False  # one of several values that are all asked for
    score: int = 0  # words that columns and values account for

    @property
    def key(self) -> int:
        """The column that names a row."""
        return key_column(self.table)

    def computes(self, other: Plan) -> bool:
        """Whether it does the same as another plan, however both were found."""
        return self._work() == other._work()

    def _work(self) -> tuple[object, ...]:
        """What it does, without what is known of the question."""
        return (
            self.table.id, self.operation, self.column, self.group, self.best, self.order, self.limit or 1,
            {(by.column, by.comparison, frozenset(by.values), by.relation, by.shared, by.other) for by in self.filters},
        )  # fmt: skip


def key_column(table: StoredTable) -> int:
    """The column that names the rows: the first text or month without repetition, else a first column of numbers
    without one, else the first text or month, else the first."""
    texts = [
        place
        for place, column in enumerate(table.columns)
        if (column.kind is Kind.TEXT and not column.mixed) or is_month(column)
    ]
    unique = [place for place in texts if table.columns[place].distinct == table.row_count]
    first = table.columns[0]
    is_numbered = first.kind in (Kind.NUMBER, Kind.ORDER) and first.distinct == table.row_count
    return (unique or (is_numbered and [0]) or texts or [0])[0]


def unmixed(plan: Plan) -> Plan:
    """The plan, or that its column mixes currencies: figures of several are neither computed with nor compared."""
    used = {one.column for one in plan.filters if not one.shown}
    if plan.column is not None and plan.operation not in (Operation.LOOKUP, Operation.COUNT, Operation.DISTINCT):
        used.add(plan.column)
    mixed = sorted(place for place in used if plan.table.columns[place].mixed)
    if not mixed or names_currency(plan.filters):
        return plan
    return Plan(table=plan.table, operation=Operation.MIXED, column=mixed[0])


def total_columns(table: StoredTable) -> list[int]:
    return [place for place in table.of_kind(*FIGURES) if total_words().issuperset(words(table.columns[place].name))]


def names_currency(filters: Iterable[Filter]) -> bool:
    return any(len(one.shown) == 1 and currency_of(one.shown[0]) for one in filters)


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
