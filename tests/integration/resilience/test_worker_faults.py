"""Workers that stand still, clocks that are wrong, disks that are full: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, tzinfo
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from rag_service.domain import Identity, ParsedDocument
from rag_service.errors import EmbeddingError, NotFoundError, StoreError, UnreachableError
from rag_service.ingest import queue as jobs
from rag_service.ingest.upload_job import UploadJob
from rag_service.readers.sandbox import parse_in_sandbox
from rag_service.store.documents.documents import read_text
from rag_service.store.documents.uploads import Upload, UploadStatus
from tests.conftest import FakeEmbedding
from tests.integration.hostile import children, kill_started
from tests.integration.tenancy.conftest import QUICK, House, house, parse_here, text_file
from tests.integration.tenancy.killing import chunk_set, kill, make_documents, start_worker, statistics

__all__ = ["house"]

DISK_FULL = """
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION public.refuse();
"""


@pytest.mark.slow
async def test_a_worker_that_stood_still_is_replaced_and_does_no_harm_when_it_goes_on(house: House) -> None:
    """A paused virtual machine or a swapping host: silent for far longer than a worker may be (60 s, shortened)."""
    ana = await house.user("ana")
    documents = make_documents(3)
    calm, stormy = await house.corpus(ana, "calm"), await house.corpus(ana, "stormy")
    await house.index(ana, calm, *documents)
    first = await start_worker(house.server.service_conninfo)
    second = None
    try:
        uploads = [await house.uploads.accept(document, corpus_id=stormy.id, identity=ana) for document in documents]
        await _until_in_work(house)
        os.kill(first.pid, signal.SIGSTOP)
        second = await start_worker(house.server.service_conninfo)
        done = await house.settled(ana, *uploads, within=60)  # the stalled time is 1.2 s here
        os.kill(first.pid, signal.SIGCONT)
        await asyncio.sleep(2.0)  # it goes on with what it had begun, and finds its claim gone
        assert first.is_alive()
    finally:
        os.kill(first.pid, signal.SIGCONT)
        await kill(first)
        if second is not None:
            await kill(second)
    assert {upload.status for upload in done} == {UploadStatus.INDEXED}
    assert sum(upload.attempts for upload in done) > len(documents)
    assert chunk_set(house, stormy) == chunk_set(house, calm)
    assert statistics(house, stormy) == statistics(house, calm)


async def _until_in_work(house: House) -> None:
    with house.owner() as owner:
        for _ in range(12_000):
            query = "SELECT count(*) FROM rag.uploads WHERE status IN ('embedding', 'storing')"
            if owner.execute(query).fetchone() != (0,):
                return
            await asyncio.sleep(0.005)
    raise AssertionError("no document was in work")


async def test_a_database_that_is_down_again_and_again_gives_no_document_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    outages = iter(range(2 * QUICK.attempts))
    process = UploadJob.process

    async def interrupted(self: UploadJob, upload: Upload, identity: Identity) -> int:
        if next(outages, None) is None:
            return await process(self, upload, identity)
        raise UnreachableError("The database cannot be reached.")

    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    accepted = await house.uploads.accept(text_file("rule.txt", "Llamas live."), corpus_id=corpus.id, identity=ana)
    monkeypatch.setattr(UploadJob, "process", interrupted)
    async with house.working():
        (done,) = await house.settled(ana, accepted, within=30)
    assert (done.status, done.attempts) == (UploadStatus.INDEXED, 1)


class _Ahead(datetime):
    """The clock of a machine that is a day ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(days=1)


class _FailsOnce(FakeEmbedding):
    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        if not failed:
            failed.append(True)
            raise EmbeddingError("The embedding service cannot be reached.")
        return [self._embed(text) for text in texts]


failed: list[bool] = []


async def test_a_wrong_clock_changes_no_lifetime_and_delays_no_job(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored with a time or due at one goes by the database's clock."""
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    await house.index(ana, corpus, text_file("before.txt", "Gate 4."))  # rows are typed at first use, by the real class
    monkeypatch.setattr("datetime.datetime", _Ahead)
    for module in (jobs, *_modules_with_a_clock()):
        if hasattr(module, "datetime"):
            monkeypatch.setattr(module, "datetime", _Ahead)
    failed.clear()
    house.embedding = _FailsOnce(model_name="fake")
    lasting = await house.uploads.accept(
        text_file("rule.txt", "Llamas live in the Andes."), corpus_id=corpus.id, identity=ana, ttl_seconds=3600
    )
    async with house.working():
        (done,) = await house.settled(ana, lasting, within=30)  # the second try came at once, not in a day
    assert (done.status, done.attempts) == (UploadStatus.INDEXED, 2)
    with house.owner() as owner:
        query = "SELECT extract(epoch FROM expires_at - now())::int FROM rag.documents WHERE name = 'rule.txt'"
        left = owner.execute(query).fetchone()
    assert left is not None and 3500 < left[0] <= 3600
    assert await house.ask(ana, "llamas")
    with house.owner() as owner:  # the database's clock alone ends it
        owner.execute("UPDATE rag.documents SET expires_at = now()")
    assert not await house.ask(ana, "llamas")


def _modules_with_a_clock() -> list[Any]:
    from rag_service.ingest import upkeep
    from rag_service.store import database
    from rag_service.store.documents import documents, uploads

    return [upkeep, database, documents, uploads]


async def test_a_document_whose_reader_was_killed_is_read_again(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    before, kills = children(), iter(range(2))

    async def parse_under_fire(data: bytes, file_name: str) -> ParsedDocument:
        reading = asyncio.create_task(parse_in_sandbox(data, file_name=file_name))
        if next(kills, None) is not None:
            await kill_started(before)
        return await reading

    upload = await house.uploads.accept(
        text_file("rule.txt", "Llamas live in the Andes."), corpus_id=corpus.id, identity=ana
    )
    async with house.working(parser=parse_under_fire):
        (done,) = await house.settled(ana, upload)
    assert (done.status, done.attempts) == (UploadStatus.INDEXED, 3)
    assert await house.ask(ana, "llamas")


async def test_a_connection_lost_while_a_job_is_enqueued_is_a_store_error(house: House) -> None:
    ana = await house.user("ana")
    with pytest.raises(StoreError) as caught:
        async with house.database.transaction(ana) as connection:
            with house.owner() as owner:
                owner.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
            await jobs.enqueue(connection, uuid4(), ana.user_id)
    assert caught.value.retry_after


@pytest.mark.slow
async def test_a_full_disk_postpones_documents_and_leaves_searching_alone(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    await house.index(ana, corpus, text_file("old.txt", "Llamas live in the Andes."))
    upload = await house.uploads.accept(text_file("new.txt", "Yaks live in Tibet."), corpus_id=corpus.id, identity=ana)
    with house.owner() as owner:
        owner.execute(DISK_FULL.format(table="rag.data_chunks"))
    async with house.working(), _pauses_left_out(house):
        for _ in range(2000):
            state = await house.status(ana, upload)
            if state.attempts >= 2:
                break
            await asyncio.sleep(0.02)
        assert state.attempts >= 2 and state.code in ("store_unavailable", None)
        assert await house.ask(ana, "llamas")
        with house.owner() as owner:
            owner.execute("DROP TRIGGER full_disk ON rag.data_chunks")
        (done,) = await house.settled(ana, upload, within=30)
    assert done.status is UploadStatus.INDEXED
    assert "Yaks live in Tibet." in await house.ask(ana, "yaks")


@asynccontextmanager
async def _pauses_left_out(house: House) -> AsyncIterator[None]:
    """A job that is postponed, five seconds after a failure of the database, is due at once."""

    async def make_due() -> None:
        with house.owner() as owner:
            while True:
                owner.execute("UPDATE rag.procrastinate_jobs SET scheduled_at = now() WHERE scheduled_at > now()")
                await asyncio.sleep(0.1)

    making = asyncio.create_task(make_due())
    try:
        yield
    finally:
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)


async def test_an_upload_onto_a_full_disk_is_refused_whole(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    with house.owner() as owner:
        owner.execute(DISK_FULL.format(table="rag.originals"))
    with pytest.raises(StoreError) as caught:
        await house.uploads.accept(text_file("new.txt", "Yaks."), corpus_id=corpus.id, identity=ana)
    assert isinstance(caught.value.__cause__, psycopg.errors.DiskFull)
    with house.owner() as owner:
        query = "SELECT (SELECT count(*) FROM rag.documents), (SELECT count(*) FROM rag.procrastinate_jobs)"
        assert owner.execute(query).fetchone() == (0, 0)


async def test_a_document_deleted_while_it_is_parsed_stays_deleted(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    parsing, go_on = asyncio.Event(), asyncio.Event()

    async def parse_late(data: bytes, file_name: str) -> ParsedDocument:
        parsing.set()
        await go_on.wait()
        return await parse_here(data, file_name)

    upload = await house.uploads.accept(text_file("x.txt", "Yaks live."), corpus_id=corpus.id, identity=ana)
    async with house.working(parser=parse_late):
        await asyncio.wait_for(parsing.wait(), 60)
        with house.owner() as owner:
            owner.execute("DELETE FROM rag.documents WHERE id = %s", [upload.document_id])
        go_on.set()
        await asyncio.sleep(0.5)
    assert not await house.ask(ana, "yaks")
    with pytest.raises(NotFoundError):
        await house.status(ana, upload)
    async with house.database.transaction(ana) as connection:
        assert await read_text(connection, upload.document_id) is None
