"""Retrieval: question in, ranked hits out, under the caller's identity.

The lexical leg runs while the question is embedded; the dense leg follows, candidates of both legs
get the score of the other, and only the best of the fused ranking are read with their text. No
connection is held while a slow embedding is awaited; one that is there in time (a cached question's)
spares the second transaction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol

from rag_service.definitions import IndexDefinition
from rag_service.domain import Filters, Hit, Identity, Scores
from rag_service.query.retrieval.fusion import Candidate, Candidates, fuse, log_odds_of
from rag_service.query.retrieval.names import find_absent
from rag_service.query.retrieval.plan import QueryPlan, make_plan
from rag_service.store.search.dense import DenseLeg
from rag_service.store.search.hits import ChunkRow, read_rows, to_chunks
from rag_service.store.search.lexical import NONE_FOUND, LexicalLeg, Rated
from rag_service.store.search.scope import SearchScope, check_fields, check_ids, find_documents_by_name, resolve_scope
from rag_service.store.search.term_weights import WeightedTerms, weigh_terms
from rag_service.store.search.turns import Turns
from rag_service.store.session import Connection, Database, meanwhile
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
    absent: tuple[str, ...] = ()  # names in the question that nothing in scope holds, as it writes them
    timings_ms: Mapping[str, float] = field(default_factory=dict)  # step → milliseconds


class QueryEmbedding(Protocol):
    """What a search asks of an embedding model; every LlamaIndex embedding is one."""

    async def aget_query_embedding(self, query: str) -> list[float]:
        """The vector of a question."""
        ...


class Retriever:
    """Hybrid retrieval over everything an identity may read."""

    def __init__(
        self,
        database: Database,
        embedding: QueryEmbedding,
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
            NotFoundError: the filters name what is not there to be searched, and say that it must be.
            StoreError: the database fails.
        """
        clock = _Clock()
        embedding = None if mode == "lexical" else asyncio.ensure_future(self._embed(question))
        ranked: list[Hit] | None = None
        try:
            async with self._turn(), self._database.transaction(identity) as connection:
                vector = _result_of(embedding)
                begun = await self._begin(connection, question, filters, clock, mode=mode, vector=vector)
                vector = vector or _result_of(embedding)
                if embedding is None or vector is not None:
                    ranked = await self._rank(connection, begun, vector, clock, limit=limit, mode=mode, alpha=alpha)
            if embedding is not None and ranked is None:
                vector = await embedding
                clock.lap("embedding")
                async with self._turn(), self._database.transaction(identity) as connection:
                    ranked = await self._rank(connection, begun, vector, clock, limit=limit, mode=mode, alpha=alpha)
        finally:
            if embedding is not None and not embedding.done():
                embedding.cancel()
        clock.lap("read")  # the end of the transaction is part of the search
        return Retrieval(
            plan=begun.plan,
            index=begun.index,
            scope=begun.scope,
            hits=tuple(ranked or ()),
            weights=begun.terms.ranking.weights,
            absent=begun.absent,
            timings_ms=clock.laps,
        )

    def _turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._turns is None else self._turns.take()

    async def _embed(self, question: str) -> list[float]:
        with span("embed"):
            return await self._embedding.aget_query_embedding(question)

    async def _begin(
        self,
        connection: Connection,
        question: str,
        filters: Filters,
        clock: _Clock,
        *,
        mode: Mode,
        vector: list[float] | None,
    ) -> _Begun:
        """All of a search that needs no vector, and where there is one, the nearest chunks.

        Those take the longest statement of a search; the postings are summed up meanwhile.
        """
        index, plan, scope = await self._resolve(connection, question, filters)
        clock.lap("scope")
        query = index.query
        terms, dense = await meanwhile(
            weigh_terms(connection, scope, plan.terms, k1=query.bm25_k1),
            lambda: None if vector is None else DenseLeg(scope, vector, nearest=query.candidates),
        )
        leg = LexicalLeg(scope, terms, best=query.candidates, k1=query.bm25_k1, b=query.bm25_b)
        # Where words do not choose, they are read only of what is chosen, if they did not come with their weights.
        postings = terms.postings if mode == "dense" else await leg.read(connection)
        if dense is None:
            leg.add(postings)
        else:
            await meanwhile(dense.read(connection), partial(leg.add, postings))
        lexical = NONE_FOUND if mode == "dense" else await leg.search(connection)
        clock.lap("lexical")
        absent = find_absent(plan.names, plan.terms, terms.chunk_frequencies)
        return _Begun(
            index=index, plan=plan, scope=scope, terms=terms, leg=leg, lexical=lexical, absent=absent, dense=dense
        )

    async def _resolve(
        self, connection: Connection, question: str, filters: Filters
    ) -> tuple[IndexDefinition, QueryPlan, SearchScope]:
        index = self._indices[self._default_index]
        analyse = partial(make_plan, question, filters=filters)
        scope, plan = await meanwhile(resolve_scope(connection, filters), partial(analyse, index=index))
        if filters.must_exist:
            await check_ids(connection, scope)
            if filters.fields and scope.corpus_ids:
                check_fields(filters, self._declared_fields(scope))
        named = self._indices.get(scope.index_names[0], index) if len(scope.index_names) == 1 else index
        if named is not index:
            index, plan = named, analyse(index=named)
        if plan.file_names and not filters.document_ids and filters.file_name is None:
            documents = await find_documents_by_name(connection, scope, plan.file_names)
            if documents:
                plan = replace(plan, filters=replace(plan.filters, document_ids=documents), names=())
        if plan.filters != filters:
            scope = await resolve_scope(connection, plan.filters)
        return index, plan, scope

    def _declared_fields(self, scope: SearchScope) -> set[str]:
        ruling = [self._indices[name] for name in scope.index_names if name in self._indices]
        return {name for index in ruling for name in index.ingest.filter_fields}

    async def _rank(
        self,
        connection: Connection,
        begun: _Begun,
        vector: list[float] | None,
        clock: _Clock,
        *,
        limit: int,
        mode: Mode,
        alpha: float | None,
    ) -> list[Hit]:
        """The dense leg, both scores for every candidate, and the best with their text; ends the transaction."""
        query = begun.index.query
        found, cosines = begun.lexical, None
        if vector is not None:
            dense = begun.dense
            if dense is None:
                dense = DenseLeg(begun.scope, vector, nearest=query.candidates)
                await dense.read(connection)
            near = await dense.cosines(connection, found.ids)
            found, cosines = await begun.leg.score(connection, near.ids), near.values
        share = query.alpha if alpha is None else alpha
        candidates = fuse(
            Candidates(ids=found.ids, cosines=cosines, bm25=found.scores, coverage=found.coverage),
            alpha={"dense": 1.0, "lexical": 0.0, "hybrid": share}[mode],
            ceiling=begun.terms.ranking.ceiling,
            calibration=query.fit_for(begun.plan.language),
            limit=limit,
            log_odds=log_odds_of(begun.absent),
        )
        clock.lap("dense")
        rows = await read_rows(connection, [candidate.id for candidate in candidates])
        _, hits = await meanwhile(connection.commit(), partial(_make_hits, candidates, rows))
        return hits


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """A search half done: all but what needs the question's vector."""

    index: IndexDefinition
    plan: QueryPlan
    scope: SearchScope
    terms: WeightedTerms
    leg: LexicalLeg
    lexical: Rated  # the best of the lexical leg
    absent: tuple[str, ...]
    dense: DenseLeg | None  # where the vector was there in time


def _result_of(embedding: asyncio.Future[list[float]] | None) -> list[float] | None:
    """The vector if it is there by now.

    Raises:
        EmbeddingError: it will not be.
    """
    return embedding.result() if embedding is not None and embedding.done() else None


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = round((now - self._last) * 1000, 2)
        self._last = now


def _make_hits(candidates: Sequence[Candidate], rows: Sequence[ChunkRow]) -> list[Hit]:
    chunks = to_chunks(rows)
    return [
        Hit(chunk=chunks[candidate.id], scores=_scores(candidate)) for candidate in candidates if candidate.id in chunks
    ]


def _scores(candidate: Candidate) -> Scores:
    return Scores(
        relevance=candidate.relevance,
        dense=candidate.dense,
        bm25=candidate.bm25,
        coverage=candidate.coverage,
        fused=candidate.fused,
    )
