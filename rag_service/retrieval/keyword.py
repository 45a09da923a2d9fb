"""The keyword retriever of RAG_ENABLED=false: BM25 over a JSON file, in memory, without a database.

Everyone who may ask may read all of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rag_service.domain import Chunk, Filters, Hit, Identity
from rag_service.indices import IndexDefinition
from rag_service.language.detection import detect_language
from rag_service.language.words import frequencies
from rag_service.retrieval.found import Found
from rag_service.retrieval.fusion import Candidates, fuse
from rag_service.retrieval.knowledge_base import CORPUS_ID, Entry, KnowledgeBase, cut_passages
from rag_service.retrieval.planner import QueryPlan, make_plan
from rag_service.retrieval.query import PassageRetriever
from rag_service.retrieval.question import Question
from rag_service.store.search.conditions import BUILT_IN, matches
from rag_service.store.search.postings import MIN_CHUNKS, Weights, weigh
from rag_service.store.search.scope import WILDCARD, SearchScope, check_fields, not_searchable


@dataclass(frozen=True, kw_only=True)
class _Passage:
    entry: Entry
    chunk: Chunk
    terms: Counter[str]
    length: int  # in index terms


class KeywordRetriever(PassageRetriever):
    """Replaces the hybrid retriever; every mode is lexical."""

    def __init__(self, knowledge_base: KnowledgeBase, index: IndexDefinition, *, identity: Identity | None = None):
        """
        Args:
            knowledge_base: what is searched; read once.
            index: rules the search: synonyms, territories, BM25, calibration.
            identity: as in `PassageRetriever`.
        """
        super().__init__(identity=identity)
        self._index = index
        self._passages = [
            _make_passage(entry, chunk, index) for entry in knowledge_base.documents for chunk in cut_passages(entry)
        ]
        self._frequencies = Counter(term for passage in self._passages for term in passage.terms)
        self._mean_length = max(1.0, sum(passage.length for passage in self._passages) / len(self._passages))

    async def search(self, question: Question) -> Found:
        """Find the best passages by BM25, whatever the mode of the question."""
        filters = question.filters
        started = time.perf_counter()
        if filters.must_exist:
            self._check_ids(filters)
            check_fields(filters, {name for passage in self._passages for name in passage.entry.fields})
        plan = make_plan(
            question.text, filters=filters, index=self._index, asked=question.asked, expected=question.languages
        )
        ranking = self._weigh(plan, total=len(self._passages))
        covering = self._weigh(plan, total=max(len(self._passages), MIN_CHUNKS))
        reachable = {number: p for number, p in enumerate(self._passages) if _matches(p, plan.filters)}
        b = self._index.query.bm25_b
        scores = {number: self._score(passage, ranking.weights, b=b) for number, passage in reachable.items()}
        found = [number for number, score in scores.items() if score > 0]
        held = np.array([self._score(reachable[number], covering.weights, b=0.0) for number in found])
        calibration = self._index.query.calibration
        ranked = fuse(
            Candidates(
                ids=np.array(found, dtype=np.int64),
                cosines=None,
                bm25=np.array([scores[number] for number in found]),
                coverage=np.minimum(held / covering.ceiling, 1.0),
            ),
            alpha=0.0,
            ceiling=ranking.ceiling,
            calibration=calibration and calibration.languages.get(plan.language, calibration),
        )
        limit = max(question.candidates, question.top_k)
        hits = tuple(Hit(chunk=reachable[number].chunk, scores=scores) for number, scores in ranked[:limit])
        return Found(
            plan=plan,
            index=self._index,
            scope=self._scope(plan.filters, len(reachable)),
            hits=hits,
            weights=ranking.weights,
            timings_ms={"lexical": round((time.perf_counter() - started) * 1000, 2)},
        )

    def _check_ids(self, filters: Filters) -> None:
        """As `store.search.scope.check_ids` does."""
        if unknown := set(filters.corpus_ids) - {CORPUS_ID}:
            raise not_searchable("corpus", unknown)
        if unknown := set(filters.document_ids) - {passage.chunk.document.id for passage in self._passages}:
            raise not_searchable("document", unknown)

    def _weigh(self, plan: QueryPlan, *, total: int) -> Weights:
        """What the question's terms weigh among so many passages."""
        found = {term.term: self._frequencies[term.term] for term in plan.terms if term.term in self._frequencies}
        return weigh(plan.terms, found, total, k1=self._index.query.bm25_k1)

    def _score(self, passage: _Passage, weights: Mapping[str, float], *, b: float) -> float:
        k1 = self._index.query.bm25_k1
        damping = k1 * (1 - b + b * passage.length / self._mean_length)
        return sum(
            weight * frequency * (k1 + 1) / (frequency + damping)
            for term, weight in weights.items()
            if (frequency := passage.terms.get(term, 0))
        )

    def _scope(self, filters: Filters, reachable: int) -> SearchScope:
        return SearchScope(
            corpus_ids=(CORPUS_ID,),
            index_names=(self._index.name,),
            chunk_count=len(self._passages),
            mean_length=self._mean_length,
            reachable=reachable,
            document_ids=None,
            expired=(),
            filters=filters,
        )


def _make_passage(entry: Entry, chunk: Chunk, index: IndexDefinition) -> _Passage:
    declared = None if index.ingest.language == "auto" else index.ingest.language
    language = entry.language or declared or detect_language(entry.text) or ""
    # The title counts once with each passage, as it does for chunks in the database.
    counted = frequencies(f"{entry.title}\n{chunk.text}", language)
    return _Passage(entry=entry, chunk=chunk, terms=counted, length=counted.total())


def _matches(passage: _Passage, filters: Filters) -> bool:
    document, entry = passage.chunk.document, passage.entry
    wanted: Sequence[bool] = (
        not filters.corpus_ids or CORPUS_ID in filters.corpus_ids,
        not filters.document_ids or document.id in filters.document_ids,
        filters.file_name is None or (entry.file_name or "").lower() == filters.file_name.lower(),
        filters.source is None or entry.source == filters.source,
        set(filters.tags) <= set(entry.tags),
        filters.territory is None or entry.territory in (None, filters.territory),
        not filters.chunk_types,
        all(entry.fields.get(key, WILDCARD) in (value, WILDCARD) for key, value in filters.fields.items()),
        filters.where is None or matches(filters.where, partial(_values_of, passage)),
    )
    return all(wanted)


def _values_of(passage: _Passage, field: str) -> Sequence[Any]:
    """Values of a filter field or of built-in metadata."""
    if field in passage.entry.fields:
        return (passage.entry.fields[field],)
    value = getattr(passage.entry, BUILT_IN.get(field, ""), None)
    return value if isinstance(value, tuple) else (value,)
