"""Fusion: a weak leg never drowns a strong one, and every score keeps its meaning."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_service.definitions import Calibration
from rag_service.query.fusion import BY_WORDS, fuse, relevance

CALIBRATION = Calibration(intercept=-5, cosine=5, coverage=10, run="test")


def ranked(dense: dict[int, float], lexical: dict[int, float], alpha: float = 0.5, ceiling: float = 20.0) -> list[int]:
    found = fuse(dense, lexical, alpha=alpha, ceiling=ceiling, coverage={}, calibration=CALIBRATION)
    return [candidate.id for candidate in found]


def test_alpha_one_is_the_dense_order_and_alpha_zero_the_lexical_one() -> None:
    dense, lexical = {1: 0.9, 2: 0.5, 3: 0.1}, {1: 1.0, 2: 5.0, 3: 9.0}
    assert ranked(dense, lexical, alpha=1.0) == [1, 2, 3]
    assert ranked(dense, lexical, alpha=0.0) == [3, 2, 1]


def test_a_missing_leg_leaves_the_order_of_the_other() -> None:
    assert ranked({1: 0.2, 2: 0.8}, {}) == [2, 1]
    assert ranked({}, {1: 2.0, 2: 8.0}) == [2, 1]


def test_a_dense_leg_that_the_words_contradict_is_not_trusted() -> None:
    # Four near passages without any word of the question against one that holds nearly all of them.
    dense = {1: 0.60, 2: 0.59, 3: 0.58, 4: 0.57, 9: 0.30}
    assert ranked(dense, {9: 18.0}, alpha=0.7)[0] == 9


def test_a_dense_leg_keeps_its_weight_where_words_say_little() -> None:
    dense = {1: 0.80, 2: 0.30, 9: 0.10}
    assert ranked(dense, {9: 0.4}, alpha=0.7)[0] == 1


@given(
    st.dictionaries(st.integers(0, 30), st.floats(-1, 1), max_size=15),
    st.dictionaries(st.integers(0, 30), st.floats(0.01, 40), max_size=15),
    st.floats(0, 1),
)
def test_every_candidate_comes_back_once_with_scores_in_range(
    dense: dict[int, float], lexical: dict[int, float], alpha: float
) -> None:
    shares = {chunk: score / 40 for chunk, score in lexical.items()}
    candidates = fuse(dense, lexical, alpha=alpha, ceiling=40.0, coverage=shares, calibration=CALIBRATION)
    assert sorted(candidate.id for candidate in candidates) == sorted(dense.keys() | lexical.keys())
    assert all(0 <= candidate.relevance <= 1 for candidate in candidates)
    assert all(candidate.coverage is None or 0 <= candidate.coverage <= 1 for candidate in candidates)
    fused = [candidate.fused for candidate in candidates]
    assert fused == sorted(fused, reverse=True)


def test_without_the_dense_leg_the_words_alone_decide_the_relevance() -> None:
    (alone,) = fuse({}, {1: 20.0}, alpha=0.5, ceiling=40.0, coverage={1: 0.5}, calibration=CALIBRATION)
    assert alone.relevance == relevance(0.0, 0.5, BY_WORDS) > 0.99
    (little,) = fuse({}, {1: 2.0}, alpha=0.5, ceiling=40.0, coverage={1: 0.05}, calibration=CALIBRATION)
    assert little.relevance < 0.05


def test_coverage_is_known_of_every_candidate_where_words_were_looked_for() -> None:
    found = fuse({1: 0.5, 2: 0.4}, {1: 2.0}, alpha=0.5, ceiling=40.0, coverage={1: 0.2}, calibration=CALIBRATION)
    assert [candidate.coverage for candidate in found] == [0.2, 0.0]
    (alone,) = fuse({1: 0.5}, {}, alpha=0.5, ceiling=0.0, coverage={}, calibration=CALIBRATION)
    assert alone.coverage is None


@given(st.floats(-1, 1), st.floats(0, 1))
def test_relevance_rises_with_both_signals(cosine: float, coverage: float) -> None:
    assert relevance(cosine, coverage, CALIBRATION) <= relevance(min(1, cosine + 0.1), coverage, CALIBRATION)
    assert relevance(cosine, coverage, CALIBRATION) <= relevance(cosine, min(1, coverage + 0.1), CALIBRATION)
