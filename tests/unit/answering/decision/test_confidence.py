"""Decision and confidence, by the sum that the advisor shows."""

from __future__ import annotations

from dataclasses import replace

from rag_service.answering.decision.confidence import rate_confidence
from rag_service.domain import Hit, Scores
from rag_service.indices import QueryDefinition
from tests.unit.answering.proof.answers import make_hit

TIERED = QueryDefinition(tiers={"critical": ("business_rules",)})


def hits(*scores: tuple[float, float | None], type: str | None = None) -> list[Hit]:
    hit = make_hit("text")
    chunk = replace(hit.chunk, type=type)
    return [Hit(chunk=chunk, scores=Scores(relevance=relevance, rerank=rerank)) for relevance, rerank in scores]


def test_the_mean_of_the_top_three_relevances() -> None:
    confidence = rate_confidence(hits((0.9, None), (0.8, None), (0.7, None), (0.1, None)), QueryDefinition())
    assert (confidence.value, confidence.mean_rerank) == (0.8, None)


def test_rerank_scores_are_averaged_in() -> None:
    confidence = rate_confidence(hits((0.9, 0.5), (0.9, 0.5), (0.9, 0.5)), QueryDefinition())
    assert confidence.value == 0.7


def test_two_critical_chunks_raise_it_by_a_tenth_and_never_above_one() -> None:
    one = hits((0.8, None), type="business_rules") + hits((0.8, None), (0.8, None))
    two = hits((0.8, None), (0.8, None), type="business_rules") + hits((0.8, None))
    assert rate_confidence(one, TIERED).value == 0.8
    assert rate_confidence(two, TIERED).value == 0.88
    assert rate_confidence(hits((1.0, None), (1.0, None), type="business_rules"), TIERED).value == 1.0


def test_nothing_found_is_zero() -> None:
    assert rate_confidence([], TIERED).value == 0.0
