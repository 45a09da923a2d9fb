"""Operations that somebody else asks for, such as a chat model that calls `compute`.

What is asked for is checked against the tables and becomes a plan of the same closed set as those of the planner. No
text of it reaches a statement: columns are positions, values are bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from uuid import UUID

from rag_service.errors import InputError
from rag_service.tables.asking.planning.plans import Filter, Operation, Plan, Values, key_column, unmixed
from rag_service.tables.asking.planning.question import Comparison
from rag_service.tables.model import Kind, StoredTable, fold_words

OPERATIONS = tuple(operation.value for operation in Operation if operation is not Operation.MIXED)
COMPARISONS = tuple(one.value for one in Comparison if one not in (Comparison.EMPTY, Comparison.MONTH))
MAX_LIMIT = 50  # rows or groups
_MAX_TABLES, _MAX_COLUMNS = 5, 30  # that a description tells about
_MAX_EXAMPLES = 5  # of a column
_MAX_CELL = 40  # characters of an example
_MAX_EXPONENT = 1000  # of a number in a condition: PostgreSQL writes 1e999999 as a million digits
_FIGURES = (Operation.SUM, Operation.MEAN, Operation.MEDIAN, Operation.DIFFERENCE, Operation.RATIO, Operation.SHARE)
_EXTREMES = (Operation.MAXIMUM, Operation.MINIMUM)
_PAIRS = (Operation.DIFFERENCE, Operation.RATIO)
_GROUPED = (Operation.COUNT, Operation.SUM, Operation.MEAN, Operation.MEDIAN)


@dataclass(frozen=True, kw_only=True)
class AskedCondition:
    """A condition on rows."""

    column: str  # its name or letter
    comparison: str  # of `COMPARISONS`
    values: Sequence[str]  # as the table writes them


@dataclass(frozen=True, kw_only=True)
class AskedOperation:
    """An operation over one table of a document, as it was asked for."""

    operation: str  # of `OPERATIONS`
    sheet: str | None = None  # None: the only table
    column: str | None = None  # name or letter
    filters: Sequence[AskedCondition] = ()
    group: str | None = None  # name or letter
    best: str | None = None  # maximum or minimum
    limit: int | None = None


def describe_tables(tables: Sequence[StoredTable], examples: Mapping[UUID, Values]) -> str:
    """What tables hold, for somebody who is to ask for an operation: a line each for a table and its columns."""
    lines = []
    for table in tables[:_MAX_TABLES]:
        name = table.document if table.sheet is None else f"{table.document}, sheet {table.sheet}"
        lines.append(f"Table {name}, {table.row_count} rows:")
        for place, column in enumerate(table.columns[:_MAX_COLUMNS]):
            cells = [cell[:_MAX_CELL] for cell in examples.get(table.id, {}).get(place, {}).values()]
            unit = f" in {column.unit}" if column.unit else ""
            shown = "; ".join(cells[:_MAX_EXAMPLES])
            lines.append(f"- {column.letter}: {column.name} ({column.kind}{unit}), such as {shown}")
    return "\n".join(lines)


def read_operation(asked: AskedOperation, tables: Sequence[StoredTable]) -> Plan:
    """The plan of an operation that was asked for.

    Raises:
        InputError: the tables do not have what it names, or the operation cannot be done with it. The message repeats
            none of its text.
    """
    if asked.operation not in OPERATIONS:
        raise _fault("There is no such operation.")
    table = _choose_table(asked, tables)

    def place_of(name: str | None) -> int | None:
        if name is None:
            return None
        wanted = fold_words(name)
        named = [place for place, column in enumerate(table.columns) if fold_words(column.name) == wanted]
        lettered = [place for place, column in enumerate(table.columns) if column.letter == name.strip().upper()]
        found = named or lettered
        if len(found) != 1:
            raise _fault("The table has no such column." if not found else "Several columns have this name.")
        return found[0]

    filters = []
    for one in asked.filters:
        place = place_of(one.column)
        if place is None or one.comparison not in COMPARISONS:
            raise _fault("There is no such comparison.")
        filters.append(_filter(place, Comparison(one.comparison), one.values, table))
    if asked.best not in (None, *(one.value for one in _EXTREMES)):
        raise _fault("The best group is that with the maximum or the minimum.")
    plan = Plan(
        table=table,
        operation=Operation(asked.operation),
        column=place_of(asked.column),
        filters=tuple(filters),
        group=place_of(asked.group),
        best=None if asked.best is None else Operation(asked.best),
        limit=asked.limit if asked.limit is not None and 1 < asked.limit <= MAX_LIMIT else None,
    )
    return _checked(unmixed(plan))


def _choose_table(asked: AskedOperation, tables: Sequence[StoredTable]) -> StoredTable:
    wanted = None if asked.sheet is None else fold_words(asked.sheet)
    found = [table for table in tables if wanted is None or fold_words(table.sheet or table.document) == wanted]
    if wanted is None and len(found) > 1:
        raise _fault("The document has several tables; name the sheet.")
    if not found:
        raise _fault("There is no such table.")
    return found[0]


def _fault(message: str) -> InputError:
    return InputError(message, field="plan")


def _filter(place: int, comparison: Comparison, given: Sequence[str], table: StoredTable) -> Filter:
    kind = table.columns[place].kind
    if kind in (Kind.TEXT, Kind.BOOLEAN, Kind.DURATION):
        if comparison is Comparison.CONTAINS and len(given) == 1:
            parts = tuple(fold_words(given[0]).split())
            if parts:
                return Filter(column=place, comparison=comparison, values=parts, shown=tuple(given))
        keys = tuple(filter(None, map(fold_words, given)))
        if comparison is not Comparison.EQUAL or len(keys) != len(given):
            raise _fault("Texts can only be equal to values, or contain one.")
        return Filter(column=place, comparison=comparison, values=keys, shown=tuple(given))
    if len(given) != 1 + (comparison is Comparison.BETWEEN) or comparison is Comparison.CONTAINS:
        raise _fault("A number or a date is compared with one value, or lies between two.")
    try:
        numbers = tuple(
            Decimal(date.fromisoformat(value).toordinal()) if kind is Kind.DATE else Decimal(value) for value in given
        )
    except (ValueError, InvalidOperation) as error:
        raise _fault("A value is not of the kind of its column.") from error
    if not all(number.is_finite() and abs(number.adjusted()) <= _MAX_EXPONENT for number in numbers):
        raise _fault("A value is not of the kind of its column.")
    return Filter(column=place, comparison=comparison, values=numbers)


def _checked(plan: Plan) -> Plan:
    """The plan, if its parts fit together."""
    operation = plan.operation
    if operation is Operation.MIXED:
        return plan
    column = None if plan.column is None else plan.table.columns[plan.column]
    if operation in _FIGURES and (column is None or not column.kind.is_figure):
        raise _fault("The operation needs a column of figures.")
    if operation in _EXTREMES and (column is None or not column.kind.is_compared):
        raise _fault("The operation needs a column of figures, dates, durations or places.")
    if operation in (Operation.LOOKUP, Operation.SHARE) and not plan.filters:
        raise _fault("The operation needs a filter.")
    if operation in _PAIRS:
        pairs = [one.column for one in plan.filters if one.comparison is Comparison.EQUAL and len(one.shown) == 2]
        if len(pairs) != 1:
            raise _fault("The operation needs one filter with the two values that it compares.")
        return replace(plan, group=pairs[0], best=None, limit=None)
    if operation not in _GROUPED:
        if plan.group is not None:
            raise _fault("The operation cannot be done for each value of a column.")
        column_of_rows = key_column(plan.table) if plan.column is None else plan.column
        return replace(plan, column=column_of_rows, best=None, limit=plan.limit if operation in _EXTREMES else None)
    return replace(
        plan,
        column=None if operation is Operation.COUNT else plan.column,
        best=plan.best if plan.group is not None else None,
        limit=None,
    )
