"""What a question asks of a table, as far as its words alone tell: operations, comparisons, superlatives.

No table and no database is looked at: this is what every question pays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

from rag_service.language.dates import YEAR
from rag_service.language.languages import TableWords, language_codes, load_language
from rag_service.language.words import fold, words
from rag_service.tables.calendar_ranges import CalendarRange, read_calendar_ranges
from rag_service.tables.question_values import Value, read_date, read_value
from rag_service.tables.vocabulary import MAX_WORDS, Word, read_words

_MAX_VALUE_WORDS = 6
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SIGN = re.compile(r"US\$|R\$|[€$£¥₹%]")
_INNER = re.compile(r"(?<=[^\W\d_] )[^\W\d_]{2,}")  # words that begin no sentence
_OPERATIONS = ("count", "amount", "sum", "mean", "median", "maximum", "minimum", "difference", "ratio", "share")
_STOCK = frozenset({"stock", "quantity"})
_TIMES = ("after", "since", "before")
_BOUNDS = ("more", "at_least", "less", "at_most", *_TIMES)


class Comparison(StrEnum):
    EQUAL = "="
    CONTAINS = "contains"
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    EMPTY = "empty"  # or zero
    MONTH = "month"  # of any year
    BETWEEN = "between"  # both ends included


_COMPARISONS = {
    "more": Comparison.GREATER,
    "at_least": Comparison.GREATER_OR_EQUAL,
    "less": Comparison.LESS,
    "at_most": Comparison.LESS_OR_EQUAL,
    "after": Comparison.GREATER,
    "since": Comparison.GREATER_OR_EQUAL,
    "before": Comparison.LESS,
}


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A comparison with a number or a date, whose column the table has to tell."""

    comparison: Comparison
    values: tuple[Decimal, ...]  # two for `between`
    is_date: bool = False  # the values are ordinals of days
    is_year: bool = False  # the values may be years
    is_time: bool = False  # they are if they may be: "after 2011", "between 1990 and 1999"
    place: int  # first word of it
    end: int  # word after it, its unit if it has one
    concepts: frozenset[str] = frozenset()  # of a comparative: "cheaper than"


@dataclass(frozen=True, kw_only=True)
class Superlative:
    """The highest or lowest by a concept: "cheapest"."""

    operation: str  # maximum or minimum
    concepts: frozenset[str]
    is_plain: bool = False  # of any figure: "the biggest", "el más alto"
    is_of_two: bool = False  # "who earns more, Ann or Ben"
    places: range = range(0)  # of its words, unless it is of two


@dataclass(kw_only=True)
class Question:
    """A question with what was recognised in it."""

    language: str
    words: tuple[Word, ...]
    used: list[bool]  # by word: whether it is accounted for
    operations: dict[str, int] = field(default_factory=dict)  # name → place of the last word
    groups: list[int] = field(default_factory=list)  # places right after "per" and the like
    bounds: list[Bound] = field(default_factory=list)
    superlative: Superlative | None = None
    count: int | None = None  # how many are asked for: "the three cheapest"
    signs: frozenset[str] = frozenset()  # € $ % as the question writes them
    negations: list[int] = field(default_factory=list)  # places of words that negate
    calendar_ranges: tuple[CalendarRange, ...] = ()  # "from June to August"
    names: frozenset[str] = frozenset()  # words with a capital letter that begin no sentence

    @property
    def content(self) -> list[str]:
        """The keys of its words with a meaning of their own, and of the months and weekdays between those named."""
        named = [word.key for word in self.words if word.is_content]
        return [*named, *(key for one in self.calendar_ranges for key in one.keys)]

    @property
    def runs(self) -> list[str]:
        """Its words and runs of words, as whole values are written."""
        keys = [word.key for word in self.words]
        lengths = range(1, _MAX_VALUE_WORDS + 1)
        runs = [" ".join(keys[at : at + size]) for size in lengths for at in range(len(keys) - size + 1)]
        return [*runs, *(key for one in self.calendar_ranges for key in one.keys)]

    @property
    def asks_amount(self) -> bool:
        """Whether it asks how much something is, and for no calculation."""
        return self.operations.keys() == {"amount"} and not (self.bounds or self.superlative)

    @property
    def asks(self) -> bool:
        """Whether its words ask for an operation."""
        return bool(self.operations or self.bounds or self.superlative)


def read_question(text: str, language: str) -> Question | None:
    """What a question asks of a table; None in an unsupported language, and for one word or a long text."""
    if language not in language_codes():
        return None
    found = words(text)
    if not 1 < len(found) <= MAX_WORDS:
        return None
    data = load_language(language)
    names = _names(text)
    question = Question(
        language=language,
        words=_with_names(read_words(found, language), names - data.tables.before_nouns),
        used=[False] * len(found),
        names=names,
        signs=frozenset(_SIGN.findall(text)),
    )
    if not _phrases(question, ("difference", "ratio")):  # those are of two months
        question.calendar_ranges = tuple(read_calendar_ranges(question.words, language))
    for one in question.calendar_ranges:
        _take(question, one.start, one.end)
    for start, end, _ in _phrases(question, ("pending",)):
        question.negations.append(start)
        _take(question, start, end)
    _read_bounds(question, data.tables)
    _read_superlatives(question, data.tables)
    _read_operations(question, data.tables)
    _read_comparative(question, data.tables)
    _read_count(question)
    _read_periods(question)
    for place, word in enumerate(question.words):
        is_contracted = word.text == "t" and question.words[place - 1].text.endswith("n")  # "hasn't"
        if not question.used[place] and (word.text in data.proof.negations or is_contracted):
            question.negations.append(place)
            _take(question, place, place + 1)
    return question


def _names(text: str) -> frozenset[str]:
    """The words written as names; none where every word has a capital letter, as in a title."""
    inner = _INNER.findall(text)
    names = [word for word in inner if word[0].isupper()]
    return frozenset() if len(names) == len(inner) else frozenset(map(fold, names))


def _with_names(found: tuple[Word, ...], names: frozenset[str]) -> tuple[Word, ...]:
    """The words, of which stop words written as names have a meaning: "en Las Eras"."""
    return tuple(replace(word, is_content=True) if word.text in names else word for word in found)


def _take(question: Question, start: int, end: int) -> None:
    question.used[start:end] = [True] * (end - start)


def _phrases(question: Question, names: tuple[str, ...]) -> list[tuple[int, int, str]]:
    """(start, end, name) of phrases in unused words, longer ones first."""
    texts = tuple(word.text for word in question.words)
    said = set(texts)
    return [
        (start, end, name)
        for phrase, name in _every_phrase(question.language, names)
        if phrase[0] in said  # most are not there
        for start in range(len(texts) - len(phrase) + 1)
        if texts[start : (end := start + len(phrase))] == phrase and not any(question.used[start:end])
    ]


@lru_cache(maxsize=64)  # languages, with the handful of names that are asked for together
def _every_phrase(language: str, names: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The words of each phrase with these names, longer ones first."""
    phrases = load_language(language).tables.phrases
    every = [(tuple(phrase.split()), name) for name in names for phrase in phrases[name]]
    return tuple(sorted(every, key=lambda one: -len(one[0])))


def _read_bounds(question: Question, data: TableWords) -> None:
    def add(
        comparison: Comparison,
        start: int,
        *values: Value,
        concepts: frozenset[str] = frozenset(),
        is_time: bool = False,
    ) -> None:
        late = comparison in (Comparison.GREATER, Comparison.LESS_OR_EQUAL)
        numbers = [value.last if late and value.last is not None else value.number for value in values]
        if len(values) == 2 and values[1].last is not None:
            numbers[1] = values[1].last
        end = max(value.end for value in values)
        question.bounds.append(
            Bound(
                comparison=comparison,
                values=tuple(numbers),
                is_date=all(value.is_date for value in values),
                is_year=all(value.is_year for value in values),
                is_time=is_time or comparison is Comparison.BETWEEN,
                place=start,
                end=end,
                concepts=concepts,
            )
        )
        _take(question, start, end)

    for start, end, _ in _phrases(question, ("between",)):
        first = read_value(question.words, end, question.language)
        second = None if first is None else read_value(question.words, first.end + 1, question.language)
        if first is not None and second is not None and first.is_date == second.is_date:
            add(Comparison.BETWEEN, start, first, second)
    for start, end, _ in _phrases(question, ("none_left",)):
        bound = Bound(comparison=Comparison.EQUAL, values=(Decimal(0),), place=start, end=end, concepts=_STOCK)
        question.bounds.append(bound)
        _take(question, start, end)
    for side, comparison in (("high", Comparison.GREATER), ("low", Comparison.LESS)):
        for start, end, concepts in _comparatives(question, data, side):
            if (value := read_value(question.words, end, question.language)) is not None:
                add(comparison, start, value, concepts=concepts)
    for start, end, name in _phrases(question, _BOUNDS):
        if any(question.used[start:end]):
            continue
        value = read_value(question.words, end, question.language)
        before = read_value(question.words, start - 1, question.language) if name == "at_least" else None
        if value is None and before is not None and before.end == start:  # "100 or more"
            add(Comparison.GREATER_OR_EQUAL, start - 1, before)
            _take(question, start, end)
        elif value is not None and (name not in _TIMES or value.is_date or value.is_year):
            add(_COMPARISONS[name], start, value, is_time=name in _TIMES)


def _comparatives(question: Question, data: TableWords, side: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """(start, end, concepts) of "cheaper than", "más caro que"."""
    found = [word.text for word in question.words]
    other = "low" if side == "high" else "high"
    more, less = data.most | _before_than(data, "more"), data.least | _before_than(data, "less")
    for place, word in enumerate(found):
        if place + 1 < len(found) and found[place + 1] in data.than:
            if concepts := _concepts_with(data.comparatives, side, word):
                yield place, place + 2, concepts
            elif (place and found[place - 1] in more and (concepts := _concepts_with(data.adjectives, side, word))) or (
                place and found[place - 1] in less and (concepts := _concepts_with(data.adjectives, other, word))
            ):
                yield place - 1, place + 2, concepts


def _before_than(data: TableWords, name: str) -> set[str]:
    """What stands before "than" in comparisons: "more", "higher"."""
    parts = (phrase.partition(" ") for phrase in data.phrases[name])
    return {first for first, _, last in parts if last in data.than}


def _concepts_with(lists: Mapping[str, Mapping[str, frozenset[str]]], side: str, word: str) -> frozenset[str]:
    return frozenset(concept for concept, names in lists.get(side, {}).items() if word in names)


def _read_superlatives(question: Question, data: TableWords) -> None:
    texts = [word.text for word in question.words]
    for side, turned, operation in (("high", "low", "maximum"), ("low", "high", "minimum")):
        for place, word in enumerate(texts):
            if question.used[place] or question.superlative is not None:
                continue
            if concepts := _concepts_with(data.superlatives, side, word):
                start = place
            elif place and (
                concepts := (
                    _concepts_with(data.adjectives, side, word)
                    if texts[place - 1] in data.most
                    else _concepts_with(data.adjectives, turned, word)
                    if texts[place - 1] in data.least
                    else frozenset()
                )
            ):
                start = place - 1
            else:
                continue
            other = _concepts_with(data.superlatives, turned, word)  # "oldest": the highest age, the earliest date
            is_plain = " ".join(texts[start : place + 1]) in data.phrases[operation]
            question.superlative = Superlative(
                operation="either" if other else operation,
                concepts=concepts | other,
                is_plain=is_plain and not other,
                places=range(start, place + 1),
            )
            _take(question, start, place + 1)


def _read_operations(question: Question, data: TableWords) -> None:
    for start, end, name in _phrases(question, (*_OPERATIONS, "group")):
        if any(question.used[start:end]):
            continue
        if name == "group":
            question.groups.append(end)
        elif name in ("maximum", "minimum") and question.superlative is not None:
            continue
        else:
            question.operations.setdefault(name, end)
        _take(question, start, end)
    if {"difference", "ratio"} & question.operations.keys():
        for start, end, _ in _phrases(question, ("between",)):
            _take(question, start, end)
        for place, word in enumerate(question.words):
            if word.text in data.than:  # "how much more does Ben earn than Tom"
                _take(question, place, place + 1)


def _read_comparative(question: Question, data: TableWords) -> None:
    """Which of two that the question names: "who earns more, Ann or Ben", "is Oslo cheaper than Rome"."""
    if question.asks:
        return
    texts = [word.text for word in question.words]
    for side, name, operation in (("high", "more", "maximum"), ("low", "less", "minimum")):
        plain = _before_than(data, name)
        for place, (word, after) in enumerate(pairwise([*texts, ""])):
            adjective = _concepts_with(data.adjectives, "high", after) if word in plain else frozenset()  # "less heavy"
            concepts = adjective or _concepts_with(data.comparatives, side, word)
            if concepts or word in plain:
                question.superlative = Superlative(
                    operation=operation, concepts=concepts, is_plain=not concepts, is_of_two=True
                )
                _take(question, place, place + 1 + bool(adjective))
    if question.superlative is not None:
        question.used[:] = [used or text in data.than for used, text in zip(question.used, texts, strict=True)]


def _read_count(question: Question) -> None:
    """How many of the highest or lowest: "top 3", "the three cheapest", "los 3 más caros"."""
    if question.superlative is None and not {"maximum", "minimum"} & question.operations.keys():
        return
    for place, word in enumerate(question.words):
        value = (
            None
            if question.used[place] or not word.is_content
            else read_value(question.words, place, question.language)
        )
        if value is None or value.is_date or value.end != place + 1 or value.number not in range(2, 51):
            continue
        near = question.used[max(0, place - 2) : place + 4]
        if any(near) and question.count is None:
            question.count = int(value.number)
            _take(question, place, place + 1)


def _read_periods(question: Question) -> None:
    """Months and days with their year: "in March 2026". Years alone may be values or columns of the table."""
    for place, used in enumerate(question.used):
        if not used and (found := read_date(question.words, place, question.language)) is not None:
            first, last, end = found
            bound = Bound(comparison=Comparison.BETWEEN, values=(first, last), is_date=True, place=place, end=end)
            question.bounds.append(bound)
            _take(question, place, end)


def year_of(word: Word) -> int | None:
    return int(word.text) if YEAR.fullmatch(word.text) else None
