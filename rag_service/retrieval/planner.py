"""What a question asks of the search: its language, its index terms, the territory, files and things it names.

Passages about Sweden and Denmark do not answer a question about Norway, however many of its other words they contain.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from rag_service.domain import Filters
from rag_service.indices import IndexDefinition, Territory
from rag_service.language.detection import detect_language, guess_language, likeliest_language, likely_languages
from rag_service.language.languages import (
    FALLBACK_LANGUAGE,
    language_codes,
    language_names,
    languages_of,
    load_language,
    union_of,
)
from rag_service.language.words import fold, index_term, terms, word_forms, words
from rag_service.readers.common.names import IMAGE_SUFFIXES, SUFFIXES
from rag_service.store.search.postings import QueryTerm

FOREIGN_STEM_WEIGHT = 0.5  # stems of a word in the other languages, and itself: names match across languages
SYNONYM_WEIGHT = 0.7  # an equivalent expression counts a little less than the asker's own
_MAX_TERMS = 64  # of a question; longer ones are texts, and their head says what they are about
_MAX_NAME_WORDS = 4  # a place name, or a file name with blanks

# What comes before an extension is looked at backwards: a pattern for whole names tries every beginning, which takes
# a second for a text of 10,000 characters.
_EXTENSION = re.compile(rf"(?:{'|'.join(map(re.escape, (*SUFFIXES, *IMAGE_SUFFIXES)))})(?!\w|\.\w)", re.IGNORECASE)
_NAME_TAIL = re.compile(r"[\w()\[\]]")
_NAME_CHARACTER = re.compile(r"[\w()\[\]&+,'’ -]|\.(?=\S)")
_MAX_NAME_CHARACTERS = 200
_TOKEN = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_MAX_STEM_WORDS = 8  # of a file name without its extension
_PUNCTUATION = ".,;:!?¿¡\"'“”«»()"

# Names, years and codes. A capital letter shows a name, so a question typed in small letters names nothing.
_NAME_TOKEN = re.compile(r"[^\W_](?:[\w'’.-]*[^\W_])?")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_])")  # figures and letters: "A3", "REF-4002"
_FIGURE = re.compile(r"\d")
_BEGINS_SENTENCE = frozenset('.?!¿¡:"“«(')  # what a capital letter after it means nothing
_MIN_LETTERS = 3
_HEADLINE = 0.75  # share of capitalised words from which the question is set like a headline
_CALENDAR = frozenset({
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    "january", "february", "march", "april", "may", "june", "july",
    "august", "september", "october", "november", "december",
})  # fmt: skip
# English capitalises them; documents say "weekdays" or "in spring" as well
_CAPITALISE_NOUNS = frozenset({"de", "lb"})  # languages in which a capital letter shows no name


@dataclass(frozen=True, kw_only=True)
class Name:
    """Something that a question names."""

    text: str  # as the question writes it
    terms: frozenset[str]  # index terms of its words, in every language


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    """A question made ready for search."""

    language: str  # ISO 639-1, of any language; "en" when it cannot be told
    terms: tuple[QueryTerm, ...]
    filters: Filters
    is_language_open: bool = False  # the question's own words do not tell it
    file_names: tuple[str, ...] = ()  # names of files the question may mean, lower case
    names: tuple[Name, ...] = ()  # that it asks about; none where it names a territory or a known file, which filter


def make_plan(
    question: str,
    *,
    filters: Filters,
    index: IndexDefinition,
    asked: str | None = None,
    file_language: str | None = None,
    expected: Collection[str] = (),
) -> QueryPlan:
    """Analyse a question under an index definition; pure, no I/O.

    Args:
        asked: what the user wrote, whose language counts; None: the question.
        file_language: of the file that the question named, whose name it no longer holds: "Résume", "Summarize".
        expected: languages that the user may write in, likeliest first, such as those of the conversation.
    """
    written = question if asked is None else asked
    declared = None if index.ingest.language == "auto" else index.ingest.language
    shown = (detect_language(written) or declared) if declared else guess_language(written, expected)
    territory = None
    if filters.territory is None and index.territories:
        territory = find_territory(question, index.territories)
        if territory is not None:
            filters = replace(filters, territory=territory)
    file_names = tuple(find_file_names(question))
    language = shown or _assume_language(written, file_language, expected)
    return QueryPlan(
        language=language,
        terms=tuple(expand(question, language=language, synonyms=index.synonyms)),
        filters=filters,
        is_language_open=shown is None,
        file_names=file_names,
        names=() if territory else find_names(question, language),
    )


def _assume_language(question: str, file_language: str | None, expected: Collection[str]) -> str:
    """The language of a question that shows none: an expected one, else of its verb or of the file that it names."""
    if expected:
        return next(iter(expected))
    likely, asked = likely_languages(question), set(words(question))
    speaking = [code for code in likely if not asked.isdisjoint(load_language(code).files.overview)]  # "summarize"
    preferred = (FALLBACK_LANGUAGE, file_language) if speaking else (file_language, FALLBACK_LANGUAGE)
    known = (code for code in preferred if code in (speaking or likely))
    return next(known, None) or likeliest_language(question, speaking or likely)


def expand(question: str, *, language: str, synonyms: Sequence[Sequence[str]] = ()) -> list[QueryTerm]:
    """Index terms of a question, with those of equivalent expressions and of the other languages.

    Each word of the question is a group; what is added for a word joins its group, so that it
    stands in for the word where the scope lacks it and never raises what the question could cover.
    """
    expanded: dict[str, QueryTerm] = {}
    asked = words(question)
    for phrase in _empty_phrases():
        for start in range(len(asked) - len(phrase), -1, -1):
            if tuple(asked[start : start + len(phrase)]) == phrase:
                del asked[start : start + len(phrase)]
    group_of: dict[int, int] = {}  # position of a word → its group
    stems: list[str] = []  # a word without a stem stands for itself
    for position, word in enumerate(asked):
        term = index_term(word, language)
        stems.append(term or word)
        if term is not None and len(group_of) < _MAX_TERMS:
            group_of[position] = expanded.setdefault(term, QueryTerm(term=term, group=len(group_of))).group
    for position, group in group_of.items():
        for term in _foreign_terms_of(asked[position], language):
            if term not in expanded:
                expanded[term] = QueryTerm(term=term, weight=FOREIGN_STEM_WEIGHT, group=group)
    for position, term, weight in _synonym_terms(asked, stems, language, synonyms):
        expanded.setdefault(term, QueryTerm(term=term, weight=weight, group=group_of.get(position, -1)))
    return list(expanded.values())


@cache
def _empty_phrases() -> tuple[tuple[str, ...], ...]:
    """ "How long" asks and says nothing, as "when" does; its words alone do say something and are indexed."""
    every = (data.questions.empty_phrases for data in languages_of(None))
    return tuple(tuple(phrase.split()) for phrases in every for phrase in phrases)


def _synonym_terms(
    asked: Sequence[str], stems: Sequence[str], language: str, synonyms: Sequence[Sequence[str]]
) -> Iterator[tuple[int, str, float]]:
    """(position of the expression in the question, term of an equivalent one, its weight).

    The weight falls with the number of equivalents, or a passage that lists them all would win.
    """
    beginnings = _groups_by_beginning(tuple(map(tuple, synonyms)), language)
    begun: set[int] = set()
    for word in (*asked, *stems):
        begun.update(beginnings.get(word, ()))
    for number in sorted(begun):
        group = synonyms[number]
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
    others = (index_term(word, other) for other in language_codes() if other != language)
    return (*(term for term in others if term is not None), word)


@lru_cache(maxsize=20_000)
def _cut(expression: str, language: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(words, stems) of an expression of a definition: the same for every question."""
    wanted = tuple(words(expression))
    return wanted, tuple(index_term(word, language) or word for word in wanted)


def find_territory(question: str, territories: Sequence[Territory]) -> str | None:
    """The territory that a question names: "in <place>" first, then names of 2-4 words, then single words.

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
    prepositions = {phrase for data in languages_of(None) for phrase in data.questions.place_prepositions}

    def preference(run: tuple[int, int]) -> tuple[bool, bool, int]:
        start, length = run
        after_preposition = start > 0 and (
            asked[start - 1] in prepositions or " ".join(asked[max(0, start - 2) : start]) in prepositions
        )
        return (not after_preposition, length == 1, start)

    start, length = min(runs, key=preference)
    return names[tuple(asked[start : start + length])]


def find_file_names(question: str) -> list[str]:
    """Names that may be those of files: "rapport T3.pdf" gives "rapport t3.pdf" and "t3.pdf".

    Without an extension: words joined by "-", "_" or ".", and words in a row of which one has a figure, or that
    stand in a question with a word for a file. The caller looks up which of them exist; a question that names none
    of them is not restricted.
    """
    question = unicodedata.normalize("NFC", question)
    found: dict[str, None] = {}
    for start, end in find_extensions(question) if "." in question else ():
        parts = question[start:end].lower().split()
        for first in range(max(0, len(parts) - _MAX_STEM_WORDS), len(parts)):
            found[" ".join(parts[first:])] = None
    for token in _TOKEN.findall(question):
        stem = token.strip("-")
        if not {"_", "-", "."}.isdisjoint(stem[1:-1]):
            found[stem.lower()] = None
    tokens = [token.strip(_PUNCTUATION).lower() for token in question[:_MAX_NAME_CHARACTERS].split()]
    says_file = {place for place, token in enumerate(tokens) if fold(token) in _file_words()}
    figures = {place for place, token in enumerate(tokens) if _FIGURE.search(token)}
    if says_file or figures:
        for start in range(len(tokens)):
            for end in range(start + 1, min(len(tokens), start + _MAX_STEM_WORDS) + 1):
                beside = start - 1 in says_file or end in says_file
                if beside or (end - start > 1 and (says_file or not figures.isdisjoint(range(start, end)))):
                    found[" ".join(tokens[start:end])] = None
    return list(found)


def find_extensions(question: str) -> Iterator[tuple[int, int]]:
    """Where file names with an extension may stand in a question, each with the words before it; to be NFC."""
    end = 0  # of the name before
    for match in _EXTENSION.finditer(question):
        start = _start_of_name(question, match.start(), end)
        if start < match.start():
            end = match.end()
            yield start, end


@cache
def _file_words() -> frozenset[str]:
    return union_of(data.files.words for data in languages_of(None))


def _start_of_name(question: str, end: int, earliest: int) -> int:
    """Where the characters before `end` that a file's name may have begin; `end` where there are none."""
    if end == earliest or not _NAME_TAIL.match(question, end - 1):
        return end
    start = end
    while start > max(earliest, end - _MAX_NAME_CHARACTERS) and _NAME_CHARACTER.match(question, start - 1):
        start -= 1
    return start


def find_names(question: str, language: str = FALLBACK_LANGUAGE) -> tuple[Name, ...]:
    """Names of one or several words, years, and codes of figures and letters, in the question's order.

    Names of languages are none: "in English, please" says how to answer.
    """
    tokens = list(_NAME_TOKEN.finditer(question))
    capitalised = sum(token[0][0].isupper() for token in tokens)
    if not tokens or capitalised > max(2, _HEADLINE * len(tokens)):
        return ()
    names: list[list[re.Match[str]]] = []
    open_name = False  # whether the last name may go on
    for place, token in enumerate(tokens):
        if _YEAR.fullmatch(token[0]) or _CODE.match(token[0]):
            following = tokens[place + 1][0] if place + 1 < len(tokens) else ""
            if not (_YEAR.fullmatch(token[0]) and _is_unit(question[token.end() :], following)):
                names.append([token])
            open_name = False
        elif language not in _CAPITALISE_NOUNS and _is_capitalised(question, token):
            if open_name and question[names[-1][-1].end() : token.start()] == " ":
                names[-1].append(token)
            else:
                names.append([token])
            open_name = True
        else:
            open_name = False
    return tuple(_name(question, name) for name in names)


def find_absent(names: Sequence[Name], asked: Sequence[QueryTerm], held: Collection[str]) -> tuple[str, ...]:
    """Names of which no word, and nothing that stands for one, is in what is searched; of a code any part with figures.

    "F26-1099" is not there because other numbers begin with F26.

    Args:
        names: as `find_names` gives them.
        asked: the question's index terms.
        held: those of them that some chunk in scope holds.
    """
    groups_held = {term.group for term in asked if term.term in held}
    absent: list[str] = []
    for name in names:
        groups = {term.group for term in asked if term.term in name.terms}
        figures = {term.group for term in asked if term.term in name.terms and _FIGURE.search(term.term)}
        if not figures <= groups_held if _CODE.match(name.text) else groups and not groups & groups_held:
            absent.append(name.text)
    return tuple(absent)


@cache
def _language_names() -> frozenset[str]:
    return frozenset(language_names().values())


def _is_capitalised(question: str, token: re.Match[str]) -> bool:
    """Whether it is written like a name: a capital, then small letters, not where a sentence begins."""
    text, before = token[0], question[: token.start()].rstrip()
    return (
        len(text) >= _MIN_LETTERS
        and text[0].isupper()
        and not text.isupper()  # acronyms stand for words that documents may spell out
        and bool(before)
        and before[-1] not in _BEGINS_SENTENCE
        and fold(text) not in _CALENDAR
        and text not in _language_names()
    )


def _is_unit(after: str, following: str) -> bool:
    """Whether a number is one of something: "2000 euros", "1500 €"."""
    return after.lstrip()[:1] in {"€", "$", "£", "%"} or fold(following) in {
        "euro", "euros", "dollars", "dolares", "pounds", "libras", "km", "kg", "m", "h",
    }  # fmt: skip


def _name(question: str, tokens: Sequence[re.Match[str]]) -> Name:
    text = question[tokens[0].start() : tokens[-1].end()]
    return Name(text=text, terms=frozenset(word_forms(text)))
