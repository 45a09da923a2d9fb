"""Words of a question that neither a column, a value nor the name of the table accounts for.

Freely put questions hold words that no header has: "how much honey did we harvest". Where the rest of the question can
be read, these are overlooked, and the answer says that they were not understood.
"""

from __future__ import annotations

from rag_service.tables.asking.planning.match import Match
from rag_service.tables.model import Kind
from rag_service.tables.question_values import read_ordinal
from rag_service.tables.vocabulary import is_verb


def overlook_words(match: Match) -> bool:
    """Account for the words that are left over, if the question can be read without them; whether it can.

    It has to name rows, a column or an order of them, and to ask for something; where nothing tells which rows are
    meant, the words left over may tell it.
    """
    if match.is_refused:
        return False
    question = match.question
    has_rows = bool(match.filters or question.bounds)
    booleans = set(match.table.of_kind(Kind.BOOLEAN))
    says_yes = any(booleans & set(mention.columns) for mention in match.mentions)
    ranks = match.first_or_last is not None or match.ranks
    asks = question.asks or ranks
    if not (has_rows or (match.mentions and (asks or says_yes))):
        return False
    unexplained = [place for place in match.left if not is_verb(match.words[place].text, question.language)]
    if not (has_rows or ranks) and not match.asked_for.issuperset(unexplained):
        return False
    if any(_names_rows(match, place) for place in unexplained):
        return False
    for place in match.left:
        match.names_table |= place in match.asked_for or (place > 0 and match.words[place - 1].text in match.data.which)
        match.overlook(place)
    return True


def _names_rows(match: Match, place: int) -> bool:
    """Whether a word left over is a name, a number or an ordinal: "in Paris", "in 2009", "the second highest"."""
    text, language = match.words[place].text, match.question.language
    return text in match.question.names or text[0].isdigit() or read_ordinal(match.words, place, language) is not None
