"""Requests from socket to socket, beside the search that they contain.

The application runs in a process of its own, as `rag-service serve` starts it, and the chat model is a double that
takes no time. What a request takes beyond the search, and beyond the calls of the model by LlamaIndex's client, is the
service's own: HTTP, reranking, prompt, proof, record.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from llama_index.core.base.llms.types import ChatMessage
from llama_index.llms.ollama import Ollama

from evals.benchmarks.database import BENCH_USER
from evals.benchmarks.ingest import IngestBench, ingest_folder
from evals.benchmarks.model_double import MODEL, ModelDouble, running_double
from evals.benchmarks.timing import Row, Times, time_each
from evals.benchmarks.wire import Client, served
from rag_service.errors import InputError
from rag_service.recent import keep_for
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.retrieval.question import Question

_SEED = 20_260_102
_WORDS = 8  # of a question
_QUERY, _ANSWER = "/api/v1/query", "/api/v1/query/answer"
_SHARED_SETTINGS = (
    "data_dir", "index", "embedding_provider", "embedding_model", "embedding_dimension", "rerank_strategy",
    "indices_path", "prompts_path",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """How much is asked."""

    questions: int = 300  # distinct ones
    connections: int = 8  # at once, for the rates
    processes: int = 1  # of the application, over which the connections are spread
    seconds: float = 10.0  # that each rate is measured for


async def measure_answers(bench: IngestBench, folder: Path, options: AnswerOptions) -> list[Row]:
    """Ingest the documents, serve them, ask. Embeddings of questions are cached in all figures but their own."""
    questions = make_questions(await ingest_folder(bench, folder), options.questions)
    retriever = HybridRetriever(
        bench.database.database, bench.embedding, {bench.index.name: bench.index}, default_index=bench.index.name
    )

    async def search(question: str) -> None:
        with keep_for(BENCH_USER.user_id):  # the embedding of the question, as the service does
            await retriever.search(Question(question, identity=BENCH_USER))

    embedding = await time_each(bench.embedding.aget_query_embedding, questions)
    await time_each(search, questions)  # keeps the embeddings
    searched = await time_each(search, questions)
    rows: list[Row] = [
        {"what": "embedding of a question, in process", "p50 ms": embedding.p50, "p95 ms": embedding.p95},
        {"what": "hybrid search, in process", "p50 ms": searched.p50, "p95 ms": searched.p95},
    ]
    async with AsyncExitStack() as stack:
        double = await stack.enter_async_context(running_double())
        settings = serve_settings(bench, double.url, cached=2 * options.questions)
        ports = [(await stack.enter_async_context(served(settings))).port for _ in range(options.processes)]
        called = await _time_model(double, questions)
        rows.append({"what": "call of the model by LlamaIndex's client", "p50 ms": called.p50, "p95 ms": called.p95})
        rows += [
            await _measure(path, ports, questions, options, double, search_ms=searched.p50, call_ms=called.p50)
            for path in (_QUERY, _ANSWER)
        ]
    return rows


async def _time_model(double: ModelDouble, questions: Sequence[str]) -> Times:
    """What a call costs with the stock client: no service can answer from this model sooner."""
    client = Ollama(model=MODEL, base_url=double.url, context_window=8192)  # else it asks, and blocks the event loop
    prompt = "\n".join(questions)

    async def call(question: str) -> None:
        async for _ in await client.astream_chat([ChatMessage(content=f"{prompt}\n{question}")]):
            pass

    await time_each(call, questions[:20])
    return await time_each(call, questions)


async def _measure(
    path: str,
    ports: Sequence[int],
    questions: Sequence[str],
    options: AnswerOptions,
    double: ModelDouble,
    *,
    search_ms: float,
    call_ms: float,
) -> Row:
    for port in ports:  # fills the caches
        async with Client(port) as client:
            for question in questions:
                await client.post(path, {"query": question})
    bodies: list[bytes] = []
    before = double.calls
    async with Client(ports[0]) as client:

        async def ask(question: str) -> None:
            bodies.append(await client.post(path, {"query": question}))

        times = await time_each(ask, questions)
    calls = (double.calls - before) / len(bodies)
    answers = [msgspec.json.decode(body) for body in bodies] if path == _ANSWER else []
    verified = sum(any(c["status"] == "verified" for c in answer["citations"]) for answer in answers)
    return {
        "what": f"POST {path}",
        "p50 ms": times.p50,
        "p95 ms": times.p95,
        "model calls": round(calls, 2),
        "p50 beside search and model ms": round(times.p50 - search_ms - calls * call_ms, 2),
        "requests per second": round(await _rate(path, ports, questions, options), 1),
        "answers with a verified citation": verified if answers else None,
    }


def make_questions(texts: Sequence[str], count: int) -> list[str]:
    """Distinct questions: words that stand side by side somewhere in the texts; the same in every run.

    Raises:
        InputError: the texts are too short for so many.
    """
    generator = np.random.default_rng(_SEED)
    split = [words for words in map(str.split, texts) if len(words) > _WORDS]
    found: dict[str, None] = {}
    for _ in range(count * 20 if split else 0):
        words = split[generator.integers(len(split))]
        start = int(generator.integers(len(words) - _WORDS))
        found[" ".join(words[start : start + _WORDS])] = None
        if len(found) == count:
            return list(found)
    raise InputError(f"The documents are too short for {count} questions.", field="documents")


def serve_settings(bench: IngestBench, model_url: str, *, cached: int) -> dict[str, object]:
    """What the application is served with: the settings of the run, its database, the double of the model.

    Args:
        cached: questions whose embeddings are kept.
    """
    shared = {key: value for key, value in bench.settings.flat().items() if key in _SHARED_SETTINGS}
    return {field: value for field, value in shared.items() if value is not None} | {
        "chat_provider": "ollama",
        "ollama_url": model_url,
        "model_name": MODEL,
        "database_url": bench.database.service_conninfo,
        "similarity_threshold": 0,
        "query_cache_size": cached,
    }


async def _rate(path: str, ports: Sequence[int], questions: Sequence[str], options: AnswerOptions) -> float:
    started = time.perf_counter()

    async def ask_on(first: int) -> int:
        count = 0
        async with Client(ports[first % len(ports)]) as client:
            while time.perf_counter() - started < options.seconds:
                question = questions[(first + count * options.connections) % len(questions)]
                await client.post(path, {"query": question})
                count += 1
        return count

    counts = await asyncio.gather(*(ask_on(number) for number in range(options.connections)))
    return sum(counts) / (time.perf_counter() - started)
