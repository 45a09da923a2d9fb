"""How well sentences match a question, and what a passage leaves open of it, token by token.

A passage is read in windows of neighbouring sentences, so that "it" and "this period" have the vectors of what they
stand for. Each token of the question looks for the most similar token of a sentence (MaxSim: Khattab and Zaharia,
"ColBERT", 2020), or of the title of the document: what the title says tells no sentence apart.

A question that the documents nearly answer differs from one that they do answer by a word: another adjective, the year
before, another museum. The passage and the vectors of whole sentences look alike then; the word itself finds nothing
that is like it.

Learnt linear models weigh all features, one for each language of questions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from rag_service.answering.quoting.sentences import Sentence
from rag_service.domain import Hit
from rag_service.language.languages import languages_of
from rag_service.language.words import fold, is_stop_word, word_forms
from rag_service.models.embedding.local import TokenVectors

_WEIGHTS_FILE = Path(__file__).with_name("weights.json")  # written by `python -m evals.lab sentences`

# All are shares, 0..1.
WORD_FEATURES = (
    "share",  # of the question's idf weight that the sentence holds
    "spelling",  # of the question's character n-grams that it holds; those that few candidates hold weigh more
    "spelling_before",  # of the sentence before it in its paragraph, which often names what "it" is
    "standing",  # score of its passage over that of the best one
    "number",  # whether a number or a price was asked for and it holds one
    "figures",  # of the question's numbers that it holds, also within a range
)
SIMILARITY = "similarity"  # to the question, by their cosine, beyond what the title says
TOKEN_FEATURES = (
    # Mean of the cosine to the most similar token of the sentence or the title, over the half of the question's tokens
    # that find the least similar ones.
    "matched_least",
    "focused",  # mean over the tokens of the sentence of the cosine to the most similar token of the question
    "answers",  # logarithm of the mean odds of its tokens to be part of the answer
)
_WINDOW = 700  # characters that are read together; long windows cost the square of their length
_MAX_WINDOWS = 6  # some 50 ms of each of two cores
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+\d*")


@dataclass(frozen=True)
class Weights:
    """The linear models for questions in one language."""

    words: np.ndarray  # of WORD_FEATURES
    vectors: np.ndarray  # of WORD_FEATURES and SIMILARITY
    tokens: np.ndarray | None  # of WORD_FEATURES, TOKEN_FEATURES and SIMILARITY; None for another embedding model


@cache
def load_weights(language: str, model: str = "") -> Weights:
    """The weights for a language; for one that none were learnt for, those learnt from all languages together.

    Weights of token vectors hold only for the embedding `model` that they were learnt with.
    """
    learnt = json.loads(_WEIGHTS_FILE.read_text(encoding="utf-8"))
    entry = learnt["languages"].get(language, learnt["languages"]["*"])
    words, vectors, tokens = (np.array(list(entry[name].values())) for name in ("words", "vectors", "tokens"))
    return Weights(words, vectors, tokens if model == learnt["model"] else None)


@dataclass(frozen=True)
class Window:
    """Part of a passage that is read at once."""

    mark: int  # of the passage, from 1
    start: int  # in the passage
    end: int
    sentences: tuple[int, ...]  # numbers of the candidates in it


def cut_windows(sentences: Sequence[Sentence], best_first: Iterable[int]) -> list[Window]:
    """The windows of the best candidates, at most `_MAX_WINDOWS`, in the order of the passages.

    Headings belong to the window of the sentence after them. `sentences` are in the order of the passages.
    """
    bounds: list[tuple[int, int, int]] = []
    numbers: list[list[int]] = []
    for number, sentence in enumerate(sentences):
        mark, start, end = bounds[-1] if bounds else (0, 0, 0)
        if mark != sentence.mark:
            bounds.append((sentence.mark, 0, sentence.end))
            numbers.append([number])
        elif sentence.start >= end and sentence.end - start > _WINDOW:
            bounds.append((mark, end, sentence.end))
            numbers.append([number])
        else:
            bounds[-1] = (mark, start, max(end, sentence.end))
            numbers[-1].append(number)
    window_of = np.repeat(np.arange(len(numbers)), list(map(len, numbers)))
    chosen = list(dict.fromkeys(window_of[list(best_first)].tolist()))[:_MAX_WINDOWS]
    return [Window(*bounds[int(number)], tuple(numbers[int(number)])) for number in sorted(chosen)]


def read_window(window: Window, hits: Sequence[Hit]) -> tuple[str, int]:
    """What the model reads: the title of the document and the window; and where the window begins in it."""
    chunk = hits[window.mark - 1].chunk
    title = f"{chunk.document.title}\n"
    return title + chunk.text[window.start : window.end], len(title)


def rate_tokens(
    query: TokenVectors, read: TokenVectors, sentences: Sequence[Sentence], window: Window, begins: int
) -> np.ndarray:
    """What the tokens tell of each candidate in a window: one row of `TOKEN_FEATURES` each.

    Args:
        query: the tokens of the question.
        read: those of the window with its title.
        sentences: all candidates.
        begins: where the window begins in the text that was read.
    """
    # By `@`, threads of BLAS would share so small a product, and spin for longer than it takes.
    cosines = np.einsum("qd,td->qt", query.vectors, read.vectors)
    begin, end = read.places.T - begins + window.start
    titled = cosines[:, end <= window.start].max(axis=1, initial=-1.0)
    rows = np.zeros((len(window.sentences), len(TOKEN_FEATURES)))
    for row, number in zip(rows, window.sentences, strict=True):
        inside = (begin < sentences[number].end) & (end > sentences[number].start)
        own = cosines[:, inside]
        if own.size:
            found = np.sort(np.maximum(own.max(axis=1), titled))
            answers = 0.0 if read.answers is None else _log_mean(read.answers[inside])
            row[:] = found[: max(1, len(found) // 2)].mean(), own.max(axis=0).mean(), answers
    return rows


def _log_mean(log_odds: np.ndarray) -> float:
    highest = log_odds.max()
    return float(highest + np.log(np.exp(log_odds - highest).mean()))


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
