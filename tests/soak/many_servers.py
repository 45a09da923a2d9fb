"""1, 2 and 4 `rag-service serve` processes on one database, without and with a read replica.

`python -m tests.soak.many_servers [chunks] [seconds]`. All of it shares the cores of one machine, so what
counts beside the rate is who spends the processor time: with a replica the primary should hardly know that
anybody searches. Exits with 1 when a search fails, or when the primary's share with a replica is above the bar.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import structlog

from evals.benchmarks.corpus import EVERYTHING, generate_corpus, generate_queries
from evals.benchmarks.database import BenchDatabase, load_corpus
from evals.benchmarks.wire import Client, Service, served
from rag_service.errors import StoreError
from rag_service.store.database import Database
from tests.conftest import DIMENSION
from tests.replication import ReplicatedDatabase, replicated_pair, server_processes
from tests.soak.rig import paced_embedder

SERVERS = (1, 2, 4)
CONNECTIONS = 16  # kept open, each with one search at a time
BAR = 0.5  # most of the primary's time for a search without a replica that it may spend with one
_QUESTIONS = 200  # different ones; their embeddings are cached after the first round
_SEARCH = "/api/v1/query"


@dataclass(frozen=True, kw_only=True)
class Load:
    """One line of the table."""

    servers: int
    replicated: bool
    seconds: Sequence[float]  # of each search
    failures: int
    elapsed: float
    service_time: float  # seconds of processor time of all servers
    primary_time: float
    replica_time: float

    @property
    def line(self) -> str:
        p50, p95 = np.quantile(self.seconds, (0.5, 0.95)) * 1000
        each = [1000 * spent / len(self.seconds) for spent in (self.service_time, self.primary_time, self.replica_time)]
        return (
            f"| {self.servers} | {'yes' if self.replicated else 'no'} | {len(self.seconds) / self.elapsed:.0f}"
            f" | {p50:.0f} / {p95:.0f} | {each[0]:.1f} | {each[1]:.1f} | {each[2]:.1f} | {self.failures} |"
        )


def main(chunks: int, seconds: float) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="rag-soak-", ignore_cleanup_errors=True) as folder,
        replicated_pair(Path(folder)) as pair,
        pair.database() as database,
    ):
        return asyncio.run(_run(database, chunks, seconds))


async def _run(database: ReplicatedDatabase, chunks: int, seconds: float) -> int:
    questions = await _fill(database, chunks)
    database.standby.catch_up()
    click.echo(f"{chunks:,} chunks, {CONNECTIONS} connections, {seconds:.0f} s each, {os.cpu_count()} cores\n")
    click.echo("| processes | replica | searches/s | ms p50 / p95 | CPU ms: service | primary | replica | failed |")
    click.echo("|---|---|---|---|---|---|---|---|")
    loads = []
    async with paced_embedder(0) as url:
        for replicated in (False, True):
            for count in SERVERS:
                loads.append(await _measure(database, questions, url, count, seconds, replicated=replicated))
                click.echo(loads[-1].line)
    return _judge(loads)


async def _fill(replicated: ReplicatedDatabase, chunks: int) -> list[str]:
    corpus = generate_corpus(chunks, dimension=DIMENSION)
    database = Database(replicated.primary, pool_size=4, timeout=30)
    await database.open()
    try:
        bench = BenchDatabase(database=database, owner_conninfo=replicated.owner, service_conninfo=replicated.primary)
        await load_corpus(bench, corpus)
    finally:
        await database.close()
    return [query.text for query in generate_queries(corpus, _QUESTIONS, words=8, selectivity=EVERYTHING)]


async def _measure(
    database: ReplicatedDatabase, questions: list[str], url: str, servers: int, seconds: float, *, replicated: bool
) -> Load:
    settings: dict[str, object] = {
        "database_url": database.primary,
        "embedding_provider": "ollama",
        "embedding_model": "nomic-embed-text",
        "fit_relevance": False,
        "ollama_url": url,
        "worker_embedded": False,
        "log_level": "WARNING",
    }
    if replicated:
        settings["database_replica_url"] = database.replica
    async with AsyncExitStack() as stack:
        services = [await stack.enter_async_context(served(settings)) for _ in range(servers)]
        await asyncio.gather(*(_ask(service, questions, until=None) for service in services))  # fills their caches
        pids = [service.pid for service in services]
        before = _spent(pids), _spent(server_processes(database.primary_folder)), _spent(database.standby.processes())
        started = time.perf_counter()
        found = await asyncio.gather(
            *(
                _ask(services[number % servers], questions[number:] + questions[:number], until=started + seconds)
                for number in range(CONNECTIONS)
            )
        )
        elapsed = time.perf_counter() - started
        after = _spent(pids), _spent(server_processes(database.primary_folder)), _spent(database.standby.processes())
    service, primary, replica = (late - early for late, early in zip(after, before, strict=True))
    return Load(
        servers=servers,
        replicated=replicated,
        seconds=[taken for times, _ in found for taken in times],
        failures=sum(failures for _, failures in found),
        elapsed=elapsed,
        service_time=service,
        primary_time=primary,
        replica_time=replica,
    )


async def _ask(service: Service, questions: list[str], *, until: float | None) -> tuple[list[float], int]:
    """Ask one after the other, once each, or again and again until a time; (seconds each, failures)."""
    times, failures = [], 0
    async with Client(service.port) as client:
        while True:
            for question in questions:
                started = time.perf_counter()
                try:
                    await client.post(_SEARCH, {"query": question, "topK": 5})
                except StoreError:
                    failures += 1
                times.append(time.perf_counter() - started)
                if until is not None and time.perf_counter() >= until:
                    return times, failures
            if until is None:
                return times, failures


def _spent(processes: Sequence[int]) -> float:
    """Seconds of processor time of processes and those of their children that have ended."""
    total = 0
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError):  # ended just now; its parent has its time
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(field) for field in fields[11:15])
    return total / os.sysconf("SC_CLK_TCK")


def _judge(loads: Sequence[Load]) -> int:
    shares = []
    for count in SERVERS:
        alone, beside = (
            next(load for load in loads if load.servers == count and load.replicated is replicated)
            for replicated in (False, True)
        )
        shares.append((beside.primary_time / len(beside.seconds)) / (alone.primary_time / len(alone.seconds)))
    failures = sum(load.failures for load in loads)
    click.echo(f"\nthe primary's time for a search, with a replica to without: {max(shares):.2f} (bar {BAR})")
    return 0 if max(shares) <= BAR and not failures else 1


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    given = sys.argv[1:]
    sys.exit(main(int(given[0]) if given else 10_000, float(given[1]) if given[1:] else 10.0))
