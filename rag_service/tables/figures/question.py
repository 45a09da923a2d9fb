"""What a question asks of the statements of a report: a figure, a change between two years, profit or loss.

No table and no database is looked at.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, count
from operator import itemgetter

from rag_service.language.languages import FigureWords, language_codes, languages_of, load_language, union_of
from rag_service.language.words import words
from rag_service.tables.figures.periods import YEARLY, read_dates, read_duration
from rag_service.tables.vocabulary import MAX_WORDS, Word, column_word, read_words

_YEAR = re.compile(r"(?:fy)?((?:19|20)\d\d)")
_QUARTER = re.compile(r"q[1-4]|[1-4]t|t[1-4]")
_NAME = re.compile(r"(?<=[\s(/&])[A-Z][\w&.-]*")
_SHORT_YEAR = re.compile(r"fy(\d\d)")

_OTHER_OPERATIONS = (
    "mean", "median", "maximum", "minimum", "ratio", "share", "more", "at_least", "less", "at_most",
)  # fmt: skip

Synonyms = tuple[tuple[str, ...], ...]
Group = tuple[tuple[str, ...], ...]  # the words of each expression of a group
Keys = tuple[str, ...]  # folded words of an expression, those without meaning left out


@dataclass(frozen=True, kw_only=True)
class Named:
    """What one or several words of the question stand for."""

    places: tuple[int, ...]  # of the question's words
    expressions: tuple[Keys, ...]  # any of these may stand in a row's name


@dataclass(frozen=True, kw_only=True)
class FigureQuestion:
    language: str
    words: tuple[Word, ...]
    years: tuple[int, ...]  # in the order of the question
    named: tuple[Named, ...]  # expressions that have synonyms
    wanted: frozenset[int]  # places of the words that a row, its table or its document has to account for
    moves: frozenset[int]  # places of "increase", "fell", "change": an operation, unless they stand in the row's name
    whether: str = ""  # "loss", "profit", "rise", "fall": a question for yes or no
    duration: int | None = None  # place in `durations`
    months: frozenset[int] = frozenset()  # at whose end a period ends
    days: frozenset[int] = frozenset()
    counts: bool = False  # "how many": another figure is not near
    proper: frozenset[str] = frozenset()  # words written as names

    @property
    def keys(self) -> list[str]:
        """Folded words that the names of rows may hold."""
        found = {self.words[place].key for place in self.wanted}
        for one in self.named:
            found.update(key for expression in one.expressions for key in expression)
        return sorted(found)


def read_figure_question(text: str, language: str, synonyms: Synonyms) -> FigureQuestion | None:
    """What a question asks of statements; None if its words name no figure.

    `synonyms`: groups of expressions for the same.
    """
    if language not in language_codes():
        return None
    found = words(text)
    data = load_language(language)
    if not 1 < len(found) <= MAX_WORDS:
        return None
    figures = data.tables.figures
    if figures.never & set(found):
        return None
    named = tuple(_named(found, language, synonyms))
    covered = {place for one in named for place in one.places}
    years: dict[int, int] = {}
    other: set[int] = set()
    silent = figures.filler.union(data.tables.phrases["between"], *data.proof.months)
    for place, word in enumerate(found):
        match = _YEAR.fullmatch(word) or _SHORT_YEAR.fullmatch(word)
        if match is not None:
            years[place] = int(match[1]) + (2000 if len(match[1]) == 2 else 0)
        elif word in silent or word.isdigit() or _QUARTER.fullmatch(word):
            other.add(place)
    read = read_words(found, language)
    # "in the year 2023" names no duration: it may be told of quarters that ended in it. "Full year" does.
    duration = (
        0
        if any(map(_QUARTER.fullmatch, found))
        else read_duration(found, besides=figures.filler & figures.durations[YEARLY])
    )
    month_numbers, days = read_dates(found)
    durations = {place for place, word in enumerate(found) if any(word in names for names in figures.durations)}
    moving = figures.rise | figures.fall | figures.change
    moves = {place for place, word in enumerate(found) if word in moving}
    wanted = (
        {
            place
            for place, word in enumerate(read)
            if (word.is_content or word.text in figures.qualifiers) and place not in years and place not in moves
        }
        - (other - covered)
        - (durations - covered)
    )
    for name in _OTHER_OPERATIONS:  # to be found in the row's name: "weighted average"
        for phrase in data.tables.phrases[name]:
            wanted.update(_places(found, _phrase(phrase)))
    whether = _whether(found, figures)
    counts = any(_places(found, _phrase(phrase)) for phrase in data.tables.phrases["count"])
    asks = counts or any(_places(found, _phrase(phrase)) for phrase in data.tables.phrases["amount"])
    if not (named or (wanted and (years or asks))):
        return None  # plain questions pay no statement
    return FigureQuestion(
        language=language,
        words=read,
        years=tuple(dict.fromkeys(years.values())),
        named=named,
        wanted=frozenset(wanted | covered),
        moves=frozenset(moves),
        whether=whether,
        duration=duration,
        months=month_numbers,
        days=days,
        counts=counts,
        proper=frozenset(word for name in _NAME.findall(text) for word in words(name)),
    )


def _whether(found: Sequence[str], figures: FigureWords) -> str:
    for name, phrases in (("loss", figures.loss), ("profit", figures.profit)):
        if any(_places(found, _phrase(phrase)) for phrase in phrases):
            return name
    if found[0] in figures.asks_whether:
        if any(word in figures.rise for word in found):
            return "rise"
        if any(word in figures.fall for word in found):
            return "fall"
    return ""


def _named(found: Sequence[str], language: str, synonyms: Synonyms) -> Iterator[Named]:
    """The longest expressions of the synonyms that stand in the question."""
    taken: set[int] = set()
    data = load_language(language).tables.figures
    read = read_words(found, language)
    hits = [(places, group) for _, places, group in sorted(_expressions_in(read, synonyms), key=itemgetter(0))]
    income = _group_of_income(synonyms) or ()
    phrases = (_places(found, _phrase(phrase)) for phrase in (*data.loss, *data.profit))
    hits += [(places, income) for places in phrases if places and income]
    for places in sorted(dict(hits), key=lambda one: -len(one)):
        if not taken & set(places):
            taken.update(places)
            every = (expression for at, group in hits if at == places for expression in group)  # of each language
            yield Named(places=places, expressions=tuple(dict.fromkeys(filter(None, map(_keys, every)))))


@lru_cache(maxsize=8)
def _groups(synonyms: Synonyms) -> tuple[Group, ...]:
    return tuple(tuple(tuple(words(expression)) for expression in group) for group in synonyms)


@lru_cache(maxsize=8)
def _group_of_income(synonyms: Synonyms) -> tuple[tuple[str, ...], ...] | None:
    """The group of the net income: the one that holds a phrase for losses."""
    phrases = {tuple(words(phrase)) for data in languages_of(None) for phrase in data.tables.figures.loss}
    found = [expression for group in _groups(synonyms) if phrases & set(group) for expression in group]
    return tuple(found) or None


@lru_cache(maxsize=5_000)
def _keys(expression: tuple[str, ...]) -> Keys:
    return tuple(column_word(word).key for word in expression if word not in _small_words())


@cache
def _small_words() -> frozenset[str]:
    """Words between those of an expression, in every language: "and", "of"."""
    every = languages_of(None)
    return union_of(data.stop_words for data in every) - union_of(data.tables.figures.qualifiers for data in every)


def label_words(text: str) -> tuple[Word, ...]:
    """The words of a row's name that carry its meaning."""
    small = _small_words()
    return tuple(column_word(word) for word in words(text) if word not in small)


@lru_cache(maxsize=2_000)  # those of the language data are looked for in each question
def _phrase(phrase: str) -> tuple[str, ...]:
    return tuple(words(phrase))


def _places(found: Sequence[str], expression: tuple[str, ...]) -> tuple[int, ...]:
    size = len(expression)
    if expression and expression[0] not in found:
        return ()  # as most
    for start in range(len(found) - size + 1):
        if tuple(found[start : start + size]) == expression:
            return tuple(range(start, start + size))
    return ()


def _expressions_in(read: Sequence[Word], synonyms: Synonyms) -> Iterator[tuple[int, tuple[int, ...], Group]]:
    """The synonyms that stand in the question, in other forms too: their number, their places and their group."""
    met: set[int] = set()
    expressions = _by_first_word(synonyms)
    for start, word in enumerate(read):
        for number, wanted, group in chain(*(expressions.get(form, ()) for form in {word.text, word.key})):
            here = read[start : start + len(wanted)]
            if number not in met and len(here) == len(wanted) and all(map(_is_same, here, wanted)):
                met.add(number)
                yield number, tuple(range(start, start + len(wanted))), group


def _is_same(asked: Word, word: Word) -> bool:
    """Whether a word of a question is one of an expression; articles only as written: "los" is no "loss"."""
    return asked.text == word.text or (asked.is_content and asked.key == word.key)


@lru_cache(maxsize=8)
def _by_first_word(synonyms: Synonyms) -> Mapping[str, Sequence[tuple[int, tuple[Word, ...], Group]]]:
    """Numbered expressions and their groups by text and key of the first word: there are hundreds of them."""
    found: defaultdict[str, list[tuple[int, tuple[Word, ...], Group]]] = defaultdict(list)
    numbers = count()
    for group in _groups(synonyms):
        for expression in group:
            wanted = tuple(column_word(word) for word in expression)
            entry = next(numbers), wanted, group
            for form in {wanted[0].text, wanted[0].key}:
                found[form].append(entry)
    return found
