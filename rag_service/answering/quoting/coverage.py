"""How much of a question its best quote leaves open: what each of its content words has in the passage.

A question that the documents nearly answer differs from one that they do answer by a word: another adjective, the year
before, another museum. The passage and the vectors of whole sentences look alike then; the word itself finds nothing
that is like it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from rag_service.language.languages import languages_of
from rag_service.language.words import fold, is_stop_word, word_forms
from rag_service.models.embedding.local import TokenVectors

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+\d*")


@dataclass(frozen=True, kw_only=True)
class AskedWord:
    """A content word of a question."""

    start: int  # in the question
    end: int
    weight: float  # idf in the corpora that were searched; that of the rarest word where none holds it


def read_asked_words(question: str, language: str, weights: Mapping[str, float]) -> list[AskedWord]:
    """Return the content words of a question; `weights` are the idf of index terms, as in `Evidence`."""
    rarest = max(weights.values(), default=1.0)
    found = []
    for match in _WORD.finditer(question):
        folded = fold(match[0])
        if is_stop_word(folded, language) or folded in _question_words() or (len(folded) < 2 and not folded.isdigit()):
            continue
        weight = max((weights[form] for form in word_forms(match[0]) & weights.keys()), default=rarest)
        found.append(AskedWord(start=match.start(), end=match.end(), weight=weight))
    return found


def rate_unmatched(asked: Sequence[AskedWord], query: TokenVectors, read: TokenVectors) -> float | None:
    """Return how far the content words of a question are from what a window of a passage says, 0 and up.

    The root of the mean square, by weight, of the distance of each word to the token that is most like it: one word
    that has nothing counts more than several that have something near. None: no token belongs to a word.

    Args:
        query: the tokens of the question.
        read: those of the window with the title of its document.
    """
    best = np.einsum("qd,td->qt", query.vectors, read.vectors).max(axis=1, initial=-1.0)
    places = query.places
    distances, weights = [], []
    for word in asked:
        own = (places[:, 0] < word.end) & (places[:, 1] > word.start)
        if own.any():
            distances.append(1.0 - float(best[own].mean()))
            weights.append(word.weight)
    return float(np.sqrt(np.average(np.square(distances), weights=weights))) if sum(weights) else None


@cache
def _question_words() -> frozenset[str]:
    return frozenset(fold(word) for data in languages_of(None) for word in data.questions.asks)
