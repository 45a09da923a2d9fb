"""The language of a question too short for function words to tell it: "sueldo", "loyer ?", "backups".

Groups of three letters of each word are looked up in those of words that are typical of a language, in the manner of
Cavnar and Trenkle, "N-Gram-Based Text Categorization" (1994), as a naive Bayes classifier. For questions only: names
and figures in a table would be given a language, too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from rag_service.text.stopwords import STOP_WORDS, TELLING_WORDS
from rag_service.text.typical_words import TYPICAL_WORDS
from rag_service.text.words import choose_language, fold, likely_languages

_MOST_WORDS = 8  # a question of more different ones in none of our languages' function words is in none of them
_LEAST_LETTERS = 3  # of a word that is looked at
_SMOOTHING = 0.3  # added to each count, so that a group never seen is only unlikely
_LEAST_MARGIN = 4.0  # natural logarithm of how much likelier the best language is than the next one
_TYPICAL = 4.0  # the same for a word that is typical itself
_ACCENT = 2.0  # the same for each letter of a word that only some of the languages write
_ACCENTED = {"es": frozenset("áéíóúüñ"), "fr": frozenset("éàèùâêîôûëïüçœ"), "en": frozenset[str]()}
_WORD = re.compile(r"[^\W\d_]+")
_FUNCTION_WORDS = frozenset[str]().union(*STOP_WORDS.values(), *TELLING_WORDS.values())


def guess_language(question: str, likely: Sequence[str] | None = None) -> str | None:
    """Language of a short text, by its function words or else by its letters; None where neither tells.

    Args:
        question: the text.
        likely: its `likely_languages`, for callers who know them.
    """
    likely = likely_languages(question) if likely is None else likely
    return choose_language(question, likely) or _by_letters(question, likely)


def _by_letters(question: str, candidates: Sequence[str]) -> str | None:
    found = list(dict.fromkeys(_WORD.findall(question)))
    if len(found) > _MOST_WORDS:
        return None
    told = _telling_words(found)
    likelihood = {language: sum(_log_likelihood(word, language) for word in told) for language in candidates}
    best, second = sorted(candidates, key=lambda language: -likelihood[language])[:2]
    return best if likelihood[best] - likelihood[second] >= _LEAST_MARGIN else None


def _telling_words(found: Sequence[str]) -> list[str]:
    """Content words with their accents, names left out as far as capitals show them and other words are there."""
    content = [word for word in found if len(word) >= _LEAST_LETTERS and fold(word) not in _FUNCTION_WORDS]
    plain = [word for word in content if word.islower() or word == found[0]]
    return [word.lower() for word in plain or content]


@lru_cache(maxsize=20_000)
def _log_likelihood(word: str, language: str) -> float:
    """Natural logarithm of how likely a language writes a word so; comparable between languages only."""
    groups, total, kinds = _groups_of(language)
    letters = sum(
        math.log((groups[group] + _SMOOTHING) / (total + _SMOOTHING * kinds)) for group in _groups_in(fold(word))
    )
    typical = _TYPICAL if fold(word) in TYPICAL_WORDS[language] else 0.0
    return letters + typical + _ACCENT * len(_ACCENTED[language].intersection(word))


@lru_cache(maxsize=3)
def _groups_of(language: str) -> tuple[Counter[str], int, int]:
    """How often each group of letters stands in the typical words of a language; of all; kinds in all languages."""
    counts = {
        each: Counter(group for word in typical for group in _groups_in(word))
        for each, typical in TYPICAL_WORDS.items()
    }
    return counts[language], counts[language].total(), len(set().union(*counts.values()))


def _groups_in(word: str) -> list[str]:
    padded = f" {word} "
    return [padded[start : start + 3] for start in range(len(padded) - 2)]
