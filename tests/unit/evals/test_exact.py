"""What the bench takes for the right answers, against sums done by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evals.benchmarks.exact import ExactBM25, nearest, overlap

CHUNKS = [["a", "b"], ["a", "a", "c"], ["d"]]
ALL = np.arange(3)


def test_bm25_is_the_sum_done_by_hand() -> None:
    found = ExactBM25(CHUNKS, k1=1.2, b=0.75).scores(ALL, {"a": 1.0})
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))  # 0.4700: "a" stands in 2 of 3 chunks
    assert idf == pytest.approx(0.4700036)
    # Mean length 2. First chunk: length 2, so the norm is k1 = 1.2. Second: 1.2 · (0.25 + 0.75 · 1.5) = 1.65.
    assert found == pytest.approx({0: idf * 1 * 2.2 / (1 + 1.2), 1: idf * 2 * 2.2 / (2 + 1.65)})


def test_weights_scale_and_terms_add_up() -> None:
    bm25 = ExactBM25(CHUNKS, k1=1.2, b=0.75)
    a, c = bm25.scores(ALL, {"a": 1.0}), bm25.scores(ALL, {"c": 1.0})
    assert bm25.scores(ALL, {"a": 0.5, "c": 1.0})[1] == pytest.approx(0.5 * a[1] + c[1])


def test_statistics_are_those_of_the_scope() -> None:
    found = ExactBM25(CHUNKS, k1=1.2, b=0.75).scores(np.array([0, 2]), {"a": 1.0})
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    norm = 1.2 * (0.25 + 0.75 * 2 / 1.5)
    assert found == pytest.approx({0: idf * 2.2 / (1 + norm)})


def test_equal_scores_keep_the_order_of_the_chunks() -> None:
    bm25 = ExactBM25([["x"], ["y"], ["x"], ["x"]], k1=1.2, b=0.75, only={"x"})
    assert bm25.best(np.arange(4), {"x": 1.0}, 2) == [0, 2]


def test_nearest_looks_at_members_only() -> None:
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32)
    query = np.array([1, 0], dtype=np.float32)
    assert nearest(vectors, ALL, query, 2) == [0, 1]
    assert nearest(vectors, np.array([1, 2]), query, 5) == [1, 2]


@pytest.mark.parametrize(("found", "right", "share"), [([1, 2], [2, 3], 0.5), ([], [1], 0.0), ([1], [], 1.0)])
def test_overlap_is_the_share_of_the_right_ones(found: list[int], right: list[int], share: float) -> None:
    assert overlap(found, right) == share
