"""From nothing to ready, with an external database and Ollama: 3 seconds on a quiet machine.

The limits are generous, because tests share their machine; what loads torch or a second copy of anything
large breaks them all the same. `python -m tests.integration.resilience.test_cold_start` prints the figures.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import click

from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from rag_service.store.migrate import migrate
from tests.doubles.ollama import OllamaDouble
from tests.soak.rig import request, running_server

MOST_SECONDS = 30.0
MOST_PROCESSOR_SECONDS = 8.0


async def start_once(folder: Path, server: EmbeddedServer, ollama: OllamaDouble) -> tuple[float, float]:
    """(seconds to ready, processor seconds by then)."""
    async with running_server(
        folder / "server.log",
        database_url=server.service_conninfo,
        chat_provider="ollama",
        embedding_provider="ollama",
        embedding_model="nomic-embed-text",
        ollama_url=ollama.url,
    ) as rig:
        used = rig.processor_seconds()
        reply = await request(rig.port, "GET", "/health/ready")
        assert json.loads(reply.body)["status"] == "ready", reply.body
        return rig.ready_after, used


async def test_it_is_ready_soon(tmp_path: Path, database_server: EmbeddedServer, ollama: OllamaDouble) -> None:
    seconds, used = await start_once(tmp_path, database_server, ollama)
    assert seconds < MOST_SECONDS
    assert used < MOST_PROCESSOR_SECONDS


async def _print_figures() -> None:
    with tempfile.TemporaryDirectory() as name:
        server = await start_embedded_server(Path(name))
        await migrate(server.owner_conninfo, server.service_conninfo, dimension=384)
        ollama = OllamaDouble()
        ollama.start()
        for _ in range(5):
            seconds, used = await start_once(Path(name), server, ollama)
            click.echo(f"ready after {seconds:.2f} s, processor time {used:.2f} s")
        ollama.stop()


if __name__ == "__main__":
    asyncio.run(_print_figures())
