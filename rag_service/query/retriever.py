"""Retrieval: question in, ranked hits out, under the caller's identity.

The lexical leg runs while the question is embedded; the dense leg follows, candidates of both legs
get the score of the other, and only the best of the fused ranking are read with their text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.definitions import IndexDefinition
from rag_service.domain import Filters, Hit, Identity, Scores
from rag_service.query.fusion import Candidate, fuse
from rag_service.query.plan import QueryPlan, make_plan
from rag_service.store.search import (
    SearchScope,
    WeightedTerms,
    find_documents_by_name,
    read_candidates,
    read_chunks,
    resolve_scope,
    score_lexical,
    search_dense,
    search_lexical,
    weigh_terms,
)
from rag_service.store.session import Connection, Database
from rag_service.store.turns import Turns
from rag_service.tracing import span

Mode = Literal["hybrid", "dense", "lexical"]


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """What a search found and how."""

    plan: QueryPlan
    index: IndexDefinition
    scope: SearchScope
    hits: tuple[Hit, ...]  # best first, not yet cut by threshold
    weights: Mapping[str, float] = field(default_factory=dict)  # index term → idf in the scope, for the answerer
    timings_ms: Mapping[str, float] = field(default_factory=dict)  # step → milliseconds


class Retriever:
    """Hybrid retrieval over everything an identity may read."""

    def __init__(
        self,
        database: Database,
        embedding: BaseEmbedding,
        indices: Mapping[str, IndexDefinition],
        *,
        default_index: str,
        turns: Turns | None = None,
    ):
        """
        Args:
            database: where the chunks are.
            embedding: the model that embedded them.
            indices: definitions by name.
            default_index: rules searches over corpora of several or unknown definitions.
            turns: who searches when many want to; None: all at once.
        """
        self._database = database
        self._embedding = embedding
        self._indices = indices
        self._default_index = default_index
        self._turns = turns

    async def search(
        self,
        question: str,
        *,
        identity: Identity,
        filters: Filters,
        limit: int,
        mode: Mode = "hybrid",
        alpha: float | None = None,
    ) -> Retrieval:
        """Find the best `limit` chunks.

        Args:
            question: what is asked, not blank.
            identity: whose eyes the search has.
            filters: what it may look at besides.
            limit: most hits returned.
            mode: which legs run.
            alpha: share of the dense leg; None takes the index definition's.

        Raises:
            EmbeddingError: the question cannot be embedded (not in lexical mode).
            StoreError: the database fails.
        """
        clock = _Clock()
        embedding = None if mode == "lexical" else asyncio.ensure_future(self._embed(question))
        try:
            async with self._turn(), self._database.transaction(identity) as connection:
                index, plan, scope = await self._resolve(connection, question, filters)
                clock.lap("scope")
                query = index.query
                terms = await weigh_terms(connection, scope, plan.terms, k1=query.bm25_k1)
                lexical = (
                    {}
                    if mode == "dense"
                    else await search_lexical(
                        connection, scope, terms, k1=query.bm25_k1, b=query.bm25_b, limit=query.candidates
                    )
                )
                clock.lap("lexical")
            vector = None if embedding is None else await embedding
            clock.lap("embedding")
        finally:
            if embedding is not None and not embedding.done():
                embedding.cancel()
        async with self._turn(), self._database.transaction(identity) as connection:
            candidates = await self._rank(
                connection, scope, index, plan.language, terms, lexical, vector, mode=mode, alpha=alpha
            )
            clock.lap("dense")
            chunks = await read_chunks(connection, [candidate.id for candidate in candidates[:limit]])
            clock.lap("read")
        hits = tuple(
            Hit(chunk=chunks[candidate.id], scores=_scores(candidate))
            for candidate in candidates[:limit]
            if candidate.id in chunks
        )
        return Retrieval(plan=plan, index=index, scope=scope, hits=hits, weights=terms.weights, timings_ms=clock.laps)

    def _turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._turns is None else self._turns.take()

    async def _embed(self, question: str) -> list[float]:
        with span("embed"):
            return await self._embedding.aget_query_embedding(question)

    async def _resolve(
        self, connection: Connection, question: str, filters: Filters
    ) -> tuple[IndexDefinition, QueryPlan, SearchScope]:
        scope = await resolve_scope(connection, filters)
        named = scope.index_names[0] if len(scope.index_names) == 1 else self._default_index
        index = self._indices.get(named) or self._indices[self._default_index]
        plan = make_plan(question, filters=filters, index=index)
        if plan.file_names and not filters.document_ids and filters.file_name is None:
            documents = await find_documents_by_name(connection, scope, plan.file_names)
            if documents:
                plan = replace(plan, filters=replace(plan.filters, document_ids=documents))
        if plan.filters != filters:
            scope = await resolve_scope(connection, plan.filters)
        return index, plan, scope

    async def _rank(
        self,
        connection: Connection,
        scope: SearchScope,
        index: IndexDefinition,
        language: str,
        terms: WeightedTerms,
        lexical: dict[int, float],
        vector: list[float] | None,
        *,
        mode: Mode,
        alpha: float | None,
    ) -> list[Candidate]:
        query = index.query
        nearest = [] if vector is None else await search_dense(connection, vector, scope=scope, limit=query.candidates)
        dense = dict(nearest)
        ids = list(dense.keys() | lexical.keys())
        documents, cosines = await read_candidates(connection, ids, vector)
        if mode != "lexical":
            dense |= {chunk_id: cosine for chunk_id, cosine in cosines.items() if chunk_id not in dense}
        unscored: dict[int, UUID] = {
            chunk_id: documents[chunk_id] for chunk_id in dense if chunk_id not in lexical and chunk_id in documents
        }
        lexical = lexical | await score_lexical(
            connection, scope, terms.weights, chunks=unscored, k1=query.bm25_k1, b=query.bm25_b
        )
        share = query.alpha if alpha is None else alpha
        return fuse(
            dense,
            lexical,
            alpha={"dense": 1.0, "lexical": 0.0, "hybrid": share}[mode],
            ceiling=terms.ceiling,
            calibration=query.fit_for(language),
        )


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = round((now - self._last) * 1000, 2)
        self._last = now


def _scores(candidate: Candidate) -> Scores:
    return Scores(
        relevance=candidate.relevance,
        dense=candidate.dense,
        bm25=candidate.bm25,
        coverage=candidate.coverage,
        fused=candidate.fused,
    )
