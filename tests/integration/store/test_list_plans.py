"""A page of a long list costs what a page costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg

from rag_service.store.database import Database
from rag_service.store.documents.catalogue import list_documents, list_tags
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.rows import Slice
from tests.integration.store.texts import ADMIN, make_corpus
from tests.statements import Statement, WatchedDatabase

DOCUMENTS = 3_000


def fill(owner_conninfo: str, corpus_id: UUID) -> None:
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute(
            "WITH made AS ("
            " INSERT INTO rag.documents (corpus_id, name, title, content_hash, fingerprint, created_at)"
            " SELECT %(corpus)s, 'document ' || number, '', 'hash', 'print', now() - number * interval '1 minute'"
            " FROM generate_series(1, %(count)s) number RETURNING id)"
            " INSERT INTO rag.uploads (document_id, corpus_id, user_id, content_hash, file_name, size_bytes, status)"
            " SELECT id, %(corpus)s, %(user)s, 'hash', 'a.txt', 1, 'indexed' FROM made",
            {"corpus": corpus_id, "count": DOCUMENTS, "user": ADMIN.user_id},
        )
        connection.execute("VACUUM ANALYZE rag.documents, rag.uploads")


async def rows_read(database: Database, statements: Sequence[Statement]) -> dict[str, int]:
    """Table → rows that its scans looked at, over all statements."""
    read: dict[str, int] = {}
    async with database.transaction(ADMIN) as connection:
        for statement in statements:
            cursor = await connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.query}", statement.parameters)
            row = await cursor.fetchone()
            assert row is not None
            for node in nodes(row[0][0]["Plan"]):
                table = node.get("Relation Name")
                if table is not None:
                    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                    read[table] = read.get(table, 0) + round(rows * node["Actual Loops"])
    return read


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


async def test_a_page_of_documents_is_read_without_the_others(
    database: Database, database_server: EmbeddedServer
) -> None:
    corpus = await make_corpus(database)
    fill(database_server.owner_conninfo, corpus)
    watched = WatchedDatabase(database)
    async with watched.transaction(ADMIN) as connection:
        page = await list_documents(connection, corpus, Slice(offset=20, limit=30))
    assert page.total == DOCUMENTS
    assert [document.name for document in page.items] == [f"document {number}" for number in range(21, 51)]
    count, rows = watched.seen
    assert "uploads" not in await rows_read(database, [count])
    read = await rows_read(database, [rows])
    assert 30 <= read["documents"] <= 50
    assert 30 <= read["uploads"] <= 50


async def test_tags_are_listed_without_documents_that_have_none(
    database: Database, database_server: EmbeddedServer
) -> None:
    corpus = await make_corpus(database)
    fill(database_server.owner_conninfo, corpus)
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as connection:
        connection.execute("UPDATE rag.documents SET tags = '{herd}', chunk_count = 1 WHERE name LIKE '%99'")
        connection.execute("VACUUM ANALYZE rag.documents")
    watched = WatchedDatabase(database)
    async with watched.transaction(ADMIN) as connection:
        (tag,) = (await list_tags(connection, Slice())).items
    assert (tag.name, tag.documents) == ("herd", DOCUMENTS / 100)
    assert (await rows_read(database, watched.seen))["documents"] == 2 * tag.documents  # counted, and read
