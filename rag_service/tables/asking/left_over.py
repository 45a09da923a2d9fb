"""Words of a question that neither a column, a value nor the name of the table accounts for.

Freely put questions hold verbs that no header has: "how much honey did we harvest". One such word is overlooked where
the question names a column, and the answer says that it was not understood. What the question asks for, "how many
pages", is never overlooked.
"""

from __future__ import annotations

from rag_service.language.languages import load_language
from rag_service.tables.asking.matching import Match
from rag_service.tables.model import Kind

_NOUNS_FOLLOW = ("count", "amount")  # operations


def overlook_word(match: Match) -> bool:
    """Account for the single word that is left over, if the question can be read without it.

    Beside an operation and a value any word may be one. Otherwise the question has to name a column, and a value if it
    asks for no operation, and the word has to be its verb. Returns whether nothing is left over.
    """
    question, left = match.question, match.left
    if match.score < 0 or len(left) != 1:
        return False
    (place,) = left
    word, has_value = match.words[place], any(one.shown for one in match.filters)
    booleans = set(match.of_kind(Kind.BOOLEAN))
    if word.concepts or not word.text.isalpha() or place in _asked_for(match):
        return False
    says_yes = any(booleans & set(mention.columns) for mention in match.mentions)
    names_column = bool(match.mentions or question.bounds) and (question.asks or has_value or says_yes)
    if not ((question.asks and has_value) or (names_column and _may_be_verb(match, place))):
        return False
    match.overlook(place)
    return True


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
