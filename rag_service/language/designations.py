"""What says which of several is meant, and whether a text changes another one that it names.

A designation is a letter, number or ordinal beside a word, as in "gate B" or "third floor". Amendments say what they
replace ("in article 4 of regulation 12, the words “180 days” …"), in any language, so no word list is needed. A
question finds the old text first: it has the question's words, and the amendment does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from rag_service.language.dates import ORDINAL_ENDINGS, month_of
from rag_service.language.languages import languages_of
from rag_service.language.words import fold, is_stop_word, words
from rag_service.recent import kept_apart

_ONE = r"(?:[A-HJ-Z]|\d{1,4})(?![\w'’%]|[.,:/]\w)"  # "I" may be a pronoun
# "lots 8 et 9"; a word begins where no letter stands before it, so that a long run of letters is read once
_BEHIND = re.compile(rf"(?<![^\W\d_])([^\W\d_]+)\s({_ONE}(?:(?:, ?| ?[-–/] ?| [^\W\d_]{{1,3}} ){_ONE})*)")
_ONES = re.compile(r"\b(?:[A-Z]|\d+)\b")
_DATE = 4  # words of "dia 3 de julho"
_FOLLOWING = re.compile(r"\s*([^\W_]+)")
_SMALL = re.compile(r"(?<=\s)[a-z](?![\w'’%]|[.,:/]\w)")

Designation = tuple[str, str]  # the word, and the letter or number; an ordinal as its number
_FIGURE = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
_YEAR = re.compile(r"(?:19|20)\d\d")
_OPENING = 400  # characters in which a document says what it changes


def read_designations(text: str) -> Iterator[Designation]:
    """All that may be designations; an ordinal with the word before it and the one behind it."""
    for found in _BEHIND.finditer(text):
        yield from ((found[1], one) for one in _ONES.findall(found[2]))
    yield from _read_ordinals(text)


def read_asked_designations(question: str, language: str) -> Iterator[Designation]:
    """Those of a question, without initials, dates, and numbers of something: "is for 3 people"."""
    question = _SMALL.sub(lambda one: one[0] if _is_word(one, language) else one[0].upper(), question)  # "hall c"
    for found in _BEHIND.finditer(question):
        following = _FOLLOWING.match(question, found.end())
        is_quantity = following is not None and not is_stop_word(fold(following[1]), language)
        is_quantity |= any(map(month_of, words(question[found.start() :])[:_DATE]))  # "on day 3 of July"
        is_initial = question.startswith(".", found.end())
        if not is_stop_word(fold(found[1]), language):
            ones = _ONES.findall(found[2])
            yield from ((found[1], one) for one in ones if not (is_quantity if one.isdigit() else is_initial))
    yield from ((word, one) for word, one in _read_ordinals(question) if not is_stop_word(word, language))


def _is_word(letter: re.Match[str], language: str) -> bool:
    """Return whether a small letter may be a word: "c est", "a dog"; at the end of a question it is none."""
    return is_stop_word(letter[0], language) and letter.string[letter.end() :].strip(" ?.!") != ""


def ordinals_in(text: str) -> set[str]:
    """The numbers of all its ordinals."""
    return {_number_of(found["one"]) for found in _ordinal().finditer(fold(text))}


def _read_ordinals(text: str) -> Iterator[Designation]:
    for found in _ordinal().finditer(fold(text)):
        beside = filter(None, (found["before"], found["after"]))
        yield from ((word, _number_of(found["one"])) for word in beside)


def _number_of(ordinal: str) -> str:
    return _ordinal_words().get(ordinal) or re.findall(r"\d+", ordinal)[0]


@cache
def _ordinal() -> re.Pattern[str]:
    """An ordinal in folded text; "quinta-feira" is a weekday."""
    names, endings = "|".join(_ordinal_words()), "|".join(sorted(ORDINAL_ENDINGS))
    one = rf"(?P<one>(?:{names}|\d{{1,2}}\.?(?:{endings}))(?![\w-]))"
    return re.compile(rf"(?:\b(?P<before>[^\W\d_]+)\s)?(?<![\w-]){one}(?=(?:\s(?P<after>[^\W\d_]+))?)")


@cache
def _ordinal_words() -> dict[str, str]:
    """The number of each ordinal, in the words of all languages."""
    return {
        name: str(number)
        for data in languages_of(None)
        for number, names in enumerate(data.tables.ordinals, start=1)
        for name in names.split()
    }


@dataclass(frozen=True)
class Opening:
    """The beginning of a passage below its document's title, read once for all titles that it may name."""

    own_title: str
    text: str

    @cached_property
    def words(self) -> str:
        """Its words, folded, with a space around each."""
        return _spaced(_words_of(self._begins))

    @cached_property
    def designations(self) -> frozenset[tuple[str, str]]:
        """Its numbers, each with the word that it stands beside."""
        return _designations(self._begins)

    @property
    def _begins(self) -> str:
        return f"{self.own_title}\n{self.text[:_OPENING]}"


def names_document(title: str, opening: Opening) -> bool:
    """Return whether a document that begins so names another: by its title, or its number in it.

    The number is that of "regulation 12"; a title of one word is the name of anything.
    """
    if title == opening.own_title:
        return False
    named, whole = _designations(title), _words_of(title)
    if len(whole) > 1 and _spaced(whole) in opening.words:
        return True
    return bool(named) and named <= opening.designations


def changes(text: str, old: str, *, title: str) -> bool:
    """Return whether a text names a figure or an article of an old one, whose document has this title."""
    of_title = {number for _, number in _designations(title)}
    figures = {figure for figure in _FIGURE.findall(old) if not _YEAR.fullmatch(figure)} - of_title
    articles = _designations(old) - _designations(title)
    return not figures.isdisjoint(_FIGURE.findall(text)) or not articles.isdisjoint(_designations(text))


@kept_apart(1_000)
def _designations(text: str) -> frozenset[tuple[str, str]]:
    return frozenset((fold(word), one) for word, one in read_designations(text) if one.isdigit())


@kept_apart(1_000)
def _words_of(text: str) -> tuple[str, ...]:
    return tuple(words(fold(text)))


def _spaced(whole: Sequence[str]) -> str:
    return f" {' '.join(whole)} "
