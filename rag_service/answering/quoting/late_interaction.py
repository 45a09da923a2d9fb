"""How well each sentence matches a question token by token, read in its context: late interaction.

A passage is read in windows of neighbouring sentences, so that "it" and "this period" have the vectors of what they
stand for. Each token of the question looks for the most similar token of a sentence (MaxSim: Khattab and Zaharia,
"ColBERT", 2020), or of the title of the document: what the title says tells no sentence apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rag_service.answering.quoting.sentences import Sentence
from rag_service.domain import Hit
from rag_service.models.embedding.local import TokenVectors

TOKEN_FEATURES = (
    # Mean of the cosine to the most similar token of the sentence or the title, over the half of the question's tokens
    # that find the least similar ones.
    "matched_least",
    "focused",  # mean over the tokens of the sentence of the cosine to the most similar token of the question
    "answers",  # logarithm of the mean odds of its tokens to be part of the answer
)
_WINDOW = 700  # characters that are read together; long windows cost the square of their length
_MAX_WINDOWS = 6  # some 50 ms of each of two cores


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
