"""A conversation stores the corpora of all its messages, whoever adds or deletes them, and when."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import psycopg
import pytest

from rag_service.domain import LOCAL_ADMIN
from rag_service.store.embedded import EmbeddedServer
from tests.serving import wait_until

MESSAGE = """INSERT INTO rag.messages (conversation_id, user_id, role, content, answer_id)
    VALUES (%s, %s, 'assistant', 'x', %s)"""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def owner(database_server: EmbeddedServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as connection:
        yield connection


def begin(owner: psycopg.Connection) -> UUID:
    row = owner.execute(
        "INSERT INTO rag.conversations (user_id, title) VALUES (%s, 'x') RETURNING id", [LOCAL_ADMIN.user_id]
    ).fetchone()
    assert row is not None
    return UUID(str(row[0]))


def record(owner: psycopg.Connection, corpus: UUID) -> UUID:
    """The answer to a question about one corpus."""
    answer = uuid4()
    asked = {"request": {"filters": {"corpusIds": [str(corpus)]}}, "files": [], "reasons": []}
    owner.execute(
        "INSERT INTO rag.answers (id, user_id, record) VALUES (%s, %s, %s)",
        [answer, LOCAL_ADMIN.user_id, json.dumps(asked)],
    )
    return answer


def add(connection: psycopg.Connection, conversation: UUID, answer: UUID) -> None:
    connection.execute(MESSAGE, [conversation, LOCAL_ADMIN.user_id, answer])


def stored(owner: psycopg.Connection, conversation: UUID) -> set[UUID]:
    row = owner.execute("SELECT corpora FROM rag.conversations WHERE id = %s", [conversation]).fetchone()
    assert row is not None
    return set(row[0])


@contextmanager
def meanwhile(server: EmbeddedServer, query: str, values: list[object]) -> Iterator[None]:
    """What another connection does while the block's transaction is open; it waits for that."""

    def run() -> None:
        with psycopg.connect(server.owner_conninfo) as other:
            other.execute(query, values)

    thread = threading.Thread(target=run)
    with psycopg.connect(server.owner_conninfo, autocommit=True) as watch:
        thread.start()
        wait_until(lambda: watch.execute(WAITING).fetchone() == (1,))
    yield
    thread.join(60)


def test_of_two_messages_that_are_added_at_once_both_count(
    database_server: EmbeddedServer, owner: psycopg.Connection
) -> None:
    conversation, one, other = begin(owner), uuid4(), uuid4()
    answers = [record(owner, corpus) for corpus in (one, other)]
    with psycopg.connect(database_server.owner_conninfo) as first:
        add(first, conversation, answers[0])
        with meanwhile(database_server, MESSAGE, [conversation, LOCAL_ADMIN.user_id, answers[1]]):
            first.commit()
    assert stored(owner, conversation) == {one, other}


def test_a_message_that_is_deleted_while_another_is_added_no_longer_counts(
    database_server: EmbeddedServer, owner: psycopg.Connection
) -> None:
    conversation, private, public = begin(owner), uuid4(), uuid4()
    add(owner, conversation, record(owner, private))
    with psycopg.connect(database_server.owner_conninfo) as first:
        add(first, conversation, record(owner, public))
        with meanwhile(database_server, "DELETE FROM rag.messages WHERE conversation_id = %s", [conversation]):
            first.commit()
    assert stored(owner, conversation) == {public}


def test_all_messages_that_go_at_once_are_looked_at_once(owner: psycopg.Connection) -> None:
    conversation = begin(owner)
    answer = record(owner, uuid4())
    for _ in range(5):
        add(owner, conversation, answer)
    row = owner.execute(
        "EXPLAIN (ANALYZE, FORMAT JSON) DELETE FROM rag.messages WHERE conversation_id = %s", [conversation]
    ).fetchone()
    assert row is not None
    assert [trigger["Calls"] for trigger in row[0][0]["Triggers"]] == [1]
    assert stored(owner, conversation) == set()
