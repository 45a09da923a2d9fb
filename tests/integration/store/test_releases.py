"""What earlier releases stored is read by this one: their databases, brought up to date, and their exported corpora."""

from __future__ import annotations

import asyncio
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service import open_service
from rag_service.client.service import Service
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.migrate import migrate
from tests.releases.keep import ANSWERS, FILES, FOLDER, QUOTING, program

pytestmark = pytest.mark.slow  # the packaged model answers

RELEASES = sorted(path.stem for path in FOLDER.glob("*.dump"))


@pytest.fixture(params=RELEASES)
def restored(request: pytest.FixtureRequest, postgres: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """The database of a release, as `pg_restore` brings it back."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(make_conninfo(postgres.owner_conninfo, dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(name)))
        server = EmbeddedServer(
            owner_conninfo=make_conninfo(postgres.owner_conninfo, dbname=name),
            service_conninfo=make_conninfo(postgres.service_conninfo, dbname=name),
        )
        file = FOLDER / f"{request.param}.dump"
        subprocess.run(
            [program("pg_restore"), "--exit-on-error", f"--dbname={server.owner_conninfo}", file], check=True
        )
        try:
            yield server
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def assert_answers(service: Service) -> None:
    for question, said in ANSWERS.items():
        answer = service.ask(question)
        assert said in answer.text, answer.text
        assert answer.citations[0].status == "verified"


def test_a_database_is_brought_up_to_date_with_all_that_it_holds(restored: EmbeddedServer, tmp_path: Path) -> None:
    assert [
        asyncio.run(migrate(restored.owner_conninfo, restored.service_conninfo, dimension=384)) for _ in range(2)
    ] == [True, False]
    with open_service(database_url=restored.service_conninfo, data_dir=tmp_path, **QUOTING) as service:
        assert_answers(service)
    with psycopg.connect(restored.owner_conninfo) as connection:
        kept = connection.execute("SELECT count(*) FROM rag.messages WHERE role = 'user'").fetchone()
        assert kept == (len(ANSWERS),)
        unknown = connection.execute("SELECT count(*) FROM rag.messages WHERE corpora IS NULL").fetchone()
        assert unknown == (0,), "conversations of before cannot be shared"


@pytest.mark.parametrize("release", RELEASES)
def test_an_exported_corpus_is_imported_with_its_originals(release: str, tmp_path: Path) -> None:
    with open_service(data_dir=tmp_path, database_url=None, **QUOTING) as service:
        report = service.import_corpus(FOLDER / f"{release}.tar")
        assert_answers(service)
        assert report.body.documents == len(FILES)


def test_there_is_a_release() -> None:
    assert RELEASES
