"""Vectors of embeddings without a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def embed_words(words: Sequence[str], *, dimension: int) -> list[float]:
    """A bag of words: each word has its own fixed random direction; length 1.

    Cosines lie in the range of the packaged model's, for which indices are calibrated: unrelated texts have about 0.8,
    texts that share half of their words 0.84.
    """
    meaning = _unit(np.sum([_direction(word, dimension) for word in words], axis=0))
    vector = np.sqrt(0.12) * meaning + np.sqrt(0.1) * _unit(_direction(f"all of {sorted(words)}", dimension))
    vector[0] = np.sqrt(max(0.0, 1 - float(vector[1:] @ vector[1:])))
    numbers: list[float] = vector.tolist()
    return numbers


def _direction(text: str, dimension: int) -> npt.NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension)


def _unit(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    unit: npt.NDArray[np.float64] = vector / np.linalg.norm(vector)
    return unit
