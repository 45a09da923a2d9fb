"""Operations that somebody else asks for, such as a chat model that calls `compute`.

What is asked for is checked against the tables and becomes a plan of the same closed set as those of the planner. No
text of it reaches a statement: columns are positions, values are bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from uuid import UUID

from rag_service.errors import InputError
from rag_service.language.words import fold_words
from rag_service.tables.asking.planning.plans import Filter, Operation, Plan, Relation, Values, key_column, unmixed
from rag_service.tables.asking.planning.question import Comparison
from rag_service.tables.model import Column, Kind, StoredTable

OPERATIONS = tuple(operation.value for operation in Operation if operation is not Operation.MIXED)
_NOT_EQUAL, _FILLED = "!=", "not empty"
_NEGATED = {_NOT_EQUAL: Comparison.EQUAL, _FILLED: Comparison.EMPTY}
COMPARISONS = (*(one.value for one in Comparison if one is not Comparison.MONTH), *_NEGATED)
MAX_LIMIT = 50  # rows or groups
_MAX_TABLES, _MAX_COLUMNS = 5, 30  # that a description tells about
_MAX_EXAMPLES = 5  # of a column
_UNIT = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")  # behind the name of a column: "Payment (days)"
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
    values: Sequence[str]  # as the table writes them, or the name of a column of the same kind


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
        return None if name is None else _find_column(name, table)

    filters = [_read_condition(one, table) for one in asked.filters]
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


def is_named(asked: AskedOperation, table: StoredTable) -> bool:
    """Whether a table is the one asked for, or none is named."""
    return asked.sheet is None or fold_words(table.sheet or table.document) == fold_words(asked.sheet)


def _choose_table(asked: AskedOperation, tables: Sequence[StoredTable]) -> StoredTable:
    found = [table for table in tables if is_named(asked, table)]
    if asked.sheet is None and len(found) > 1:
        raise _fault("The document has several tables; name the sheet.")
    if not found:
        raise _fault("There is no such table.")
    return found[0]


def _find_column(name: str, table: StoredTable) -> int:
    """The column of a name, with or without its unit as passages write it, or of a letter."""
    wanted, bare = fold_words(name), fold_words(_UNIT.sub("", name))
    letter = name.strip().upper()
    ways: tuple[Callable[[Column], bool], ...] = (
        lambda column: fold_words(column.name) == wanted,
        lambda column: column.letter == letter,
        lambda column: bool(bare) and fold_words(_UNIT.sub("", column.name)) == bare,
    )
    for is_meant in ways:
        found = [place for place, column in enumerate(table.columns) if is_meant(column)]
        if len(found) > 1:
            raise _fault("Several columns have this name; use the letter.")
        if found:
            return found[0]
    near = get_close_matches(wanted, [fold_words(column.name) for column in table.columns], n=1)
    hint = "".join(f" The nearest is “{one.name}”." for one in table.columns if near == [fold_words(one.name)])
    raise _fault(f"The table has no such column.{hint}")


def _fault(message: str) -> InputError:
    return InputError(message, field="plan")


def _read_condition(asked: AskedCondition, table: StoredTable) -> Filter:
    place = _find_column(asked.column, table)
    if asked.comparison not in COMPARISONS:
        raise _fault("There is no such comparison.")
    comparison = _NEGATED.get(asked.comparison) or Comparison(asked.comparison)
    if comparison is Comparison.EMPTY:
        found = Filter(column=place, comparison=comparison, values=())
    else:
        found = _read_values(place, comparison, asked.values, table)
    return replace(found, relation=Relation.OTHER) if asked.comparison in _NEGATED else found


def _read_values(place: int, comparison: Comparison, given: Sequence[str], table: StoredTable) -> Filter:
    column = table.columns[place]
    if column.kind in (Kind.TEXT, Kind.BOOLEAN, Kind.DURATION):
        if comparison is Comparison.CONTAINS and len(given) == 1:
            parts = tuple(fold_words(given[0]).split())
            if parts:
                return Filter(column=place, comparison=comparison, values=parts, shown=tuple(given))
        keys = tuple(filter(None, map(fold_words, given)))
        if comparison is not Comparison.EQUAL or not keys or len(keys) != len(given):
            raise _fault(f"“{column.name}” holds texts, which can only be equal to values, or contain one.")
        return Filter(column=place, comparison=comparison, values=keys, shown=tuple(given))
    if len(given) == 1 and (other := _compared_column(given[0], column, comparison, table)) is not None:
        return Filter(column=place, comparison=comparison, values=(), other=other)
    if len(given) != 1 + (comparison is Comparison.BETWEEN) or comparison is Comparison.CONTAINS:
        raise _fault(f"“{column.name}” is compared with one value, or lies between two.")
    numbers = tuple(_read_value(number, value, column) for number, value in enumerate(given, start=1))
    return Filter(column=place, comparison=comparison, values=numbers)


def _compared_column(name: str, column: Column, comparison: Comparison, table: StoredTable) -> int | None:
    """The column of the same kind and unit that is named instead of a value: "Stock < Minimum"."""
    if comparison in (Comparison.BETWEEN, Comparison.CONTAINS) or not any(map(str.isalpha, name)):
        return None
    try:
        other = _find_column(name, table)
    except InputError:
        return None
    if (table.columns[other].kind, table.columns[other].unit) != (column.kind, column.unit):
        raise _fault(f"“{column.name}” cannot be compared with “{table.columns[other].name}”: their kinds differ.")
    return other


def _read_value(number: int, value: str, column: Column) -> Decimal:
    """The number of a value, which may have the unit of its column; `number`: which of the values, from 1."""
    is_date = column.kind is Kind.DATE
    try:
        found = Decimal(date.fromisoformat(value).toordinal()) if is_date else Decimal(_bare(value, column))
    except (ValueError, InvalidOperation) as error:
        raise _refused(number, column) from error
    if not found.is_finite() or abs(found.adjusted()) > _MAX_EXPONENT:
        raise _refused(number, column)
    return found


def _bare(value: str, column: Column) -> str:
    return value.replace(column.unit, "").strip() if column.unit else value.strip()


def _refused(number: int, column: Column) -> InputError:
    wanted = "a date, YYYY-MM-DD" if column.kind is Kind.DATE else "a number with a decimal point and no unit"
    return _fault(f"Value {number} for “{column.name}” is not {wanted}, nor the name of a column.")


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
