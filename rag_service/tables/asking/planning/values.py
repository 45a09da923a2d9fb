"""The values of a table that words of a question name, in full or in part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rag_service.language.words import fold_words
from rag_service.tables.asking.planning.conditions import match_months_of_year
from rag_service.tables.asking.planning.match import Match
from rag_service.tables.asking.planning.plans import Filter, find_runs
from rag_service.tables.asking.planning.question import Comparison

_BETWEEN_VALUES = re.compile(r"[,;/&\n]")
_MAX_SHARE = 4  # words of a value for each that is named


def match_values(match: Match) -> None:
    """Values of the table that stand in the question, the longest first."""
    found = list(find_runs(match.words, match.values))
    _free_names(match, found)
    taken: dict[int, list[tuple[int, str]]] = {}
    for length, start, column, key in sorted(found, key=lambda one: (-one[0], one[1], one[2])):
        places = range(start, start + length)
        if any(match.used[place] for place in places) and start not in taken:
            continue
        if start in taken and len(taken[start][0][1].split()) != length:
            continue
        if start not in taken:
            match.take(places)
            match.value_places.update(places)
        taken.setdefault(start, []).append((column, key))
    _add_value_filters(match, taken)


def _free_names(match: Match, found: Iterable[tuple[int, int, int, str]]) -> None:
    """Words of a value ask for no operation: "Plaza Mayor" for no maximum; nor does "of type Major", where it is one.

    A value that is nothing but such words has to stand behind the name of its column, or be written as a name.
    """
    for length, start, column, key in found:
        run = range(start, start + length)
        asked = {name for name, end in match.question.operations.items() if end - 1 in run}
        superlative = match.question.superlative
        is_superlative = superlative is not None and bool(set(superlative.places) & set(run))
        if not (asked or is_superlative):
            continue
        before = match.words[start - 1].forms if start else frozenset[str]()
        is_named = match.values[column][key][0].isupper() and match.words[start].text in match.question.names
        is_longer = any(match.words[place].is_content and not match.used[place] for place in run)
        if is_longer or is_named or any(before & word.forms for word in match.headers[column]):
            match.free(asked)
            if is_superlative:
                match.free_superlative()


def _add_value_filters(match: Match, taken: Mapping[int, list[tuple[int, str]]]) -> None:
    """One filter for each column; several values of one column are alternatives."""
    by_column: dict[int, list[str]] = {}
    for start in sorted(taken):
        candidates = taken[start]
        if len(candidates) > 1:  # in several columns: the one that the question names, else nothing is sure
            named = {column for mention in match.mentions for column in mention.columns}
            candidates = [one for one in candidates if one[0] in named] or candidates
        if len({column for column, _ in candidates}) > 1:
            match.is_refused = True
        by_column.setdefault(candidates[0][0], []).append(candidates[0][1])
    for column, keys in by_column.items():
        lists = [key for key, text in match.values[column].items() if key not in keys and _lists(text, keys)]
        match.is_doubtful |= bool(lists)  # "Kent" for "Kent, Essex"
        keys += lists
        shown = tuple(match.values[column][key] for key in keys)
        match.filters.append(Filter(column=column, comparison=Comparison.EQUAL, values=tuple(keys), shown=shown))


def _lists(text: str, keys: Sequence[str]) -> bool:
    """Whether a cell lists one of these values beside others: "Kent, Essex"."""
    parts = _BETWEEN_VALUES.split(text)
    return len(parts) > 1 and any(fold_words(part) in keys for part in parts)


def match_calendar_ranges(match: Match) -> None:
    """ "From June to August" of a column of months, or of dates: those between too. Without one nothing is sure."""
    for one in match.question.calendar_ranges:
        columns = [column for column, values in match.values.items() if one.keys_in(values)]
        if len(columns) != 1:
            if columns or one.kind != "month" or not match_months_of_year(match, one):
                match.is_refused = True
            continue
        keys = tuple(one.keys_in(match.values[columns[0]]))
        shown = tuple(match.values[columns[0]][key] for key in keys)
        match.filters.append(Filter(column=columns[0], comparison=Comparison.EQUAL, values=keys, shown=shown))
        match.take(range(one.start, one.end))
        match.value_places.update(range(one.start, one.end))
        match.is_doubtful |= not one.is_within(match.values[columns[0]])  # "to December", and it ends in October


def match_value_parts(match: Match) -> None:
    """Words left over that stand together in values of one column: "bolts" for two kinds of bolt, "club de judo".

    Longer runs first.
    """
    left = match.left
    for size in range(len(left), 0, -1):
        for at in range(len(left) - size + 1):
            run = left[at : at + size]
            if not any(match.used[run[0] : run[-1] + 1]):
                _match_run(match, run)


def _match_run(match: Match, run: Sequence[int]) -> None:
    keys = [match.words[place].key for place in run]
    holding = {
        column: [key for key in values if set(keys) <= set(key.split())] for column, values in match.values.items()
    }
    columns = [column for column, held in holding.items() if held]
    taken = {one.column for one in match.filters}
    if len(columns) == 1 and columns[0] in taken and _add_value(match, columns[0], holding[columns[0]]):
        match.take(run)
        match.value_places.update(run)
        return
    if len(columns) == 1 and columns[0] not in taken and not all(key.isdigit() for key in keys):
        shown = tuple(match.values[columns[0]][key] for key in holding[columns[0]])
        match.filters.append(Filter(column=columns[0], comparison=Comparison.CONTAINS, values=tuple(keys), shown=shown))
        match.take(run)
        match.value_places.update(run)
        # Few words of a long text do not name it: "how many times" for a note with "of all times".
        match.is_doubtful |= any(len(key.split()) > _MAX_SHARE * len(keys) for key in holding[columns[0]])
        # "The dearest coffee" may be any, not one of the customer "Coffee House".
        match.is_doubtful |= any(map(match.is_beside_superlative, run))


def _add_value(match: Match, column: int, held: Sequence[str]) -> bool:
    """Another value of a column beside one that is named already: "Ben and Tom"; whether each names one value."""
    (before, *more) = [one for one in match.filters if one.column == column]
    keys = [key for key, shown in match.values[column].items() if shown in before.shown]
    plain = before.comparison in (Comparison.EQUAL, Comparison.CONTAINS)
    if more or not plain or len(held) != 1 or len(keys) != len(before.shown) or held[0] in keys:
        return False
    if before.comparison is Comparison.CONTAINS and len(keys) != 1:
        return False
    keys.append(held[0])
    shown = tuple(match.values[column][key] for key in keys)
    match.filters[match.filters.index(before)] = Filter(
        column=column, comparison=Comparison.EQUAL, values=tuple(keys), shown=shown
    )
    return True
