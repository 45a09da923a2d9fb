"""What a question asks of the search: its language, its index terms, the territory and files it names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rag_service.definitions import IndexDefinition, Territory
from rag_service.domain import Filters
from rag_service.query.retrieval.names import Name, find_names
from rag_service.store.search.term_weights import QueryTerm
from rag_service.text.guessed_language import guess_language
from rag_service.text.words import LANGUAGES, detect_language, index_term, likely_languages, terms, words

FOREIGN_STEM_WEIGHT = 0.5  # stems of a word in the other languages, and itself: names match across languages
SYNONYM_WEIGHT = 0.7  # an equivalent expression counts a little less than the asker's own
_MAX_TERMS = 64  # of a question; longer ones are texts, and their head says what they are about
_MAX_NAME_WORDS = 4  # a place name, or a file name with blanks

# "How long" asks and says nothing, as "when" does; its words alone do say something and are indexed.
_QUESTION_PHRASES = (("combien", "de", "temps"), ("cuanto", "tiempo"), ("how", "long"))

# What comes before an extension is looked at backwards: a pattern for whole names tries every beginning, which takes
# a second for a text of 10,000 characters.
_EXTENSION = re.compile(r"\.(?:pdf|xlsx|csv|tsv|docx|md|markdown|txt)\b", re.IGNORECASE)
_NAME_TAIL = re.compile(r"[\w()\[\]]")
_NAME_CHARACTER = re.compile(r"[\w()\[\]&+,'’ -]")
_MOST_NAME_CHARACTERS = 200
_TOKEN = re.compile(r"[\w-]+")


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    """A question made ready for search."""

    question: str
    language: str  # ISO 639-1; "en" when it cannot be told
    terms: tuple[QueryTerm, ...]
    filters: Filters
    territory: str | None = None  # detected, not asked for by filter
    file_names: tuple[str, ...] = ()  # names of files the question may mean, lower case
    names: tuple[Name, ...] = ()  # that it asks about; none where it names a territory or a known file, which filter


def make_plan(question: str, *, filters: Filters, index: IndexDefinition) -> QueryPlan:
    """Analyse a question under an index definition; pure, no I/O."""
    language = _language_of(question, index)
    territory = None
    if filters.territory is None and index.territories:
        territory = find_territory(question, index.territories)
        if territory is not None:
            filters = replace(filters, territory=territory)
    file_names = tuple(find_file_names(question))
    return QueryPlan(
        question=question,
        language=language,
        terms=tuple(expand(question, language=language, synonyms=index.synonyms)),
        filters=filters,
        territory=territory,
        file_names=file_names,
        names=() if territory else find_names(question),
    )


def _language_of(question: str, index: IndexDefinition) -> str:
    """By its function words, else as the index is declared, else by its letters; English where nothing tells."""
    if index.ingest.language != "auto":
        return detect_language(question) or index.ingest.language
    likely = likely_languages(question)
    if guessed := guess_language(question, likely):
        return guessed
    return "en" if "en" in likely else likely[0]


def expand(question: str, *, language: str, synonyms: Sequence[Sequence[str]] = ()) -> list[QueryTerm]:
    """Index terms of a question, with those of equivalent expressions and of the other languages.

    Each word of the question is a group; what is added for a word joins its group, so that it
    stands in for the word where the scope lacks it and never raises what the question could cover.
    """
    expanded: dict[str, QueryTerm] = {}
    asked = _without_question_phrases(words(question))
    group_of: dict[int, int] = {}  # position of a word → its group
    for position, word in enumerate(asked):
        term = index_term(word, language)
        if term is not None and len(group_of) < _MAX_TERMS:
            group_of[position] = expanded.setdefault(term, QueryTerm(term=term, group=len(group_of))).group
    for position, group in group_of.items():
        for term in _foreign_terms_of(asked[position], language):
            if term not in expanded:
                expanded[term] = QueryTerm(term=term, weight=FOREIGN_STEM_WEIGHT, group=group)
    for position, term, weight in _synonym_terms(asked, language, synonyms):
        expanded.setdefault(term, QueryTerm(term=term, weight=weight, group=group_of.get(position, -1)))
    return list(expanded.values())


def _without_question_phrases(asked: list[str]) -> list[str]:
    for phrase in _QUESTION_PHRASES:
        for start in range(len(asked) - len(phrase), -1, -1):
            if tuple(asked[start : start + len(phrase)]) == phrase:
                del asked[start : start + len(phrase)]
    return asked


def _synonym_terms(
    asked: Sequence[str], language: str, synonyms: Sequence[Sequence[str]]
) -> Iterator[tuple[int, str, float]]:
    """(position of the expression in the question, term of an equivalent one, its weight).

    The weight falls with the number of equivalents, or a passage that lists them all would win.
    """
    stems = [index_term(word, language) or word for word in asked]
    beginnings = _groups_by_beginning(tuple(map(tuple, synonyms)), language)
    begun = {number for word in (*asked, *stems) for number in beginnings.get(word, ())}
    for group in (synonyms[number] for number in sorted(begun)):
        places = {expression: _find_expression(expression, asked, stems, language) for expression in group}
        named = [place for place in places.values() if place is not None]
        if not named:
            continue
        others = [expression for expression, place in places.items() if place is None]
        for expression in others:
            for term in terms(expression, language):
                yield named[0], term, SYNONYM_WEIGHT / math.sqrt(len(others))


@lru_cache(maxsize=64)
def _groups_by_beginning(synonyms: tuple[tuple[str, ...], ...], language: str) -> dict[str, set[int]]:
    """First word, or its stem, of an expression → numbers of the groups that hold it."""
    groups: dict[str, set[int]] = {}
    for number, group in enumerate(synonyms):
        for expression in group:
            for cut in _cut(expression, language):
                if cut:
                    groups.setdefault(cut[0], set()).add(number)
    return groups


def _find_expression(expression: str, asked: Sequence[str], stems: Sequence[str], language: str) -> int | None:
    wanted, stemmed = _cut(expression, language)
    if not wanted:
        return None
    for start in range(len(asked) - len(wanted) + 1):
        end = start + len(wanted)
        if tuple(asked[start:end]) == wanted or tuple(stems[start:end]) == stemmed:
            return start
    return None


@lru_cache(maxsize=100_000)
def _foreign_terms_of(word: str, language: str) -> tuple[str, ...]:
    """The stems of a word in the other languages, and the word as it is written.

    That is how documents hold it whose language cannot be told, such as tables of names and figures.
    """
    others = (index_term(word, other) for other in LANGUAGES if other != language)
    return (*(term for term in others if term is not None), word)


@lru_cache(maxsize=20_000)
def _cut(expression: str, language: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(words, stems) of an expression of a definition: the same for every question."""
    wanted = tuple(words(expression))
    return wanted, tuple(index_term(word, language) or word for word in wanted)


def find_territory(question: str, territories: Sequence[Territory]) -> str | None:
    """The territory that a question names: "en <place>" first, then names of 2-4 words, then single words.

    Cities stand for the territory they lie in. Returns the territory's name, or None.
    """
    names = {
        _cut(name, "")[0]: territory.name
        for territory in territories
        for name in (*territory.cities, *territory.aliases, territory.name)
    }
    asked = words(question)
    runs = [
        (start, length)
        for length in range(_MAX_NAME_WORDS, 0, -1)
        for start in range(len(asked) - length + 1)
        if tuple(asked[start : start + length]) in names
    ]
    if not runs:
        return None

    def preference(run: tuple[int, int]) -> tuple[bool, bool, int]:
        start, length = run
        after_preposition = start > 0 and (
            asked[start - 1] == "en" or asked[max(0, start - 2) : start] in (["en", "la"], ["en", "el"], ["en", "las"])
        )
        return (not after_preposition, length == 1, start)

    start, length = min(runs, key=preference)
    return names[tuple(asked[start : start + length])]


def find_file_names(question: str) -> list[str]:
    """Names that may be those of files: "rapport T3.pdf" gives "rapport t3.pdf" and "t3.pdf".

    The caller looks up which of them exist; a question that names none of them is not restricted.
    """
    found: dict[str, None] = {}
    end = 0  # of the name before
    for match in _EXTENSION.finditer(question):
        start = _start_of_name(question, match.start(), end)
        if start == match.start():
            continue
        end = match.end()
        parts = question[start:end].lower().split()
        for first in range(max(0, len(parts) - 8), len(parts)):
            found[" ".join(parts[first:])] = None
    for token in _TOKEN.findall(question):
        stem = token.strip("-")
        if "_" in stem[1:-1] or "-" in stem[1:-1]:
            found[stem.lower()] = None
    return list(found)


def _start_of_name(question: str, end: int, earliest: int) -> int:
    """Where the characters before `end` that a file's name may have begin; `end` where there are none."""
    if end == earliest or not _NAME_TAIL.match(question, end - 1):
        return end
    start = end
    while start > max(earliest, end - _MOST_NAME_CHARACTERS) and _NAME_CHARACTER.match(question, start - 1):
        start -= 1
    return start
