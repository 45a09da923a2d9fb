"""Words of questions, and of columns and rows, whose language nobody knows, in the forms that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from rag_service.language.languages import language_codes, languages_of, load_language, union_of
from rag_service.language.words import fold_word, index_term, is_stop_word, words
from rag_service.recent import kept_apart

MONTH = "month "  # with its number, a concept
_SHORT_MONTH = 3  # letters of "Mar" in the name of a column
MAX_WORDS = 40  # longer questions say more than an operation


@dataclass(frozen=True, kw_only=True)
class Word:
    text: str  # folded
    key: str  # as values are compared
    forms: frozenset[str]  # key and stems in every language, as column names are compared
    concepts: frozenset[str]
    is_content: bool

    def is_like(self, other: Word) -> bool:
        """Whether the two are forms of one word, or words for the same."""
        return bool(self.forms & other.forms or self.concepts & other.concepts)


@kept_apart(20_000)
def _word(word: str, language: str) -> Word:
    stems = {stem for code in language_codes() if (stem := index_term(word, code))}
    return Word(
        text=word,
        key=fold_word(word),
        forms=frozenset({fold_word(word), *stems}),
        concepts=_concepts().get(word, frozenset()) | _months(language).get(word, frozenset()),
        is_content=not (is_stop_word(word, language) or word in _before_nouns(language)),
    )


def read_words(found: Sequence[str], language: str) -> tuple[Word, ...]:
    """The words of a question with their forms."""
    return tuple(_word(word, language) for word in found)


def column_word(word: str) -> Word:
    """A word of a column's name, whose language nobody knows."""
    return _word(word, "")


def concepts_of(name: str) -> frozenset[str]:
    """What the words of a column's name stand for: "month", "price"."""
    return union_of(column_word(word).concepts for word in words(name))


@cache
def _concepts() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for data in languages_of(None):
        for concept, names in data.tables.concepts.items():
            for name in names:
                found.setdefault(name, set()).add(concept)
    return {name: frozenset(concepts) for name, concepts in found.items()}


@cache
def _before_nouns(language: str) -> frozenset[str]:
    """Articles and prepositions, which are not all stop words of the search: "sur", "entre"."""
    return load_language(language).tables.before_nouns if language in language_codes() else frozenset()


@cache
def _months(language: str) -> dict[str, frozenset[str]]:
    """Names of months in a language, in every language if it is not known: "March" for a column "Mar"."""
    found: dict[str, set[str]] = {}
    for data in languages_of(language):
        for number, names in enumerate(data.proof.months, start=1):
            short = () if language else (name[:_SHORT_MONTH] for name in names)
            for name in (*names, *short):
                found.setdefault(name, set()).add(f"{MONTH}{number}")
    return {name: frozenset(concepts) for name, concepts in found.items()}


def is_verb(word: str, language: str) -> bool:
    """Whether a folded word is a form of a common verb, which names no column: "bought", "pagamos"."""
    return word in load_language(language).tables.verbs or index_term(word, language) in _verb_stems(language)


@cache
def _verb_stems(language: str) -> frozenset[str]:
    return frozenset(filter(None, (index_term(verb, language) for verb in load_language(language).tables.verbs)))
