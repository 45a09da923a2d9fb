"""From a question and the tables found to operations of a closed set.

Every word with a meaning has to be accounted for: by the operation, a column, a value, or the name of the table.
Otherwise the question asks for something that the table does not hold, and nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import product
from uuid import UUID

from rag_service.language.languages import language_codes, load_language
from rag_service.language.words import is_stop_word, words
from rag_service.tables.model import Column, Kind, StoredTable
from rag_service.tables.question import Bound, Comparison, Question, Word, column_word, year_of
from rag_service.tables.values import currency_of

# What a word adds to the score of a table: as the table writes it, and by another word for the same.
_LITERAL, _SAME_MEANING = 2, 1
MAX_READINGS = 3  # of one question; with more it is not computed

# Figures of these add up; prices, weights, ages and rates of different things do not.
_QUANTITY = frozenset({"quantity", "stock"})
_ADDITIVE = frozenset({"quantity", "stock", "sales"})
_NOT_ADDITIVE = frozenset({"price", "weight", "date", "age", "year", "length", "size", "salary", "hired"})


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
class Filter:
    column: int
    comparison: Comparison
    values: tuple[str, ...] | tuple[Decimal, ...]  # keys of texts, or numbers
    shown: tuple[str, ...] = ()  # the texts as the table writes them


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
    score: int = 0  # words that columns and values account for

    @property
    def key(self) -> int:
        """The column that names a row."""
        return key_column(self.table)


Values = Mapping[int, Mapping[str, str]]  # column → {key: text}


def key_column(table: StoredTable) -> int:
    """The column that names the rows: the first text without repetition, else the first text, else the first."""
    texts = [place for place, column in enumerate(table.columns) if column.kind is Kind.TEXT and not column.mixed]
    unique = [place for place in texts if table.columns[place].distinct == table.row_count]
    return (unique or texts or [0])[0]


def may_concern(question: Question, table: StoredTable) -> bool:
    """Whether a question may be one for a table, before its values are searched."""
    if question.asks:
        return True
    names = f"{table.document} {table.sheet or ''} {' '.join(column.name for column in table.columns)}"
    named = [column_word(word) for word in words(names)]
    return any(
        word.forms & other.forms or word.concepts & other.concepts
        for word in question.words
        if word.is_content or word.concepts
        for other in named
    )


def make_plans(question: Question, tables: Sequence[StoredTable], values: Mapping[UUID, Values]) -> list[Plan]:
    """The readings of a question over the table that accounts for most of it; several where it is ambiguous.

    Empty if no table answers it, or it can be read in more ways than are worth telling.
    """
    matched = [_Matching(question, table, values.get(table.id, {})) for table in tables]
    found = [plans for one in matched if (plans := one.plans())]
    if not found:
        return []
    best = max(plans[0].score for plans in found)
    if any(one.score > best for one in matched):
        return []  # a table that the question names more plainly does not answer it
    chosen = [plan for plans in found if plans[0].score == best for plan in plans]
    return chosen if len(chosen) <= MAX_READINGS else []


@dataclass(frozen=True, kw_only=True)
class _Mention:
    """A word, or words, of the question that name a column; several candidates where they do not tell which."""

    place: int
    columns: tuple[int, ...]


class _Matching:
    """A question held against one table."""

    def __init__(self, question: Question, table: StoredTable, values: Values):
        self._question = question
        self._table = table
        self._values = values
        self._words = question.words
        self._used = list(question.used)
        self._data = load_language(question.language).tables
        self._headers = [_header(column.name) for column in table.columns]
        self._filters: list[Filter] = []
        self._mentions: list[_Mention] = []
        self._value_places: set[int] = set()
        self._entity = False  # whether the question names the table's subject: "how many tents"
        self.score = 0

    def plans(self) -> list[Plan]:
        """The readings; empty if something in the question is not accounted for."""
        self._match_columns(lambda place, count: count > 1)
        self._match_values()
        self._match_columns(lambda place, count: True)
        self._match_parts()
        self._match_years()
        self._match_rest()
        self._mentions.sort(key=lambda mention: mention.place)
        if not all(self._used[place] or not word.is_content for place, word in enumerate(self._words)):
            return []
        filters = self._bound_filters()
        if filters is None:
            return []
        plans = _unique(self._resolve(filters))
        if not 0 < len(plans) <= MAX_READINGS or not all(self._signs_fit(plan) for plan in plans):
            return []
        return [replace(plan, score=self.score) for plan in plans]

    # -- what the words of the question name

    def _take(self, places: Iterable[int], *, weight: int = _LITERAL) -> None:
        """Words are accounted for; those that the table itself uses weigh more than words for the same."""
        for place in places:
            self._used[place] = True
            self.score += weight * self._words[place].is_content

    def _match_columns(self, wanted: Callable[[int, int], bool]) -> None:
        """Columns all of whose words stand in the question; longer names first."""
        order = sorted(range(len(self._headers)), key=lambda place: -len(self._headers[place]))
        for column in order:
            header = self._headers[column]
            if not header or not wanted(column, len(header)):
                continue
            places = [place for word in header if (place := self._place_of(word)) is not None]
            if len(places) == len(header):
                same = tuple(other for other in order if _is_same(self._headers[other], header))
                self._mentions.append(_Mention(place=min(places), columns=tuple(sorted(same))))
                self._take(places)

    def _place_of(self, word: Word) -> int | None:
        return next(
            (
                place
                for place, asked in enumerate(self._words)
                if not self._used[place] and (asked.is_content or asked.text == word.text) and asked.forms & word.forms
            ),
            None,
        )

    def _match_values(self) -> None:
        """Values of the table that stand in the question, the longest first."""
        keys = [word.key for word in self._words]
        found: list[tuple[int, int, int, str]] = []  # (length, start, column, key)
        for column, values in self._values.items():
            for key in values:
                parts = key.split()
                for start in range(len(keys) - len(parts) + 1):
                    end = start + len(parts)
                    if keys[start:end] == parts and any(word.is_content for word in self._words[start:end]):
                        found.append((len(parts), start, column, key))
        taken: dict[int, list[tuple[int, str]]] = {}
        for length, start, column, key in sorted(found, key=lambda one: (-one[0], one[1], one[2])):
            places = range(start, start + length)
            if any(self._used[place] for place in places) and start not in taken:
                continue
            if start in taken and len(taken[start][0][1].split()) != length:
                continue
            if start not in taken:
                self._take(places)
                self._value_places.update(places)
            taken.setdefault(start, []).append((column, key))
        self._add_value_filters(taken)

    def _add_value_filters(self, taken: Mapping[int, list[tuple[int, str]]]) -> None:
        """One filter for each column; several values of one column are alternatives."""
        by_column: dict[int, list[str]] = {}
        for start in sorted(taken):
            candidates = taken[start]
            if len(candidates) > 1:  # in several columns: the one that the question names, else nothing is sure
                named = {column for mention in self._mentions for column in mention.columns}
                candidates = [one for one in candidates if one[0] in named] or candidates
            if len({column for column, _ in candidates}) > 1:
                self.score = -1_000_000
            by_column.setdefault(candidates[0][0], []).append(candidates[0][1])
        for column, keys in by_column.items():
            shown = tuple(self._values[column][key] for key in keys)
            self._filters.append(Filter(column=column, comparison=Comparison.EQUAL, values=tuple(keys), shown=shown))

    def _match_parts(self) -> None:
        """Words that name a column in part, or by another word for the same: "price" for "Unit price"."""
        for by_concept in (False, True):
            for place, word in enumerate(self._words):
                if self._used[place] or not (word.is_content or word.concepts):
                    continue
                if by_concept and not word.is_content and "date" not in word.concepts:
                    continue
                columns = tuple(
                    column
                    for column, header in enumerate(self._headers)
                    if any(
                        (word.concepts & other.concepts) if by_concept else (word.forms & other.forms)
                        for other in header
                    )
                )
                if not columns and by_concept and "date" in word.concepts and not word.is_content:
                    columns = tuple(self._of_kind(Kind.DATE))
                if columns:
                    narrower = [set(mention.columns) & set(columns) for mention in self._mentions]
                    common = next((both for both in narrower if both), None)
                    if common is None:
                        self._mentions.append(_Mention(place=place, columns=columns))
                    elif len(common) < len(self._mentions[narrower.index(common)].columns):
                        at = narrower.index(common)
                        self._mentions[at] = replace(self._mentions[at], columns=tuple(sorted(common)))
                    self._take([place], weight=_SAME_MEANING if by_concept else _LITERAL)

    def _of_kind(self, *kinds: Kind) -> list[int]:
        return [place for place, column in enumerate(self._table.columns) if column.kind in kinds]

    def _match_years(self) -> None:
        """A year alone: a period of the dates, or a value of a column of years."""
        for place, word in enumerate(self._words):
            year = None if self._used[place] else year_of(word)
            if year is None:
                continue
            named = [column for mention in self._mentions for column in mention.columns]
            dates = [column for column in self._of_kind(Kind.DATE) if column in named or self._is_plain_date(column)]
            years = [
                column
                for column in self._of_kind(Kind.NUMBER)
                if any("year" in other.concepts for other in self._headers[column])
            ]
            if len(years) == 1:
                self._filters.append(
                    Filter(column=years[0], comparison=Comparison.EQUAL, values=(Decimal(year),), shown=(word.text,))
                )
            elif len(dates) == 1:
                days = (Decimal(date(year, 1, 1).toordinal()), Decimal(date(year, 12, 31).toordinal()))
                self._filters.append(
                    Filter(column=dates[0], comparison=Comparison.BETWEEN, values=days, shown=(word.text,))
                )
            else:
                continue
            self._take([place])

    def _is_plain_date(self, column: int) -> bool:
        """Whether a column is the date of its row, "Date", not that of something else: "Date of birth"."""
        (*others, last) = self._headers[column] or (None,)
        return not others and last is not None and "date" in last.concepts

    def _match_rest(self) -> None:
        """The table's own name, words that ask for nothing, and values that are named in part."""
        title = [column_word(word) for word in words(f"{self._table.document} {self._table.sheet or ''}")]
        caption = [column_word(word) for word in words(self._table.caption)]
        for place, word in enumerate(self._words):
            if self._used[place] or not word.is_content:
                continue
            if any(word.forms & other.forms or word.concepts & other.concepts for other in (*title, *caption)):
                self._entity = True
                self._take([place])
            elif word.text in self._data.filler:
                self._take([place], weight=0)
            elif word.text in self._data.rows:
                self._entity = True
                self._take([place], weight=0)
            elif self._is_unit(word):
                self._take([place], weight=0)
        self._match_value_parts()

    def _is_unit(self, word: Word) -> bool:
        """Whether a word is the unit of a column that the question names: "kg", "euros"."""
        if (sign := currency_of(word.text)) is not None:
            return any(column.unit == sign for column in self._table.columns)
        units = load_language(self._question.language).proof.units
        canonical = next((unit for unit, names in units.items() if word.text in names), word.text)
        return any(column.unit is not None and column.unit.lower() == canonical for column in self._table.columns)

    def _match_value_parts(self) -> None:
        """Words left over that stand together in values of one column: "bolts" for two kinds of bolt."""
        place = 0
        while place < len(self._words):
            run = place
            while run < len(self._words) and not self._used[run] and self._words[run].is_content:
                run += 1
            if run == place:
                place += 1
                continue
            keys = [word.key for word in self._words[place:run]]
            holding = {
                column: [key for key in values if set(keys) <= set(key.split())]
                for column, values in self._values.items()
            }
            columns = [column for column, held in holding.items() if held]
            taken = {one.column for one in self._filters}
            if len(columns) == 1 and columns[0] not in taken and not all(key.isdigit() for key in keys):
                held = holding[columns[0]]
                shown = tuple(self._values[columns[0]][key] for key in held)
                self._filters.append(
                    Filter(column=columns[0], comparison=Comparison.CONTAINS, values=tuple(keys), shown=shown)
                )
                self._take(range(place, run))
            place = run

    # -- what is asked of them

    def _bound_filters(self) -> list[tuple[Filter, ...]] | None:
        """The filters, in each reading of the comparisons; None if a comparison has no column."""
        choices: list[list[Filter]] = []
        for bound in self._question.bounds:
            columns = self._columns_of(bound)
            if not columns:
                return None
            choices.append([_bind(bound, column, self._table.columns[column]) for column in columns])
        return [(*self._filters, *chosen) for chosen in product(*choices)]

    def _columns_of(self, bound: Bound) -> list[int]:
        """The columns that a comparison may be about."""
        kinds = (Kind.DATE,) if bound.is_date else (Kind.NUMBER, Kind.CURRENCY, Kind.PERCENTAGE)
        if bound.is_year and bound.comparison in (Comparison.BETWEEN, *_BY_TIME) and self._of_kind(Kind.DATE):
            kinds = (Kind.DATE, *kinds) if any(self._mentioned((*kinds,))) else (Kind.DATE,)
        fitting = self._of_kind(*kinds)
        if bound.concepts:
            return [place for place in fitting if self._has_concept(place, bound.concepts)]
        named = self._mentioned(kinds)
        if named:
            return list(min(named, key=lambda mention: abs(mention.place - bound.place)).columns)
        if Kind.DATE in kinds:
            fitting = list(filter(self._is_plain_date, fitting))
        signed = [place for place in fitting if self._table.columns[place].unit in self._question.signs]
        return signed or (fitting if len(fitting) == 1 else [])

    def _mentioned(self, kinds: Sequence[Kind]) -> list[_Mention]:
        """Mentions of columns of these kinds, narrowed to them."""
        found = []
        for mention in self._mentions:
            columns = tuple(place for place in mention.columns if self._table.columns[place].kind in kinds)
            if columns:
                found.append(replace(mention, columns=columns))
        return found

    def _has_concept(self, column: int, concepts: frozenset[str]) -> bool:
        if any(word.concepts & concepts for word in self._headers[column]):
            return True
        return "date" in concepts and self._table.columns[column].kind is Kind.DATE

    def _resolve(self, choices: list[tuple[Filter, ...]]) -> list[Plan]:
        if self.score < 0:
            return []
        return [plan for filters in choices for plan in self._resolve_one(filters)]

    def _resolve_one(self, filters: tuple[Filter, ...]) -> list[Plan]:
        asked = self._question.operations
        compared = {one.column for one in filters if one.comparison is not Comparison.EQUAL and not one.shown}
        free = [mention for mention in self._mentions if not set(mention.columns) & compared]
        mixed = [m for m in free if any(self._table.columns[place].mixed for place in m.columns)]
        figures = _narrowed(free, self._table, (Kind.NUMBER, Kind.CURRENCY, Kind.PERCENTAGE))
        texts = [m for m in _narrowed(free, self._table, (Kind.TEXT, Kind.BOOLEAN)) if m not in mixed]
        base = Plan(table=self._table, operation=Operation.LOOKUP, filters=filters)
        if self._is_grouped() and self._group_of(texts) is None:
            return []  # "per kg", "per year": of no column
        if mixed and asked.keys() & {"sum", "mean", "median", "difference", "ratio", "share", "maximum", "minimum"}:
            return [replace(base, operation=Operation.MIXED, column=mixed[0].columns[0])]
        for name in ("difference", "ratio", "share"):
            if name in asked:
                return self._resolve_pair(Operation(name), base, figures)
        if self._question.superlative is not None or {"maximum", "minimum"} & asked.keys():
            return self._resolve_extreme(base, free, texts)
        for name in ("mean", "median"):
            if name in asked:
                return self._each(base, Operation(name), figures, texts)
        if "count" in asked:
            return self._resolve_count(base, figures, texts)
        if "sum" in asked:
            return self._each(base, Operation.SUM, figures, texts)
        return self._resolve_lookup(base, free, figures)

    def _each(
        self, base: Plan, operation: Operation, figures: Sequence[_Mention], texts: Sequence[_Mention]
    ) -> list[Plan]:
        """The operation over the column named; for each value of another, where "per" stands before it."""
        if len(figures) != 1 or self._is_added(figures[0].place):
            return []
        group = self._group_of(texts)
        playing = {key_column(self._table), *_columns(base.filters)}
        if group is None and any(mention.columns[0] not in playing for mention in texts):
            return []  # a text column that plays no part: something else is asked
        return [replace(base, operation=operation, column=column, group=group) for column in figures[0].columns]

    def _is_added(self, place: int) -> bool:
        """Whether "with" stands before a column: "total with VAT"."""
        before = range(max(0, place - 2), place)
        return any(self._words[at].text in self._data.including for at in before)

    def _group_of(self, texts: Sequence[_Mention]) -> int | None:
        for end in self._question.groups:
            for mention in texts:
                if len(mention.columns) == 1 and 0 <= mention.place - end <= 2:
                    return mention.columns[0]
        return None

    def _is_grouped(self) -> bool:
        """Whether something else than a value follows "per" or "by"."""
        following = [next(self._content_from(end), -1) for end in self._question.groups]
        return any(place not in self._value_places for place in following)

    def _content_from(self, place: int) -> Iterator[int]:
        return (at for at in range(place, len(self._words)) if self._words[at].is_content)

    def _resolve_count(self, base: Plan, figures: Sequence[_Mention], texts: Sequence[_Mention]) -> list[Plan]:
        if (group := self._group_of(texts)) is not None:
            return (
                self._each(base, Operation.SUM, figures, texts)
                if figures
                else [replace(base, operation=Operation.COUNT, group=group)]
            )
        if len(figures) == 1:
            additive = [c for c in figures[0].columns if not self._has_concept(c, _NOT_ADDITIVE)]
            return [replace(base, operation=Operation.SUM, column=column) for column in additive]
        if figures:
            return []
        filtered = _columns(base.filters)
        nouns = [mention for mention in texts if mention.columns[0] not in filtered]
        counted = next(self._content_from(self._question.operations["count"]), -1)
        if len(nouns) > 1 or (nouns and len(nouns[0].columns) > 1):
            return []
        if nouns and nouns[0].place != counted:  # "how many kits did they order": not the orders are counted
            if nouns[0].columns[0] != key_column(self._table):
                return []
            nouns = []
        count = replace(base, operation=Operation.COUNT)
        if nouns:
            column = nouns[0].columns[0]
            if self._table.columns[column].distinct < self._table.columns[column].filled:
                return [replace(base, operation=Operation.DISTINCT, column=column)]
            return [count]
        if not (base.filters or self._entity):
            return []
        quantities = [place for place in self._of_kind(Kind.NUMBER) if self._has_concept(place, _QUANTITY)]
        if len(quantities) == 1 and quantities[0] not in filtered and not self._names_rows():
            return [count, replace(base, operation=Operation.SUM, column=quantities[0])]
        return [count]

    def _names_rows(self) -> bool:
        return any(word.text in self._data.rows for word in self._words)

    def _resolve_extreme(self, base: Plan, free: Sequence[_Mention], texts: Sequence[_Mention]) -> list[Plan]:
        superlative = self._question.superlative
        kinds = (Kind.NUMBER, Kind.CURRENCY, Kind.PERCENTAGE, Kind.DATE)
        measures = _narrowed(free, self._table, kinds)
        readings: list[tuple[Operation, int]] = []
        if superlative is not None:
            for column in self._of_kind(*kinds):
                if self._has_concept(column, superlative.concepts):
                    is_date = self._table.columns[column].kind is Kind.DATE
                    either = Operation.MINIMUM if is_date else Operation.MAXIMUM
                    name = superlative.operation
                    readings.append((either if name == "either" else Operation(name), column))
            named = {column for mention in measures for column in mention.columns}
            readings = [one for one in readings if one[1] in named] or ([] if named else readings)
        else:
            operation = Operation("maximum" if "maximum" in self._question.operations else "minimum")
            if len(measures) == 1:
                readings = [(operation, column) for column in measures[0].columns]
            elif not measures and texts and len(texts[0].columns) == 1:
                return self._resolve_most(replace(base, group=texts[0].columns[0], best=operation), texts[1:])
        key = key_column(self._table)
        others = [m for m in texts if m.columns[0] not in (key, *_columns(base.filters))]
        plans: list[Plan] = []
        for operation, column in readings:
            rows = replace(base, operation=operation, column=column, limit=self._question.count)
            if not others:
                mean = "mean" in self._question.operations
                plans += [] if mean or "count" in self._question.operations else [rows]
                continue
            if len(others) > 1 or len(others[0].columns) > 1 or self._question.count:
                return []
            group = others[0].columns[0]
            totals = replace(base, operation=Operation.SUM, column=column, group=group, best=operation)
            if "mean" in self._question.operations:
                plans.append(replace(totals, operation=Operation.MEAN))
            elif "sum" in self._question.operations:
                plans.append(totals)
            elif (
                self._table.columns[group].distinct == self._table.columns[group].filled
                or self._has_concept(column, _NOT_ADDITIVE)
                or self._table.columns[column].kind is Kind.DATE
            ):
                plans.append(rows)
            elif self._has_concept(column, _ADDITIVE):
                plans.append(totals)
            else:
                plans += [totals, rows]
        return plans

    def _resolve_most(self, base: Plan, counted: Sequence[_Mention]) -> list[Plan]:
        """ "Which warehouse has the most products": by rows, and by pieces where a column counts them."""
        rows_are_meant = self._entity if not counted else key_column(self._table) in counted[0].columns
        if not rows_are_meant or len(counted) > 1:
            return []
        pieces = [column for column in self._of_kind(Kind.NUMBER) if self._has_concept(column, _QUANTITY)]
        return [
            replace(base, operation=Operation.COUNT),
            *(replace(base, operation=Operation.SUM, column=column) for column in pieces),
        ]

    def _resolve_pair(self, operation: Operation, base: Plan, figures: Sequence[_Mention]) -> list[Plan]:
        if len(figures) != 1:
            return []
        two = [one for one in base.filters if one.comparison is Comparison.EQUAL and len(one.values) == 2]
        if operation is Operation.SHARE:
            plans = [replace(base, operation=operation, column=column) for column in figures[0].columns]
            return plans if base.filters else []
        if len(two) != 1:
            return []
        return [replace(base, operation=operation, column=column, group=two[0].column) for column in figures[0].columns]

    def _resolve_lookup(self, base: Plan, free: Sequence[_Mention], figures: Sequence[_Mention]) -> list[Plan]:
        filtered = _columns(base.filters)
        asked = [mention for mention in free if not set(mention.columns) & filtered]
        exact = [one for one in base.filters if one.shown]
        if not base.filters or len(asked) > 1:
            return []
        if not asked:  # "which products cost more than 100?", "orders of Talleres Ruiz"
            compared = len(exact) < len(base.filters) or self._entity
            return [replace(base, operation=Operation.LOOKUP, column=key_column(self._table))] if compared else []
        operation = Operation.LOOKUP
        if "amount" in self._question.operations and figures and self._has_concept(figures[0].columns[0], _ADDITIVE):
            operation = Operation.SUM
        return [replace(base, operation=operation, column=column) for column in asked[0].columns]

    def _signs_fit(self, plan: Plan) -> bool:
        """Whether the currencies that the question writes are those of the columns used."""
        used = _columns(plan.filters) | ({plan.column} if plan.column is not None else set())
        units = {self._table.columns[place].unit for place in used}
        return all(sign == "%" or sign in units for sign in self._question.signs)


_BY_TIME = (Comparison.GREATER, Comparison.GREATER_OR_EQUAL, Comparison.LESS, Comparison.LESS_OR_EQUAL)


def _bind(bound: Bound, place: int, column: Column) -> Filter:
    """The comparison with a column; a year compared with dates is its first or last day."""
    values = bound.values
    if bound.is_year and column.kind is Kind.DATE:
        starts = [Decimal(date(int(value), 1, 1).toordinal()) for value in values]
        ends = [Decimal(date(int(value), 12, 31).toordinal()) for value in values]
        late = bound.comparison in (Comparison.GREATER, Comparison.LESS_OR_EQUAL)
        values = (starts[0], ends[1]) if bound.comparison is Comparison.BETWEEN else ((ends if late else starts)[0],)
    return Filter(column=place, comparison=bound.comparison, values=values)


def _narrowed(mentions: Iterable[_Mention], table: StoredTable, kinds: Sequence[Kind]) -> list[_Mention]:
    found = []
    for mention in mentions:
        columns = tuple(place for place in mention.columns if table.columns[place].kind in kinds)
        if columns:
            found.append(replace(mention, columns=columns))
    return found


def _columns(filters: Iterable[Filter]) -> set[int]:
    return {one.column for one in filters}


def _header(name: str) -> tuple[Word, ...]:
    """The words of a column's name that carry its meaning."""
    every = [column_word(word) for word in words(name)]
    return tuple(word for word in every if not any(is_stop_word(word.text, code) for code in language_codes()))


def _is_same(one: Sequence[Word], other: Sequence[Word]) -> bool:
    return [word.key for word in one] == [word.key for word in other]


def _unique(plans: Iterable[Plan]) -> list[Plan]:
    return list(dict.fromkeys(plans))
