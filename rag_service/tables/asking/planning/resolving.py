"""From a question and the tables found to operations of a closed set.

Every word with a meaning has to be accounted for: by the operation, a column, a value, or the name of the table.
Otherwise the question asks for something that the table does not hold, and nothing is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

from rag_service.language.languages import load_language
from rag_service.language.words import words
from rag_service.tables.asking.planning.conditions import bound_filters
from rag_service.tables.asking.planning.extremes import (
    ADDITIVE,
    NOT_ADDITIVE,
    QUANTITY,
    SPENT,
    columns_of,
    resolve_extreme,
)
from rag_service.tables.asking.planning.match import Match
from rag_service.tables.asking.planning.match_steps import match_table
from rag_service.tables.asking.planning.plans import (
    PERIODS,
    Filter,
    Mention,
    Operation,
    Plan,
    Relation,
    Values,
    key_column,
    names_currency,
    narrowed,
    narrowed_to,
    total_columns,
    unmixed,
)
from rag_service.tables.asking.planning.question import Comparison, Question
from rag_service.tables.asking.planning.unmatched_words import overlook_words
from rag_service.tables.headers import BY_KIND, FIGURES
from rag_service.tables.model import Kind, StoredTable
from rag_service.tables.vocabulary import column_word

MAX_READINGS = 3  # of one question; with more it is not computed


def may_concern(question: Question, table: StoredTable) -> bool:
    """Whether a question may be one for a table, before its values are searched."""
    if question.asks:
        return True
    if any(word.concepts & BY_KIND for word in question.words):
        return True
    names = f"{table.document} {table.sheet or ''} {' '.join(column.name for column in table.columns)}"
    named = [column_word(word) for word in words(names)]
    return any(word.is_like(other) for word in question.words if word.is_content or word.concepts for other in named)


def make_plans(
    question: Question, tables: Sequence[StoredTable], values: Mapping[UUID, Values], *, best: UUID | None
) -> list[Plan]:
    """The readings of a question over the table that accounts for most of it; several where it is ambiguous.

    One that is doubtful has to be over `best`, the document of the best passage if that may hold rows, or else the
    passage answers better: rules may tell "how many days", and a sheet with a column of days is not asked.

    Empty if no table answers it, or it can be read in more ways than are worth telling.
    """
    matched = [match_table(question, table, values.get(table.id, {})) for table in tables]
    resolved = [(match, _Resolver(match).plans()) for match in matched]
    answering = [plans for _, plans in resolved if plans]
    found = [plans for plans in answering if not plans[0].is_doubtful]
    at_best = [
        plans for plans in answering if plans[0].table.document_id == best and (plans[0].score > 0 or plans[0].filters)
    ]
    found = found or at_best
    if not found:
        return []
    score = max(plans[0].score for plans in found)
    if found is at_best:  # a table of another document that fits as well is told
        found = [plans for plans in answering if plans in at_best or plans[0].filters]
    chosen = [plan for plans in found if plans[0].score == score for plan in plans]
    return chosen if len(chosen) <= MAX_READINGS else []


class _Resolver:
    """What a question asks of the columns and values that it names."""

    def __init__(self, match: Match):
        self._match = match
        self._table = match.table
        self._data = load_language(match.question.language).tables

    def plans(self) -> list[Plan]:
        """The readings; empty if something in the question is not accounted for."""
        understood = self._match.is_complete or overlook_words(self._match)
        choices = bound_filters(self._match) if understood else None
        found = (unmixed(plan) for filters in choices or () for plan in self._resolve_one(filters))
        plans = list(dict.fromkeys(found))
        if not 0 < len(plans) <= MAX_READINGS or not all(self._signs_fit(plan) for plan in plans):
            return []
        is_unclear = self._match.is_doubtful or self._leaves_words(plans)
        return [replace(plan, score=self._match.score, is_doubtful=plan.is_doubtful or is_unclear) for plan in plans]

    def _leaves_words(self, plans: Sequence[Plan]) -> bool:
        """Whether a word stands for a column that plays no part: it may mean something else.

        "The dearest thing that we charged": no column of persons in charge is asked for.
        """
        parts = ({one.column, one.group, one.order, one.named, one.key, *columns_of(one.filters)} for one in plans)
        used = set[int | None]().union(*parts)
        used.update(one for one in self._match.labels if self._names_each_row(one))  # "the safety products": the rows
        idle = [one.place for one in self._match.mentions if used.isdisjoint(one.columns)]
        return not all(self._match.names_document(place, by_meaning=False) for place in idle)

    def _resolve_one(self, filters: tuple[Filter, ...]) -> list[Plan]:
        filters = (*filters, *self._affirmed(filters))
        asked = self._match.question.operations
        compared = {one.column for one in filters if not one.shown}
        free = [mention for mention in self._match.mentions if not set(mention.columns) & compared]
        mixed = [m for m in free if any(self._table.columns[place].mixed for place in m.columns)]
        mixed = [] if names_currency(filters) else mixed
        figures = narrowed(free, self._table, FIGURES)
        texts = [m for m in narrowed_to(free, self._match.labels) if m not in mixed]
        base = Plan(table=self._table, operation=Operation.LOOKUP, filters=filters)
        told = len(asked) > 1 or (filters and asked.keys() & {"amount", "sum"})
        if not figures and told and asked.keys() <= {"amount", "sum", "mean"}:
            figures = self._usual_figures()
            only_amounts = [m.columns for m in figures] == [tuple(self._table.of_kind(Kind.CURRENCY))]
            is_sure = bool(filters) and only_amounts and self._match.names_table
            base = replace(base, is_doubtful=bool(figures) and not is_sure)
        if self._match.first_or_last is not None:
            return self._resolve_order(base, free)
        related = [one for one in filters if one.relation in (Relation.NEXT, Relation.PREVIOUS, Relation.SAME)]
        if related and not asked:
            return self._resolve_related(base, related[0])
        if self._is_grouped() and self._group_of(texts) is None:
            base = replace(base, is_doubtful=True)  # "per kg", "per year": of no column
        if mixed and asked.keys() - {"count", "amount"}:
            return [replace(base, operation=Operation.MIXED, column=mixed[0].columns[0])]
        compares = {"maximum", "minimum"} & asked.keys() or any(
            one.text in self._data.than for one in self._match.words
        )
        if {"amount", "count"} & asked.keys() and compares and any(len(one.shown) == 2 for one in filters):
            return self._resolve_pair(Operation.DIFFERENCE, base, figures)  # "cuánto vendió Ana de más que Luis"
        for name in ("difference", "ratio", "share"):
            if name in asked:
                return self._resolve_pair(Operation(name), base, figures)
        if self._match.question.superlative is not None or {"maximum", "minimum"} & asked.keys():
            return resolve_extreme(self._match, base, free, texts)
        for name in ("mean", "median"):
            if name in asked:
                return self._each(base, Operation(name), figures, texts)
        if "count" in asked:  # "finished" names a column of dates that plays no part: perhaps not all are
            dates = {column for one in narrowed(free, self._table, (Kind.DATE,)) for column in one.columns}
            base = replace(base, is_doubtful=base.is_doubtful or bool(dates - columns_of(filters)))
            return self._resolve_count(base, figures, texts)
        if "sum" in asked:
            return self._each(base, Operation.SUM, figures, texts)
        return self._resolve_lookup(base, free, figures)

    def _resolve_order(self, base: Plan, free: Sequence[Mention]) -> list[Plan]:
        """The first or the last row: what is asked of it, or what names it; its date, if only a date is named."""
        match = self._match
        asked = [m for m in free if match.order not in m.columns and len(m.columns) == 1]
        is_dated = any(match.order in m.columns for m in free)
        if is_dated and all(m.columns[0] == base.key for m in asked):
            return [replace(base, operation=match.first_or_last or Operation.MINIMUM, column=match.order)]
        others = [m for m in asked if m.columns[0] != base.key] or asked
        column = others[0].columns[0] if others else base.key
        return [replace(base, column=column, best=match.first_or_last, order=match.order)] if len(others) < 2 else []

    def _resolve_related(self, base: Plan, related: Filter) -> list[Plan]:
        """What is asked of the row beside a named one; without a column, what its name is for that one."""
        others = [m.columns[0] for m in self._match.mentions if not {related.column, related.shared} & set(m.columns)]
        column = others[0] if others and not self._asks_who() else related.column
        return [replace(base, column=column)] if len(others) < 2 else []

    def _usual_figures(self) -> list[Mention]:
        """What "how much" means where no column is named: a column of totals, of amounts, or the price."""
        figures = self._table.of_kind(*FIGURES)
        totals = total_columns(self._table)
        amounts = [place for place in figures if self._match.has_concept(place, SPENT)]
        prices = [place for place in figures if self._match.has_concept(place, frozenset({"price"}))]
        for found in (totals, prices, amounts):
            if len(found) == 1:
                return [Mention(place=-1, columns=tuple(found))]
        return []

    def _affirmed(self, filters: tuple[Filter, ...]) -> list[Filter]:
        """The rows with "yes" in a column that a question for rows names: "which cottages take dogs"."""
        asked = self._match.question.operations.keys()
        if self._match.question.negations or asked - {"count"} or (filters and not asked):
            return []
        yes = load_language(self._match.question.language).tables.answers["yes"].lower()
        return [
            Filter(column=column, comparison=Comparison.EQUAL, values=(Decimal(1),), shown=(yes,))
            for mention in self._match.mentions
            if len(mention.columns) == 1
            for column in mention.columns
            if self._table.columns[column].kind is Kind.BOOLEAN and column not in columns_of(filters)
        ]

    def _each(
        self, base: Plan, operation: Operation, figures: Sequence[Mention], texts: Sequence[Mention]
    ) -> list[Plan]:
        """The operation over the column named; for each value of another, where "per" stands before it."""
        if len(figures) != 1 or self._is_added(figures[0].place):
            return []
        group = self._group_of(texts)
        return [replace(base, operation=operation, column=column, group=group) for column in figures[0].columns]

    def _added(self, base: Plan, column: int) -> list[Plan]:
        """The rows that a value names, and their total; the total alone where a sum or a period is asked for."""
        total = replace(base, operation=Operation.SUM, column=column)
        if "sum" in self._match.question.operations or not any(one.shown for one in base.filters):
            return [total]
        return [replace(one, is_part=True) for one in (replace(total, operation=Operation.LOOKUP), total)]

    def _names_each_row(self, column: int) -> bool:
        """Whether a column is another name of the rows: "the safety products", whose codes stand first."""
        return column == key_column(self._table) or self._match.is_unique(column)

    def _is_added(self, place: int) -> bool:
        """Whether "with" stands before a column: "total with VAT"."""
        before = range(max(0, place - 2), place)
        return any(self._match.words[at].text in self._data.including for at in before)

    def _group_of(self, texts: Sequence[Mention]) -> int | None:
        for end in self._match.question.groups:
            for mention in texts:
                if len(mention.columns) == 1 and 0 <= mention.place - end <= 2:
                    return mention.columns[0]
        return None

    def _is_grouped(self) -> bool:
        """Whether something else than a value follows "per" or "by"."""
        following = [next(self._content_from(end), -1) for end in self._match.question.groups]
        named = self._match.value_places | self._match.name_places
        figures = narrowed(self._match.mentions, self._table, FIGURES)
        if len(figures) == 1:  # "per month" of "Monthly fee", but not the price "per user" of a price and users
            named = named | {figures[0].place}
        return any(place not in named for place in following)

    def _content_from(self, place: int) -> Iterator[int]:
        return (at for at in range(place, len(self._match.words)) if self._match.words[at].is_content)

    def _resolve_count(self, base: Plan, figures: Sequence[Mention], texts: Sequence[Mention]) -> list[Plan]:
        if (group := self._group_of(texts)) is not None:
            return (
                self._each(base, Operation.SUM, figures, texts)
                if figures
                else [replace(base, operation=Operation.COUNT, group=group)]
            )
        figures = [one for one in figures if not self._numbers_rows(one)]
        is_different = any(word.text in self._data.different for word in self._match.words)
        if len(figures) == 1 and is_different:
            return [replace(base, operation=Operation.DISTINCT, column=column) for column in figures[0].columns]
        if len(figures) == 1:
            additive = [c for c in figures[0].columns if not self._match.has_concept(c, NOT_ADDITIVE)]
            if base.filters and len(figures[0].columns) == 1:  # "how many hectares"
                return self._added(base, figures[0].columns[0])
            is_asked = base.filters or "sum" in self._match.question.operations
            return [
                replace(
                    base,
                    operation=Operation.SUM,
                    column=column,  # without a row a rule may tell it: "how many days"
                    is_doubtful=not (is_asked or self._match.has_concept(column, ADDITIVE)),
                )
                for column in additive
            ]
        if figures:
            return []
        filtered = columns_of(base.filters)
        nouns = [mention for mention in texts if mention.columns[0] not in filtered]
        behind = self._content_from(self._match.question.operations["count"])
        counted = next((at for at in behind if self._match.words[at].text not in self._data.different), -1)
        if len(nouns) > 1 or (nouns and len(nouns[0].columns) > 1):
            return []
        if nouns and nouns[0].place != counted:  # "how many kits did they order": not the orders are counted
            if not self._names_each_row(nouns[0].columns[0]):
                base = replace(base, is_doubtful=True)
            nouns = []
        named = any(
            self._match.is_unique(one.column) and one.comparison is Comparison.EQUAL and not one.relation
            for one in base.filters
        )  # one row: what is counted is not the rows
        count = replace(base, operation=Operation.COUNT)
        if nouns:
            column = nouns[0].columns[0]
            if self._match.is_unique(column):
                return [count]
            distinct = replace(base, operation=Operation.DISTINCT, column=column)
            return [distinct] if is_different else [count, distinct]
        if not base.filters and counted not in self._match.row_places:
            return []  # "how many places": perhaps a text tells it, and not the rows
        quantities = [place for place in self._table.of_kind(Kind.NUMBER) if self._match.has_concept(place, QUANTITY)]
        is_of_pieces = not filtered.issuperset(quantities) and not self._names_rows()
        if len(quantities) == 1 and is_of_pieces:
            return [count, replace(base, operation=Operation.SUM, column=quantities[0])]
        return [replace(count, is_doubtful=base.is_doubtful or named or is_different or is_of_pieces)]

    def _numbers_rows(self, counted: Mention) -> bool:
        """Whether a column numbers the rows instead of counting something in each: "Game" for "how many games"."""
        header = self._match.headers[counted.columns[0]]
        asked = self._match.words[counted.place].text
        is_plural = len(header) == 1 and asked != header[0].text and asked.startswith(header[0].text)
        return is_plural and self._match.is_unique(counted.columns[0])

    def _names_rows(self) -> bool:
        return any(word.text in self._data.rows for word in self._match.words)

    def _resolve_pair(self, operation: Operation, base: Plan, figures: Sequence[Mention]) -> list[Plan]:
        if len(figures) != 1:
            return []
        two = [one for one in base.filters if one.comparison is Comparison.EQUAL and len(one.values) == 2]
        if operation is Operation.SHARE:
            plans = [replace(base, operation=operation, column=column) for column in figures[0].columns]
            told = {place for place, column in enumerate(self._table.columns) if column.unit == "%"}  # shares already
            plans = [replace(one, operation=Operation.LOOKUP) if one.column in told else one for one in plans]
            return plans if base.filters else []
        if len(two) != 1:
            return []
        return [replace(base, operation=operation, column=column, group=two[0].column) for column in figures[0].columns]

    def _resolve_lookup(self, base: Plan, free: Sequence[Mention], figures: Sequence[Mention]) -> list[Plan]:
        filtered = columns_of(base.filters)
        asked = [mention for mention in free if not set(mention.columns) & filtered]
        exact = [one for one in base.filters if one.shown and one.comparison not in PERIODS]
        if figures and figures[0].place < 0:
            return self._added(base, figures[0].columns[0]) if not asked and exact else []
        if len(asked) > 1:
            asked = [mention for mention in asked if key_column(self._table) not in mention.columns]
        if not base.filters and "amount" in self._match.question.operations and len(asked) == len(figures) == 1:
            spent = "expense" in self._match.words[figures[0].place].concepts
            additive = [c for c in figures[0].columns if spent or not self._match.has_concept(c, NOT_ADDITIVE)]
            return [replace(base, operation=Operation.SUM, column=column, is_doubtful=True) for column in additive]
        if base.filters and 1 < len(asked) <= MAX_READINGS and all(len(mention.columns) == 1 for mention in asked):
            return [replace(base, column=mention.columns[0], is_part=True) for mention in asked]
        if not base.filters or len(asked) > 1:
            return []
        if not asked:  # "which products cost more than 100?", "orders of Talleres Ruiz"
            says_yes = any(self._table.columns[place].kind is Kind.BOOLEAN for place in filtered)
            compared = len(exact) < len(base.filters) or self._match.names_table or says_yes
            names = "amount" not in self._match.question.operations  # they do not answer "how much did Sales spend"
            return [replace(base, column=key_column(self._table))] if compared and names else []
        columns = asked[0].columns
        spent = any("expense" in word.concepts for word in self._match.words)
        asks_amount = (spent or "amount" in self._match.question.operations) and bool(figures)
        adds_up = self._match.has_concept(columns[0], ADDITIVE | SPENT)
        if asks_amount and len(columns) == 1 and (spent or adds_up):
            return self._added(base, columns[0])
        return [replace(base, column=column) for column in columns]

    def _asks_who(self) -> bool:
        return any("person" in word.concepts and not word.is_content for word in self._match.words)

    def _signs_fit(self, plan: Plan) -> bool:
        """Whether the currencies that the question writes are those of the columns used."""
        used = columns_of(plan.filters) | ({plan.column} if plan.column is not None else set())
        units = {self._table.columns[place].unit for place in used}
        return all(sign == "%" or sign in units for sign in self._match.question.signs)
