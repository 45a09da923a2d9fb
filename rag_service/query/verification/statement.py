"""What a sentence states, as far as code can compare it: words, numbers, names, negation, opposites."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from rag_service.query.verification.lexicon import (
    COMPOUND_NUMBER,
    NEGATIONS,
    POLES,
    REQUIRED,
    STOPPED,
    UNITS,
    fold_word,
    number_words,
)
from rag_service.query.verification.numbers import Number, find_numbers

WORD = re.compile(r"[^\W_]+(?:'t\b)?")
_CLAUSE_END = re.compile(r"[,;:()|!?]|\.(?!\d)")
_LABEL_END = re.compile(r"[,;|!?()]|\.(?!\d)")
_DIGIT = re.compile(r"\d")
_PREFIX = 5  # letters that two forms of one word share at least
_COMMON_SHARE = 0.6  # … and this share of the longer one: "interno" is no form of "internacional"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A sentence taken apart. Words are lower case without accents."""

    words: tuple[str, ...]  # content words, each once, in order
    tokens: frozenset[str]  # all words, function words and single letters included
    numbers: tuple[Number, ...]
    labels: tuple[frozenset[str], ...]  # for each number the content words of its cell or clause, units left out
    required: tuple[str, ...]  # months, weekdays, ordinals, compound number words
    names: tuple[str, ...]  # capitalised words that do not begin the sentence
    clauses: tuple[frozenset[str], ...]  # content words of each clause
    negated: tuple[bool, ...]  # whether that clause holds a negation
    negations: int  # negating words in all clauses
    units: frozenset[str]  # units that it names anywhere, in their canonical form
    poles: frozenset[int]  # opposites that the sentence names, see lexicon.POLES

    @property
    def is_claim(self) -> bool:
        """Whether there is enough to check: two content words, numbers counted as such."""
        return len(self.words) + len(self.numbers) >= 2

    @property
    def is_negative(self) -> bool:
        return any(self.negated)


def take_apart(text: str, *, language: str | None = None) -> Statement:
    """Takes a normalised sentence apart; its letter case tells the names.

    `language` ("es", "fr", "en") chooses the number words; None allows those of all three.
    """
    lower = text.lower() if len(text.lower()) == len(text) else text
    words: dict[str, None] = {}
    tokens: set[str] = set()
    required: list[str] = []
    poles: set[int] = set()
    units = {UNITS[sign] for sign in "%€$£" if sign in text}
    clauses: list[set[str]] = [set()]
    negated = [False]
    negations = 0
    counting = number_words(language)
    has_numbers = _DIGIT.search(lower) is not None
    ends = [match.start() for match in _CLAUSE_END.finditer(lower)]
    ends.append(len(lower) + 1)
    clause = 0
    for match in WORD.finditer(lower):
        while match.start() > ends[clause]:
            clause += 1
            clauses.append(set())
            negated.append(False)
        folded, content, telling = _classify(match[0])
        tokens.add(folded)
        if content:
            words[folded] = None
            clauses[clause].add(folded)
        if folded in counting:
            has_numbers = True
        if not telling:
            continue
        if is_negation(folded, lower, match.end()):
            negated[clause] = True
            negations += 1
        if pole := POLES.get(folded):
            poles.add(pole)
        if unit := UNITS.get(folded):
            units.add(unit)
        if folded in REQUIRED or COMPOUND_NUMBER.fullmatch(folded):
            required.append(folded)
    numbers = tuple(find_numbers(lower, counting)) if has_numbers else ()
    return Statement(
        words=tuple(words),
        tokens=frozenset(tokens),
        numbers=numbers,
        labels=tuple(_labels(lower, numbers)),
        required=tuple(required),
        names=tuple(_names(text)) if text != lower else (),
        clauses=tuple(map(frozenset, clauses)),
        negated=tuple(negated),
        negations=negations,
        units=frozenset(units),
        poles=frozenset(poles),
    )


def _labels(text: str, numbers: tuple[Number, ...]) -> Iterator[frozenset[str]]:
    edges = [edge.start() for edge in _LABEL_END.finditer(text)] if numbers else []
    read: dict[tuple[int, int], frozenset[str]] = {}  # numbers of one clause share its words
    for number in numbers:
        before, after = bisect_left(edges, number.start), bisect_left(edges, number.end)
        start = edges[before - 1] + 1 if before else 0
        if text.startswith(".", number.start - 1, number.start):
            start = number.start  # ".5": the stop is an edge, although a digit follows
        place = start, edges[after] if after < len(edges) else len(text)
        if place not in read:
            folded = (_classify(word)[:2] for word in WORD.findall(text, *place))
            read[place] = frozenset(word for word, content in folded if content and word not in UNITS)
        yield read[place]


@lru_cache(maxsize=32768)
def _classify(word: str) -> tuple[str, bool, bool]:
    """A lower-case word folded, whether it is a content word, and whether any list names it."""
    folded = fold_word(word)
    telling = (
        folded in NEGATIONS
        or folded.endswith("n't")
        or folded in POLES
        or folded in UNITS
        or folded in REQUIRED
        or COMPOUND_NUMBER.fullmatch(folded) is not None
    )
    return folded, is_content(folded), telling


def is_content(word: str) -> bool:
    """Whether a folded word says something of its own: no function word, no number, not one letter."""
    return len(word) > 1 and word not in STOPPED and not word[0].isdigit()


def is_negation(word: str, text: str, end: int) -> bool:
    """Whether the folded word that ends at `end` of `text` negates; "No. 5" and "no solo" do not."""
    if word.endswith("n't"):
        return True
    if word not in NEGATIONS:
        return False
    return not re.match(r"\. ?\d|\.[ºo°]|\.? (?:solo|solamente|only|seulement)\b", text[end : end + 14])


def _names(text: str) -> Iterator[str]:
    """Capitalised content words inside the sentence, and acronyms anywhere in it.

    A sentence mostly in capitals has no names that its capitals could tell.
    """
    tokens = list(WORD.finditer(text))
    capitalised = [token for token in tokens if token[0][0].isupper()]
    if len(capitalised) > 0.7 * len(tokens):
        return
    for token in capitalised:
        before = text[max(0, token.start() - 8) : token.start()].rstrip(" \"'(¿¡-*#")
        begins = not before or before[-1] in ".:!?|"
        acronym = len(token[0]) > 1 and token[0].isupper()
        word = fold_word(token[0].lower())
        one_letter = len(word) == 1 and not word.isdigit() and not begins  # "type B"
        if one_letter or ((acronym or not begins) and is_content(word) and word not in UNITS):
            yield word


@lru_cache(maxsize=32768)
def bucket(word: str) -> str:
    """Two words can only match if their buckets are equal."""
    return _singular(word)[:_PREFIX]


def matches(one: str, other: str) -> bool:
    """Whether two folded words are forms of one: equal, plural, or with a long common beginning."""
    if one == other:
        return True
    if one[0] != other[0]:
        return False
    if min(len(one), len(other)) < _PREFIX:
        return _singular(one) == _singular(other)
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return common >= _PREFIX and common >= _COMMON_SHARE * max(len(one), len(other))


def any_matches(word: str, others: Collection[str]) -> bool:
    """Whether `word` matches one of `others`."""
    return word in others or any(matches(word, other) for other in others)


def _singular(word: str) -> str:
    """Short words without a plural ending: "mes" and "meses", "fee" and "fees" become equal."""
    stem = word[:-1] if len(word) >= 4 and word.endswith("s") and not word.endswith("ss") else word
    return stem[:-1] if len(stem) >= 3 and stem.endswith("e") else stem
