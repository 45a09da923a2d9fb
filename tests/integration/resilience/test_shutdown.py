"""Told to stop, the server ends what it has begun, takes nothing new, and is gone in time: as a process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag_service.store.embedded import EmbeddedServer
from tests.doubles.ollama import CHAT, EMBED, Hang, OllamaDouble, Say, chat, embed
from tests.integration.resilience.conftest import QUESTION, TRAVEL, StoppableServer
from tests.serving import wait_until
from tests.soak.rig import ROOT, Reply, Rig, request, running_server

STREAM = "/api/v1/query/answer/stream"
HELD = [embed(delay=600)] * 2  # the server's own at start, and the document's
ENDED = {0, -signal.SIGTERM}  # uvicorn passes the signal on once it has shut down


@contextlib.asynccontextmanager
async def serving(folder: Path, conninfo: str, ollama: OllamaDouble, **overrides: Any) -> AsyncIterator[Rig]:
    settings = {
        "database_url": conninfo,
        "chat_provider": "ollama",
        "embedding_provider": "ollama",
        "embedding_model": "nomic-embed-text",
        "ollama_url": ollama.url,
        "similarity_threshold": 0.3,
        "model_concurrency": 20,
        "first_token_timeout": 600,  # no limit of a model ends what holds a stop up
        "fit_relevance": False,  # its calls would take what tests script
    }
    async with running_server(folder / "server.log", **(settings | overrides)) as rig:
        yield rig


async def stop(rig: Rig, *, within: float) -> float:
    """Send SIGTERM and wait for the end; how many seconds it took."""
    started = time.monotonic()
    rig.server.send_signal(signal.SIGTERM)
    async with asyncio.timeout(within):
        assert await rig.server.wait() in ENDED, rig.log.read_text()
    return time.monotonic() - started


async def begin_streams(rig: Rig, ollama: OllamaDouble, count: int) -> list[asyncio.Task[Reply]]:
    reply = await request(rig.port, "POST", "/api/ingest", {"text": TRAVEL, "fileName": "travel.md"})
    assert reply.status == 201, reply.body
    asking = [asyncio.create_task(request(rig.port, "POST", STREAM, {"query": QUESTION})) for _ in range(count)]
    async with asyncio.timeout(60):
        while ollama.open_streams < count:  # noqa: ASYNC110 - the double is in another thread
            await asyncio.sleep(0.02)
    return asking


@pytest.mark.slow
async def test_running_streams_end_whole_and_new_ones_are_refused(
    tmp_path: Path, database_server: EmbeddedServer, ollama: OllamaDouble
) -> None:
    ollama.answer = "The limit for travel is 300 euros a day [C1]. " + "It holds. " * 20
    ollama.token_delay = 0.05
    async with serving(tmp_path, database_server.service_conninfo, ollama, shutdown_seconds=300) as rig:
        asking = await begin_streams(rig, ollama, 12)
        stopping = asyncio.create_task(stop(rig, within=200))
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(120):
                while True:  # until the process has got its signal
                    await request(rig.port, "GET", "/health")
        replies = await asyncio.gather(*asking)
        assert [reply.ending for reply in replies] == ["done"] * 12
        await stopping


@pytest.mark.slow
async def test_a_stream_that_does_not_end_is_cut_off_in_time(
    tmp_path: Path, database_server: EmbeddedServer, ollama: OllamaDouble
) -> None:
    ollama.script(CHAT, chat(Say("The limit"), Hang()))
    async with serving(
        tmp_path, database_server.service_conninfo, ollama, shutdown_seconds=1, token_timeout=600
    ) as rig:
        (asking,) = await begin_streams(rig, ollama, 1)
        assert await stop(rig, within=120) > 0.9
        assert (await asking).ending != "done"  # and never mistaken for a whole answer
        await asyncio.to_thread(wait_until, lambda: ollama.open_streams == 0)


@pytest.mark.slow
async def test_a_job_in_work_is_handed_back(
    tmp_path: Path, database_server: EmbeddedServer, ollama: OllamaDouble
) -> None:
    ollama.script(EMBED, *HELD)
    async with serving(tmp_path, database_server.service_conninfo, ollama) as rig:
        await upload(rig)
        await until_status(database_server, "embedding")
        await stop(rig, within=120)
    with psycopg.connect(database_server.owner_conninfo) as owner:
        assert owner.execute("SELECT status, attempts FROM rag.uploads").fetchone() == ("pending", 0)
        assert owner.execute("SELECT status FROM rag.procrastinate_jobs").fetchall() == [("todo",)]
    async with serving(tmp_path, database_server.service_conninfo, ollama) as rig:
        await until_status(database_server, "indexed")


@pytest.mark.slow
async def test_without_the_database_it_ends_in_time_too(
    tmp_path: Path, stoppable: StoppableServer, ollama: OllamaDouble
) -> None:
    ollama.script(EMBED, *HELD)
    async with serving(tmp_path, stoppable.conninfo, ollama, database_timeout=1.0) as rig:
        await upload(rig)
        async with asyncio.timeout(60):
            while len(ollama.bodies(EMBED)) < len(HELD):  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.02)
        await asyncio.to_thread(stoppable.stop, "immediate")
        assert await stop(rig, within=120) < 120


@pytest.mark.slow
async def test_whatever_does_not_end_is_cut_off_and_named(tmp_path: Path) -> None:
    code = """
import asyncio
from contextlib import suppress
from rag_service.cli import server
from rag_service.cli.running import run_command
from rag_service.settings import Settings

async def never_ending(scope, receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

def announce(address):
    print(address, flush=True)

server.CLOSING_SECONDS = 0.5
settings = Settings(port=0, shutdown_seconds=1)
run_command(server.serve_application(never_ending, settings, announce=announce))
"""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=ROOT, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    try:
        assert b"http" in await process.stdout.readline()
        process.terminate()
        async with asyncio.timeout(120):
            said, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == -signal.SIGTERM
    assert b"end_cut_off" in said and b"never_ending" in said


async def upload(rig: Rig) -> None:
    corpus = await request(rig.port, "POST", "/api/v1/corpora", {"name": "notes", "kind": "personal"})
    assert corpus.status == 201, corpus.body
    url = f"/api/v1/corpora/{json.loads(corpus.body)['id']}/documents"
    accepted = await request(rig.port, "POST", url, {"text": TRAVEL, "fileName": "travel.md"})
    assert accepted.status == 202, accepted.body


async def until_status(server: EmbeddedServer, status: str) -> None:
    async with asyncio.timeout(120):
        with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:
            query = "SELECT count(*) FROM rag.uploads WHERE status = %s"
            while owner.execute(query, [status]).fetchone() != (1,):  # noqa: ASYNC110 - another process changes it
                await asyncio.sleep(0.05)
