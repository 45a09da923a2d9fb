"""Databases of earlier releases are brought up to date with what they hold."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service.errors import NoSpaceError
from rag_service.store import migrate
from rag_service.store.embedded import SERVICE_ROLE, EmbeddedServer
from rag_service.store.search.postings import unpack

FULL_AFTER_A_FEW_TABLES = """
CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = '53100'; END $$;
CREATE EVENT TRIGGER full_disk ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION public.refuse();
"""
CORPUS, DOCUMENT = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.fixture
def before_packing(postgres: EmbeddedServer) -> Iterator[psycopg.Connection]:
    """The owner's connection to a database at revision 0004 with a document of 450 chunks."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(make_conninfo(postgres.owner_conninfo, dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(name)))
        owner = make_conninfo(postgres.owner_conninfo, dbname=name)
        try:
            with psycopg.connect(owner, autocommit=True) as connection:
                migrate._upgrade(connection, SERVICE_ROLE, 3, revision="0004")
                connection.execute(
                    "INSERT INTO rag.corpora (id, name, kind, index_name) VALUES (%s, 'c', 'global', 'general')",
                    [CORPUS],
                )
                connection.execute(
                    "INSERT INTO rag.documents (id, corpus_id, name, title, content_hash, fingerprint)"
                    " VALUES (%s, %s, 'd', 'd', '', '')",
                    [DOCUMENT, CORPUS],
                )
                connection.execute(
                    "INSERT INTO rag.postings (corpus_id, term, document_id, chunk_ids, frequencies, lengths)"
                    " SELECT %s, 'often', %s, array_agg(n), array_agg(n::smallint), array_agg(n::int * 200)"
                    " FROM generate_series(1, 450) n UNION ALL SELECT %s, 'once', %s, '{7}', '{2}', '{30}'",
                    [CORPUS, DOCUMENT, CORPUS, DOCUMENT],
                )
                yield connection
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_postings_are_packed_without_loss(before_packing: psycopg.Connection) -> None:
    connection = before_packing
    migrate._upgrade(connection, SERVICE_ROLE, 3, current="0004")

    stored = connection.execute("SELECT term, entries FROM rag.postings ORDER BY term, entries").fetchall()
    assert [term for term, _ in stored] == ["often", "often", "often", "once"]
    *often, once = [unpack(entries) for _, entries in stored]
    assert (once.ids.tolist(), once.frequencies.tolist(), once.lengths.tolist()) == ([7], [2], [30])
    assert [len(part.ids) for part in often] == [200, 200, 50]
    ids = [int(chunk_id) for part in often for chunk_id in part.ids]
    assert ids == list(range(1, 451))
    assert [int(value) for part in often for value in part.frequencies] == [min(n, 255) for n in ids]
    assert [int(value) for part in often for value in part.lengths] == [min(n * 200, 65_535) for n in ids]
    statistics = "SELECT term, chunk_frequency FROM rag.term_statistics ORDER BY term"
    assert connection.execute(statistics).fetchall() == [("often", 450), ("once", 1)]

    connection.execute("DELETE FROM rag.documents WHERE id = %s", [DOCUMENT])
    assert connection.execute("SELECT count(*) FROM rag.postings").fetchone() == (0,)
    assert connection.execute(statistics).fetchall() == []


async def test_a_disk_that_fills_during_a_migration_leaves_the_database_as_it_was(
    before_packing: psycopg.Connection,
) -> None:
    connection = before_packing
    conninfo = make_conninfo(connection.info.dsn, dbname=connection.info.dbname)
    connection.execute(FULL_AFTER_A_FEW_TABLES)
    with pytest.raises(NoSpaceError):
        await migrate.migrate(conninfo, conninfo, dimension=3)
    assert connection.execute("SELECT version_num FROM public.schema_version").fetchone() == ("0004",)
    assert connection.execute("SELECT count(*) FROM rag.postings").fetchone() == (2,)
    connection.execute("DROP EVENT TRIGGER full_disk")
    assert await migrate.migrate(conninfo, conninfo, dimension=3)
    assert connection.execute("SELECT count(*) FROM rag.postings").fetchone() == (4,)


def test_the_newest_migration_is_the_latest_revision() -> None:
    files = sorted((Path(migrate.__file__).parent / "migrations").iterdir())
    assert files[-1].name.startswith(f"{migrate.LATEST}_")
