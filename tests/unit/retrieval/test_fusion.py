"""Fusion: a weak search never drowns a strong one, and every score keeps its meaning."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rag_service.domain import Scores
from rag_service.indices import Calibration
from rag_service.models.embedding.relevance import BY_WORDS, relevance
from rag_service.retrieval.fusion import Candidates, fuse

CALIBRATION = Calibration(intercept=-5, cosine=5, coverage=10, run="test")


def fuse_found(
    dense: dict[int, float] | None,
    lexical: dict[int, float],
    shares: dict[int, float] | None = None,
    *,
    alpha: float = 0.5,
    ceiling: float = 40.0,
) -> list[tuple[int, Scores]]:
    """Chunk → score in each search; None: no vector search."""
    ids = list((lexical if dense is None else dense).keys())
    found = Candidates(
        ids=np.array(ids, dtype=np.int64),
        cosines=None if dense is None else np.array([dense[chunk] for chunk in ids]),
        bm25=np.array([lexical.get(chunk, 0.0) for chunk in ids]),
        coverage=np.array([(shares or {}).get(chunk, 0.0) for chunk in ids]),
    )
    return fuse(found, alpha=alpha, ceiling=ceiling, calibration=CALIBRATION)


def ranked(dense: dict[int, float] | None, lexical: dict[int, float], alpha: float = 0.5) -> list[int]:
    return [chunk for chunk, _ in fuse_found(dense, lexical, alpha=alpha, ceiling=20.0)]


def test_alpha_one_is_the_dense_order_and_alpha_zero_the_lexical_one() -> None:
    dense, lexical = {1: 0.9, 2: 0.85, 3: 0.8}, {1: 1.0, 2: 5.0, 3: 9.0}
    assert ranked(dense, lexical, alpha=1.0) == [1, 2, 3]
    assert ranked(dense, lexical, alpha=0.0) == [3, 2, 1]


def test_a_missing_search_leaves_the_order_of_the_other() -> None:
    assert ranked({1: 0.8, 2: 0.9}, {}) == [2, 1]
    assert ranked(None, {1: 2.0, 2: 8.0}) == [2, 1]


def test_chunks_without_a_vector_are_ranked_and_rated_by_words() -> None:
    found = fuse_found({1: math.nan, 2: math.nan, 3: 0.8}, {1: 2.0, 2: 9.0}, {1: 0.2, 2: 0.6})
    assert {chunk for chunk, _ in found} == {1, 2, 3}
    rated = dict(found)
    assert rated[2].fused is not None
    assert rated[1].fused is not None
    assert rated[2].fused > rated[1].fused > 0
    assert rated[2].relevance == relevance(0.0, 0.6, BY_WORDS)
    assert rated[2].dense is None
    assert rated[3].relevance == relevance(0.8, 0.0, CALIBRATION)


def test_a_vector_search_keeps_its_weight_where_words_say_little() -> None:
    dense = {1: 0.90, 2: 0.83, 9: 0.80}
    assert ranked(dense, {9: 0.4}, alpha=0.7)[0] == 1


@given(
    st.dictionaries(st.integers(0, 30), st.tuples(st.floats(-1, 1), st.floats(0, 40)), max_size=15),
    st.booleans(),
    st.floats(0, 1),
)
def test_every_candidate_comes_back_once_with_scores_in_range(
    found: dict[int, tuple[float, float]], with_dense: bool, alpha: float
) -> None:
    dense = {chunk: cosine for chunk, (cosine, _) in found.items()} if with_dense else None
    lexical = {chunk: score for chunk, (_, score) in found.items()}
    candidates = fuse_found(dense, lexical, {chunk: score / 40 for chunk, score in lexical.items()}, alpha=alpha)
    assert sorted(chunk for chunk, _ in candidates) == sorted(found)
    assert [(scores.dense or 0.0, scores.bm25 or 0.0) for _, scores in candidates] == [
        (dense[chunk] if dense else 0.0, lexical[chunk]) for chunk, _ in candidates
    ]
    assert all(0 <= scores.relevance <= 1 for _, scores in candidates)
    assert all(scores.coverage is None or 0 <= scores.coverage <= 1 for _, scores in candidates)
    fused = [scores.fused or 0.0 for _, scores in candidates]
    assert fused == sorted(fused, reverse=True)


def test_without_vectors_the_words_alone_decide_the_relevance() -> None:
    ((_, alone),) = fuse_found(None, {1: 20.0}, {1: 0.5})
    assert alone.relevance == relevance(0.0, 0.5, BY_WORDS) > 0.99
    ((_, little),) = fuse_found(None, {1: 2.0}, {1: 0.05})
    assert little.relevance < 0.05


def test_coverage_is_known_of_every_candidate_where_words_were_looked_for() -> None:
    found = fuse_found({1: 0.85, 2: 0.84}, {1: 2.0}, {1: 0.2})
    assert [scores.coverage for _, scores in found] == [0.2, 0.0]
    ((_, alone),) = fuse_found({1: 0.5}, {}, ceiling=0.0)
    assert alone.coverage is None


@given(st.floats(-1, 1), st.floats(0, 1))
def test_relevance_rises_with_both_signals(cosine: float, coverage: float) -> None:
    assert relevance(cosine, coverage, CALIBRATION) <= relevance(min(1, cosine + 0.1), coverage, CALIBRATION)
    assert relevance(cosine, coverage, CALIBRATION) <= relevance(cosine, min(1, coverage + 0.1), CALIBRATION)
