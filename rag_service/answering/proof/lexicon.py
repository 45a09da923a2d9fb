"""The words that decide whether two sentences say the same: numbers, units, negation, opposites.

They come from the data files of the languages. An answer may quote a document in another language, so the words of
all languages count, except those that are function words in the language of the answer: the Portuguese "no" ("in
the") is no negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from rag_service.language.languages import Language, Words, language_codes, languages_of, load_language, union_of
from rag_service.language.normalise import strip_accents

PERCENT = "percent"  # stands for "per cent" in all languages, none of which writes it shorter
_SYMBOLS = {"%": "%", PERCENT: "%", "€": "€", "$": "$", "£": "£"}


@lru_cache(maxsize=32768)
def fold_word(word: str) -> str:
    """One normalised lower-case word without its accents."""
    return word if word.isascii() else strip_accents(word)


class Pole(NamedTuple):
    """One side of a pair of opposites."""

    veto: str  # the veto that the pair belongs to: direction, modality, quantifier, antonym
    pair: str
    side: int  # 1 or -1


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """The words as one language reads them, folded."""

    number_words: Mapping[str, str]  # word → digits; of the language alone where it is known
    one: frozenset[str]  # "1" in words, if a unit follows
    units: Mapping[str, str]  # form → canonical unit
    months: Mapping[str, int]  # 1 to 12
    weekdays: frozenset[str]
    negations: frozenset[str]
    poles: Mapping[str, tuple[Pole, ...]]  # words with an opposite
    stopped: frozenset[str]  # no content words
    conditions: frozenset[str]
    reporting: frozenset[str]
    negating_prefixes: tuple[str, ...]
    operations: Mapping[str, frozenset[str]]  # sum, difference … → words
    limits: re.Pattern[str]  # "at least", "no more than": bounds of several words
    afternoon: re.Pattern[str]  # "pm", with the minutes before it
    percent: re.Pattern[str]  # "per cent", "por ciento"
    bounds: re.Pattern[str]  # a phrase that makes the number after it a limit; its group names the kind
    restriction: re.Pattern[str]
    refusal: re.Pattern[str]
    joints: frozenset[str]  # "and", "but": words that begin another clause
    lead_in: re.Pattern[str]  # what may stand before a claim and is no part of it: "however, ", "según el texto, "


@cache
def load_lexicon(language: str | None) -> Lexicon:
    """The lexicon of a language; None or an unsupported one: that of all languages.

    Negations and conditions are those of all languages, for documents in another language than the answer, except
    words that are function words in the answer's: the Portuguese "no" ("in the") is no negation.
    """
    code = language if language in language_codes() else None
    own = languages_of(code)
    every = [load_language(other) for other in language_codes()]
    homographs = union_of(data.proof.function_words | data.stop_words for data in own) if code else frozenset()
    negations = union_of(data.proof.negations for data in every) - homographs
    negations |= union_of(data.proof.negations for data in own)
    stopped = union_of(data.proof.function_words for data in own) | negations
    refusals = [pattern for data in every for pattern in data.proof.refusals]
    restrictions = [data.proof.restriction for data in every if data.proof.restriction]
    return Lexicon(
        number_words=_number_words(own),
        one=union_of(data.proof.one for data in own),
        units=_SYMBOLS | {form: unit for data in own for unit, forms in data.proof.units.items() for form in forms},
        months={word: i for data in own for i, words in enumerate(data.proof.months, start=1) for word in words},
        weekdays=union_of(names for data in own for names in data.proof.weekdays),
        negations=negations,
        poles=_poles(own),
        stopped=stopped,
        conditions=(union_of(data.proof.conditions for data in every) - homographs)
        | union_of(data.proof.conditions for data in own),
        reporting=union_of(data.proof.reporting for data in every),
        negating_prefixes=tuple(sorted(union_of(data.proof.negating_prefixes for data in own))),
        operations={
            name: union_of(data.proof.operations.get(name, Words()) for data in own) for name in own[0].proof.operations
        },
        afternoon=re.compile(
            rf"(?:[:.]\d\d)?(?: h)? ?{_phrases(phrase for data in own for phrase in data.proof.afternoon).pattern}"
        ),
        percent=_phrases(phrase for data in own for phrase in data.proof.percent),
        limits=_phrases(
            phrase
            for data in own
            for kind in ("minimum", "maximum")
            for phrase in data.proof.bounds[kind]
            if " " in phrase
        ),
        bounds=_bounds(own),
        restriction=re.compile("|".join(restrictions)),
        refusal=re.compile("|".join(f"(?:{pattern})" for pattern in refusals)),
        joints=union_of(frozenset(data.proof.lead_ins) for data in own),
        lead_in=_lead_in(),
    )


def _poles(own: Sequence[Language]) -> dict[str, tuple[Pole, ...]]:
    poles: dict[str, tuple[Pole, ...]] = {}
    for data in own:
        for veto, pairs in data.proof.opposites.items():
            for pair, sides in pairs.items():
                for side, words in zip((1, -1), sides, strict=True):
                    poles |= {word: (*poles.get(word, ()), Pole(veto, pair, side)) for word in words}
    return poles


def _bounds(own: Sequence[Language]) -> re.Pattern[str]:
    kinds = []
    for kind in ("minimum", "maximum", "before", "after"):
        phrases = sorted({phrase for data in own for phrase in data.proof.bounds[kind]}, key=len, reverse=True)
        kinds.append(rf"(?P<{kind}>{'|'.join(map(re.escape, phrases))})")
    return re.compile(rf"\b(?:{'|'.join(kinds)})\W+(?:\w{{1,3}}\W+){{0,2}}\Z")


def _phrases(phrases: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(phrases, key=len, reverse=True)))})\b")


def _number_words(languages: Sequence[Language]) -> dict[str, str]:
    """Those of several languages must be met literally where another language reads them in another way."""
    numbers: dict[str, str] = {}
    for language in languages:
        own = {word: digits for digits, words in language.proof.numbers.items() for word in words}
        units = {word: int(digits) for word, digits in own.items() if int(digits) < 20}
        units |= dict.fromkeys(language.proof.one, 1)
        tens = {word: int(digits) for word, digits in own.items() if 20 <= int(digits) < 100}
        joints = ("", *(joint for joint in language.proof.lead_ins if len(joint) <= 2))  # "vingt-et-un" loses hyphens
        numbers |= {
            ten + joint + unit: str(more + one)
            for (ten, more), joint, (unit, one) in product(tens.items(), joints, units.items())
        }
        numbers |= own
    if len(languages) > 1:
        numbers |= {word: word for language in languages for word in language.proof.ambiguous_numbers}
    return numbers


@cache
def _lead_in() -> re.Pattern[str]:
    every = [data.proof for data in languages_of(None)]
    phrases = sorted({phrase for proof in every for phrase in proof.lead_ins}, key=len, reverse=True)
    before = "|".join(sorted({phrase for proof in every for phrase in proof.source_prepositions}))
    articles = "|".join(sorted(union_of(proof.source_articles for proof in every)))
    nouns = "|".join(sorted(union_of(proof.source_nouns for proof in every)))
    source = rf"(?:{before})(?: (?:{articles}) (?:{nouns})[a-z]*| ?(?=,))"
    return re.compile(rf"(?:(?:{'|'.join(phrases)}|{source})(?:,\s*|\s+))+")
