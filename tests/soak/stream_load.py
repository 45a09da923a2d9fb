"""200 readers for 60 seconds: `python -m tests.soak.stream_load [readers] [seconds]`; 1 when a bar is missed.

Every reader asks again and again, and waits as long as it is told when the model is busy. Bars: no ending
but complete or `llm_busy` with Retry-After; memory flat within 10 % from a third of the time on; and, at 20
readers, at most 15 ms (p95) from the request to the model's first byte that are neither embedding, search
nor model.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from tests.soak.rig import Reply, Rig, request, running_rig

STREAM = "/api/v1/query/answer/stream"
WORDS, PACE = 40, 0.05  # of an answer: 2 s
SLOTS = 32  # answers at a time; the queue is as long as by default
RULES = 60
MOST_GROWTH = 1.10
MOST_OVERHEAD_MS = 15.0
FEW = 20


@dataclass(kw_only=True)
class Load:
    """What the readers saw."""

    replies: list[Reply] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)  # one a second


async def main(readers: int, seconds: int) -> int:
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as name:
        folder = Path(name)
        async with running_rig(folder, words=WORDS, pace=PACE, model_concurrency=SLOTS, worker_embedded="false") as rig:
            for number in range(RULES):
                text = f"# Rule {number}\n\nThe limit of rule{number} is {number + 100} euros a day for travel."
                reply = await request(rig.port, "POST", "/api/ingest", {"text": text, "fileName": f"rule-{number}.md"})
                assert reply.status == 201, reply.body
            calm = await apply_load(rig, readers=FEW, seconds=max(5, seconds // 4))
            few = judge_overhead(calm, rig)
            many = judge_load(await apply_load(rig, readers=readers, seconds=seconds), rig, readers)
    return 0 if few and many else 1


async def apply_load(rig: Rig, *, readers: int, seconds: float) -> Load:
    """Let readers ask until the time is up, and finish what they have begun."""
    load = Load()
    numbers = itertools.count()
    end = time.perf_counter() + seconds

    async def read() -> None:
        while time.perf_counter() < end:
            reply = await request(rig.port, "POST", STREAM, {"query": _question(next(numbers))})
            load.replies.append(reply)
            if reply.ending != "done":
                await asyncio.sleep(min(_retry_after(reply) or 0.0, max(0.0, end - time.perf_counter())))

    async def watch() -> None:
        while True:
            load.memory_mb.append(rig.memory_mb())
            await asyncio.sleep(1)

    watching = asyncio.create_task(watch())
    async with asyncio.TaskGroup() as tasks:
        for _ in range(readers):
            tasks.create_task(read())
            await asyncio.sleep(WORDS * PACE / readers)  # people do not ask in step
    watching.cancel()
    return load


def _question(number: int) -> str:
    return f"What is the limit of rule{number % RULES} for travel, case {number}?"


def _retry_after(reply: Reply) -> float | None:
    if reply.status != 200:
        value = reply.headers.get("retry-after")
        return None if value is None else float(value)
    data: dict[str, Any] = reply.events[-1][1] if reply.events else {}
    return data.get("retryAfter")


def judge_load(load: Load, rig: Rig, readers: int) -> bool:
    """Print what happened; whether the bars hold."""
    endings = Counter(reply.ending for reply in load.replies)
    busy = [reply for reply in load.replies if reply.ending == "llm_busy"]
    unsaid = sum(_retry_after(reply) is None for reply in busy)
    third = len(load.memory_mb) // 3
    begin = statistics.mean(load.memory_mb[third : third + 3])
    growth = max(load.memory_mb[third:]) / begin
    click.echo(f"{readers} readers: {dict(endings)}, busy without Retry-After {unsaid}")
    click.echo(f"memory {begin:.0f} MB after a third, at most x{growth:.3f} later (bar x{MOST_GROWTH})")
    for name, values in parts_of(load, rig).items():
        click.echo(f"  {name:28} p50 {_percentile(values, 50):8.1f} ms   p95 {_percentile(values, 95):8.1f} ms")
    return set(endings) <= {"done", "llm_busy"} and endings["done"] > 0 and not unsaid and growth <= MOST_GROWTH


def judge_overhead(load: Load, rig: Rig) -> bool:
    """Print the parts of the first token at few readers; whether the service's own share is small."""
    parts = parts_of(load, rig)
    click.echo(f"{FEW} readers: {dict(Counter(reply.ending for reply in load.replies))}")
    for name, values in parts.items():
        click.echo(f"  {name:28} p50 {_percentile(values, 50):8.1f} ms   p95 {_percentile(values, 95):8.1f} ms")
    found = _percentile(parts["overhead"], 95)
    click.echo(f"overhead p95 {found:.1f} ms (bar {MOST_OVERHEAD_MS} ms)")
    return found <= MOST_OVERHEAD_MS


def parts_of(load: Load, rig: Rig) -> dict[str, list[float]]:
    """Milliseconds of complete answers by part; the server's log tells its own share under the request's id."""
    logged: dict[str, dict[str, float]] = {}
    for line in rig.lines():
        if line["action"] in ("answer_finished", "model_called"):
            logged.setdefault(line.get("correlation_id", ""), {}).update(line)
    parts: dict[str, list[float]] = {
        name: [] for name in ("first text", "embedding", "search", "overhead", "model", "slot and guard")
    }
    for reply in load.replies:
        line = logged.get(reply.headers.get("x-request-id", ""), {})
        sources, text = reply.at("sources"), reply.at("delta")
        if reply.ending != "done" or sources is None or text is None or "first_token_ms" not in line:
            continue
        model = PACE * 1000  # as the double is told; what it takes longer counts as ours
        shares = {
            "first text": text * 1000,
            "embedding": line["embedding_ms"],
            "search": line["retrieval_ms"] - line["embedding_ms"],
            # Request to the model's first byte: up to the sources, which go out just before the model is called,
            # and from its call on.
            "overhead": sources * 1000 - line["retrieval_ms"] + line["first_token_ms"] - model,
            "model": model,
        }
        # Waiting for one of the model's slots, and for the words that the guard against leaks holds back.
        shares["slot and guard"] = shares["first text"] - sum(list(shares.values())[1:])
        for name, value in shares.items():
            parts[name].append(value)
    return parts


def _percentile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)] if values else float("nan")


def _numbers() -> Iterator[int]:
    yield from (int(argument) for argument in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*(list(_numbers()) or [200, 60]))))
