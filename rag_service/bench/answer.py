"""`bench answer`: requests from socket to socket, beside the embedding and the search that they contain.

The application is served by a process of its own, as `rag-service serve` does it, over documents in the
bench's database; the chat model is a double of zero latency. What a request takes beyond searching is the
service's own: HTTP, checks, rerank, prompt, citations, the record.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from rag_service.bench.ingest import IngestBench, Prepared, ingest_prepared
from rag_service.bench.load import BENCH_USER, Advance
from rag_service.bench.model_double import MODEL, running_double
from rag_service.bench.retrieval import Times, summarise
from rag_service.bench.storage import Rate
from rag_service.bench.wire import Client, served
from rag_service.domain import Filters
from rag_service.errors import InputError
from rag_service.models.embedding.query_cache import QueryCachedEmbedding
from rag_service.query.engine import RERANKED
from rag_service.query.retrieval.retriever import Retriever

SEED = 20_260_102
STEPS = 5  # that `measure_answers` makes
_WORDS = 8  # of a question


@dataclass(frozen=True, kw_only=True)
class AnswerMeasurement:
    """Milliseconds of requests one after the other; requests per second of many at once."""

    chunks: int
    questions: int
    connections: int  # of the rates
    processes: int  # of the application, for the rates
    embedding: Times  # of a question, not cached
    search: Times  # hybrid search in this process, embeddings cached
    retrieval: Times  # POST /api/v1/query, embeddings cached
    answer: Times  # POST /api/v1/query/answer, embeddings cached, model of zero latency
    retrieval_rate: Rate
    answer_rate: Rate
    verified: int  # answers whose citation was verified, of `questions`

    @property
    def retrieval_overhead(self) -> float:
        """Milliseconds at the median that are neither embedding nor search."""
        return self.retrieval.p50 - self.search.p50

    @property
    def answer_overhead(self) -> float:
        """Likewise; the model takes none."""
        return self.answer.p50 - self.search.p50


async def measure_answers(
    bench: IngestBench,
    prepared: Prepared,
    *,
    questions: int,
    connections: int,
    processes: int,
    seconds: float,
    advance: Advance,
) -> AnswerMeasurement:
    """Ingest the documents, serve them, ask; `advance` counts steps.

    Args:
        bench: the opened parts; its embedding asks in this process, the served one has its own.
        prepared: what is asked about.
        questions: distinct ones.
        connections: at once, for the rates.
        processes: of the served application, among which these are spread as a load balancer would.
        seconds: that each rate is measured for.
        advance: told of each step.
    """
    asked = make_questions(prepared, questions)
    await ingest_prepared(bench, prepared)
    advance(1)
    embedding, search = await _measure_search(bench, asked)
    advance(1)
    async with AsyncExitStack() as stack:
        model_url = await stack.enter_async_context(running_double())
        settings = {
            **_same(bench),
            "chat_provider": "ollama",
            "ollama_url": model_url,
            "model_name": MODEL,
            "database_url": bench.database.service_conninfo,
            "similarity_threshold": 0,
            "query_cache_size": max(questions, 1),
        }
        ports = [(await stack.enter_async_context(served(settings))).port for _ in range(processes)]
        for port in ports:
            client = await stack.enter_async_context(Client(port))
            for question in asked:  # embeds each once
                await client.post("/api/v1/query", {"query": question})
        advance(1)
        retrieval = await _time(lambda question: client.post("/api/v1/query", {"query": question}), asked)
        verified = 0

        async def ask(question: str) -> None:
            nonlocal verified
            body = msgspec.json.decode(await client.post("/api/v1/query/answer", {"query": question}))
            verified += any(citation["status"] == "verified" for citation in body["citations"])

        await ask(asked[0])
        verified = 0
        answer = await _time(ask, asked)
        advance(1)
        retrieval_rate = await _rate(ports, "/api/v1/query", asked, connections, seconds)
        answer_rate = await _rate(ports, "/api/v1/query/answer", asked, connections, seconds)
        advance(1)
    return AnswerMeasurement(
        chunks=sum(map(len, prepared.nodes)),
        questions=len(asked),
        connections=connections,
        processes=processes,
        embedding=embedding,
        search=search,
        retrieval=retrieval,
        answer=answer,
        retrieval_rate=retrieval_rate,
        answer_rate=answer_rate,
        verified=verified,
    )


def make_questions(prepared: Prepared, count: int) -> list[str]:
    """Distinct questions: words that stand side by side somewhere in the chunks; the same at every run.

    Raises:
        InputError: the documents hold too few words for so many.
    """
    generator = np.random.default_rng(SEED)
    texts = [node.get_content().split() for nodes in prepared.nodes for node in nodes]
    texts = [words for words in texts if len(words) > _WORDS]
    found: dict[str, None] = {}
    for _ in range(count * 20 if texts else 0):
        words = texts[generator.integers(len(texts))]
        start = int(generator.integers(len(words) - _WORDS))
        found[" ".join(words[start : start + _WORDS])] = None
        if len(found) == count:
            return list(found)
    raise InputError(f"The documents are too short for {count} questions.", field="documents")


def _same(bench: IngestBench) -> dict[str, Any]:
    """The settings that must be the same in the served application."""
    settings = bench.settings
    return {
        field: getattr(settings, field)
        for field in (
            "data_dir", "index", "embedding_provider", "embedding_model", "embedding_dimension", "rerank_strategy",
            "indices_path", "prompts_path",
        )
        if getattr(settings, field) is not None
    }  # fmt: skip


async def _measure_search(bench: IngestBench, questions: Sequence[str]) -> tuple[Times, Times]:
    """(embedding, search with known embeddings)."""
    size = len(questions)
    embedding = QueryCachedEmbedding(bench.embedding, dimension=bench.settings.embedding_dimension, size=size)
    embedded = await _time(embedding.aget_query_embedding, questions)
    index = bench.index
    retriever = Retriever(bench.database.database, embedding, {index.name: index}, default_index=index.name)

    async def search(question: str) -> None:
        await retriever.search(question, identity=BENCH_USER, filters=Filters(), limit=RERANKED)

    await _time(search, questions[: min(20, size)])
    return embedded, await _time(search, questions)


async def _time(ask: Callable[[str], Awaitable[object]], questions: Sequence[str]) -> Times:
    spent = []
    for question in questions:
        started = time.perf_counter()
        await ask(question)
        spent.append((time.perf_counter() - started) * 1000)
    return summarise(spent)


async def _rate(ports: Sequence[int], path: str, questions: Sequence[str], connections: int, seconds: float) -> Rate:
    started = time.perf_counter()

    async def ask_on(first: int) -> int:
        count = 0
        async with Client(ports[first % len(ports)]) as client:
            while time.perf_counter() - started < seconds:
                await client.post(path, {"query": questions[(first + count * connections) % len(questions)]})
                count += 1
        return count

    counts = await asyncio.gather(*(ask_on(number) for number in range(connections)))
    return Rate(count=sum(counts), seconds=time.perf_counter() - started)
