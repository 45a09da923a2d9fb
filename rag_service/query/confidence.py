"""Decision and confidence (requirement B5), with the parts of the sum."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_service.definitions import QueryDefinition
from rag_service.domain import Citation, Confidence, Decision, Hit
from rag_service.text.words import terms

LEAST_CONFIDENCE = 0.70  # below: uncertain
_TOP = 3
_CRITICAL_BOOST = 1.1
_CRITICAL_CHUNKS = 2
_FORMULA = re.compile(r"([^|:\n]{1,100}): =[^\s=]")  # "Margin: =C2-B2", of a workbook whose values nobody saved


def rate_confidence(hits: Sequence[Hit], query: QueryDefinition) -> Confidence:
    """Mean of the top three relevances, averaged with that of the top three rerank scores when there
    are any, times 1.1 (at most 1) with two or more CRITICAL chunks; 0 without hits."""
    if not hits:
        return Confidence(value=0.0, mean_relevance=0.0, mean_rerank=None, critical_boost=False)
    mean_relevance = _mean_of_top([hit.scores.relevance for hit in hits])
    reranked = [hit.scores.rerank for hit in hits if hit.scores.rerank is not None]
    mean_rerank = _mean_of_top(reranked) if reranked else None
    value = mean_relevance if mean_rerank is None else (mean_relevance + mean_rerank) / 2
    critical = set(query.tiers.get("critical", ()))
    boost = sum(1 for hit in hits if hit.chunk.type in critical) >= _CRITICAL_CHUNKS
    if boost:
        value = min(1.0, value * _CRITICAL_BOOST)
    return Confidence(
        value=round(value, 2), mean_relevance=mean_relevance, mean_rerank=mean_rerank, critical_boost=boost
    )


def decide(
    confidence: Confidence,
    *,
    found: bool,
    refused: bool,
    context_tokens: int,
    minimum: int,
    warned: bool = False,
) -> Decision:
    """What the figures allow: proceed, or say that it is uncertain, or that it is out of scope.

    Args:
        confidence: as `rate_confidence` gives it.
        found: whether any passage passed the threshold.
        refused: whether the answer is the refusal sentence.
        context_tokens: size of the context shown to the model.
        minimum: least size that the index definition asks for.
        warned: whether the answer begins with a warning, as of what no document mentions.
    """
    if not found or refused:
        return Decision.OUT_OF_SCOPE
    if warned or confidence.value < LEAST_CONFIDENCE or context_tokens < minimum:
        return Decision.UNCERTAIN
    return Decision.CAN_PROCEED


def quotes_formula(question: str, language: str, citations: Sequence[Citation]) -> bool:
    """Whether, of the value that is asked for, only the formula is quoted."""
    labels = {label for citation in citations for label in _FORMULA.findall(citation.quote or "")}
    asked = set(terms(question, language)) if labels else set()
    return any(asked & set(terms(label, language)) for label in labels)


def _mean_of_top(values: Sequence[float]) -> float:
    best = sorted(values, reverse=True)[:_TOP]
    return round(sum(best) / len(best), 4)
