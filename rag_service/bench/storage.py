"""The storage leg alone: nodes with their vectors into PostgreSQL, ours and stock `PGVectorStore.async_add`.

Both write the same documents, one transaction each, beside a live HNSW index of the same parameters.
Ours writes under row-level security, and with the chunks its postings and the statistics of BM25; stock
writes as the owner of its table and lets PostgreSQL make a tsvector.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.schema import TextNode

from rag_service.bench.corpus import BenchCorpus
from rag_service.bench.load import BENCH_USER, PREFIX, BenchDatabase, make_document
from rag_service.bench.stock import open_empty_store
from rag_service.domain import CorpusKind
from rag_service.store.corpora import create_corpus
from rag_service.store.documents import NewDocument, store_document

_TABLE = "bench_storage"  # of stock
_SHARE = 0.1  # of the documents, written before the clock runs: prepared statements, caches, files that grow


@dataclass(frozen=True, kw_only=True)
class Rate:
    """So many in so many seconds."""

    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


async def measure_storage(bench: BenchDatabase, corpus: BenchCorpus, *, stock: bool) -> tuple[Rate, Rate | None]:
    """(ours, stock's) nodes per second; None where stock is not asked for."""
    ours = await _write_ours(bench, corpus)
    return ours, await _write_stock(bench, corpus) if stock else None


async def _write_ours(bench: BenchDatabase, corpus: BenchCorpus) -> Rate:
    async with bench.database.transaction(BENCH_USER) as connection:
        made = await create_corpus(
            connection, BENCH_USER, name=f"{PREFIX}storage", kind=CorpusKind.PERSONAL, index_name="general"
        )
    documents = [make_document(corpus, chunks, made.id) for _, chunks in corpus.documents()]
    warm_up = _warm_up(len(documents))

    async def write(part: Sequence[tuple[NewDocument, list[TextNode]]]) -> int:
        for document, nodes in part:
            async with bench.database.transaction(BENCH_USER) as connection:
                await store_document(connection, document, nodes)
        return sum(len(nodes) for _, nodes in part)

    await write(documents[:warm_up])
    started = time.perf_counter()
    count = await write(documents[warm_up:])
    return Rate(count=count, seconds=time.perf_counter() - started)


async def _write_stock(bench: BenchDatabase, corpus: BenchCorpus) -> Rate:
    documents = [make_document(corpus, chunks, BENCH_USER.user_id)[1] for _, chunks in corpus.documents()]
    warm_up = _warm_up(len(documents))
    dimension = corpus.vectors.shape[1]
    async with open_empty_store(bench.owner_conninfo, table=_TABLE, dimension=dimension) as store:
        for nodes in documents[:warm_up]:
            await store.async_add(list(nodes))
        started = time.perf_counter()
        for nodes in documents[warm_up:]:
            await store.async_add(list(nodes))
        seconds = time.perf_counter() - started
    return Rate(count=sum(len(nodes) for nodes in documents[warm_up:]), seconds=seconds)


def _warm_up(documents: int) -> int:
    return min(max(1, round(documents * _SHARE)), documents - 1)
