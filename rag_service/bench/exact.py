"""What the right answers are: BM25 and cosine over every chunk, in numpy, without a database."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rag_service.text.words import terms

Members = npt.NDArray[np.int64]  # numbers of the chunks that a search may reach


class ExactBM25:
    """Okapi BM25 with Lucene's idf over the chunks of one scope; the formula of rag_service.store.search."""

    def __init__(self, chunks: Mapping[int, Sequence[str]], *, k1: float, b: float):
        """
        Args:
            chunks: number → index terms.
            k1: saturation of term frequency.
            b: weight of the length, 0..1.
        """
        self._k1, self._b = k1, b
        self._total = len(chunks)
        self._lengths = {number: len(held) for number, held in chunks.items()}
        self._mean = sum(self._lengths.values()) / max(1, self._total)
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, held in chunks.items():
            for term, frequency in Counter(held).items():
                postings[term].append((number, frequency))
        self._postings = {
            term: (np.array([n for n, _ in pairs]), np.array([f for _, f in pairs], dtype=np.float64))
            for term, pairs in postings.items()
        }

    def scores(self, weights: Mapping[str, float]) -> dict[int, float]:
        """Chunk → score, for chunks that hold one of the terms; `weights` multiply each term's idf."""
        found: dict[int, float] = defaultdict(float)
        for term, weight in weights.items():
            if term not in self._postings:
                continue
            numbers, frequencies = self._postings[term]
            idf = math.log(1 + (self._total - len(numbers) + 0.5) / (len(numbers) + 0.5))
            lengths = np.array([self._lengths[number] for number in numbers.tolist()])
            norm = self._k1 * (1 - self._b + self._b * lengths / self._mean)
            parts = weight * idf * frequencies * (self._k1 + 1) / (frequencies + norm)
            for number, part in zip(numbers.tolist(), parts.tolist(), strict=True):
                found[number] += part
        return found

    def best(self, weights: Mapping[str, float], count: int) -> list[int]:
        """The best chunks, best first; equal scores in the order of their numbers."""
        scores = self.scores(weights)
        return sorted(scores, key=lambda number: (-scores[number], number))[:count]


def analyse_all(texts: Sequence[str], members: Members) -> dict[int, list[str]]:
    """Index terms of the chunks of a scope."""
    return {number: terms(texts[number], "en") for number in members.tolist()}


def nearest(
    vectors: npt.NDArray[np.float32], members: Members, query: npt.NDArray[np.float32], count: int
) -> list[int]:
    """Numbers of the nearest chunks by cosine, nearest first. All rows have length 1."""
    cosines = vectors[members] @ query
    order = np.argsort(-cosines, kind="stable")[:count]
    found: list[int] = members[order].tolist()
    return found


def overlap(found: Sequence[int], right: Sequence[int]) -> float:
    """Share of the right ones that were found, 0..1."""
    return len(set(found) & set(right)) / len(right) if right else 1.0
