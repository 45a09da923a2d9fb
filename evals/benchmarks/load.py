"""Many users at once, who read between their questions, against several processes of the application.

Half of them write with a chat model, the double of `model_double`, and take uploads; the others quote. All search the
same database. Each user goes on after the time it thinks. What is printed is what the users saw, and what the processes
took meanwhile.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import psycopg

from evals.benchmarks.answer import make_questions, serve_settings
from evals.benchmarks.ingest import IngestBench, ingest_folder
from evals.benchmarks.model_double import running_double
from evals.benchmarks.timing import Row
from evals.benchmarks.wire import Client, Service, served

_SEED = 20_261_127
_QUESTIONS = 500
_CACHED = 512  # default of RAG_QUERY_CACHE_SIZE; about half of the requests ask a new question
_EXPECTED = (200, 201, 429, 503)  # a service that is busy says so
# Of the requests: people search and ask more than they upload.
_SHARES = {"search": 0.5, "quoted answer": 0.15, "stream": 0.3, "upload": 0.05}
_PATHS = {
    "search": "/api/v1/query",
    "quoted answer": "/api/v1/query/answer",
    "stream": "/api/v1/query/answer/stream",
    "upload": "/api/ingest",
}
_WATCH_SECONDS = 1.0
_SETTLED = 2 / 3  # of the time, in which memory is to be flat


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Who asks, and for how long."""

    users: int = 200
    seconds: float = 180.0
    think: float = 20.0  # mean seconds between a user's reply and the next request
    processes: int = 2  # of the application; an even number


@dataclass(kw_only=True)
class Seen:
    """What users saw, and what the processes took."""

    milliseconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _SHARES})
    statuses: dict[str, dict[int, int]] = field(default_factory=lambda: {name: {} for name in _SHARES})
    delays: list[float] = field(default_factory=list)  # ms until a process answers when it lives
    memory: list[float] = field(default_factory=list)  # MB of all processes together
    connections: list[int] = field(default_factory=list)  # to the database

    def note(self, name: str, status: int, milliseconds: float) -> None:
        self.statuses[name][status] = self.statuses[name].get(status, 0) + 1
        if status < 300:
            self.milliseconds[name].append(milliseconds)


async def measure_load(bench: IngestBench, folder: Path, options: LoadOptions) -> list[Row]:
    """Ingest the documents, serve them, let the users ask."""
    questions = make_questions(await ingest_folder(bench, folder), _QUESTIONS)
    async with AsyncExitStack() as stack:
        double = await stack.enter_async_context(running_double())
        written = serve_settings(bench, double.url, cached=_CACHED) | {"rate_limit_per_minute": 0}
        quoted = {name: value for name, value in written.items() if name not in ("ollama_url", "model_name")}
        quoted |= {"chat_provider": "extractive"}
        services = {
            name: [await stack.enter_async_context(served(settings)) for _ in range(options.processes // 2)]
            for name, settings in (("written", written), ("quoted", quoted))
        }
        seen = await _apply(services, questions, options, bench.database.owner_conninfo)
    return [*_rows_of_requests(seen, options), *_rows_of_processes(seen)]


async def _apply(
    services: Mapping[str, Sequence[Service]], questions: Sequence[str], options: LoadOptions, conninfo: str
) -> Seen:
    seen = Seen()
    end = time.perf_counter() + options.seconds
    async with asyncio.TaskGroup() as tasks:
        for number in range(options.users):
            tasks.create_task(_use(random.Random(_SEED + number), services, questions, options, end, seen))  # noqa: S311
        tasks.create_task(_watch(list(chain(*services.values())), conninfo, end, seen))
    return seen


async def _use(
    chance: random.Random,
    services: Mapping[str, Sequence[Service]],
    questions: Sequence[str],
    options: LoadOptions,
    end: float,
    seen: Seen,
) -> None:
    """One user: thinks, asks, reads the reply to its end."""
    await asyncio.sleep(chance.uniform(0, options.think))  # people do not begin in step
    while time.perf_counter() < end:
        (name,) = chance.choices(list(_SHARES), list(_SHARES.values()))
        to = {"search": chance.choice(list(services)), "quoted answer": "quoted"}.get(name, "written")
        question = chance.choice(questions)
        body = {"text": f"{question}. {chance.random()}"} if name == "upload" else {"query": question}
        began = time.perf_counter()
        # The server closes connections that are idle for seconds, so that each request opens its own.
        async with Client(chance.choice(services[to]).port) as client:
            status = await client.status(_PATHS[name], body)
        seen.note(name, status, (time.perf_counter() - began) * 1000)
        await asyncio.sleep(chance.expovariate(1 / options.think))


async def _watch(services: Sequence[Service], conninfo: str, end: float, seen: Seen) -> None:
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(await psycopg.AsyncConnection.connect(conninfo, autocommit=True))
        while time.perf_counter() < end:
            for service in services:
                began = time.perf_counter()
                async with Client(service.port) as client:
                    await client.get("/health")
                seen.delays.append((time.perf_counter() - began) * 1000)
            seen.memory.append(sum(service.memory_mb() for service in services))
            cursor = await database.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            )
            (count,) = await cursor.fetchone() or (0,)
            seen.connections.append(count)
            await asyncio.sleep(_WATCH_SECONDS)


def _rows_of_requests(seen: Seen, options: LoadOptions) -> list[Row]:
    rows: list[Row] = []
    for name, times in seen.milliseconds.items():
        statuses = seen.statuses[name]
        p50, p95, p99 = np.percentile(times, [50, 95, 99]).round(1).tolist() if times else (None, None, None)
        rows.append(
            {
                "what": name,
                "requests": sum(statuses.values()),
                "a second": round(sum(statuses.values()) / options.seconds, 1),
                "p50 ms": p50,
                "p95 ms": p95,
                "p99 ms": p99,
                "busy": statuses.get(429, 0) + statuses.get(503, 0),
                "errors": sum(count for status, count in statuses.items() if status not in _EXPECTED),
            }
        )
    return rows


def _rows_of_processes(seen: Seen) -> list[Row]:
    settled = seen.memory[-round(len(seen.memory) * _SETTLED) :]
    p50, p95, p99 = np.percentile(seen.delays, [50, 95, 99]).round(1).tolist()
    return [
        {"what": "delay of the event loop", "p50 ms": p50, "p95 ms": p95, "p99 ms": p99},
        {"what": "memory, MB, after a third of the time", "p50 ms": round(settled[0])},
        {"what": "memory, MB, at the end", "p50 ms": round(settled[-1])},
        {"what": "connections to the database, at most", "p50 ms": max(seen.connections)},
    ]
