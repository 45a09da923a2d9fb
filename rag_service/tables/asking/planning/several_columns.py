"""Questions over several columns of one table: months added up, and the difference of two columns of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rag_service.tables.asking.planning.left_over import overlook_words
from rag_service.tables.asking.planning.matching import match_table
from rag_service.tables.asking.planning.plans import Filter, Operation, Values
from rag_service.tables.asking.planning.question import Question, year_of
from rag_service.tables.kinds import FIGURES, header_words
from rag_service.tables.model import Column, StoredTable
from rag_service.tables.stretches import number_of
from rag_service.tables.vocabulary import MONTH, Word


@dataclass(frozen=True, kw_only=True)
class SeveralColumns:
    """An operation over columns, for the rows that match."""

    table: StoredTable
    operation: Operation  # sum, mean or difference
    columns: tuple[int, ...]
    filters: tuple[Filter, ...]
    is_doubtful: bool  # a word of the question was not understood
    score: int  # words that columns and values account for


@dataclass(frozen=True, kw_only=True)
class _Reading:
    operation: Operation
    columns: tuple[int, ...]
    places: frozenset[int]  # of the words that ask for it


def read_several_columns(question: Question, table: StoredTable, values: Values) -> Iterator[SeveralColumns]:
    """What a question asks of several columns of a table, if each of its words is accounted for."""
    if question.count or question.negations or question.superlative:
        return
    for reading in (*_added(question, table), *_difference(question, table)):
        chosen = [table.columns[place] for place in reading.columns]
        if len({(column.kind, column.unit) for column in chosen}) > 1 or any(column.mixed for column in chosen):
            continue
        if any(end - 1 not in reading.places for end in question.groups):
            continue
        used = [taken or place in reading.places for place, taken in enumerate(question.used)]
        match = match_table(replace(question, used=used, groups=[], stretches=(), bounds=[]), table, values)
        figures = set(table.of_kind(*FIGURES)) - set(reading.columns)
        if not (match.is_complete or overlook_words(match)) or not all(one.shown for one in match.filters):
            continue
        if any(set(mention.columns) <= figures for mention in match.mentions):
            continue
        if reading.operation is Operation.DIFFERENCE and not match.filters:
            continue  # of all rows, as `compare_columns` tells it
        yield SeveralColumns(
            table=table,
            operation=reading.operation,
            columns=reading.columns,
            filters=tuple(match.filters),
            is_doubtful=match.is_doubtful,
            score=match.score,
        )


def _added(question: Question, table: StoredTable) -> Iterator[_Reading]:
    """ "The total from January to June", of columns of months."""
    asked = question.operations.keys()
    if len(question.stretches) != 1 or question.bounds or not asked or not asked <= {"sum", "amount", "count", "mean"}:
        return
    (stretch,) = question.stretches
    numbered = [(number_of(table.columns[place].name, stretch.kind), place) for place in table.of_kind(*FIGURES)]
    columns = {number: place for number, place in numbered if number is not None}
    is_unique = len(columns) == sum(number is not None for number, _ in numbered)
    if is_unique and columns.keys() >= set(stretch.numbers):
        yield _Reading(
            operation=Operation.MEAN if "mean" in asked else Operation.SUM,
            columns=tuple(columns[number] for number in stretch.numbers),
            places=frozenset(range(stretch.start, stretch.end)),
        )


def _difference(question: Question, table: StoredTable) -> Iterator[_Reading]:
    """ "The difference between the 2023 and the 2024 fee"."""
    columns = _two_columns(question, table)
    if columns is None or question.stretches:
        return
    headers = [word for column in columns for word in header_words(table.columns[column].name)]
    places = {at for at, asked in enumerate(question.words) if any(_is_same(asked, one) for one in headers)}
    years = {Decimal(year) for word in question.words if (year := year_of(word)) is not None}
    if any(not bound.is_year or set(bound.values) - years for bound in question.bounds):
        return
    asked = {name for name, end in question.operations.items() if end - 1 not in places}  # not "minimum" of a name
    if "difference" in asked and asked <= {"difference", "amount"}:
        yield _Reading(operation=Operation.DIFFERENCE, columns=columns, places=frozenset(places))


def _is_same(asked: Word, word: Word) -> bool:
    """Whether a word of the question is one of a column's name, or its month: "January" for "Jan"."""
    return bool(asked.forms & word.forms) or any(one.startswith(MONTH) for one in asked.concepts & word.concepts)


def is_named(column: Column, asked: Sequence[Word]) -> bool:
    """Whether all words of a column's name are asked for."""
    return all(any(_is_same(one, word) for one in asked) for word in header_words(column.name))


def _two_columns(question: Question, table: StoredTable) -> tuple[int, int] | None:
    """The two columns of figures that the question names: in full, or by the years in their names."""

    def named(column: int) -> int:
        header = header_words(table.columns[column].name)
        return sum(any(_is_same(asked, word) for asked in question.words) for word in header)

    whole = [column for column in table.of_kind(*FIGURES) if is_named(table.columns[column], question.words)]
    if len(whole) == 2:
        return whole[0], whole[1]
    years = list(dict.fromkeys(year for word in question.words if (year := year_of(word)) is not None))
    if len(years) != 2:
        return None
    found: list[int] = []
    for year in years:
        held = [
            column
            for column in table.of_kind(*FIGURES)
            if str(year) in (word.text for word in header_words(table.columns[column].name))
        ]
        most = max(map(named, held), default=0)
        found += [column for column in held if named(column) == most]
    return (found[0], found[1]) if len(found) == 2 and found[0] != found[1] else None
