"""The highest and the lowest: which column a superlative means, and whether rows or groups are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rag_service.language.languages import load_language
from rag_service.tables.asking.planning.match import Match
from rag_service.tables.asking.planning.plans import PERIODS, Filter, Mention, Operation, Plan, key_column, narrowed_to
from rag_service.tables.asking.planning.question import Comparison, Superlative
from rag_service.tables.headers import MONEY
from rag_service.tables.model import Kind

# Figures of these add up; prices, weights, ages and rates of different things do not.
QUANTITY = frozenset({"quantity", "stock"})
ADDITIVE = frozenset({"quantity", "stock", "sales"})
SPENT = frozenset({"amount", "expense", "income", "debt"})
NOT_ADDITIVE = frozenset({"price", "weight", "date", "age", "year", "length", "size", "salary", "hired"})


def resolve_extreme(match: Match, base: Plan, free: Sequence[Mention], texts: Sequence[Mention]) -> list[Plan]:
    superlative = match.question.superlative
    kinds = tuple(kind for kind in Kind if kind.is_compared)
    wanted = match.wanted
    if wanted is not None and any(
        one.column == wanted and len(one.shown) == 1 and one.comparison not in PERIODS for one in base.filters
    ):
        return []  # "Ann Lee, which artist had most points": the rows are of one artist
    measures = narrowed_to(free, set(match.table.of_kind(*kinds)).difference(match.labels, (wanted,)))
    readings: list[tuple[Operation, int]] = []
    if superlative is not None:
        for column in match.table.of_kind(*kinds):
            if match.has_concept(column, superlative.concepts):
                is_date = match.table.columns[column].kind is Kind.DATE
                either = Operation.MINIMUM if is_date else Operation.MAXIMUM
                name = superlative.operation
                readings.append((either if name == "either" else Operation(name), column))
        if readings:  # "the dearest of the inventory": of the file, not of its column of stock
            numbers = (0,) if match.is_unique(0) else ()  # "the dearest room", of a column of room numbers
            measures = [
                m for m in measures if m.columns != numbers and not match.names_document(m.place, by_meaning=False)
            ]
        named = {column for mention in measures for column in mention.columns}
        readings = [one for one in readings if one[1] in named] or ([] if named else readings)
        if not readings and not superlative.is_plain:
            readings = _other_columns(match, superlative, measures)
            base = replace(base, is_doubtful=True)
    if superlative is None or (superlative.is_plain and not readings):
        operation = _operation(match)
        if len(measures) == 1:
            readings = [(operation, column) for column in measures[0].columns]
        elif not measures and wanted is not None and wanted not in match.labels:
            return _resolve_most(match, replace(base, group=wanted, best=operation), texts)
        elif not measures and texts and len(texts[0].columns) == 1:
            return _resolve_most(match, replace(base, group=texts[0].columns[0], best=operation), texts[1:])
    key = key_column(match.table)
    others = [m for m in texts if m.columns[0] not in (key, *columns_of(base.filters))]
    two = [one.column for one in base.filters if one.comparison is Comparison.EQUAL and len(one.shown) > 1]
    if len(two) == 1 and not others:  # "who sold more, Ann or Ben", of many sales
        others = [Mention(place=-1, columns=(two[0],))]
    plans: list[Plan] = []
    for operation, column in readings:
        rows = replace(base, operation=operation, column=column, limit=match.question.count)
        if wanted not in (None, column, key):
            rows = replace(rows, named=wanted)
        if not others:
            plans += [] if "mean" in match.question.operations else [rows]
            continue
        if len(others) > 1 or len(others[0].columns) > 1 or match.question.count:
            return []
        group = others[0].columns[0]
        totals = replace(base, operation=Operation.SUM, column=column, group=group, best=operation)
        if "mean" in match.question.operations:
            plans.append(replace(totals, operation=Operation.MEAN))
        elif "sum" in match.question.operations:
            plans.append(totals)
        elif match.is_unique(group) or match.has_concept(column, NOT_ADDITIVE):
            plans.append(rows)
        elif match.has_concept(column, ADDITIVE):
            plans.append(totals)
        else:
            plans += [totals, rows]
    return plans


def _operation(match: Match) -> Operation:
    superlative = match.question.superlative
    if superlative is not None and superlative.operation != "either":
        return Operation(superlative.operation)
    return Operation.MAXIMUM if "maximum" in match.question.operations else Operation.MINIMUM


def _other_columns(match: Match, superlative: Superlative, measures: Sequence[Mention]) -> list[tuple[Operation, int]]:
    """The column that is named, or whose figures a superlative may mean: "the best in English"."""
    if superlative.operation == "either" or len(measures) > 1:
        return []
    amounts = match.table.of_kind(Kind.CURRENCY) if superlative.concepts & MONEY else ()
    columns = measures[0].columns if measures else amounts or match.columns_by_kind(superlative.concepts)
    return [(Operation(superlative.operation), column) for column in columns]


def _resolve_most(match: Match, base: Plan, counted: Sequence[Mention]) -> list[Plan]:
    """ "Which warehouse has the most products": by rows, and by pieces where a column counts them.

    Where each value stands in one row, only its pieces can be meant: "which product do we have the most of".
    """
    pieces = [column for column in match.table.of_kind(Kind.NUMBER) if match.has_concept(column, QUANTITY)]
    if base.group == base.key and match.is_unique(base.key) and not counted:
        rows = replace(base, operation=base.best or Operation.MAXIMUM, group=None, best=None)
        fits = _is_number(match) and len(pieces) == 1
        return [replace(rows, column=pieces[0], limit=match.question.count)] if fits else []
    rows_are_meant = match.names_table if not counted else key_column(match.table) in counted[0].columns
    if match.is_unique(base.group or 0):
        return []
    base = replace(base, is_doubtful=not rows_are_meant or len(counted) > 1)
    return [
        replace(base, operation=Operation.COUNT),
        *(replace(base, operation=Operation.SUM, column=column) for column in pieces),
    ]


def _is_number(match: Match) -> bool:
    """Whether the most or the fewest are asked for, not the biggest."""
    asked, data = match.question.operations, load_language(match.question.language).tables
    end = asked.get("maximum", asked.get("minimum", 0))
    return bool(end) and match.words[end - 1].text in data.most | data.least


def columns_of(filters: Iterable[Filter]) -> set[int]:
    return {one.column for one in filters}
