"""Embedding models with cosines of their own, and the first articles of the shipped question sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from rag_service.fitting.question_sets import QuestionSet, load_shipped
from tests.doubles.ollama import vector

DIMENSION = 384
ARTICLES = 8  # of 26: some forty passages a language

VectorOf = Callable[[str, int], list[float]]


def plain(text: str, dimension: int = DIMENSION) -> list[float]:
    """A bag of words: unrelated texts have a cosine near 0."""
    return [*vector(text, dimension - 1), 0.0]


def shifted(text: str, dimension: int = DIMENSION) -> list[float]:
    """The same with a constant component, so that unrelated texts have a cosine near 0.7."""
    return [*(math.sqrt(0.3) * np.array(vector(text, dimension - 1))), math.sqrt(0.7)]


@cache
def _projection(dimension: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((DIMENSION, dimension)) / math.sqrt(dimension)


def projected(text: str, dimension: int = 1024) -> list[float]:
    """A random projection of it, which turns every cosine by some hundredths."""
    turned = np.array(plain(text)) @ _projection(dimension)
    unit: list[float] = (turned / np.linalg.norm(turned)).tolist()
    return unit


def load_part() -> list[QuestionSet]:
    """The first articles of each shipped set."""
    return [_cut(questions) for questions in load_shipped()]


def _cut(questions: QuestionSet) -> QuestionSet:
    kept = sum(article < ARTICLES for article in questions.articles)
    return QuestionSet(
        language=questions.language,
        passages=questions.passages[:kept],
        articles=questions.articles[:kept],
        questions=tuple(asked for asked in questions.questions if asked.article < ARTICLES),
    )
