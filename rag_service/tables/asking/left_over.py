"""Words of a question that neither a column, a value nor the name of the table accounts for.

Freely put questions hold words that no header has: "how much honey did we harvest". Where the rest of the question can be
read, these are overlooked, and the answer says that they were not understood: common verbs; the noun for the rows
("which sites use more than …"); and one more word. What the question asks for, "how many pages", is never overlooked.
"""

from __future__ import annotations

from rag_service.language.languages import load_language
from rag_service.tables.asking.matching import Match
from rag_service.tables.model import Kind
from rag_service.tables.vocabulary import is_verb

_NOUNS_FOLLOW = ("count", "amount")  # operations


def overlook_words(match: Match) -> bool:
    """Account for the words that are left over, if the question can be read without them.

    Beside an operation and a value any single word may be overlooked. Otherwise the question has to name a column, and a
    value if it asks for no operation, and the word has to be its verb. Returns whether nothing is left over.
    """
    if match.score < 0:
        return False
    question, has_value = match.question, any(one.shown for one in match.filters)
    booleans = set(match.of_kind(Kind.BOOLEAN))
    says_yes = any(booleans & set(mention.columns) for mention in match.mentions)
    names_column = bool(match.mentions or question.bounds) and (question.asks or has_value or says_yes)
    if not (names_column or (question.asks and has_value)):
        return False
    for place in match.left:
        if _names_rows(match, place) or is_verb(match.words[place].text, question.language):
            match.overlook(place)
    if match.left:
        (place, *others) = match.left
        word = match.words[place]
        if others or word.concepts or not word.text.isalpha() or place in _asked_for(match):
            return False
        if not ((question.asks and has_value) or _may_be_verb(match, place)):
            return False
        match.overlook(place)
    return True


def _names_rows(match: Match, place: int) -> bool:
    """Whether a word is the noun for the rows that a comparison or an extreme chooses: "which sites", "how many sites".

    Where a value names the row, something of that row is counted: "how many people work at Quayside".
    """
    question = match.question
    behind_which = place > 0 and match.words[place - 1].text in load_language(question.language).tables.which
    if behind_which:
        return bool(question.bounds or question.superlative or {"maximum", "minimum"} & question.operations.keys())
    counts = "count" in question.operations and place in _asked_for(match)
    return counts and not any(match.is_unique(one.column) for one in match.filters)


def _asked_for(match: Match) -> set[int]:
    """The places of the nouns right behind "how many" and "how much", articles between left out."""
    before = load_language(match.question.language).tables.before_nouns
    ends = [match.question.operations[name] for name in _NOUNS_FOLLOW if name in match.question.operations]
    places = range(len(match.words))
    return {next((at for at in places[end:] if match.words[at].text not in before), -1) for end in ends}


def _may_be_verb(match: Match, place: int) -> bool:
    """Whether a word may be the verb of the question: it stands behind no article, and there is no "is" beside it.

    What is left over otherwise is a condition, "in Paris", or a narrower column, "the monthly salary".
    """
    data = load_language(match.question.language).tables
    if place and match.words[place - 1].text in data.before_nouns:
        return False
    return not any(word.text in data.copulas for word in match.words)
