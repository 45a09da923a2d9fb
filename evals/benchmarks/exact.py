"""What the right answers are: BM25 and cosine over every chunk, in numpy, without a database."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]  # of chunks
Floats = npt.NDArray[np.float64]


class ExactBM25:
    """Okapi BM25 with Lucene's idf, the formula of rag_service.store.search.lexical, over any part of the chunks."""

    def __init__(self, chunks: Sequence[Sequence[str]], *, k1: float, b: float, only: Collection[str] | None = None):
        """
        Args:
            chunks: the index terms of each chunk, in order.
            k1: saturation of term frequency.
            b: weight of the length, 0..1.
            only: terms that will be asked for; None keeps all.
        """
        self._k1, self._b = k1, b
        self._lengths = np.array([len(held) for held in chunks], dtype=np.float64)
        postings: dict[str, tuple[list[int], list[int]]] = {}
        for number, held in enumerate(chunks):
            for term, frequency in Counter(held).items():
                if only is None or term in only:
                    numbers, frequencies = postings.setdefault(term, ([], []))
                    numbers.append(number)
                    frequencies.append(frequency)
        self._postings = {
            term: (np.array(numbers), np.array(frequencies, dtype=np.float64))
            for term, (numbers, frequencies) in postings.items()
        }

    def scores(self, members: Numbers, weights: Mapping[str, float]) -> dict[int, float]:
        """Chunk → score, for chunks in scope that hold one of the terms.

        Args:
            members: the chunks in scope; N, df and the mean length are theirs.
            weights: term → factor on its idf.
        """
        inside = np.zeros(len(self._lengths), dtype=bool)
        inside[members] = True
        mean = self._lengths[members].mean() if len(members) else 1.0
        total: Floats = np.zeros(len(self._lengths))
        touched = np.zeros(len(self._lengths), dtype=bool)
        for term, weight in weights.items():
            numbers, frequencies = self._postings.get(term, (np.array([], dtype=np.int64), np.array([])))
            held = inside[numbers]
            numbers, frequencies = numbers[held], frequencies[held]
            idf = math.log(1 + (len(members) - len(numbers) + 0.5) / (len(numbers) + 0.5))
            norm = self._k1 * (1 - self._b + self._b * self._lengths[numbers] / mean)
            total[numbers] += weight * idf * frequencies * (self._k1 + 1) / (frequencies + norm)
            touched[numbers] = True
        return {int(number): float(total[number]) for number in np.flatnonzero(touched)}

    def best(self, members: Numbers, weights: Mapping[str, float], count: int) -> list[int]:
        """The best chunks, best first; equal scores in the order of their numbers."""
        scores = self.scores(members, weights)
        return sorted(scores, key=lambda number: (-scores[number], number))[:count]


def nearest(
    vectors: npt.NDArray[np.float32], members: Numbers, query: npt.NDArray[np.float32], count: int
) -> list[int]:
    """Numbers of the nearest chunks by cosine, nearest first. All rows have length 1."""
    order = np.argsort(-(vectors[members] @ query), kind="stable")[:count]
    found: list[int] = members[order].tolist()
    return found


def overlap(found: Sequence[int], right: Sequence[int]) -> float:
    """Share of the right ones that were found, 0..1."""
    return len(set(found) & set(right)) / len(right) if right else 1.0
