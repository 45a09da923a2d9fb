"""Questions over several columns of one table: months added up, the best month, two columns of a row compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import ge, gt, le, lt

from rag_service.language.languages import TableWords, load_language
from rag_service.tables.asking.planning.match_steps import match_table
from rag_service.tables.asking.planning.plans import Filter, Values
from rag_service.tables.asking.planning.question import Question, year_of
from rag_service.tables.asking.planning.unmatched_words import overlook_words
from rag_service.tables.calendar_ranges import number_of
from rag_service.tables.headers import FIGURES, header_words
from rag_service.tables.model import Column, StoredTable
from rag_service.tables.periods import period_year
from rag_service.tables.vocabulary import MONTH, Word

_NEAR = 2  # words between "below" and the column
_MIN_PERIODS = 3  # columns of months or years among which one is the best
SIGNS: Mapping[str, tuple[str, Callable[[Decimal, Decimal], bool]]] = {
    "less": ("<", lt), "at_most": ("≤", le), "more": (">", gt), "at_least": ("≥", ge),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SeveralColumns:
    """An operation over columns, for the rows that match."""

    table: StoredTable
    kind: str  # sum, mean, maximum, minimum; difference, widest, narrowest or a name of `SIGNS` of two columns
    columns: tuple[int, ...]
    filters: tuple[Filter, ...] = ()
    counts: bool = False  # how many rows, not which
    is_doubtful: bool = False
    score: int = 0


@dataclass(frozen=True, kw_only=True)
class _Reading:
    kind: str
    columns: tuple[int, ...]
    places: frozenset[int]  # of the words that ask for it


def read_several_columns(question: Question, table: StoredTable, values: Values) -> Iterator[SeveralColumns]:
    """What a question asks of several columns of a table, if each of its words is accounted for."""
    data = load_language(question.language).tables
    if question.count or question.negations:
        return
    for reading in (*_added(question, table), *_best(question, table, data), *_compared(question, table, data)):
        chosen = [table.columns[place] for place in reading.columns]
        if len({(column.kind, column.unit) for column in chosen}) > 1 or any(column.mixed for column in chosen):
            continue
        if any(end - 1 not in reading.places for end in question.groups):  # not the "por" of "por encima de"
            continue
        used = [taken or place in reading.places for place, taken in enumerate(question.used)]
        operations = {**question.operations, "maximum": 0} if reading.kind in SIGNS else question.operations
        asked = replace(
            question, used=used, operations=operations, groups=[], calendar_ranges=(), bounds=[], superlative=None
        )
        match = match_table(asked, table, values)
        figures = set(table.of_kind(*FIGURES)) - set(reading.columns)
        if not (match.is_complete or overlook_words(match)) or not all(one.shown for one in match.filters):
            continue
        if any(set(mention.columns) <= figures for mention in match.mentions):
            continue
        if reading.kind == "difference" and not match.filters:
            continue  # of all rows, as `compare_columns` tells it
        yield SeveralColumns(
            table=table,
            kind=reading.kind,
            columns=reading.columns,
            filters=tuple(match.filters),
            counts="count" in question.operations,
            is_doubtful=match.is_doubtful,
            score=match.score,
        )


def _by_number(table: StoredTable, kind: str) -> dict[int, int]:
    """Columns named after months, weekdays or years, by number; none if one is there twice."""
    found: dict[int, int] = {}
    for place in table.of_kind(*FIGURES):
        name = table.columns[place].name
        number = period_year(name) if kind == "year" else number_of(name, kind)
        if number is not None and found.setdefault(number, place) != place:
            return {}
    return found


def _added(question: Question, table: StoredTable) -> Iterator[_Reading]:
    """ "The total from January to June", of columns of months."""
    asked = question.operations.keys()
    if len(question.calendar_ranges) != 1 or not asked or not asked <= {"sum", "amount", "count", "mean"}:
        return
    (calendar_range,), columns = question.calendar_ranges, _by_number(table, question.calendar_ranges[0].kind)
    if not (question.bounds or question.superlative) and columns.keys() >= set(calendar_range.numbers):
        yield _Reading(
            kind="mean" if "mean" in asked else "sum",
            columns=tuple(columns[number] for number in calendar_range.numbers),
            places=frozenset(range(calendar_range.start, calendar_range.end)),
        )


def _extreme(question: Question) -> str:
    """Whether the highest or the lowest is asked for."""
    if question.superlative is not None:
        return question.superlative.operation if question.superlative.is_plain else ""
    return next((name for name in ("maximum", "minimum") if name in question.operations), "")


def _best(question: Question, table: StoredTable, data: TableWords) -> Iterator[_Reading]:
    """ "In which month …", of columns of months; where months are rows, they are compared as other rows are."""
    texts, kind = [word.text for word in question.words], _extreme(question)
    begins = " ".join(texts).startswith(data.phrases["attribute"])
    for place, word in enumerate(question.words):
        is_asked = place and (texts[place - 1] in data.which or (begins and texts[place - 1] in data.before_nouns))
        for period in ("month", "year"):
            asks_more = question.bounds or question.calendar_ranges or "mean" in question.operations
            if not (is_asked and kind and period in word.concepts) or asks_more:
                continue
            columns = _by_number(table, period)
            named = {one for column in table.columns for header in header_words(column.name) for one in header.concepts}
            if len(columns) >= _MIN_PERIODS and period not in named:
                yield _Reading(kind=kind, columns=tuple(columns.values()), places=frozenset({place - 1, place}))


def _compared(question: Question, table: StoredTable, data: TableWords) -> Iterator[_Reading]:
    """Two columns: their difference, or whether one is below the other."""
    columns = _two_columns(question, table)
    if columns is None or question.calendar_ranges:
        return
    headers = [word for column in columns for word in header_words(table.columns[column].name)]
    places = {at for at, asked in enumerate(question.words) if any(_is_same(asked, one) for one in headers)}
    years = {at for at in places if year_of(question.words[at])}
    if any(not bound.is_year or set(bound.values) - _years(question) for bound in question.bounds):
        return
    superlative = question.superlative
    if superlative is not None and not (superlative.is_plain or superlative.is_of_two):
        return  # "of the cheapest tool"
    asked = {name for name, end in question.operations.items() if end - 1 not in places}  # not "minimum" of a name
    moves = {at for at, word in enumerate(question.words) if word.text in _moving(question.language)}
    kind = {"maximum": "widest", "minimum": "narrowest", "": "difference"}.get(_extreme(question))
    is_asked = "difference" in asked or (moves and "amount" in asked and kind == "difference")
    if kind and is_asked and asked <= {"difference", "amount", "maximum", "minimum"}:
        yield _Reading(kind=kind, columns=columns, places=frozenset(places | years | moves))
        return
    if not asked <= {"count"} or (superlative is not None and not superlative.is_of_two):
        return
    for start, end, name in _comparing(question, data):
        right = _right_column(question, table, columns, end, places - years)
        if right is not None:
            left = next(column for column in columns if column != right)
            yield _Reading(kind=name, columns=(left, right), places=frozenset({*places, *range(start, end)}))
            return


def _right_column(
    question: Question, table: StoredTable, columns: Sequence[int], end: int, places: set[int]
) -> int | None:
    """The column behind "below": all of its name stands there, or the word right behind is of it."""
    whole = [column for column in columns if is_named(table.columns[column], question.words[end:])]
    near = sorted(at for at in places if end <= at <= end + _NEAR)[:1]
    named = [
        column
        for column in columns
        if any(_is_same(question.words[at], word) for at in near for word in header_words(table.columns[column].name))
    ]
    found = whole if len(whole) == 1 else named
    return found[0] if near and len(found) == 1 else None


def _is_same(asked: Word, word: Word) -> bool:
    """Whether a word of the question is one of a column's name, or its month: "January" for "Jan"."""
    return bool(asked.forms & word.forms) or any(one.startswith(MONTH) for one in asked.concepts & word.concepts)


def is_named(column: Column, asked: Sequence[Word]) -> bool:
    """Whether all words of a column's name are asked for."""
    return all(any(_is_same(one, word) for one in asked) for word in header_words(column.name))


def _years(question: Question) -> set[Decimal]:
    return {Decimal(year) for word in question.words if (year := year_of(word)) is not None}


def _moving(language: str) -> frozenset[str]:
    figures = load_language(language).tables.figures
    return figures.rise | figures.fall | figures.change


def _comparing(question: Question, data: TableWords) -> Iterator[tuple[int, int, str]]:
    """(start, end, name) of "below", "por encima de"; the longest phrase first."""
    texts = [word.text for word in question.words]
    every = [(phrase.split(), name) for name in SIGNS for phrase in data.phrases[name]]
    for phrase, name in sorted(every, key=lambda one: -len(one[0])):
        for start in range(len(texts) - len(phrase) + 1):
            if texts[start : start + len(phrase)] == phrase:
                yield start, start + len(phrase), name


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
