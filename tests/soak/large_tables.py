"""Sums over a large CSV file, alone and fifty at once: `python -m tests.soak.large_tables [rows]`; 1 if a bar fails.

Bars: a sum takes at most one second, and search beside fifty such questions at most 1.5 times what it takes alone.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import click

from tests.soak.rig import Rig, request, running_rig

ROWS = 1_000_000
MOST_SECONDS, MOST_SLOWER = 1.0, 1.5
QUESTIONS, SEARCHES = 50, 30


async def main(rows: int) -> int:
    lines = "".join(f"Tent {number};{number % 97};{'red' if number % 3 else 'blue'}\n" for number in range(rows))
    total = sum(number % 97 for number in range(rows))
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as name:
        async with running_rig(Path(name), words=1, pace=0.0, upload_max_mb=100, chat_provider="extractive") as rig:
            for number in range(SEARCHES):
                text = f"# Rule {number}\n\nThe limit of rule{number} is {number + 100} euros a day for travel."
                await request(rig.port, "POST", "/api/ingest", {"text": text, "fileName": f"rule-{number}.md"})
            began, before = time.perf_counter(), rig.memory_mb()
            body = {"text": f"Tent;Stock;Colour\n{lines}", "fileName": "tents.csv"}
            reply = await request(rig.port, "POST", "/api/ingest", body)
            assert reply.status == 201, reply.body
            document = json.loads(reply.body)["documentId"]
            click.echo(f"{rows:,} rows in {time.perf_counter() - began:.1f} s, +{rig.memory_mb() - before:.0f} MB")
            alone = statistics.median([await ask(rig, document, f"{total:,}") for _ in range(5)])
            calm = statistics.median([await search(rig, number) for number in range(SEARCHES)])
            asked = [asyncio.create_task(ask(rig, document, f"{total:,}")) for _ in range(QUESTIONS)]
            await asyncio.sleep(0.5)
            busy = statistics.median([await search(rig, number) for number in range(SEARCHES)])
            still = sum(not task.done() for task in asked)
            slowest = max(await asyncio.gather(*asked))
    slower = busy / calm
    click.echo(f"a sum: {alone:.2f} s; {QUESTIONS} at once: slowest {slowest:.1f} s")
    click.echo(f"search: {calm * 1000:.0f} ms, beside them {busy * 1000:.0f} ms, {slower:.2f} times; {still} still ran")
    return 0 if alone <= MOST_SECONDS and slower <= MOST_SLOWER else 1


async def ask(rig: Rig, document: str, total: str) -> float:
    """Seconds of one sum."""
    began = time.perf_counter()
    body = {"query": "What is the total stock of tents?", "documentIds": [document]}
    reply = await request(rig.port, "POST", "/api/v1/query/answer", body)
    assert total in reply.body.decode(), (reply.status, reply.body[:500])
    return time.perf_counter() - began


async def search(rig: Rig, number: int) -> float:
    """Seconds of one search."""
    began = time.perf_counter()
    reply = await request(rig.port, "POST", "/api/v1/query", {"query": f"limit of rule{number} for travel"})
    assert reply.status == 200, reply.body
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)))
