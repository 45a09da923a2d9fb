"""Years, months, numbers, comparisons and negations of a question, and the columns that they are about."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import product

from rag_service.tables.asking.planning.match import Match
from rag_service.tables.asking.planning.plans import BY_TIME, Filter, Mention, Operation, Relation, bind, narrowed
from rag_service.tables.asking.planning.question import Bound, Comparison, year_of
from rag_service.tables.calendar_ranges import CalendarRange
from rag_service.tables.headers import NUMBERS
from rag_service.tables.model import Kind
from rag_service.tables.question_values import read_value
from rag_service.tables.vocabulary import MONTH

_NEAR = 3  # words between a column and its number, or a negation and its column


def match_years(match: Match) -> None:
    """A year alone: a period of the dates, or a value of a column of years."""
    for place, word in enumerate(match.words):
        year = None if match.used[place] else year_of(word)
        if year is None:
            continue
        if len(years := years_of(match)) == 1:
            _add_year(match, years[0], word.text)
        elif len(dates := _dates(match)) == 1:
            days = (Decimal(date(year, 1, 1).toordinal()), Decimal(date(year, 12, 31).toordinal()))
            match.filters.append(
                Filter(column=dates[0], comparison=Comparison.BETWEEN, values=days, shown=(word.text,))
            )
        else:
            continue
        match.take([place])


def years_of(match: Match) -> list[int]:
    """The columns of years."""
    return [
        column
        for column in match.table.of_kind(Kind.NUMBER, Kind.ORDER)
        if match.has_concept(column, frozenset({"year"}))
    ]


def _add_year(match: Match, column: int, text: str) -> None:
    """A year, beside others that are named: "in 1975 and 1976"."""
    before = next((one for one in match.filters if one.column == column and one.shown), None)
    shown = (*(() if before is None else before.shown), text)
    years = tuple(dict.fromkeys(map(Decimal, shown)))
    found = Filter(column=column, comparison=Comparison.EQUAL, values=years, shown=shown)
    match.filters[:] = [*(one for one in match.filters if one is not before), found]


def _dates(match: Match) -> list[int]:
    """The dates that a period may be about: those named, that of the row, or the only one, perhaps not meant."""
    named = [column for mention in narrowed(match.mentions, match.table, (Kind.DATE,)) for column in mention.columns]
    found = named or list(filter(partial(_is_plain_date, match), match.table.of_kind(Kind.DATE)))
    match.is_doubtful |= not found
    return found or match.table.of_kind(Kind.DATE)


def _is_plain_date(match: Match, column: int) -> bool:
    """Whether a column is the date or the month of its row, not that of something else: "Date of birth"."""
    (*others, last) = match.headers[column] or (None,)
    return not others and last is not None and bool({"date", "month"} & last.concepts)


def match_months_of_year(match: Match, months: CalendarRange) -> bool:
    """ "From January to March 2024": a period of the dates; whether it is one."""
    following = [at for at in range(months.end, len(match.words)) if match.words[at].is_content or match.used[at]]
    year = year_of(match.words[following[0]]) if following else None
    first, last = months.numbers[0], months.numbers[-1]
    if year is None or first > last or len(dates := _dates(match)) != 1:
        return False
    days = (date(year, first, 1), date(year, last, monthrange(year, last)[1]))
    values = tuple(Decimal(day.toordinal()) for day in days)
    match.filters.append(Filter(column=dates[0], comparison=Comparison.BETWEEN, values=values))
    match.take([*range(months.start, months.end), following[0]])
    return True


def match_months(match: Match) -> None:
    """A month without a year: of the dates, in every year that they have, which may not be meant."""
    for place in match.left:
        months = [concept for concept in match.words[place].concepts if concept.startswith(MONTH)]
        if len(months) == 1 and len(dates := _dates(match)) == 1:
            number = Decimal(months[0].removeprefix(MONTH))
            shown = (match.words[place].text,)
            match.filters.append(Filter(column=dates[0], comparison=Comparison.MONTH, values=(number,), shown=shown))
            match.take([place])
            match.is_doubtful = True


def match_numbers(match: Match) -> None:
    """A number right behind the name of a column of figures: "stock 0", "VAT of 21 %"."""
    for place in match.left:
        value = read_value(match.words, place, match.question.language)
        near = [m for m in narrowed(match.mentions, match.table, NUMBERS) if m.place < place]
        if value is None or value.is_date or not near or not match.words[place].text[0].isdigit():
            continue
        mention = max(near, key=lambda one: one.place)
        between = range(mention.place + 1, place)
        follows = next((match.words[at] for at in range(value.end, len(match.words))), None)
        alone = follows is None or not follows.is_content or bool(match.with_unit(follows))
        if len(mention.columns) == 1 and len(between) <= _NEAR and not set(between) & set(match.left) and alone:
            (column,) = mention.columns
            match.filters.append(Filter(column=column, comparison=Comparison.EQUAL, values=(value.number,)))
            match.take(range(place, value.end))


def match_absence(match: Match) -> None:
    """ "no return date", "not returned": the column named behind the negation is empty, or zero."""
    if not match.question.negations:
        return
    first, place = match.question.negations[0], match.question.negations[-1]
    behind = [mention for mention in match.mentions if mention.place > first]
    plain = not (match.question.bounds or match.question.superlative or match.question.operations.keys() - {"count"})
    columns = {column for mention in behind for column in mention.columns}
    reach = range(place + 1, place + _NEAR + 2)
    fits = len(columns) == len(behind) == 1 and behind[0].place in reach
    named = [one for one in match.filters if one.shown and one.relation is None]
    if plain and not behind and len(named) == 1 and min(match.value_places, default=0) > place:  # "not in Leeds"
        match.filters[match.filters.index(named[0])] = replace(named[0], relation=Relation.OTHER)
        match.is_doubtful = True
        return
    if not plain or not fits or match.value_places & set(range(first, behind[0].place)):
        match.is_refused = True
        return
    (column,) = columns
    shown = (match.data.answers["no"].lower(),) if column in match.table.of_kind(Kind.BOOLEAN) else ()
    header = match.headers[column]
    match.is_doubtful |= not all(any(word.forms & asked.forms for asked in match.words) for word in header)
    if match.is_doubtful and len(header) > 1:
        match.is_refused = True  # "come back" is not "due back"
    match.filters.append(Filter(column=column, comparison=Comparison.EMPTY, values=(Decimal(0),), shown=shown))


def match_order(match: Match) -> None:
    """ "Who joined first", "the last order": by the dates that are named, or the only ones, or as the rows stand."""
    for place in match.left:
        for words_of, operation in ((match.data.first, Operation.MINIMUM), (match.data.last, Operation.MAXIMUM)):
            if match.words[place].text not in words_of or match.question.asks or match.first_or_last is not None:
                continue
            named = narrowed(match.mentions, match.table, (Kind.DATE,))
            dates = {column for mention in named for column in mention.columns} or set(match.table.of_kind(Kind.DATE))
            match.is_doubtful |= not named  # "the last invoice" may be that of the highest number
            match.order = dates.pop() if len(dates) == 1 else None
            match.first_or_last = operation
            match.take([place], weight=0)


def match_relations(match: Match) -> None:
    """ "Who comes after Ann", "the same city as Ann", "other than Ann": of rows that a value names."""
    named = [one for one in match.filters if one.shown and one.relation is None]
    named = [one for one in named if one.comparison is Comparison.EQUAL] or named
    for place, word in enumerate(match.words):
        relation = _relation_of(match, word.text)
        if match.used[place] or relation is None or len(named) != 1 or max(match.value_places, default=0) < place:
            continue
        (anchor,), shared = named, None
        if relation is Relation.SAME:
            behind = [m for m in match.mentions if m.place > place and len(m.columns) == 1]
            if not behind:
                continue
            shared = behind[0].columns[0]
        index = match.filters.index(anchor)
        match.filters[index] = replace(anchor, relation=relation, shared=shared)
        match.take([place], weight=0)
        match.is_doubtful = True
        return


def _relation_of(match: Match, text: str) -> Relation | None:
    held = {Relation.NEXT: match.data.next, Relation.PREVIOUS: match.data.previous, Relation.SAME: match.data.same}
    return next((relation for relation, texts in held.items() if text in texts), None)


def bound_filters(match: Match) -> list[tuple[Filter, ...]] | None:
    """The filters, in each reading of the comparisons; None if a comparison has no column."""
    choices: list[list[Filter]] = []
    for bound in match.question.bounds:
        columns = _columns_of(match, bound)
        if not columns:
            return None
        choices.append([bind(bound, column, match.table.columns[column]) for column in columns])
    return [(*match.filters, *chosen) for chosen in product(*choices)]


def _distance(bound: Bound, mention: Mention) -> int:
    """How far the name of a column stands from a comparison: before "over 5" or behind it, "over 5 points"."""
    return bound.place - mention.place if mention.place < bound.place else mention.place - bound.end


def _columns_of(match: Match, bound: Bound) -> list[int]:
    """The columns that a comparison may be about."""
    kinds = (Kind.DATE,) if bound.is_date else NUMBERS
    if bound.is_year and bound.is_time and len(years := years_of(match)) == 1:
        return years  # "races before 2011": not the number of races
    if bound.is_year and bound.comparison in BY_TIME and match.table.of_kind(Kind.DATE):
        kinds = (Kind.DATE,)
    elif bound.is_year and bound.is_time:
        match.is_doubtful = True  # a year, and no column of years or dates
    fitting = match.table.of_kind(*kinds)
    if bound.concepts:
        return [place for place in fitting if match.has_concept(place, bound.concepts)]
    named = narrowed(match.mentions, match.table, kinds)
    if named:
        return list(min(named, key=partial(_distance, bound)).columns)
    if Kind.DATE in kinds:
        fitting = _dates(match)
    fitting = [place for place in fitting if match.table.columns[place].kind is not Kind.ORDER]  # unless it is named
    return fitting if len(fitting) == 1 else []
