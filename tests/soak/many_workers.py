"""1, 2 and 4 `rag-service worker` processes on one database: `python -m tests.soak.many_workers [documents] [seconds]`.

The embedding model is a server elsewhere that takes a fixed time for each call. Exits with 1 when four workers
are less than 1.8 times as fast as one, or when a chunk is lost, or there twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import click
import structlog

from rag_service.domain import Identity
from rag_service.store.corpora import Corpus
from rag_service.store.database import Database
from rag_service.store.documents.uploads import UploadStatus
from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from rag_service.store.migrate import migrate
from tests.conftest import DIMENSION, FakeEmbedding
from tests.integration.tenancy.conftest import House
from tests.integration.tenancy.killing import chunk_set, make_documents, statistics
from tests.soak.rig import ROOT, paced_embedder

WORKERS = (1, 2, 4)
BAR = 1.8  # times as fast as one worker, with the last number of workers
_START_SECONDS = 120.0  # on a busy machine
_RUN_SECONDS = 900.0
_WORKER = "from rag_service.cli import main; main()"


async def main(documents: int, latency: float) -> int:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rag-soak-"))
        server = await start_embedded_server(Path(folder))
        await migrate(server.owner_conninfo, server.service_conninfo, dimension=DIMENSION)
        database = Database(server.service_conninfo, pool_size=4, timeout=30)
        await database.open()
        stack.push_async_callback(database.close)
        url = await stack.enter_async_context(paced_embedder(latency))
        house = House(server=server, database=database, embedding=FakeEmbedding(model_name="fake"))
        user = await house.user("soak")
        corpora, seconds = [], []
        for count in WORKERS:
            corpus = await house.corpus(user, f"by {count}")
            seconds.append(await _ingest(house, user, corpus, documents, workers=count, url=url))
            corpora.append(corpus)
            click.echo(
                f"{count} workers: {documents} documents in {seconds[-1]:.1f} s, {seconds[0] / seconds[-1]:.2f}×"
            )
        return _judge(house, corpora, speed_up=seconds[0] / seconds[-1])


async def _ingest(house: House, user: Identity, corpus: Corpus, documents: int, *, workers: int, url: str) -> float:
    """Seconds from the first upload to the last indexed document, the workers' start not counted."""
    with house.owner() as owner:  # what an earlier run embedded would cost nothing now
        owner.execute("TRUNCATE rag.embedding_cache")
    async with AsyncExitStack() as stack:
        for _ in range(workers):
            await stack.enter_async_context(_worker(house.server, url))
        await _wait_for_workers(house, workers)
        started = time.monotonic()
        uploads = [
            await house.uploads.accept(document, corpus_id=corpus.id, identity=user)
            for document in make_documents(documents)
        ]
        done = await house.settled(user, *uploads, within=_RUN_SECONDS)
        seconds = time.monotonic() - started
    assert {upload.status for upload in done} == {UploadStatus.INDEXED}, {upload.reason for upload in done}
    return seconds


def _judge(house: House, corpora: list[Corpus], *, speed_up: float) -> int:
    first, *others = [(chunk_set(house, corpus), statistics(house, corpus)) for corpus in corpora]
    chunks = first[0]
    places = [(document, index) for document, index, _ in chunks]
    same = all(other == first for other in others) and len(set(places)) == len(places) > 0
    click.echo(f"chunks {len(chunks)}, the same with every number of workers: {same}; {speed_up:.2f}× (bar {BAR}×)")
    return 0 if same and speed_up >= BAR else 1


@asynccontextmanager
async def _worker(server: EmbeddedServer, url: str) -> AsyncIterator[Process]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAG_")} | {
        "RAG_DATABASE_URL": server.service_conninfo,
        "RAG_EMBEDDING_PROVIDER": "ollama",
        "RAG_EMBEDDING_MODEL": "nomic-embed-text",
        "RAG_FIT_RELEVANCE": "false",
        "RAG_OLLAMA_URL": url,
        "RAG_LOG_LEVEL": "ERROR",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WORKER, "worker", cwd=ROOT, env=environment, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _wait_for_workers(house: House, count: int) -> None:
    async with asyncio.timeout(_START_SECONDS):
        while True:
            with house.owner() as owner:
                row = owner.execute("SELECT count(*) FROM rag.procrastinate_workers").fetchone()
            if row is not None and row[0] >= count:
                return
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    given = sys.argv[1:]
    sys.exit(asyncio.run(main(int(given[0]) if given else 60, float(given[1]) if given[1:] else 1.0)))
