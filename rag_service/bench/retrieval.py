"""`bench retrieval`: ours, stock PGVectorStore and bare SQL over the same data, in one run.

Embedding is not part of any figure of a search: the questions' vectors are made with the corpus.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rag_service.bench.corpus import EVERYTHING, SHARES, BenchCorpus, BenchQuery, generate_queries
from rag_service.bench.exact import ExactBM25, nearest, overlap
from rag_service.bench.explain import WatchedDatabase, find_seq_scans
from rag_service.bench.load import BENCH_USER, BenchDatabase, Loaded
from rag_service.bench.stock import StockStore
from rag_service.definitions import IndexDefinition
from rag_service.domain import Filters
from rag_service.query.plan import make_plan
from rag_service.query.retriever import Retriever
from rag_service.store.dense import search_dense
from rag_service.store.lexical import LexicalLeg, weigh_terms
from rag_service.store.scope import resolve_scope
from rag_service.text.words import terms

TOP = 10
WARM_UP = 8  # searches before the clock runs: caches, prepared statements
SELECTIVITIES = (*SHARES, EVERYTHING)

Advance = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Times:
    """Milliseconds of a search."""

    p50: float
    p95: float
    searches: int


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Everything about searches of one selectivity."""

    selectivity: str
    chunks: int  # reachable
    ours: Times  # hybrid, whole: scope, both legs, fusion, reading
    steps: Mapping[str, float]  # step of ours → median milliseconds
    floor: Times  # the two legs as bare SQL with the same candidates
    stock: Times | None  # hybrid; None where it was not measured
    dense_recall: float  # of our dense leg at 10, against exact
    lexical_overlap: float  # of our top 10 with exact BM25's

    @property
    def speed_up(self) -> float | None:
        """How many times faster than stock, at the median."""
        return None if self.stock is None else self.stock.p50 / self.ours.p50


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The opened parts of a run."""

    database: BenchDatabase
    corpus: BenchCorpus
    loaded: Loaded
    index: IndexDefinition
    stock: StockStore | None
    queries: int  # of each selectivity
    stock_queries: int
    words: int  # of a question
    seq_scans: list[str] = field(default_factory=list)  # found by EXPLAIN


class KnownVectors:
    """Gives each question the vector that was made with it: no part of embedding is measured."""

    def __init__(self, queries: Sequence[BenchQuery]):
        self._known: dict[str, list[float]] = {query.text: query.vector.tolist() for query in queries}

    async def aget_query_embedding(self, query: str) -> list[float]:
        return self._known[query]


async def measure_all(bench: Bench, advance: Advance) -> list[Measurement]:
    """Measure every selectivity; `advance` counts selectivities."""
    queries = {
        selectivity: generate_queries(bench.corpus, bench.queries, words=bench.words, selectivity=selectivity)
        for selectivity in SELECTIVITIES
        if len(bench.corpus.members(selectivity))
    }
    asked = {term for part in queries.values() for query in part for term in terms(query.text, "en")}
    exact = ExactBM25(
        [terms(text, "en") for text in bench.corpus.texts],
        k1=bench.index.query.bm25_k1, b=bench.index.query.bm25_b, only=asked,
    )  # fmt: skip
    found = []
    for selectivity, part in queries.items():
        found.append(await _measure(bench, selectivity, part, exact))
        advance(1)
    return found


async def _measure(bench: Bench, selectivity: str, queries: Sequence[BenchQuery], exact: ExactBM25) -> Measurement:
    filters = Filters()
    if selectivity != EVERYTHING:
        filters = Filters(corpus_ids=(bench.loaded.tenants[selectivity],))
    embedding = KnownVectors(queries)
    retriever = Retriever(
        bench.database.database, embedding, {bench.index.name: bench.index}, default_index=bench.index.name
    )
    steps: dict[str, list[float]] = {}

    async def ours(query: BenchQuery) -> None:
        retrieval = await retriever.search(query.text, identity=BENCH_USER, filters=filters, limit=TOP)
        for step, spent in retrieval.timings_ms.items():
            steps.setdefault(step, []).append(spent)

    ours_times = await _time(ours, queries)
    bench.seq_scans.extend(await _explain(bench, embedding, queries[0], filters))
    floor, recall, shared = await _legs(bench, selectivity, queries, filters, exact)
    return Measurement(
        selectivity=selectivity,
        chunks=len(bench.corpus.members(selectivity)),
        ours=ours_times,
        steps={step: round(float(np.median(spent)), 2) for step, spent in steps.items()},
        floor=floor,
        stock=await _stock(bench, selectivity, queries),
        dense_recall=recall,
        lexical_overlap=shared,
    )


async def _time(search: Callable[[BenchQuery], Awaitable[object]], queries: Sequence[BenchQuery]) -> Times:
    for query in queries[:WARM_UP]:
        await search(query)
    spent = []
    for query in queries:
        started = time.perf_counter()
        await search(query)
        spent.append((time.perf_counter() - started) * 1000)
    return summarise(spent)


def summarise(spent: Sequence[float]) -> Times:
    """Median and 95th percentile of milliseconds."""
    p50, p95 = np.percentile(spent, [50, 95])
    return Times(p50=round(float(p50), 2), p95=round(float(p95), 2), searches=len(spent))


async def _legs(
    bench: Bench, selectivity: str, queries: Sequence[BenchQuery], filters: Filters, exact: ExactBM25
) -> tuple[Times, float, float]:
    """(bare SQL's times, recall of the dense leg at 10, overlap of the lexical leg's top 10)."""
    members = bench.corpus.members(selectivity)
    settings = bench.index.query
    spent, recalls, overlaps = [], [], []
    for query in queries:
        async with bench.database.database.transaction(BENCH_USER) as connection:
            scope = await resolve_scope(connection, filters)
            plan = make_plan(query.text, filters=filters, index=bench.index)
            started = time.perf_counter()
            weighed = await weigh_terms(connection, scope, plan.terms, k1=settings.bm25_k1)
            leg = LexicalLeg(scope, weighed, k1=settings.bm25_k1, b=settings.bm25_b)
            lexical = await leg.search(connection, limit=settings.candidates)
            dense = await search_dense(connection, query.vector.tolist(), scope=scope, limit=settings.candidates)
            spent.append((time.perf_counter() - started) * 1000)
        rows = bench.loaded.rows
        right = nearest(bench.corpus.vectors, members, query.vector, TOP)
        recalls.append(overlap([rows[chunk_id] for chunk_id, _ in dense[:TOP]], right))
        best = exact.best(members, {term.term: term.weight for term in plan.terms}, TOP)
        overlaps.append(overlap([rows[chunk_id] for chunk_id in list(lexical)[:TOP]], best))
    return summarise(spent), round(float(np.mean(recalls)), 4), round(float(np.mean(overlaps)), 4)


async def _stock(bench: Bench, selectivity: str, queries: Sequence[BenchQuery]) -> Times | None:
    stock = bench.stock
    if stock is None:
        return None
    tenant = None if selectivity == EVERYTHING else selectivity
    spent = []
    for number, query in enumerate([queries[0], *queries[: bench.stock_queries]]):
        started = time.perf_counter()
        await stock.search(query, tenant=tenant, limit=TOP)
        if number:  # the first warms up
            spent.append((time.perf_counter() - started) * 1000)
    return summarise(spent)


async def _explain(bench: Bench, embedding: KnownVectors, query: BenchQuery, filters: Filters) -> list[str]:
    watched = WatchedDatabase(bench.database.database)
    retriever = Retriever(watched, embedding, {bench.index.name: bench.index}, default_index=bench.index.name)
    await retriever.search(query.text, identity=BENCH_USER, filters=filters, limit=TOP)
    return await find_seq_scans(bench.database.database, BENCH_USER, watched.seen)
