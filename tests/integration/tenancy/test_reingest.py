"""Documents that other settings made: named, found as they are meanwhile, and made again from their originals."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from rag_service.cli.admin import reingest
from rag_service.cli.checks import check_documents
from rag_service.domain import CorpusKind, Identity, Role
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.reingest import Reingestion, StaleIndex, warn_of_stale
from rag_service.models.embedding.guarded import GuardedEmbedding
from rag_service.readers.file_reader import FileReader
from rag_service.settings import Settings
from rag_service.store.accounts.users import update_user
from rag_service.store.corpora import Corpus, update_corpus
from rag_service.store.database import Database
from rag_service.store.documents.uploads import Upload, UploadStatus, claim_upload
from tests.conftest import FakeEmbedding
from tests.integration.tenancy.conftest import ADMIN, INDEX, House, load_indices, parse_here, text_file
from tests.integration.tenancy.web import build_application, client_of, new_key, web_settings


def reingestion(house: House) -> Reingestion:
    return Reingestion(house.database, {INDEX: house.fingerprints[INDEX]})


def made_by_others(house: House) -> None:
    """As if everything had been ingested before the settings were changed."""
    with house.owner() as owner:
        owner.execute("UPDATE rag.documents SET fingerprint = 'of other settings' WHERE fingerprint <> ''")


async def stored_without_upload(house: House, corpus: Corpus, name: str, text: str) -> UUID:
    ingestor = Ingestor(
        house.database, house.embedding, FileReader(parse_here), model="fake", dimension=384, originals=house.originals
    )
    done = await ingestor.ingest(text_file(name, text), corpus=corpus, index=load_indices()[INDEX], identity=ADMIN)
    return done.document_id


async def none_waits(house: House) -> None:
    for _ in range(1000):
        with house.owner() as owner:
            query = "SELECT count(*) FROM rag.uploads WHERE status NOT IN ('indexed', 'failed')"
            if owner.execute(query).fetchone() == (0,):
                return
        await asyncio.sleep(0.03)
    raise AssertionError("something still waits")


async def test_documents_of_all_users_are_made_again(house: House) -> None:
    ana = await house.user("ana")
    notes, handbook = await house.corpus(ana), await house.corpus(ADMIN, "handbook", CorpusKind.GLOBAL)
    await house.index(ana, notes, text_file("a.txt", "Llamas hum."))
    stored = await stored_without_upload(house, handbook, "b.txt", "Alpacas spit.")
    assert await reingestion(house).count() == []
    made_by_others(house)
    assert await reingestion(house).count() == [StaleIndex(index_name=INDEX, documents=2, chunks=2)]

    counted: list[int] = []
    assert await reingestion(house).enqueue_all(counted.append) == 2
    assert counted == [1, 1]
    assert await reingestion(house).enqueue_all() == 0  # they wait already
    assert await house.ask(ana, "Llamas") == {"Llamas hum."}  # found as they are
    async with house.working():
        await none_waits(house)
    assert await reingestion(house).count() == []
    assert await house.ask(ana, "Llamas") == {"Llamas hum."}
    with house.owner() as owner:
        found = owner.execute("SELECT file_name, title, status FROM rag.uploads WHERE document_id = %s", [stored])
        assert found.fetchall() == [("b.txt", "b", "indexed")]
        assert owner.execute("SELECT count(*) FROM rag.uploads").fetchone() == (2,)  # ana's is the one she made


class FaultyEmbedding(FakeEmbedding):
    """Cannot embed texts about alpacas, until it is repaired."""

    is_repaired: bool = False

    def _get_text_embedding(self, text: str) -> list[float]:
        return [math.nan] if "Alpacas" in text and not self.is_repaired else self._embed(text)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)


async def test_passages_without_a_vector_are_embedded_again(house: House) -> None:
    ana = await house.user("ana")
    notes = await house.corpus(ana)
    model = FaultyEmbedding(model_name="faulty")
    house = replace(house, embedding=GuardedEmbedding(model, Settings()))
    text = "# Alpacas\n\nAlpacas spit.\n\n# Llamas\n\n" + "Llamas hum. " * 200
    (upload,) = await house.index(ana, notes, text_file("a.md", text))
    assert upload.status is UploadStatus.INDEXED
    assert [index.documents for index in await reingestion(house).count()] == [1]
    for is_repaired in (False, True):
        model.is_repaired = is_repaired
        assert await reingestion(house).enqueue_all() == 1
        async with house.working():
            await none_waits(house)
    assert await reingestion(house).count() == []
    with house.owner() as owner:
        warnings = owner.execute("SELECT metadata ->> 'reader_warnings' FROM rag.documents").fetchall()
    assert warnings == [(None,)]


async def test_what_cannot_be_made_again_is_named_and_left(house: House) -> None:
    """Its uploader has left, its original is not kept, or a newer version of it failed."""
    ana, ben = await house.user("ana"), await house.user("ben")
    notes, diary = await house.corpus(ana), await house.corpus(ben)
    await house.index(ben, diary, text_file("left.txt", "Ben's llamas."))
    lost, failed = await house.index(
        ana, notes, text_file("lost.txt", "A lost original."), text_file("failed.txt", "The first version.")
    )
    newer = await house.uploads.accept(
        text_file("failed.txt", "   "), corpus_id=notes.id, identity=ana
    )  # holds no text
    async with house.working():
        (state,) = await house.settled(ana, newer)
    assert state.status is UploadStatus.FAILED
    async with house.database.transaction(ADMIN) as connection:
        await update_user(connection, ADMIN, ben.user_id, active=False)
    with house.owner() as owner:
        owner.execute("DELETE FROM rag.originals WHERE document_id = %s", [lost.document_id])
    made_by_others(house)
    assert await reingestion(house).enqueue_all() == 0
    assert [index.documents for index in await reingestion(house).count()] == [3]
    assert await house.ask(ana, "version") >= {"The first version."}
    retried = await house.uploads.retry(newer.id, ana)  # what is needed for it is still there
    assert retried.document_id == failed.document_id


async def test_what_nobody_finds_is_left_alone(house: House) -> None:
    """Expired documents, those of corpora that are not active, and those of indexes that are not defined."""
    ana = await house.user("ana")
    closed, lasting = await house.corpus(ana, "closed"), await house.corpus(ana, "lasting")
    await house.index(ana, closed, text_file("a.txt", "In a closed corpus."))
    await house.index(ana, lasting, text_file("b.txt", "Expired."))
    async with house.database.transaction(ana) as connection:
        await update_corpus(connection, closed.id, active=False)
        await connection.execute(
            "UPDATE documents SET expires_at = %s WHERE corpus_id = %s",
            [datetime.now(UTC) - timedelta(days=1), lasting.id],
        )
    made_by_others(house)
    assert await reingestion(house).count() == []
    assert await reingestion(house).enqueue_all() == 0
    async with house.database.transaction(ana) as connection:
        await update_corpus(connection, closed.id, active=True)
    assert await Reingestion(house.database, {"another": "x"}).count() == []


async def test_a_lifetime_that_was_set_since_is_kept(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    (upload,) = await house.index(ana, corpus, text_file("a.txt", "Llamas hum."))
    until = datetime.now(UTC) + timedelta(days=7)
    async with house.database.transaction(ana) as connection:
        await connection.execute("UPDATE documents SET expires_at = %s WHERE id = %s", [until, upload.document_id])
    made_by_others(house)
    await reingestion(house).enqueue_all()
    async with house.working():
        await none_waits(house)
    with house.owner() as owner:
        assert owner.execute("SELECT expires_at FROM rag.documents").fetchone() == (until,)


async def test_a_worker_that_was_given_up_for_dead_cannot_end_the_new_try(house: House) -> None:
    ana = await house.user("ana")
    (upload,) = await house.index(ana, await house.corpus(ana), text_file("a.txt", "Llamas hum."))
    made_by_others(house)
    await reingestion(house).enqueue_all()
    async with house.database.transaction(ana) as connection:
        claimed = await claim_upload(connection, upload.id)
    assert isinstance(claimed, Upload)
    assert claimed.claim > upload.claim + 1
    assert claimed.attempts == 1


async def test_readers_of_the_api_see_what_is_stale(house: House) -> None:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    (upload,) = await house.index(ana, corpus, text_file("a.txt", "Llamas hum."))
    async with client_of(build_application(house, web_settings()), await new_key(house, ana)) as client:
        address, listing = f"/api/v1/documents/{upload.document_id}", f"/api/v1/corpora/{corpus.id}/documents"
        assert (await client.get(address)).json()["stale"] is False
        assert [item["stale"] for item in (await client.get(listing)).json()["items"]] == [False]
        made_by_others(house)
        assert (await client.get(address)).json()["stale"] is True
        assert [item["stale"] for item in (await client.get(listing)).json()["items"]] == [True]


async def test_a_service_says_at_its_start_what_is_stale(house: House, database: Database) -> None:
    ana = await house.user("ana")
    await house.index(ana, await house.corpus(ana), text_file("a.txt", "Llamas hum."))
    with capture_logs() as logs:
        await warn_of_stale(reingestion(house))
    assert logs == []
    made_by_others(house)
    with capture_logs() as logs:
        await warn_of_stale(reingestion(house))
    (line,) = logs
    assert (line["log_level"], line["index"], line["documents"], line["chunks"]) == ("warning", INDEX, 1, 1)
    assert "rag-service reingest" in line["detail"]
    await database.close()
    with capture_logs() as logs:
        await warn_of_stale(reingestion(house))  # the service starts all the same
    assert [line["log_level"] for line in logs] == ["debug"]


async def test_a_check_counts_what_is_stale(house: House) -> None:
    settings = Settings(
        database_url=house.server.service_conninfo,  # type: ignore[arg-type]  # read by pydantic
        embedding_model="fake",
    )
    ana = await house.user("ana")
    await house.index(ana, await house.corpus(ana), text_file("a.txt", "Llamas hum."))
    assert await check_documents(settings) == "up to date with the current settings"
    made_by_others(house)
    assert (await check_documents(settings)).startswith("index general: 1 documents (1 chunks) were made with other")
    assert await check_documents(Settings()) == "checked when the service starts"


async def test_the_command_names_them_and_queues_them(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    boss: Identity = await house.user("boss", Role.ADMIN)
    await house.index(boss, await house.corpus(boss), text_file("a.txt", "Llamas hum."))
    monkeypatch.setenv("RAG_DATABASE_URL", house.server.service_conninfo)
    monkeypatch.setattr("rag_service.observability.logs.configure_logging", lambda settings: None)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(reingest, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    named = "index general: 1 documents (1 chunks) were made with other settings"
    # The model of these tests is none that the settings name.
    said = await asyncio.to_thread(run, "--dry-run")
    assert named in said
    assert "queued" not in said
    said = await asyncio.to_thread(run)
    assert named in said
    assert "1 documents queued" in said
    said = await asyncio.to_thread(run)
    assert "0 documents queued" in said
    assert "1 documents not queued: they are queued already" in said
