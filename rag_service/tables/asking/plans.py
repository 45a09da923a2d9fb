"""The closed set of operations over a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from rag_service.tables.asking.filters import Filter
from rag_service.tables.model import Kind, StoredTable, currency_of


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
    best: Operation | None = None  # only the group with the maximum or minimum
    limit: int | None = None  # how many of the highest or lowest
    is_doubtful: bool = False  # a word of the question was not understood, or only by its beginning
    score: int = 0  # words that columns and values account for

    @property
    def key(self) -> int:
        """The column that names a row."""
        return key_column(self.table)


def key_column(table: StoredTable) -> int:
    """The column that names the rows: the first text without repetition, else the first text, else the first."""
    texts = [place for place, column in enumerate(table.columns) if column.kind is Kind.TEXT and not column.mixed]
    unique = [place for place in texts if table.columns[place].distinct == table.row_count]
    return (unique or texts or [0])[0]


def unmixed(plan: Plan) -> Plan:
    """The plan, or that its column mixes currencies: figures of several are neither computed with nor compared."""
    used = {one.column for one in plan.filters if not one.shown}
    if plan.column is not None and plan.operation not in (Operation.LOOKUP, Operation.COUNT, Operation.DISTINCT):
        used.add(plan.column)
    mixed = sorted(place for place in used if plan.table.columns[place].mixed)
    if not mixed or names_currency(plan.filters):
        return plan
    return Plan(table=plan.table, operation=Operation.MIXED, column=mixed[0])


def names_currency(filters: Iterable[Filter]) -> bool:
    return any(len(one.shown) == 1 and currency_of(one.shown[0]) for one in filters)
