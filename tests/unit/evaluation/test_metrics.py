"""Measures: known rankings give known figures, and what does not apply is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.evaluation.eval_set import Question
from rag_service.evaluation.metrics import (
    Measured,
    Ranked,
    by_category,
    holds_answer,
    measure_ranking,
    measure_refusals,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
)


def asked(*targets: str, answerable: bool = True, sections: tuple[str, ...] = (), category: str = "") -> Question:
    return Question(
        key="q", text="?", answerable=answerable, targets=dict.fromkeys(targets, 1), sections=sections,
        category=category,
    )  # fmt: skip


def ranking(*keys: str, sections: tuple[int, ...] = ()) -> list[Ranked]:
    return [Ranked(key=key, chunk_id=f"{key}#{n}", right_section=n in sections) for n, key in enumerate(keys)]


def test_passages_are_judged_in_the_order_given() -> None:
    questions = [asked("a"), asked("a"), asked("z"), asked(answerable=False)]
    rankings = [ranking("a", "b", "c"), ranking("b", "c", "a"), ranking("a", "b", "c"), ranking("a")]
    measures = measure_ranking(questions, rankings, ks=(1, 3), by_document=False)
    assert measures["RR"].values == pytest.approx((1, 1 / 3, 0, None))
    assert measures["P@3"].values == pytest.approx((1 / 3, 1 / 3, 0, None))
    assert measures["R@1"].values == pytest.approx((1, 0, 0, None))
    assert measures["nDCG@10"].values == pytest.approx((1, 1 / math.log2(4), 0, None))
    assert measures["RR"].mean() == pytest.approx(4 / 9)


def test_documents_are_judged_at_their_best_passage_and_precision_counts_passages() -> None:
    measures = measure_ranking([asked("a", "b")], [ranking("x", "a", "a", "a", "b")], ks=(3,), by_document=True)
    assert measures["P@3"].values == pytest.approx((2 / 3,))
    assert measures["RR"].values == pytest.approx((0.5,))
    assert measures["R@3"].values == pytest.approx((1.0,)), "x, a, b are the first three documents"


def test_the_right_section_must_be_among_the_first_three() -> None:
    questions = [asked("a", sections=("Fees",)), asked("a", sections=("Fees",)), asked("a")]
    rankings = [ranking("a", "a", "a", sections=(2,)), ranking("a", "a", "a", "a", sections=(3,)), ranking("a")]
    measures = measure_ranking(questions, rankings, ks=(3,), by_document=True)
    assert measures["section@3"].values == (1.0, 0.0, None)


def test_nothing_found_is_zero_and_not_an_error() -> None:
    measures = measure_ranking([asked("a")], [[]], ks=(3,), by_document=False)
    assert {measured.mean() for measured in measures.values()} == {0.0}


def test_refusals_are_counted_both_ways() -> None:
    questions = [asked("a"), asked("a"), asked(answerable=False), asked(answerable=False)]
    measures = measure_refusals(questions, [True, False, True, False])
    assert (measures["refused wrongly"].mean(), measures["refused right"].mean()) == (0.5, 0.5)


def test_shares_are_weighed_by_what_they_are_the_share_of() -> None:
    assert Measured(values=(1.0, 0.0, None), weights=(9, 1, 0)).mean() == pytest.approx(0.9)
    assert Measured(values=(None,)).mean() is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The fee is $75 [C1].", True),
        ("THE  FÉE is\n$75.", True),
        ("The fee [C1] is $75.", True),
        ("The fee is **$75**.", True),
        ("The fee is $7.", False),
    ],
)
def test_an_answer_holds_the_gold_wording_whatever_its_dress(text: str, found: bool) -> None:
    assert holds_answer(text, ["the fee is $75"]) is found


def test_categories_keep_their_order_and_none_is_left_out() -> None:
    questions = [asked(category="b"), asked(category="a"), asked(), asked(category="b")]
    assert by_category(questions) == {"b": [0, 3], "a": [1]}


KEYS = [f"d{number}" for number in range(15)]


@given(
    st.lists(st.sampled_from(KEYS), unique=True), st.dictionaries(st.sampled_from(KEYS), st.integers(1, 3), min_size=1)
)
def test_ranking_measures_are_those_of_ir_measures(found: Sequence[str], judged: Mapping[str, int]) -> None:
    measures = {"P@3": precision(found, judged, k=3), "R@5": recall(found, judged, k=5)}
    measures |= {"RR": reciprocal_rank(found, judged), "nDCG@10": ndcg(found, judged, k=10)}
    qrels = [ir_measures.Qrel("q", key, grade) for key, grade in judged.items()]
    run = [ir_measures.ScoredDoc("q", key, float(-place)) for place, key in enumerate(found)]
    expected = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in measures], qrels, run)
    if not found:
        expected = dict.fromkeys(expected, 0.0)  # undefined for ir_measures
    assert measures == pytest.approx({str(measure): value for measure, value in expected.items()})
