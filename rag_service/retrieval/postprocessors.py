"""LlamaIndex postprocessors between retrieval and answer: rerank, then choose by version, threshold and top k.

Both return what was found with other passages. LlamaIndex sees nodes only, so that stock postprocessors may stand
before and after them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import datetime

import llama_index.core.instrumentation as instrument
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from rag_service.domain import Hit
from rag_service.language.words import terms
from rag_service.models.reranking.reranker import Reranker, rerank_or_keep
from rag_service.observability.tracing import span
from rag_service.retrieval.found import Found
from rag_service.retrieval.named_files import take_turns
from rag_service.retrieval.query import RagQuery
from rag_service.retrieval.question import Question
from rag_service.retrieval.versions import ask_versions
from rag_service.unpicklable import Unpicklable

SIMILAR = 0.01  # fused scores that differ by less than this share of the better one count as equal
SIMILAR_LOG_ODDS = 0.05  # likewise for rerank scores, which crowd near 0 and 1
# What a refusal shows. Of XQuAD's unanswerable questions that are refused, 14 % (en) and 38 % (es) get a passage with
# this limit; half of it would make that 23 % and 58 %.
RELATED_RELEVANCE = 0.1
MAX_RELATED = 3
_HEADING_WORDS = 2  # content words of a heading that names a section; one says too little

dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]  # not in its __all__


class PassagePostprocessor(BaseNodePostprocessor):
    """Base of the postprocessors that need the passages of a `RagQuery`."""

    @abstractmethod
    async def process(self, question: Question, found: Found) -> Found:
        """Return what was found with its passages in another order, or fewer of them."""

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not isinstance(query_bundle, RagQuery):
            raise TypeError(f"{type(self).__name__} needs a RagQuery, not {type(query_bundle).__name__}.")
        run = query_bundle.run
        run.retrieved = await self.process(run.question, run.found.choose(nodes))
        return run.found.order(nodes)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        raise RuntimeError("This postprocessor is asynchronous; use apostprocess_nodes.")


class Rerank(Unpicklable, PassagePostprocessor):
    """Reorders by the configured reranker; a failing reranker leaves the order as it was."""

    _reranker: Reranker = PrivateAttr()

    def __init__(self, reranker: Reranker):
        super().__init__()
        self._reranker = reranker

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        name = self._reranker.name
        dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=len(nodes), model_name=name))
        reranked = await super()._apostprocess_nodes(nodes, query_bundle)
        dispatcher.event(ReRankEndEvent(nodes=reranked))
        return reranked

    async def process(self, question: Question, found: Found) -> Found:
        with span("rerank"):
            ranked = await rerank_or_keep(self._reranker, question.text, found.passages, language=found.plan.language)
        return found.with_passages(ranked)


class ChoosePassages(PassagePostprocessor):
    """Puts newer documents first among equals, keeps the version asked for, what is relevant, and of that `top_k`.

    They share one object, because each costs a span of LlamaIndex and a turn from nodes to passages and back.
    """

    default: float  # relevance from which on a passage answers, 0..1
    out_of_scope: float  # minimum relevance, 0..1

    async def process(self, question: Question, found: Found) -> Found:
        found = _of_version_asked(question, found.with_passages(_newer_first(found.passages)))
        found = self._relevant(question, found)
        top_k = question.top_k
        return found.with_passages(take_turns(found.passages, top_k) if found.of_several else found.passages[:top_k])

    def _relevant(self, question: Question, found: Found) -> Found:
        """Leave out the passages of too little relevance.

        A threshold in the request is a hard limit. Otherwise the ranking ends with the last passage that reaches
        `out_of_scope` or holds a section that the question names, and an answer is doubtful if none reaches the
        threshold of the index, else `default`. What ranks before it stays: relevance says whether a question is
        answered, and orders passages worse than the ranking.
        """
        hits, language = found.passages, found.plan.language
        if question.threshold is not None:
            return found.with_passages(hit for hit in hits if hit.scores.relevance >= question.threshold)
        threshold = found.index.query.threshold
        threshold = self.default if threshold is None else threshold
        is_doubtful = max((hit.scores.relevance for hit in hits), default=-1.0) < threshold
        minimum = min(self.out_of_scope, threshold)
        asked = set(terms(question.text, language))
        relevant = [
            rank
            for rank, hit in enumerate(hits, start=1)
            if hit.scores.relevance >= minimum or _names_section(asked, hit, language)
        ]
        return replace(found, is_doubtful=is_doubtful).with_passages(hits[: max(relevant, default=0)])


def _names_section(asked: Set[str], hit: Hit, language: str) -> bool:
    """Whether a question has all words of the heading of a section in the passage: "Further Reading".

    A short section shares its passage with others, which make it less similar to the question.
    """
    headings = {span.location.headings[-1] for span in hit.chunk.spans if span.location.headings}
    named = (set(terms(heading, language)) for heading in headings - {hit.chunk.document.title})
    return any(len(words) >= _HEADING_WORDS and words <= asked for words in named)


def _newer_first(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Among passages of similar score the newer document goes first."""
    ordered: list[Hit] = []
    group: list[Hit] = []
    for hit in hits:
        if group and not _similar(group[0], hit):
            ordered += sorted(group, key=_updated_at, reverse=True)
            group = []
        group.append(hit)
    return ordered + sorted(group, key=_updated_at, reverse=True)


def _of_version_asked(question: Question, found: Found) -> Found:
    """Keep of a document that was found in several versions only the passages of those that the question asks for.

    A search shows all of them, and files that are named are meant as they are.
    """
    if question.as_asked or found.files is not None:
        return found
    versions = ask_versions(question.text, [hit.chunk.document for hit in found.passages])
    if versions is None:
        return found
    kept = (hit for hit in found.passages if hit.chunk.document.id not in versions.others)
    return replace(found, versions=versions).with_passages(kept)


def find_related(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Passages below the threshold that are still near the question: the first few, in their order."""
    return tuple(hit for hit in hits if hit.scores.relevance >= RELATED_RELEVANCE)[:MAX_RELATED]


def _updated_at(hit: Hit) -> datetime:
    return hit.chunk.document.updated_at


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
