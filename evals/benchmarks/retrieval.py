"""Hybrid search: ours under row-level security, stock PGVectorStore and bare SQL, over the same data in one run.

Embedding is not part of any figure: the vectors of the questions are made with the corpus.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from llama_index.vector_stores.postgres import PGVectorStore

from evals.benchmarks.corpus import EVERYTHING, BenchCorpus, BenchQuery, generate_queries
from evals.benchmarks.database import BENCH_USER, BenchDatabase, Loaded
from evals.benchmarks.exact import ExactBM25, nearest, overlap
from evals.benchmarks.stock import search_stock
from evals.benchmarks.timing import Row, Times, milliseconds_of, summarise
from rag_service.domain import Filters
from rag_service.indices import IndexDefinition
from rag_service.language.words import terms
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.retrieval.planner import make_plan
from rag_service.retrieval.question import Question
from rag_service.store.search.dense import search_dense
from rag_service.store.search.lexical import LexicalSearch
from rag_service.store.search.postings import weigh_terms
from rag_service.store.search.scope import resolve_scope

TOP = 10
WARM_UP = 8  # searches before the clock runs: caches, prepared statements
# Words of a question, stop words not counted: thirty words of running text (XQuAD) hold 19 such in English.
WORDS = 18
STOCK_QUERIES = 30  # of each selectivity; stock takes up to a second for each
_TURNS = 5  # of each way to search

Search = Callable[[BenchQuery], Awaitable[float]]  # question → milliseconds


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The opened parts of a run."""

    database: BenchDatabase
    corpus: BenchCorpus
    loaded: Loaded
    index: IndexDefinition
    stock: PGVectorStore | None = None  # None: not measured


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What bare SQL found for a question: ids of the best rows, best first."""

    asked: Mapping[str, float]  # index term → weight
    lexical: Sequence[int]
    dense: Sequence[int]


class KnownVectors:
    """Gives each question the vector that was made with it, so that no embedding is measured."""

    def __init__(self, queries: Sequence[BenchQuery]):
        self._known: dict[str, list[float]] = {query.text: query.vector.tolist() for query in queries}

    async def aget_query_embedding(self, query: str) -> list[float]:
        return self._known[query]

    async def aget_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError("Only names that no passage holds are compared, which these questions lack.")


async def measure_retrieval(bench: Bench, selectivities: Sequence[str], *, queries: int) -> list[Row]:
    """Milliseconds, recall against an exact search and overlap with exact BM25; a row per selectivity.

    Args:
        bench: the opened parts.
        selectivities: names of `corpus.SHARES`, or `EVERYTHING`.
        queries: questions for each selectivity.
    """
    asked = {name: generate_queries(bench.corpus, queries, words=WORDS, selectivity=name) for name in selectivities}
    exact = ExactBM25(
        [terms(text, "en") for text in bench.corpus.texts],
        k1=bench.index.query.bm25_k1,
        b=bench.index.query.bm25_b,
        only={term for part in asked.values() for query in part for term in terms(query.text, "en")},
    )
    gc.collect()  # as the service does after its start, so that no search waits for the collector
    gc.freeze()
    return [await _measure(bench, selectivity, part, exact) for selectivity, part in asked.items()]


async def _measure(bench: Bench, selectivity: str, queries: Sequence[BenchQuery], exact: ExactBM25) -> Row:
    is_everything = selectivity == EVERYTHING
    filters = Filters() if is_everything else Filters(corpus_ids=(bench.loaded.tenants[selectivity],))
    index, found = bench.index, dict[str, _Found]()
    retriever = HybridRetriever(
        bench.database.database, KnownVectors(queries), {index.name: index}, default_index=index.name
    )

    async def ours(query: BenchQuery) -> float:
        request = Question(query.text, identity=BENCH_USER, filters=filters, candidates=TOP)
        return await milliseconds_of(retriever.search(request))

    async def bare(query: BenchQuery) -> float:
        spent, found[query.text] = await _search_bare(bench, query, filters)
        return spent

    async def stock(query: BenchQuery) -> float:
        assert bench.stock is not None  # noqa: S101 - else it is not among the ways
        tenant = None if is_everything else selectivity
        return await milliseconds_of(search_stock(bench.stock, query, tenant=tenant, limit=TOP))

    ways: dict[str, tuple[Search, Sequence[BenchQuery]]] = {"ours": (ours, queries), "bare": (bare, queries)}
    if bench.stock is not None:
        ways["stock"] = (stock, queries[:STOCK_QUERIES])
    times = await take_turns(ways)
    recall, shared = _compare(bench, selectivity, queries, found, exact)
    compared = times.get("stock")
    return {
        "reachable": selectivity,
        "chunks": len(bench.corpus.members(selectivity)),
        "ours p50 ms": times["ours"].p50,
        "ours p95 ms": times["ours"].p95,
        "bare SQL p50 ms": times["bare"].p50,
        "stock p50 ms": compared.p50 if compared else None,
        "stock p95 ms": compared.p95 if compared else None,
        "times as fast as stock": round(compared.p50 / times["ours"].p50, 1) if compared else None,
        "vector recall@10": recall,
        "BM25 overlap@10": shared,
    }


async def take_turns(ways: Mapping[str, tuple[Search, Sequence[BenchQuery]]]) -> dict[str, Times]:
    """Times of several ways to search, each with its own questions.

    They take turns, so that whatever else the machine does slows all of them. Each turn begins with searches that do
    not count, since the caches hold what the previous way left there.
    """
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(_TURNS):
        for name, (search, queries) in ways.items():
            for query in queries[:WARM_UP]:
                await search(query)
            spent[name] += [await search(query) for query in queries[turn::_TURNS]]
    return {name: summarise(found) for name, found in spent.items() if found}


async def _search_bare(bench: Bench, query: BenchQuery, filters: Filters) -> tuple[float, _Found]:
    """(milliseconds of the SQL of both searches, what they found)."""
    settings = bench.index.query
    async with bench.database.database.transaction(BENCH_USER) as connection:
        scope = await resolve_scope(connection, filters)
        plan = make_plan(query.text, filters=filters, index=bench.index)
        started = time.perf_counter()
        weighed = await weigh_terms(connection, scope, plan.terms, k1=settings.bm25_k1)
        search = LexicalSearch(scope, weighed, best=settings.candidates, k1=settings.bm25_k1, b=settings.bm25_b)
        search.add(await search.read(connection))
        lexical = await search.search(connection)
        dense = await search_dense(connection, query.vector.tolist(), scope=scope, limit=settings.candidates)
        spent = (time.perf_counter() - started) * 1000
    return spent, _Found(
        asked={term.term: term.weight for term in plan.terms},
        lexical=lexical.ids[:TOP].tolist(),
        dense=[chunk_id for chunk_id, _ in dense[:TOP]],
    )


def _compare(
    bench: Bench, selectivity: str, queries: Sequence[BenchQuery], found: Mapping[str, _Found], exact: ExactBM25
) -> tuple[float, float]:
    """(recall of the vector search, overlap of the keyword search), both at 10 and against exact ones."""
    members, rows = bench.corpus.members(selectivity), bench.loaded.rows
    recalls, overlaps = [], []
    for query in queries:
        bare = found[query.text]
        right = nearest(bench.corpus.vectors, members, query.vector, TOP)
        recalls.append(overlap([rows[chunk_id] for chunk_id in bare.dense], right))
        best = exact.best(members, bare.asked, TOP)
        overlaps.append(overlap([rows[chunk_id] for chunk_id in bare.lexical], best))
    return round(float(np.mean(recalls)), 4), round(float(np.mean(overlaps)), 4)
