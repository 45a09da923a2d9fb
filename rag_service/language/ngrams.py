"""Character n-grams: the spelling that two texts share, whatever the forms of their words.

They match inflections and derivations that a stemmer keeps apart ("contrato", "contratación"), and, as they go on over
blanks, words that stand together. Source: McNamee and Mayfield, "Character N-Gram Tokenization for European Language
Text Retrieval", Information Retrieval 7, 2004.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_service.language.words import fold

LENGTH = 5  # characters; 3 and 4 order the passages of XQuAD and cooperative.* a little worse

Ngrams = npt.NDArray[np.uint64]  # a number for each different n-gram, in rising order
Joined = tuple[Ngrams, npt.NDArray[np.int64]]  # those of several texts, and how many each of them has

Held = npt.NDArray[np.bool_]  # (texts, n-grams): which of them each text holds
Weights = npt.NDArray[np.float64]  # one for each n-gram, 1 together

_FACTOR = np.uint64(1_000_003)  # of a polynomial hash
_TEXT_END = "\0"  # PostgreSQL keeps no text that holds it
_BETWEEN_WORDS = re.compile(rf"[^\w{_TEXT_END}]+")


def character_ngrams(text: str) -> Ngrams:
    """The different n-grams of a text, accents, case and punctuation left out."""
    return np.unique(read_ngrams([text])[0])


def read_ngrams(texts: Sequence[str]) -> Joined:
    """The n-grams of texts, one behind the other and as often as they occur: in one go, as each call of NumPy costs."""
    folded = _BETWEEN_WORDS.sub(" ", fold(_TEXT_END.join(texts)))
    padded = [f" {text.strip()} " for text in folded.split(_TEXT_END)]
    codes = np.frombuffer("".join(padded).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    hashes = np.zeros(max(0, len(codes) - LENGTH + 1), dtype=np.uint64)
    for place in range(LENGTH if len(hashes) else 0):
        hashes = hashes * _FACTOR + codes[place : place + len(hashes)]
    lengths = np.array(list(map(len, padded)), dtype=np.int64)
    within = np.ones(len(codes), dtype=np.bool_)
    for place in range(1, min(LENGTH, len(codes) + 1)):  # those that begin here go on into the next text
        within[np.cumsum(lengths) - place] = False
    return hashes[within[: len(hashes)]], np.maximum(0, lengths - LENGTH + 1)


def find_ngrams(wanted: Ngrams, texts: Sequence[Ngrams]) -> Held:
    """Which of the wanted n-grams each text holds."""
    return find_joined(wanted, *join_ngrams(texts))


def join_ngrams(texts: Sequence[Ngrams]) -> Joined:
    """The n-grams of texts one behind the other, and how many each text has."""
    return np.concatenate([np.empty(0, dtype=np.uint64), *texts]), np.array(list(map(len, texts)), dtype=np.int64)


def find_joined(wanted: Ngrams, every: Ngrams, counts: npt.NDArray[np.int64]) -> Held:
    """As `find_ngrams`, for joined texts: joining hundreds takes longer than all else here."""
    held = np.zeros((len(counts), len(wanted)), dtype=np.bool_)
    if held.size:
        # Few are wanted: most are told apart by their last bits, in a tenth of the time of a search.
        endings = np.zeros(1 << 16, dtype=np.bool_)
        endings[wanted.astype(np.uint16)] = True
        places = np.flatnonzero(endings[every.astype(np.uint16)])
        likely = every[places]
        nearest = np.minimum(np.searchsorted(wanted, likely), len(wanted) - 1)
        found = wanted[nearest] == likely
        numbers = np.searchsorted(np.cumsum(counts), places[found], side="right")
        held[numbers, nearest[found]] = True
    return held


def weigh_by_rarity(held: Held) -> Weights:
    """A weight for each n-gram: the fewer of the texts hold it, the more it tells them apart."""
    weights = np.log(1 + len(held) / (1 + held.sum(axis=0)))
    share: Weights = weights / max(float(weights.sum()), 1e-9)
    return share
