"""What a question asks of a table, as far as its words alone tell: operations, comparisons, superlatives.

No table and no database is looked at: this is what every question pays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cache, lru_cache

from rag_service.language.languages import TableWords, language_codes, load_language
from rag_service.language.words import index_term, is_stop_word, words
from rag_service.tables.model import fold_word

_MAX_VALUE_WORDS = 6
MAX_WORDS = 40  # longer questions say more than an operation
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_SIGN = re.compile(r"US\$|R\$|[€$£¥₹%]")
_OPERATIONS = ("count", "amount", "sum", "mean", "median", "maximum", "minimum", "difference", "ratio", "share")
_TIMES = ("after", "since", "before")
_BOUNDS = ("more", "at_least", "less", "at_most", *_TIMES)


class Comparison(StrEnum):
    EQUAL = "="
    CONTAINS = "contains"
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="
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
class Word:
    text: str  # folded
    key: str  # as values are compared
    forms: frozenset[str]  # key and stems in every language, as column names are compared
    concepts: frozenset[str]
    is_content: bool


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A comparison with a number or a date, whose column the table has to tell."""

    comparison: Comparison
    values: tuple[Decimal, ...]  # two for `between`
    is_date: bool = False  # the values are ordinals of days
    is_year: bool = False  # the values may be years
    place: int  # first word of it
    concepts: frozenset[str] = frozenset()  # of a comparative: "cheaper than"


@dataclass(frozen=True, kw_only=True)
class Superlative:
    """The highest or lowest by a concept: "cheapest"."""

    operation: str  # maximum or minimum
    concepts: frozenset[str]


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

    @property
    def content(self) -> list[str]:
        """The keys of its words with a meaning of their own."""
        return [word.key for word in self.words if word.is_content]

    @property
    def runs(self) -> list[str]:
        """Its words and runs of words, as whole values are written."""
        keys = [word.key for word in self.words]
        lengths = range(1, _MAX_VALUE_WORDS + 1)
        return [" ".join(keys[at : at + size]) for size in lengths for at in range(len(keys) - size + 1)]

    @property
    def asks(self) -> bool:
        """Whether its words ask for an operation."""
        return bool(self.operations or self.bounds or self.superlative)


def read_question(text: str, language: str) -> Question | None:
    """What a question asks of a table; None if it is no such question."""
    if language not in language_codes():
        return None
    found = words(text)
    if not 1 < len(found) <= MAX_WORDS:
        return None
    data = load_language(language)
    if any(next(_find(found, phrase), None) is not None for phrase in data.tables.phrases["other"]):
        return None
    question = Question(
        language=language,
        words=tuple(_word(word, language) for word in found),
        used=[False] * len(found),
        signs=frozenset(_SIGN.findall(text)),
    )
    _read_bounds(question, data.tables)
    _read_superlatives(question, data.tables)
    _read_operations(question, data.tables)
    _read_count(question)
    _read_periods(question)
    if any(word.text in data.proof.negations for word in _unused(question)):
        return None
    return question


@lru_cache(maxsize=20_000)
def _word(word: str, language: str) -> Word:
    stems = {stem for code in language_codes() if (stem := index_term(word, code))}
    return Word(
        text=word,
        key=fold_word(word),
        forms=frozenset({fold_word(word), *stems}),
        concepts=concepts_of(word),
        is_content=not is_stop_word(word, language),
    )


def column_word(word: str) -> Word:
    """A word of a column's name, whose language nobody knows."""
    return _word(word, "")


@cache
def _concepts() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for code in language_codes():
        for concept, names in load_language(code).tables.concepts.items():
            for name in names:
                found.setdefault(name, set()).add(concept)
    return {name: frozenset(concepts) for name, concepts in found.items()}


def concepts_of(word: str) -> frozenset[str]:
    """What a folded word may stand for, in any language: price, weight, warehouse."""
    return _concepts().get(word, frozenset())


def _unused(question: Question) -> Iterator[Word]:
    return (word for word, used in zip(question.words, question.used, strict=True) if not used)


def _find(found: list[str], phrase: str) -> Iterator[int]:
    wanted = phrase.split()
    for start in range(len(found) - len(wanted) + 1):
        if found[start : start + len(wanted)] == wanted:
            yield start


def _take(question: Question, start: int, end: int) -> None:
    question.used[start:end] = [True] * (end - start)


def _phrases(question: Question, names: tuple[str, ...], data: TableWords) -> Iterator[tuple[int, int, str]]:
    """(start, end, name) of phrases in unused words, longer ones first."""
    found = [word.text for word in question.words]
    every = [(phrase, name) for name in names for phrase in data.phrases[name]]
    for phrase, name in sorted(every, key=lambda one: -len(one[0].split())):
        for start in _find(found, phrase):
            end = start + len(phrase.split())
            if not any(question.used[start:end]):
                yield start, end, name


def _read_bounds(question: Question, data: TableWords) -> None:
    def add(comparison: Comparison, start: int, *values: _Value, concepts: frozenset[str] = frozenset()) -> None:
        late = comparison in (Comparison.GREATER, Comparison.LESS_OR_EQUAL)
        numbers = [value.last if late and value.last is not None else value.number for value in values]
        if len(values) == 2 and values[1].last is not None:
            numbers[1] = values[1].last
        question.bounds.append(
            Bound(
                comparison=comparison,
                values=tuple(numbers),
                is_date=all(value.is_date for value in values),
                is_year=all(value.is_year for value in values),
                place=start,
                concepts=concepts,
            )
        )
        _take(question, start, max(value.end for value in values))

    for start, end, _ in list(_phrases(question, ("between",), data)):
        first = _value(question, end)
        second = None if first is None else _value(question, first.end + 1)
        if first is not None and second is not None and first.is_date == second.is_date:
            add(Comparison.BETWEEN, start, first, second)
    for side, comparison in (("high", Comparison.GREATER), ("low", Comparison.LESS)):
        for start, end, concepts in _comparatives(question, data, side):
            if (value := _value(question, end)) is not None:
                add(comparison, start, value, concepts=concepts)
    for start, end, name in list(_phrases(question, _BOUNDS, data)):
        if any(question.used[start:end]):
            continue
        value = _value(question, end)
        before = _value(question, start - 1) if name == "at_least" else None
        if value is None and before is not None and before.end == start:  # "100 or more"
            add(Comparison.GREATER_OR_EQUAL, start - 1, before)
            _take(question, start, end)
        elif value is not None and (name not in _TIMES or value.is_date or value.is_year):
            add(_COMPARISONS[name], start, value)


def _comparatives(question: Question, data: TableWords, side: str) -> Iterator[tuple[int, int, frozenset[str]]]:
    """(start, end, concepts) of "cheaper than", "más caro que"."""
    found = [word.text for word in question.words]
    other = "low" if side == "high" else "high"
    for place, word in enumerate(found):
        if place + 1 < len(found) and found[place + 1] in data.than:
            if concepts := _concepts_with(data.comparatives, side, word):
                yield place, place + 2, concepts
            elif (
                place and found[place - 1] in data.most and (concepts := _concepts_with(data.adjectives, side, word))
            ) or (
                place and found[place - 1] in data.least and (concepts := _concepts_with(data.adjectives, other, word))
            ):
                yield place - 1, place + 2, concepts


def _concepts_with(lists: Mapping[str, Mapping[str, frozenset[str]]], side: str, word: str) -> frozenset[str]:
    return frozenset(concept for concept, names in lists.get(side, {}).items() if word in names)


@dataclass(frozen=True, kw_only=True)
class _Value:
    number: Decimal  # or the ordinal of a day
    last: Decimal | None = None  # ordinal of the last day of a month
    end: int  # word after it
    is_date: bool = False
    is_year: bool = False  # a number that may be a year


def _value(question: Question, place: int) -> _Value | None:
    """The number or date that begins at a word, words without meaning left out."""
    if not 0 <= place < len(question.words):
        return None
    place = _skip(question, place)
    if (found := _read_date(question, place)) is not None:
        first, last, end = found
        return _Value(number=first, last=last, end=end, is_date=True)
    text = question.words[place].text
    if not _NUMBER.fullmatch(text):
        written = load_language(question.language).proof.numbers
        spelt = next((number for number, names in written.items() if text in names), None)
        return None if spelt is None else _Value(number=Decimal(spelt), end=place + 1)
    number = _decimal(text, question.language)
    year = _YEAR.fullmatch(text) is not None
    return None if number is None else _Value(number=number, end=place + 1, is_year=year)


def _skip(question: Question, place: int) -> int:
    while place < len(question.words) - 1 and not question.words[place].is_content:
        place += 1  # "de", "the"
    return place


def _read_date(question: Question, place: int) -> tuple[Decimal, Decimal, int] | None:
    """(first day, last day, end) of a date, or of a month with its year: "2026-03-14", "14 de marzo de 2026"."""
    texts = [*(word.text for word in question.words), "", "", ""]
    months = load_language(question.language).proof.months

    def month_of(position: int) -> int | None:
        return next((number for number, names in enumerate(months, start=1) if texts[position] in names), None)

    try:
        year, month, day = texts[place : place + 3]
        if _YEAR.fullmatch(year) and month.isdigit() and day.isdigit() and len(month) == len(day) == 2:
            ordinal = Decimal(date(int(year), int(month), int(day)).toordinal())
            return ordinal, ordinal, place + 3
        number, position = None, place
        if texts[place].isdigit() and len(texts[place]) <= 2 and place + 1 < len(question.words):
            number, position = int(texts[place]), _skip(question, place + 1)
        found = month_of(position)
        if found is None or position + 1 >= len(question.words):
            return None
        position = _skip(question, position + 1)
        if not _YEAR.fullmatch(texts[position]):
            return None
        first = date(int(texts[position]), found, number or 1)
        last = first if number else (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        return Decimal(first.toordinal()), Decimal(last.toordinal()), position + 1
    except ValueError:
        return None


def _decimal(text: str, language: str) -> Decimal | None:
    """A number as the question's language writes it; a single separator before other than three digits is decimal."""
    data = load_language(language).tables
    marks = [character for character in text if character in ".,"]
    if marks and (len(marks) > 1 or marks[0] != data.decimal):
        head, *groups = text.replace(",", ".").split(".")
        if len(set(marks)) == 1 and all(len(group) == 3 for group in groups):
            text = head + "".join(groups)
    mark = next((one for one in reversed(text) if one in ".,"), None)
    if mark is not None:
        whole, _, rest = text.rpartition(mark)
        text = whole.replace(",", "").replace(".", "") + "." + rest
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


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
            question.superlative = Superlative(operation=operation, concepts=concepts)
            if other:
                question.superlative = Superlative(operation="either", concepts=concepts | other)
            _take(question, start, place + 1)


def _read_operations(question: Question, data: TableWords) -> None:
    for start, end, name in list(_phrases(question, (*_OPERATIONS, "group"), data)):
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
        for start, end, _ in list(_phrases(question, ("between",), data)):
            _take(question, start, end)


def _read_count(question: Question) -> None:
    """How many of the highest or lowest: "top 3", "the three cheapest", "los 3 más caros"."""
    if question.superlative is None and not {"maximum", "minimum"} & question.operations.keys():
        return
    for place, word in enumerate(question.words):
        value = None if question.used[place] or not word.is_content else _value(question, place)
        if value is None or value.is_date or value.end != place + 1 or value.number not in range(2, 51):
            continue
        near = question.used[max(0, place - 2) : place + 4]
        if any(near) and question.count is None:
            question.count = int(value.number)
            _take(question, place, place + 1)


def _read_periods(question: Question) -> None:
    """Months and days with their year: "in March 2026". Years alone may be values or columns of the table."""
    for place, used in enumerate(question.used):
        if not used and (found := _read_date(question, place)) is not None:
            first, last, end = found
            bound = Bound(comparison=Comparison.BETWEEN, values=(first, last), is_date=True, place=place)
            question.bounds.append(bound)
            _take(question, place, end)


def year_of(word: Word) -> int | None:
    """The year that a word names."""
    return int(word.text) if _YEAR.fullmatch(word.text) else None
