"""A page of a long list costs what a page costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg

from rag_service.domain import Identity, Role
from rag_service.store.accounts.conversations import list_shared, read_conversation
from rag_service.store.accounts.users import create_user
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


SHARED, SHARERS, CORPORA = 5_000, 50, 40


def share(owner_conninfo: str) -> None:
    """Conversations of many users, with answers of three citations; half of the corpora are not for everybody."""
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # no trigger: the answers have no records
        connection.execute(
            "INSERT INTO rag.users (name, role) SELECT 'sharer ' || n, 'user' FROM generate_series(1, %s) n", [SHARERS]
        )
        connection.execute(
            "INSERT INTO rag.corpora (name, kind, index_name, shared)"
            " SELECT 'shared ' || n, 'global', 'general', n <= %s FROM generate_series(1, %s) n",
            [CORPORA // 2, CORPORA],
        )
        connection.execute(
            "WITH people AS (SELECT array_agg(id) AS ids FROM rag.users WHERE name LIKE 'sharer %%'),"
            " shelves AS (SELECT array_agg(id ORDER BY shared DESC) AS ids FROM rag.corpora WHERE kind = 'global'),"
            " made AS (INSERT INTO rag.conversations (user_id, title, shared_at, updated_at)"
            "  SELECT people.ids[1 + n %% %(people)s], 'conversation ' || n, now(), now() - n * interval '1 minute'"
            "  FROM people, generate_series(1, %(count)s) n RETURNING id, user_id, substr(title, 14)::int AS n)"
            " INSERT INTO rag.messages (conversation_id, user_id, role, content, citations, corpora)"
            ' SELECT id, user_id, role, \'text\', \'[{"number": 1}, {"number": 2}, {"number": 3}]\','
            "  CASE WHEN role = 'user' THEN '{}' ELSE"
            "   ARRAY(SELECT shelves.ids[1 + (n * 7 + k * (n %% 3)) %% %(corpora)s] FROM generate_series(0, 2) k) END"
            " FROM made, shelves, unnest(ARRAY['user', 'assistant', 'user', 'assistant']) role",
            {"people": SHARERS, "count": SHARED, "corpora": CORPORA},
        )
        connection.execute("UPDATE rag.conversations c SET corpora = rag.corpora_of_messages(c.id)")
        connection.execute("VACUUM ANALYZE rag.conversations, rag.messages, rag.users, rag.corpora")


async def test_shared_conversations_are_listed_in_one_go_however_many_there_are(
    database: Database, database_server: EmbeddedServer
) -> None:
    share(database_server.owner_conninfo)
    async with database.transaction(ADMIN) as connection:
        reader = await create_user(connection, name="reader", role=Role.USER)
    identity = Identity(user_id=reader.id, role=Role.USER)
    watched = WatchedDatabase(database)
    async with watched.transaction(identity) as connection:
        page = await list_shared(connection, Slice(offset=0, limit=30))
    async with watched.transaction(identity) as connection:
        await read_conversation(connection, page.items[0].id, or_shared=True)
    assert 0 < page.total < SHARED
    assert len(watched.seen) == 5, "each says what it sees; the list is counted and read, the conversation read"
    assert await pages_touched(database, identity, watched.seen) < SHARED / 4


async def pages_touched(database: Database, identity: Identity, statements: Sequence[Statement]) -> int:
    """Pages of tables and indexes that the statements look at, also in functions, one after the other."""
    touched = 0
    async with database.transaction(identity) as connection:
        for statement in statements:
            if "set_config" in statement.query:
                await connection.execute(statement.query, statement.parameters)
                continue
            explained = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.query}"
            row = await (await connection.execute(explained, statement.parameters)).fetchone()
            assert row is not None
            touched += row[0][0]["Plan"]["Shared Hit Blocks"] + row[0][0]["Plan"]["Shared Read Blocks"]
    return touched


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
