"""The words that say whether two sentences may say the same: numbers, negations, opposites, conditions.

They come from the data files of the languages. An answer may quote a document in another language, so the words of
all languages count, except those that are function words in the language of the answer: the Portuguese "no" ("in
the") is no negation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from rag_service.language.languages import Language, language_codes, languages_of, load_language, union_of
from rag_service.language.normalise import strip_accents


@lru_cache(maxsize=32768)
def fold_word(word: str) -> str:
    """One normalised lower-case word without its accents."""
    return word if word.isascii() else strip_accents(word)


class Pole(NamedTuple):
    """One side of a pair of opposites."""

    pair: str
    side: int  # 1 or -1


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """The words as one language reads them, folded."""

    number_words: Mapping[str, str]  # word → digits; empty where the language is not known
    months: frozenset[str]
    weekdays: frozenset[str]
    negations: frozenset[str]
    poles: Mapping[str, tuple[Pole, ...]]  # words with an opposite
    stopped: frozenset[str]  # no content words
    conditions: frozenset[str]
    reporting: frozenset[str]
    restriction: re.Pattern[str]
    refusal: re.Pattern[str]
    lead_in: re.Pattern[str]  # what may stand before a claim and is no part of it: "however, ", "según el texto, "


@cache
def load_lexicon(language: str | None) -> Lexicon:
    """Return the lexicon of a language; None or an unsupported one: that of all languages.

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
        number_words=_number_words(load_language(code)) if code else {},
        months=union_of(names for data in own for names in data.proof.months),
        weekdays=union_of(names for data in own for names in data.proof.weekdays),
        negations=negations,
        poles=_poles(own),
        stopped=stopped,
        conditions=(union_of(data.proof.conditions for data in every) - homographs)
        | union_of(data.proof.conditions for data in own),
        reporting=union_of(data.proof.reporting for data in every),
        restriction=re.compile("|".join(restrictions)),
        refusal=re.compile("|".join(f"(?:{pattern})" for pattern in refusals)),
        lead_in=_lead_in(),
    )


def _poles(own: Sequence[Language]) -> dict[str, tuple[Pole, ...]]:
    poles: dict[str, tuple[Pole, ...]] = {}
    for data in own:
        for pair, sides in data.proof.opposites.items():
            for side, words in zip((1, -1), sides, strict=True):
                poles |= {word: (*poles.get(word, ()), Pole(pair, side)) for word in words}
    return poles


def _number_words(language: Language) -> dict[str, str]:
    own = {word: digits for digits, words in language.proof.numbers.items() for word in words}
    units = {word: int(digits) for word, digits in own.items() if int(digits) < 20}
    units |= dict.fromkeys(language.proof.one, 1)
    tens = {word: int(digits) for word, digits in own.items() if 20 <= int(digits) < 100}
    joints = ("", *(joint for joint in language.proof.lead_ins if len(joint) <= 2))  # "vingt-et-un" loses hyphens
    compounds = product(tens.items(), joints, units.items())
    return {ten + joint + unit: str(more + one) for (ten, more), joint, (unit, one) in compounds} | own


@cache
def _lead_in() -> re.Pattern[str]:
    every = [data.proof for data in languages_of(None)]
    phrases = sorted({phrase for proof in every for phrase in proof.lead_ins}, key=len, reverse=True)
    before = "|".join(sorted({phrase for proof in every for phrase in proof.source_prepositions}))
    articles = "|".join(sorted(union_of(proof.source_articles for proof in every)))
    nouns = "|".join(sorted(union_of(proof.source_nouns for proof in every)))
    source = rf"(?:{before})(?: (?:{articles}) (?:{nouns})[a-z]*| ?(?=,))"
    return re.compile(rf"(?:(?:{'|'.join(phrases)}|{source})(?:,\s*|\s+))+")
