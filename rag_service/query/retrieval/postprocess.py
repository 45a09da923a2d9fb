"""Between retrieval and answer: rerank, recency, threshold, top k, and what is shown where nothing is left.

All but the last are LlamaIndex postprocessors in their usual order of work and run on hits inside.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from rag_service.domain import Hit
from rag_service.models.reranking.rerankers import Reranker, rerank_or_keep
from rag_service.query.retrieval.nodes import to_hit, to_node
from rag_service.tracing import span

SIMILAR = 0.01  # fused scores that differ by less than this share of the better one count as equal
SIMILAR_LOG_ODDS = 0.05  # likewise for rerank scores, which crowd near 0 and 1
# What a refusal shows. Of XQuAD's unanswerable questions that are refused, 14 % (en) and 38 % (es) get a passage by
# this limit; half of it would make that 23 % and 58 %. How often it is the right one: CONTRIBUTING.md, decisions.
RELATED_RELEVANCE = 0.1
MOST_RELATED = 3


class HitPostprocessor(BaseNodePostprocessor):
    """Adapter: subclasses work on hits."""

    @abstractmethod
    async def process(self, hits: Sequence[Hit], question: str) -> list[Hit]:
        """The hits in another order, or fewer of them."""

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        question = "" if query_bundle is None else query_bundle.query_str
        of_hit = {id(to_hit(node)): node for node in nodes}
        hits = await self.process([to_hit(node) for node in nodes], question)
        # A node takes as long to make as a hit takes to be judged: hits that are the same keep theirs.
        return [of_hit.get(id(hit)) or to_node(hit) for hit in hits]

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        raise RuntimeError("This postprocessor is asynchronous; use apostprocess_nodes.")


class Rerank(HitPostprocessor):
    """Reorders by the configured reranker; a failing reranker leaves the order as it was."""

    _reranker: Reranker = PrivateAttr()
    _analyse: Callable[[str], list[str]] = PrivateAttr()

    def __init__(self, reranker: Reranker, analyse: Callable[[str], list[str]], **kwargs: Any):
        super().__init__(**kwargs)
        self._reranker = reranker
        self._analyse = analyse

    async def process(self, hits: Sequence[Hit], question: str) -> list[Hit]:
        with span("rerank"):
            return await rerank_or_keep(self._reranker, question, hits, query_terms=self._analyse(question))


class NewerFirst(HitPostprocessor):
    """Among hits of similar score the newer document goes first (requirement E6)."""

    async def process(self, hits: Sequence[Hit], question: str) -> list[Hit]:
        ordered: list[Hit] = []
        group: list[Hit] = []
        for hit in hits:
            if group and not _similar(group[0], hit):
                ordered += sorted(group, key=lambda member: member.chunk.document.updated_at, reverse=True)
                group = []
            group.append(hit)
        return ordered + sorted(group, key=lambda member: member.chunk.document.updated_at, reverse=True)


class Threshold(HitPostprocessor):
    """Drops passages whose calibrated relevance is too low."""

    _least: float = PrivateAttr()

    def __init__(self, least: float, **kwargs: Any):
        super().__init__(**kwargs)
        self._least = least

    async def process(self, hits: Sequence[Hit], question: str) -> list[Hit]:
        return [hit for hit in hits if hit.scores.relevance >= self._least]


class TopK(HitPostprocessor):
    """Keeps the first k."""

    _k: int = PrivateAttr()

    def __init__(self, k: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._k = k

    async def process(self, hits: Sequence[Hit], question: str) -> list[Hit]:
        return list(hits[: self._k])


def _similar(better: Hit, hit: Hit) -> bool:
    first, second = better.scores, hit.scores
    if first.rerank is not None and second.rerank is not None:
        return abs(_log_odds(first.rerank) - _log_odds(second.rerank)) <= SIMILAR_LOG_ODDS
    if first.fused is not None and second.fused is not None:
        return first.fused - second.fused <= SIMILAR * abs(first.fused)
    return first.relevance - second.relevance <= SIMILAR * first.relevance


def _log_odds(score: float) -> float:
    certain = min(1 - 1e-9, max(1e-9, score))
    return math.log(certain / (1 - certain))


def find_related(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Of hits that the threshold has refused, the first few that are not far from the question, in their order."""
    return tuple(hit for hit in hits if hit.scores.relevance >= RELATED_RELEVANCE)[:MOST_RELATED]
