"""Vectors of embeddings without a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np


def embed_words(words: Iterable[str], dimension: int) -> list[float]:
    """A bag of words of length 1: each word has its own fixed random direction, so texts that share words are near."""
    total = np.zeros(dimension)
    for word in words:
        total += _direction(word, dimension)
    unit: list[float] = (total / np.linalg.norm(total)).tolist()
    return unit


@lru_cache(20_000)
def _direction(word: str, dimension: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension)
