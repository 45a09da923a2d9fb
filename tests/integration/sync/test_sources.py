"""Sources that a worker syncs at their times, added by API and command line."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from rag_service import components
from rag_service.cli import main
from rag_service.components import Components
from rag_service.errors import ConflictError
from rag_service.settings import Settings
from rag_service.sources import scheduled
from rag_service.sources.folder import FolderSource
from rag_service.sources.report import SyncReport
from rag_service.sources.scheduled import SourceRunner
from rag_service.sources.source import Listing
from rag_service.sources.web import WebSource
from rag_service.store.corpora import delete_corpus
from rag_service.store.documents.sources import add_source, claim_source, read_source, remove_source
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.doubles.web_site import html, running_site
from tests.integration.sync.conftest import Desk
from tests.integration.tenancy.conftest import ADMIN, load_indices
from tests.integration.tenancy.web import client_of, new_key, real_application

LEASE = timedelta(seconds=30)


@pytest.fixture
async def service(desk: Desk) -> AsyncIterator[tuple[httpx.AsyncClient, Components]]:
    """A client without a key, and the parts of the service, whose administrators may sync pages of this machine."""
    async with (
        real_application(desk.house.server, desk.embedding, sync_networks="127.0.0.0/8") as (application, parts),
        client_of(application) as client,
    ):
        yield client, parts


async def test_a_source_is_synced_when_due_and_says_how_it_went(
    desk: Desk, service: tuple[httpx.AsyncClient, Components]
) -> None:
    client, parts = service
    client.headers["X-API-Key"] = await new_key(desk.house, ADMIN)
    desk.write(a="Apples are red.", b="Bananas are yellow.")
    (desk.folder / "film.mp4").write_bytes(b"x")
    at = f"/api/v1/corpora/{desk.corpus.id}/sources"
    added = (await client.post(at, json={"target": str(desk.folder), "everySeconds": 3600})).json()
    assert (added["status"], added["report"], added["corpusName"]) == ("waiting", None, "papers")
    again = await client.post(at, json={"target": f"file://{desk.folder}"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")

    runner = parts.source_runner()
    assert await runner.run_due()
    assert not await runner.run_due()  # the next run is in an hour
    assert desk.stored() == {"a.txt": "Apples are red.", "b.txt": "Bananas are yellow."}

    async def shown() -> dict[str, Any]:
        return dict((await client.get(f"/api/v1/sources/{added['id']}")).json())

    done = await shown()
    assert (done["status"], done["report"]["added"], done["error"]) == ("waiting", 2, None)
    assert done["report"]["reasons"] == ["film.mp4: .mp4 files are not supported"]
    assert done["nextRunAt"] > done["lastRunAt"]

    (desk.folder / "a.txt").unlink()
    assert (await client.post(f"/api/v1/sources/{added['id']}/run")).status_code == 202
    assert await runner.run_due()
    assert ((await shown())["report"]["deleted"], sorted(desk.stored())) == (1, ["b.txt"])

    desk.folder.rename(desk.folder.with_name("elsewhere"))
    await client.post(f"/api/v1/sources/{added['id']}/run")
    assert await runner.run_due()
    failed = await shown()
    assert (failed["status"], failed["report"]["deleted"], sorted(desk.stored())) == ("failed", 1, ["b.txt"])
    assert "is not a folder" in failed["error"]

    reply = await client.delete(f"/api/v1/sources/{added['id']}", params={"documents": "delete"})
    assert (reply.status_code, desk.stored()) == (204, {})


async def test_users_add_public_pages_alone(desk: Desk, service: tuple[httpx.AsyncClient, Components]) -> None:
    client, parts = service
    ana = await desk.house.user("ana")
    corpus = await desk.house.corpus(ana)
    own, shared = (f"/api/v1/corpora/{one.id}/sources" for one in (corpus, desk.corpus))

    async def add(at: str, target: str, key: str) -> tuple[int, str]:
        reply = await client.post(at, json={"target": target}, headers={"X-API-Key": key})
        return reply.status_code, reply.json().get("code", "")

    key = await new_key(desk.house, ana)
    for target in (str(desk.folder), f"file://{desk.folder}", "s3://bucket/papers", "memory://papers"):
        assert await add(own, target, key) == (403, "not_permitted"), target
        assert await add(own, target, await new_key(desk.house, ADMIN, {"read", "write"})) == (404, "not_found")
        assert await add(shared, target, await new_key(desk.house, ADMIN, {"read", "write"})) == (403, "not_permitted")
    for target in ("", " ", "https://", "https://user:word@example.org/", "x" * 3000):
        assert (await add(own, target, key))[0] in (400, 403), target
    assert (await add(shared, "https://example.org/", key))[0] == 404

    with running_site() as site:
        site.pages = {"/": html("Apples are red.")}
        assert await add(own, site.url, key) == (201, "")
        assert await add(shared, site.url, await new_key(desk.house, ADMIN)) == (201, "")
        runner = parts.source_runner()
        assert await runner.run_due()
        assert await runner.run_due()
        assert [asked for asked, _ in site.asked if asked == "/"] == ["/"]  # for the administrator alone
    listed = (await client.get("/api/v1/sources", headers={"X-API-Key": key})).json()["items"]
    assert [(one["status"], one["report"]) for one in listed] == [("failed", None)]
    assert "127.0.0.1" in listed[0]["error"]
    assert [text.strip() for text in desk.stored().values()] == ["Apples are red."]


async def test_the_address_of_a_source_that_fails_is_not_logged(
    desk: Desk, service: tuple[httpx.AsyncClient, Components]
) -> None:
    """An address may have a token."""
    client, parts = service
    key = await new_key(desk.house, ADMIN)
    with running_site() as site:
        body = {"target": f"{site.url}/page?token=s3cr3t"}
        added = await client.post(f"/api/v1/corpora/{desk.corpus.id}/sources", json=body, headers={"X-API-Key": key})
        assert added.status_code == 201
        with capture_logs() as lines:
            assert await parts.source_runner().run_due()
    (failed,) = [line for line in lines if line["event"] == "source_failed"]
    assert failed["code"] == "source_unavailable"
    assert "s3cr3t" not in repr(lines)


async def test_one_run_at_a_time_and_a_dead_worker_is_followed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write(a="Apples are red.")
    async with desk.house.database.transaction(ADMIN) as connection:
        source = await add_source(
            connection, ADMIN, corpus_id=desk.corpus.id, target=str(desk.folder), depth=0, every_seconds=900
        )
        other = await add_source(
            connection, ADMIN, corpus_id=desk.corpus.id, target=str(desk.folder.parent), depth=0, every_seconds=86_400
        )
    runner = _runner(desk)

    async def claim(lease: timedelta) -> UUID | None:
        async with desk.house.database.transaction(None) as connection:
            claimed = await claim_source(connection, lease=lease)
        return None if claimed is None else claimed.id

    assert await claim(LEASE) == source.id
    assert await claim(LEASE) is None  # neither this one, nor another one of the same user
    with pytest.raises(ConflictError):
        await runner.run_now(source.id)
    with desk.house.owner() as owner:  # the worker is dead, and its claim runs out
        owner.execute("UPDATE rag.sources SET leased_until = now() - interval '1 second'")
        owner.execute("UPDATE rag.sources SET next_run_at = now() + interval '1 day' WHERE id = %s", [other.id])
    async with desk.house.database.transaction(None) as earlier:
        await earlier.execute("SELECT now()")
        assert await runner.run_due()
        assert await claim_source(earlier, lease=LEASE) is None  # this run was another worker's a moment ago
    assert sorted(desk.stored()) == ["a.txt"]

    assert not await runner.run_due()
    with desk.house.owner() as owner:  # stamps of a clock that was two days ahead and was set back
        owner.execute(
            "UPDATE rag.sources SET leased_until = now() + interval '2 days', next_run_at = now() + interval '3 days'"
            " WHERE id = %s",
            [source.id],
        )
    assert await runner.run_due()

    with monkeypatch.context() as patch:
        cut_off = await _started(runner, source.id, patch)
        cut_off.cancel()
        await asyncio.wait({cut_off})
    assert (await runner.run_now(source.id)).unchanged == 1  # it did not have to wait

    gone = await _started(runner, source.id, monkeypatch)
    async with desk.house.database.transaction(ADMIN) as connection:
        assert (await read_source(connection, source.id)).status == "running"
    async with desk.house.database.transaction(ADMIN) as connection:
        await delete_corpus(connection, desk.corpus.id)
    with pytest.raises(ConflictError, match="was removed"):
        await asyncio.wait_for(gone, 60)
    with desk.house.owner() as owner:
        assert owner.execute("SELECT count(*) FROM rag.sources").fetchone() == (0,)


async def test_sites_that_hang_hold_no_place_and_no_connection(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifteen accounts whose sites never answer, and a pool of four connections."""
    listed: asyncio.Queue[str] = asyncio.Queue()

    async def look(self: WebSource, *_: object) -> Listing:
        listed.put_nowait(self.target)
        if "hangs" in self.target:
            await asyncio.Event().wait()
        return Listing()

    monkeypatch.setattr(WebSource, "list", look)
    monkeypatch.setattr(scheduled, "_SLOW_SECONDS", 0.05)
    monkeypatch.setattr(scheduled, "_POLL_SECONDS", 0.05)

    async def add(name: str) -> None:
        user = await desk.house.user(name)
        corpus = await desk.house.corpus(user)
        async with desk.house.database.transaction(user) as connection:
            target = f"https://{name}.example/"
            await add_source(connection, user, corpus_id=corpus.id, target=target, depth=0, every_seconds=86_400)

    for number in range(15):
        await add(f"hangs{number}")
    running = asyncio.create_task(_runner(desk).run())
    try:
        async with asyncio.timeout(120):
            for _ in range(15):
                assert "hangs" in await listed.get()
            await add("answers")
            assert await listed.get() == "https://answers.example/"
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_a_source_removed_with_its_documents_while_its_site_is_read_stores_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write(a="Apples are red.")
    async with desk.house.database.transaction(ADMIN) as connection:
        source = await add_source(
            connection, ADMIN, corpus_id=desk.corpus.id, target=str(desk.folder), depth=0, every_seconds=900
        )
    found = await FolderSource(desk.folder).list({}, desk.folder)

    async def remove_meanwhile(*_: object) -> Listing:
        async with desk.house.database.transaction(ADMIN) as connection:
            await remove_source(connection, source.id, documents=True)
        return found

    monkeypatch.setattr(FolderSource, "list", remove_meanwhile)
    with pytest.raises(ConflictError, match="was removed"):
        await _runner(desk).run_now(source.id)
    assert desk.stored() == {}


def _runner(desk: Desk) -> SourceRunner:
    return SourceRunner(
        Settings(**{"job_stalled_seconds": 2.0}), desk.house.database, desk.house.ingestor(), load_indices()
    )


async def _started(runner: SourceRunner, source_id: UUID, patch: pytest.MonkeyPatch) -> asyncio.Task[SyncReport]:
    """A run that has begun, and does not end."""
    listing = asyncio.Event()

    async def never(*_: object) -> None:
        listing.set()
        await asyncio.Event().wait()

    patch.setattr(FolderSource, "list", never)
    task = asyncio.create_task(runner.run_now(source_id))
    await asyncio.wait_for(listing.wait(), 60)
    return task


def test_the_command_line_adds_runs_lists_and_removes(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    environment = {"RAG_DATABASE_URL": database_server.service_conninfo}
    (tmp_path / "loans.md").write_text("The maximum loan is 50,000 dollars.")

    def run(*arguments: str) -> str:
        outcome = CliRunner().invoke(main, ["sources", *arguments], env=environment)
        assert outcome.exit_code == 0, outcome.output
        return outcome.output

    added = run("add", str(tmp_path), "--corpus", "loans", "--every", "week")
    source_id = re.split(":", added)[0]
    assert "synced into loans every week" in added
    assert "never" in run("list")
    assert "1 added, 0 unchanged" in run("run", source_id)
    assert "1 added" in run("list")
    run("remove", source_id, "--with-documents")
    assert source_id not in run("list")


async def test_the_database_takes_no_source_in_the_name_of_another_user(desk: Desk) -> None:
    """It would be synced with the rights of an administrator."""
    ana = await desk.house.user("ana")
    own = await desk.house.corpus(ana)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with desk.house.database.transaction(ana) as connection:
            await connection.execute(
                "INSERT INTO sources (corpus_id, user_id, target, every_seconds) VALUES (%s, %s, '/etc', 900)",
                [own.id, ADMIN.user_id],
            )
