"""The learnt linear model that chooses sentences: its features, and its weights by the language of the question."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

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
