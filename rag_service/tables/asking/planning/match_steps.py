"""Holds a question against one table, step by step: columns, values, dates and numbers, and what is left."""

from __future__ import annotations

from rag_service.tables.asking.planning.columns import free_headers, is_year_alone, match_columns, match_parts
from rag_service.tables.asking.planning.conditions import (
    match_absence,
    match_months,
    match_numbers,
    match_order,
    match_relations,
    match_years,
)
from rag_service.tables.asking.planning.match import Match
from rag_service.tables.asking.planning.plans import Mention, Values, narrowed
from rag_service.tables.asking.planning.question import Question
from rag_service.tables.asking.planning.values import match_calendar_ranges, match_value_parts, match_values
from rag_service.tables.headers import FIGURES
from rag_service.tables.model import StoredTable


def match_table(question: Question, table: StoredTable, values: Values) -> Match:
    """What the words of a question name in a table."""
    match = Match(question, table, values)
    free_headers(match)
    match_columns(match, at_least=2)
    match_calendar_ranges(match)
    match_values(match)
    match_columns(match, at_least=1)
    match_parts(match)
    match_years(match)
    match_months(match)
    match_numbers(match)
    _match_rest(match)
    match_value_parts(match)
    match_absence(match)
    match_relations(match)
    match_order(match)
    match.is_doubtful |= any(is_year_alone(match, mention) for mention in match.mentions)
    match.mentions.sort(key=lambda mention: mention.place)
    return match


def _match_rest(match: Match) -> None:
    """The table's own name, words that ask for nothing, and values that are named in part."""
    measured = match.behind("count", "amount", "maximum", "minimum")
    for place, word in enumerate(match.words):
        if match.used[place] or not word.is_content:
            continue
        if match.names_document(place, or_caption=True):
            match.names_table = True
            match.take([place])
            if match.names_title(place):
                match.row_places.add(place)
        elif word.text in match.data.filler | match.data.different:
            match.take([place], weight=0)
        elif word.text in match.data.rows:
            match.names_table = True
            match.row_places.add(place)
            match.take([place], weight=0)
        elif columns := match.with_unit(word):
            if not narrowed(match.mentions, match.table, FIGURES) and place in measured:  # "how many kilos"
                match.mentions.append(Mention(place=place, columns=tuple(columns)))
            match.take([place], weight=0)
