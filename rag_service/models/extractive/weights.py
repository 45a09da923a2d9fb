"""The learnt linear model that chooses sentences: its features, and its weights by the language of the question."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

_WEIGHTS_FILE = Path(__file__).with_name("weights.json")  # written by `rag-service eval sentences`

# All are shares (0..1) but the length.
WORD_FEATURES = (
    "share",  # of the question's idf weight that the sentence holds
    "spelling",  # of the question's character n-grams that it holds; those that few candidates hold weigh more
    "spelling_before",  # of the sentence before it in its paragraph, which often names what "it" is
    "standing",  # score of its passage over that of the best one
    "relevance",  # of its passage
    "price",  # whether a price was asked for and it holds one
    "number",
    "figures",  # of the question's numbers that it holds, also within a range
    "length",  # logarithm of its number of words
)
VECTOR_FEATURES = ("similarity",)  # to the question, by their cosine


@dataclass(frozen=True)
class Weights:
    """The linear model that chooses sentences, for questions in one language."""

    words: np.ndarray  # one weight for each of WORD_FEATURES
    vectors: np.ndarray  # one for each of WORD_FEATURES, then of VECTOR_FEATURES


@cache
def load_weights(language: str) -> Weights:
    """The weights for a language; for one that none were learnt for, those learnt from all languages together."""
    learnt = json.loads(_WEIGHTS_FILE.read_text(encoding="utf-8"))["languages"]
    entry = learnt.get(language, learnt["*"])
    words = [entry["words"][name] for name in WORD_FEATURES]
    vectors = [entry["vectors"][name] for name in (*WORD_FEATURES, *VECTOR_FEATURES)]
    return Weights(np.array(words), np.array(vectors))
