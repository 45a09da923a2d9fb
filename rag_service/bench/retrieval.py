"""`bench retrieval`: ours, stock PGVectorStore and bare SQL over the same data, in one run.

Embedding is not part of any figure of a search: the questions' vectors are made with the corpus.
"""

from __future__ import annotations

import gc
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
from rag_service.query.retrieval.plan import make_plan
from rag_service.query.retrieval.retriever import Retriever
from rag_service.store.search.dense import search_dense
from rag_service.store.search.lexical import LexicalLeg
from rag_service.store.search.scope import resolve_scope
from rag_service.store.search.term_weights import weigh_terms
from rag_service.text.words import terms

TOP = 10
WARM_UP = 8  # searches before the clock runs: caches, prepared statements
_TURNS = 5  # of each way to search
SELECTIVITIES = (*SHARES, EVERYTHING)

Advance = Callable[[int], None]
Search = Callable[[BenchQuery], Awaitable[float]]  # question → milliseconds


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


@dataclass(frozen=True, kw_only=True)
class _Legs:
    """What bare SQL found for a question."""

    asked: Mapping[str, float]  # index term → weight
    lexical: Sequence[int]  # ids of the best chunks, best first; likewise the next
    dense: Sequence[int]


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
    # As the service does after its start: what stays is not looked through again, in the middle of anybody's search.
    gc.collect()
    gc.freeze()
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
    legs: dict[str, _Legs] = {}  # question → what bare SQL found

    async def ours(query: BenchQuery) -> float:
        started = time.perf_counter()
        retrieval = await retriever.search(query.text, identity=BENCH_USER, filters=filters, limit=TOP)
        spent = _milliseconds_since(started)
        for step, part in retrieval.timings_ms.items():
            steps.setdefault(step, []).append(part)
        return spent

    async def floor(query: BenchQuery) -> float:
        spent, legs[query.text] = await _search_bare(bench, query, filters)
        return spent

    ways: dict[str, tuple[Search, Sequence[BenchQuery]]] = {"ours": (ours, queries), "floor": (floor, queries)}
    if bench.stock is not None:
        ways["stock"] = (_stock_search(bench.stock, selectivity), queries[: bench.stock_queries])
    times = await take_turns(ways)
    bench.seq_scans.extend(await _explain(bench, embedding, queries[0], filters))
    recall, shared = _compare(bench, selectivity, queries, legs, exact)
    return Measurement(
        selectivity=selectivity,
        chunks=len(bench.corpus.members(selectivity)),
        ours=times["ours"],
        steps={step: round(float(np.median(spent)), 2) for step, spent in steps.items()},
        floor=times["floor"],
        stock=times.get("stock"),
        dense_recall=recall,
        lexical_overlap=shared,
    )


async def take_turns(ways: Mapping[str, tuple[Search, Sequence[BenchQuery]]]) -> dict[str, Times]:
    """Times of ways to search, each with its questions.

    They take turns, so that whatever else the machine does meanwhile slows all of them. A turn begins with
    searches that do not count: caches hold what the others left there, who would not be there otherwise.
    """
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(_TURNS):
        for name, (search, queries) in ways.items():
            for query in queries[:WARM_UP]:
                await search(query)
            spent[name] += [await search(query) for query in queries[turn::_TURNS]]
    return {name: summarise(found) for name, found in spent.items() if found}


def _milliseconds_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def summarise(spent: Sequence[float]) -> Times:
    """Median and 95th percentile of milliseconds."""
    p50, p95 = np.percentile(spent, [50, 95])
    return Times(p50=round(float(p50), 2), p95=round(float(p95), 2), searches=len(spent))


async def _search_bare(bench: Bench, query: BenchQuery, filters: Filters) -> tuple[float, _Legs]:
    """(milliseconds of both legs' SQL, what they found)."""
    settings = bench.index.query
    async with bench.database.database.transaction(BENCH_USER) as connection:
        scope = await resolve_scope(connection, filters)
        plan = make_plan(query.text, filters=filters, index=bench.index)
        started = time.perf_counter()
        weighed = await weigh_terms(connection, scope, plan.terms, k1=settings.bm25_k1)
        leg = LexicalLeg(scope, weighed, best=settings.candidates, k1=settings.bm25_k1, b=settings.bm25_b)
        leg.add(await leg.read(connection))
        lexical = await leg.search(connection)
        dense = await search_dense(connection, query.vector.tolist(), scope=scope, limit=settings.candidates)
        spent = _milliseconds_since(started)
    return spent, _Legs(
        asked={term.term: term.weight for term in plan.terms},
        lexical=lexical.ids[:TOP].tolist(),
        dense=[chunk_id for chunk_id, _ in dense[:TOP]],
    )


def _compare(
    bench: Bench, selectivity: str, queries: Sequence[BenchQuery], legs: Mapping[str, _Legs], exact: ExactBM25
) -> tuple[float, float]:
    """(recall of the dense leg at 10, overlap of the lexical leg's top 10), both against exact."""
    members, rows = bench.corpus.members(selectivity), bench.loaded.rows
    recalls, overlaps = [], []
    for query in queries:
        found = legs[query.text]
        right = nearest(bench.corpus.vectors, members, query.vector, TOP)
        recalls.append(overlap([rows[chunk_id] for chunk_id in found.dense], right))
        best = exact.best(members, found.asked, TOP)
        overlaps.append(overlap([rows[chunk_id] for chunk_id in found.lexical], best))
    return round(float(np.mean(recalls)), 4), round(float(np.mean(overlaps)), 4)


def _stock_search(stock: StockStore, selectivity: str) -> Search:
    tenant = None if selectivity == EVERYTHING else selectivity

    async def search(query: BenchQuery) -> float:
        started = time.perf_counter()
        await stock.search(query, tenant=tenant, limit=TOP)
        return _milliseconds_since(started)

    return search


async def _explain(bench: Bench, embedding: KnownVectors, query: BenchQuery, filters: Filters) -> list[str]:
    watched = WatchedDatabase(bench.database.database)
    retriever = Retriever(watched, embedding, {bench.index.name: bench.index}, default_index=bench.index.name)
    await retriever.search(query.text, identity=BENCH_USER, filters=filters, limit=TOP)
    return await find_seq_scans(bench.database.database, BENCH_USER, watched.seen)
