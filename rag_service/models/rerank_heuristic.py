"""The default reranker: no model, a millisecond, three signals.

The calibrated relevance is the original score. Two signals move it in log-odds, so that the result
stays a figure in 0..1 that means what relevance means: how much of the question's words the passage
holds, rare ones among these hits counting more, and how many of them its headings and title hold.

Weights from the top 10 of 1,190 XQuAD questions each (cosine 0.6 + BM25 0.4, logistic relevance,
article titles as headings): MRR 0.971 → 0.971 in English, 0.954 → 0.956 in Spanish. A plain
weighted sum of the same three (0.7 / 0.2 / 0.1) lost in English: 0.969. The sections of real
documents should gain more than article titles do; the eval sets decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rag_service.domain import Chunk, Hit
from rag_service.models.rerankers import Analyse, by_score

OVERLAP_WEIGHT = 1.0  # log-odds between a passage with none and one with all of the words
SECTION_WEIGHT = 1.0  # log-odds for headings that hold all of the words

MOST_CERTAIN = 1e-6  # relevance is kept this far from 0 and 1, where log-odds end


class HeuristicReranker:
    """Relevance moved by word overlap and section match."""

    name = "heuristic"

    def __init__(self, analyse: Analyse):
        self._analyse = analyse

    async def warm_up(self) -> None:
        return

    async def rerank(self, query: str, hits: Sequence[Hit], *, query_terms: Sequence[str]) -> list[Hit]:
        terms = set(query_terms) or set(self._analyse(query))
        passages = [set(self._analyse(hit.chunk.text)) for hit in hits]
        weights = _rarities(terms, passages)
        return by_score(
            hits,
            [
                _moved(
                    hit.scores.relevance,
                    OVERLAP_WEIGHT * (_share(passage, weights) - 0.5)
                    + SECTION_WEIGHT * _share(set(self._analyse(_headings(hit.chunk))), dict.fromkeys(terms, 1.0)),
                )
                for hit, passage in zip(hits, passages, strict=True)
            ],
        )


def _rarities(terms: set[str], passages: Sequence[set[str]]) -> dict[str, float]:
    """Weight of each term: above 0, larger the fewer of these passages hold it."""
    return {
        term: math.log(1 + (len(passages) + 1) / (1 + sum(term in passage for passage in passages))) for term in terms
    }


def _share(found: set[str], weights: dict[str, float]) -> float:
    """Weight of the terms found as a share of all, 0..1; 0.5 when there is nothing to find."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in found) / total if total else 0.5


def _headings(chunk: Chunk) -> str:
    headings = dict.fromkeys(heading for span in chunk.spans for heading in span.location.headings)
    return " ".join([chunk.document.title, *headings])


def _moved(relevance: float, log_odds: float) -> float:
    """Relevance after this much more evidence, 0..1."""
    certain = min(1 - MOST_CERTAIN, max(MOST_CERTAIN, relevance))
    return 1 / (1 + math.exp(-(math.log(certain / (1 - certain)) + log_odds)))
