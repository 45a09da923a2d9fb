"""Uploads: accepted whole, indexed once, replaced in one step, gone at once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import re
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from rag_service.domain import CorpusKind, Filters, Identity, ParsedDocument
from rag_service.errors import (
    ConflictError,
    EmbeddingError,
    InputError,
    NotFoundError,
    PermissionDeniedError,
    StoreError,
)
from rag_service.ingest.embedding_cache import CachedEmbedding
from rag_service.ingest.postponed import PostponedUploads
from rag_service.store.accounts.keys import Scope, create_key, hash_secret, revoke_key
from rag_service.store.accounts.users import delete_user
from rag_service.store.corpora import delete_corpus, update_corpus
from rag_service.store.documents.catalogue import list_documents, read_document, remove_document, set_expiry
from rag_service.store.documents.uploads import UploadStatus, claim_upload, report_progress
from rag_service.store.rows import Slice
from tests.conftest import FakeEmbedding
from tests.integration.tenancy.conftest import ADMIN, House, parse_here, text_file
from tests.serving import wait_until

LLAMAS = "Llamas live in the Andes."
ALPACAS = "Alpacas are smaller than llamas."


async def test_what_was_accepted_is_indexed_and_found(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    (upload,) = await house.index(ana, corpus, text_file("llamas.txt", LLAMAS))
    assert (upload.done, upload.total, upload.attempts) == (1, 1, 1)
    assert await house.ask(ana, "llamas") == {LLAMAS}
    async with house.database.transaction(ana) as connection:
        document = await read_document(connection, upload.document_id)
        assert await house.originals.read(connection, document.id, document.content_hash) == LLAMAS.encode()


async def test_document_bytes_and_job_are_stored_in_one_transaction(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    with house.owner() as owner:  # the queue refuses: then nothing else may stay
        owner.execute("ALTER TABLE rag.procrastinate_jobs ADD CONSTRAINT closed CHECK (false) NOT VALID")
        with pytest.raises(StoreError):
            await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
        for table in ("documents", "originals", "uploads", "procrastinate_jobs"):
            assert owner.execute(f"SELECT count(*) FROM rag.{table}").fetchone() == (0,), table


async def test_job_arguments_hold_ids_only(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    upload = await house.uploads.accept(text_file("secret name.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    with house.owner() as owner:
        jobs = owner.execute("SELECT args FROM rag.procrastinate_jobs").fetchall()
    ((arguments,),) = jobs
    assert re.fullmatch(r"[\w.:-]{1,64}", arguments.pop("correlation_id"))  # the request's, for the worker's log
    assert arguments == {"upload_id": str(upload.id), "user_id": str(ana.user_id)}


async def test_a_file_waits_for_no_more_than_a_turn_of_somebody_elses_many(house: House, quick) -> None:  # type: ignore[no-untyped-def]
    people = [await house.user("ana"), await house.user("ben")]
    corpora = [await house.corpus(person) for person in people]
    uploads = [
        await house.uploads.accept(text_file(f"{who}{n}.txt", LLAMAS), corpus_id=corpora[who].id, identity=people[who])
        for who, n in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    ]
    read: list[str] = []

    async def parser(data: bytes, file_name: str) -> ParsedDocument:
        read.append(file_name.removesuffix(".txt"))
        return await parse_here(data, file_name)

    async with house.working(parser=parser, options=quick(concurrency=1)):
        await house.settled(people[0], *uploads[:4])
        await house.settled(people[1], *uploads[4:])
    assert read == ["00", "10", "01", "11", "02", "03"]


async def test_a_postponed_upload_of_a_key_that_was_revoked_before_is_refused(house: House, tmp_path: Path) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    async with house.database.transaction(ana) as connection:
        keys = [
            await create_key(connection, user_id=ana.user_id, name=name, scopes=[Scope.WRITE]) for name in ("a", "b")
        ]
        await revoke_key(connection, keys[0][0].id)
    postponed = PostponedUploads(house.uploads, tmp_path, max_bytes=10_000)
    for number, (_, secret) in enumerate(keys):
        await postponed.keep(
            text_file(f"{number}.txt", LLAMAS),
            corpus_id=corpus.id,
            identity=ana,
            ttl_seconds=None,
            key=hash_secret(secret),
        )
    await postponed.deliver()
    async with house.database.transaction(ana) as connection:
        page = await list_documents(connection, corpus.id, Slice(limit=10))
    assert [document.name for document in page.items] == ["1.txt"]
    assert [file.suffix for file in postponed.folder.iterdir()] == [".refused"]


async def test_kept_uploads_of_one_user_and_refused_ones_leave_room_for_others(house: House, tmp_path: Path) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    corpus, own = await house.corpus(ana), await house.corpus(ben)
    postponed = PostponedUploads(house.uploads, tmp_path, max_bytes=10_000, shared=True)

    async def keep(who: Identity, corpus_id: UUID) -> bool:
        source = text_file(f"{uuid4()}.txt", "x" * 1_000)
        return await postponed.keep(source, corpus_id=corpus_id, identity=who, ttl_seconds=None) is not None

    made_up = uuid4()
    assert [await keep(ana, made_up) for _ in range(6)] == [True] * 3 + [False] * 3
    assert await keep(ben, own.id)
    await postponed.deliver()
    assert {file.suffix for file in postponed.folder.iterdir()} == {".refused"}
    assert sum(file.stat().st_size for file in postponed.folder.iterdir()) <= 2_500
    assert [await keep(who, corpus.id) for who in (ana, ana, ana, ben, ben, ben)] == [True] * 6


async def test_files_that_a_full_disk_left_unfinished_are_swept(house: House, tmp_path: Path) -> None:
    old, fresh = tmp_path / "1.part", tmp_path / "2.part"
    for file in (old, fresh):
        file.touch()
    os.utime(old, (0, 0))
    running = asyncio.create_task(PostponedUploads(house.uploads, tmp_path, max_bytes=10_000).run())
    await asyncio.to_thread(wait_until, lambda: not old.exists())
    running.cancel()
    assert fresh.exists()  # another process may be at it


async def test_of_versions_kept_and_accepted_in_any_order_the_one_received_last_wins(
    house: House, tmp_path: Path
) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    postponed = PostponedUploads(house.uploads, tmp_path, max_bytes=10_000_000)
    generator = random.Random(7)  # noqa: S311 - a seeded order
    for number in range(50):
        for version in range(1, 4):
            source = text_file(f"{number}.txt", f"version {version} of {number}")
            if generator.random() < 0.5:
                await house.uploads.accept(source, corpus_id=corpus.id, identity=ana)
            else:
                assert await postponed.keep(source, corpus_id=corpus.id, identity=ana, ttl_seconds=None)
            await asyncio.sleep(0.01)  # an outage lasts longer than the clocks differ
    await postponed.deliver()
    assert not list(postponed.folder.glob("*.upload"))
    with house.owner() as owner:
        open_uploads = owner.execute(
            "SELECT u.file_name, u.content_hash FROM rag.uploads u WHERE u.status = 'pending'"
        ).fetchall()
        newest = owner.execute(
            "SELECT DISTINCT ON (document_id) file_name, content_hash FROM rag.uploads"
            " ORDER BY document_id, created_at DESC"
        ).fetchall()
    wanted = {(f"{number}.txt", hashlib.sha256(f"version 3 of {number}".encode()).hexdigest()) for number in range(50)}
    assert set(open_uploads) == set(newest) == wanted
    assert len(open_uploads) == 50


async def test_a_version_from_a_clock_that_was_set_back_since_supersedes_nothing(house: House, tmp_path: Path) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    postponed = PostponedUploads(house.uploads, tmp_path, max_bytes=10_000)
    await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    with house.owner() as owner:
        owner.execute("UPDATE rag.uploads SET created_at = now() + interval '1 hour'")
    await postponed.keep(text_file("a.txt", ALPACAS), corpus_id=corpus.id, identity=ana, ttl_seconds=None)
    await postponed.deliver()
    with house.owner() as owner:
        pending = owner.execute("SELECT content_hash FROM rag.uploads WHERE status = 'pending'").fetchall()
    assert pending == [(hashlib.sha256(ALPACAS.encode()).hexdigest(),)]


async def test_two_uploads_of_one_file_at_the_same_moment_are_one(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    accept = house.uploads.accept
    uploads = await asyncio.gather(
        *(accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana) for _ in range(4))
    )
    assert len({upload.id for upload in uploads}) == 1
    async with house.working():
        await house.settled(ana, *uploads)
    again = await accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    assert (again.id, again.status) == (uploads[0].id, UploadStatus.INDEXED)
    with house.owner() as owner:
        assert owner.execute("SELECT count(*) FROM rag.data_chunks").fetchone() == (1,)


async def test_a_changed_file_replaces_the_old_one_in_one_step(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    (first,) = await house.index(ana, corpus, text_file("a.txt", LLAMAS))
    second = await house.uploads.accept(text_file("a.txt", ALPACAS), corpus_id=corpus.id, identity=ana)
    assert second.document_id == first.document_id
    assert await house.ask(ana, "llamas") == {LLAMAS}  # until the new version is stored
    async with house.database.transaction(ana) as connection:
        shown = await read_document(connection, first.document_id)
    assert (shown.content_hash, shown.chunk_count) == (first.content_hash, 1)
    async with house.working():
        await house.settled(ana, second)
    assert await house.ask(ana, "llamas") == {ALPACAS}
    with house.owner() as owner:
        assert owner.execute("SELECT count(*) FROM rag.originals").fetchone() == (1,)
        assert owner.execute("SELECT chunk_count FROM rag.corpus_statistics").fetchone() == (1,)


async def test_a_newer_upload_supersedes_one_that_waits(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    first = await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    second = await house.uploads.accept(text_file("a.txt", ALPACAS), corpus_id=corpus.id, identity=ana)
    async with house.working():
        done = await house.settled(ana, first, second)
    assert [(upload.status, upload.code) for upload in done] == [("failed", "superseded"), ("indexed", None)]
    assert await house.ask(ana, "llamas") == {ALPACAS}


async def test_deleting_what_is_being_indexed_wins(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def slow(data: bytes, name: str) -> ParsedDocument:
        reading.set()
        await go_on.wait()
        return await parse_here(data, name)

    upload = await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    async with house.working(parser=slow):
        await asyncio.wait_for(reading.wait(), 60)
        async with house.database.transaction(ana) as connection:
            await remove_document(connection, upload.document_id)
        go_on.set()
        await _queue_is_empty(house)
    assert await house.ask(ana, "llamas") == set()
    with house.owner() as owner:
        for table in ("documents", "data_chunks", "originals", "uploads", "postings", "term_statistics"):
            assert owner.execute(f"SELECT count(*) FROM rag.{table}").fetchone() == (0,), table


@pytest.mark.parametrize("what", ["corpus", "user"])
async def test_jobs_of_a_deleted_corpus_or_user_are_void(house: House, what: str) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    await house.index(ana, corpus, text_file("a.txt", LLAMAS))
    await house.uploads.accept(text_file("b.txt", ALPACAS), corpus_id=corpus.id, identity=ana)
    with house.owner() as owner:
        if what == "user":
            owner.execute("DELETE FROM rag.users WHERE id = %s", [ana.user_id])
        else:
            async with house.database.transaction(ana) as connection:
                await delete_corpus(connection, corpus.id)
        async with house.working():
            await _queue_is_empty(house)
        for table in ("documents", "data_chunks", "originals", "uploads", "postings", "corpus_statistics"):
            assert owner.execute(f"SELECT count(*) FROM rag.{table}").fetchone() == (0,), table
    assert await house.ask(ana, "llamas") == set()


async def test_a_worker_that_lost_its_claim_cannot_write_late(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    upload = await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    async with house.database.transaction(ana) as connection:
        late = await claim_upload(connection, upload.id)
    async with house.database.transaction(ana) as connection:
        newer = await claim_upload(connection, upload.id)
    assert late is not None
    assert newer is not None
    from rag_service.store.documents.uploads import ClaimLostError

    with pytest.raises(ClaimLostError):
        await house.job().process(late, ana)
    assert await house.ask(ana, "llamas") == set()
    assert await house.job().process(newer, ana) == 1
    async with house.database.transaction(ana) as connection:
        with pytest.raises(ClaimLostError):
            await report_progress(connection, newer, UploadStatus.PARSING)  # finished: nobody's any more


async def test_a_file_nobody_can_read_fails_at_once_with_a_reason(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    broken = await house.uploads.accept(
        text_file("broken.pdf", "%PDF-1.7 nothing of the kind"), corpus_id=corpus.id, identity=ana
    )
    good = await house.uploads.accept(text_file("good.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    async with house.working():
        failed, indexed = await house.settled(ana, broken, good)
    assert failed.status is UploadStatus.FAILED
    assert failed.attempts == 1
    assert failed.reason is not None
    assert "broken.pdf" in failed.reason
    assert indexed.status is UploadStatus.INDEXED


async def test_a_failing_embedding_model_is_tried_again_and_then_given_up(house: House, quick) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    calls = 0

    async def failing(data: bytes, name: str) -> ParsedDocument:
        nonlocal calls
        calls += 1
        if calls < 3 or name == "never.txt":
            raise EmbeddingError("The embedding model does not answer.")
        return await parse_here(data, name)

    upload = await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    options = quick(attempts=3, backoff_seconds=0.01, backoff_max_seconds=0.02)
    async with house.working(parser=failing, options=options):
        (done,) = await house.settled(ana, upload)
        assert (done.status, done.attempts) == (UploadStatus.INDEXED, 3)
        upload = await house.uploads.accept(text_file("never.txt", ALPACAS), corpus_id=corpus.id, identity=ana)
        (failed,) = await house.settled(ana, upload)
        assert (failed.status, failed.attempts, failed.code) == ("failed", 3, "embedding_unavailable")
        calls = -100
        retried = await house.uploads.accept(text_file("never.txt", ALPACAS), corpus_id=corpus.id, identity=ana)
        assert retried.id != failed.id  # a failed one may be sent again


async def test_a_failing_batch_stops_no_other_and_only_it_is_embedded_again(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    animals = ("Alpacas", "Llamas", "Condors")
    embedded: list[str] = []

    class Flaky(FakeEmbedding):
        async def _aget_text_embedding(self, text: str) -> list[float]:
            embedded.append(next(animal for animal in animals if f"{animal} live" in text))
            if embedded == ["Alpacas", "Llamas"]:
                raise EmbeddingError("The embedding model does not answer.")
            return self._embed(text)

    flaky = Flaky(model_name="flaky", embed_batch_size=1)
    house = replace(house, embedding=CachedEmbedding(flaky, house.database, dimension=384, ttl_seconds=60))
    text = "\n\n".join(f"# {animal}\n\n" + f"{animal} live in the Andes. " * 60 for animal in animals)
    (upload,) = await house.index(ana, corpus, text_file("animals.md", text))
    assert (upload.status, upload.attempts) == (UploadStatus.INDEXED, 2)
    assert embedded == ["Alpacas", "Llamas", "Condors", "Llamas"]


async def test_an_unforeseen_failure_tells_no_internals_and_ends(house: House, quick) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)

    async def bug(data: bytes, name: str) -> ParsedDocument:
        raise KeyError("/srv/internal/path")

    upload = await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    options = quick(attempts=2, backoff_seconds=0.01, backoff_max_seconds=0.02)
    async with house.working(parser=bug, options=options):
        (failed,) = await house.settled(ana, upload)
    assert (failed.status, failed.attempts, failed.code) == ("failed", 2, "internal_error")
    assert "internal/path" not in str(failed.reason)


async def test_a_stopped_worker_puts_its_documents_back_uncounted(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    reading = asyncio.Event()

    async def endless(data: bytes, name: str) -> ParsedDocument:
        reading.set()
        await asyncio.Event().wait()
        raise AssertionError

    upload = await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    async with house.working(parser=endless):
        await asyncio.wait_for(reading.wait(), 60)
    state = await house.status(ana, upload)
    assert (state.status, state.attempts) == (UploadStatus.PENDING, 0)
    async with house.working():
        (done,) = await house.settled(ana, upload)
    assert done.status is UploadStatus.INDEXED


@pytest.mark.parametrize("seconds", [0, -1, 2**31])
async def test_a_lifetime_that_makes_no_sense_is_refused(house: House, seconds: int) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    with pytest.raises(InputError, match="lifetime"):
        await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana, ttl_seconds=seconds)
    async with house.database.transaction(ana) as connection:
        with pytest.raises(InputError):
            await update_corpus(connection, corpus.id, ttl_seconds=seconds)


async def test_expired_content_is_out_of_reach_before_it_is_purged(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    (upload,) = await house.index(ana, corpus, text_file("a.txt", LLAMAS))
    with house.owner() as owner:
        owner.execute("UPDATE rag.documents SET expires_at = now() - interval '1 second'")
    assert await house.ask(ana, "llamas") == set()
    async with house.database.transaction(ana) as connection:
        assert (await list_documents(connection, corpus.id, Slice())).total == 0
        with pytest.raises(NotFoundError):
            await read_document(connection, upload.document_id)
        with pytest.raises(NotFoundError):
            await set_expiry(connection, upload.document_id, None)
    # the same name can be used again, purged or not
    again = await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    async with house.working():
        await house.settled(ana, again)
        assert await house.ask(ana, "llamas") == {LLAMAS}
        with house.owner() as owner:
            owner.execute("UPDATE rag.documents SET expires_at = now() - interval '1 second'")
            for _ in range(1000):
                if owner.execute("SELECT count(*) FROM rag.documents").fetchone() == (0,):
                    break
                await asyncio.sleep(0.05)
            assert owner.execute("SELECT count(*) FROM rag.data_chunks").fetchone() == (0,)
            assert owner.execute("SELECT count(*) FROM rag.term_statistics").fetchone() == (0,)


async def test_the_corpus_gives_its_documents_their_lifetime(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    async with house.database.transaction(ana) as connection:
        await update_corpus(connection, corpus.id, ttl_seconds=3600)
    accept = house.uploads.accept
    upload = await accept(text_file("a.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    own = await accept(text_file("b.txt", ALPACAS), corpus_id=corpus.id, identity=ana, ttl_seconds=60)
    assert upload.expires_at is not None
    assert own.expires_at is not None
    assert 3500 < (upload.expires_at - upload.created_at).total_seconds() <= 3601
    assert 50 < (own.expires_at - own.created_at).total_seconds() <= 61


async def test_a_deactivated_corpus_takes_nothing_and_gives_nothing(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    await house.index(ana, corpus, text_file("a.txt", LLAMAS))
    waiting = await house.uploads.accept(text_file("b.txt", ALPACAS), corpus_id=corpus.id, identity=ana)
    async with house.database.transaction(ana) as connection:
        await update_corpus(connection, corpus.id, active=False)
    with pytest.raises(ConflictError, match="deactivated"):
        await house.uploads.accept(text_file("c.txt", LLAMAS), corpus_id=corpus.id, identity=ana)
    assert await house.ask(ana, "llamas") == set()
    async with house.working():
        (refused,) = await house.settled(ana, waiting)
    assert (refused.status, refused.code) == ("failed", "conflict")
    async with house.database.transaction(ana) as connection:
        await update_corpus(connection, corpus.id, active=True)
    assert await house.ask(ana, "llamas") == {LLAMAS}


async def test_others_can_neither_upload_nor_look(house: House) -> None:
    ana, ben = await house.user("ana"), await house.user("ben")
    corpus = await house.corpus(ana)
    (upload,) = await house.index(ana, corpus, text_file("a.txt", LLAMAS))
    for stranger in (ben, ADMIN):  # an administrator is a stranger in personal corpora
        with pytest.raises(NotFoundError):
            await house.uploads.accept(text_file("b.txt", ALPACAS), corpus_id=corpus.id, identity=stranger)
        with pytest.raises(NotFoundError):
            await house.status(stranger, upload)
        async with house.database.transaction(stranger) as connection:
            with pytest.raises(NotFoundError):
                await remove_document(connection, upload.document_id)
        assert await house.ask(stranger, "llamas", Filters(document_ids=(upload.document_id,))) == set()
    public = await house.corpus(ADMIN, "handbook", CorpusKind.GLOBAL)
    with pytest.raises((NotFoundError, PermissionDeniedError)):
        await house.uploads.accept(text_file("b.txt", ALPACAS), corpus_id=public.id, identity=ben)


async def test_uploads_of_someone_who_may_no_longer_write_fail(house: House) -> None:
    from rag_service.domain import Role

    boss = await house.user("boss", Role.ADMIN)
    public = await house.corpus(boss, "handbook", CorpusKind.GLOBAL)
    upload = await house.uploads.accept(text_file("a.txt", LLAMAS), corpus_id=public.id, identity=boss)
    with house.owner() as owner:
        owner.execute("UPDATE rag.users SET role = 'user' WHERE id = %s", [boss.user_id])
    async with house.working():
        (failed,) = await house.settled(ADMIN, upload)
    assert (failed.status, failed.code) == ("failed", "not_permitted")


async def _queue_is_empty(house: House) -> None:
    with house.owner() as owner:
        for _ in range(1000):
            if owner.execute("SELECT count(*) FROM rag.procrastinate_jobs").fetchone() == (0,):
                return
            await asyncio.sleep(0.03)
    raise AssertionError("jobs are left")


async def test_a_user_who_is_deleted_with_uploads_waiting_leaves_nothing_and_delays_nobody(house: House) -> None:
    gone, other = await house.user("gone"), await house.user("other")
    corpus, theirs = await house.corpus(gone), await house.corpus(other)
    for number in range(20):
        await house.uploads.accept(text_file(f"{number}.txt", "Llamas hum."), corpus_id=corpus.id, identity=gone)
    wanted = await house.uploads.accept(text_file("a.txt", "Alpacas hum."), corpus_id=theirs.id, identity=other)
    async with house.database.transaction(ADMIN) as connection:
        await delete_user(connection, ADMIN, gone.user_id)
    with house.owner() as owner:
        async with house.working(), asyncio.timeout(60):
            (done,) = await house.settled(other, wanted)
            while owner.execute("SELECT FROM rag.procrastinate_jobs").fetchone():  # noqa: ASYNC110 - rows of another connection
                await asyncio.sleep(0.03)
        names = owner.execute("SELECT name FROM rag.documents").fetchall()
    assert (done.status, names) == (UploadStatus.INDEXED, [("a.txt",)])
