"""Work done while a statement runs: both results, and a connection that is free again whatever happens."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import psycopg
import pytest

from rag_service.store.database import Connection, Database, meanwhile
from rag_service.store.embedded import EmbeddedServer
from tests.integration.store.texts import ADMIN
from tests.serving import wait_until


async def ask(connection: Connection, statement: str) -> Any:
    cursor = await connection.execute(statement)
    row = await cursor.fetchone()
    return None if row is None else row[0]


async def test_both_results_come_back_and_the_statement_runs_during_the_work(
    database: Database, database_server: EmbeddedServer
) -> None:
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as owner:
        owner.execute("SELECT pg_advisory_lock(1)")

        def work() -> str:
            waiting = (
                "SELECT FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock' AND wait_event = 'advisory'"
            )
            wait_until(lambda: owner.execute(waiting).fetchone() is not None)
            owner.execute("SELECT pg_advisory_unlock(1)")
            return "worked"

        async with database.transaction(ADMIN) as connection:
            await ask(connection, "SELECT 1")
            found = await meanwhile(ask(connection, "SELECT 42 FROM pg_advisory_xact_lock(1)"), work)
    assert found == (42, "worked")


async def test_work_that_fails_leaves_the_connection_free(database: Database) -> None:
    def fail() -> None:
        raise KeyError("work")

    with pytest.raises(KeyError):
        async with database.transaction(ADMIN) as connection:
            await meanwhile(ask(connection, "SELECT pg_sleep(300)"), fail)
    async with database.transaction(ADMIN) as connection:
        assert await ask(connection, "SELECT 7") == 7


async def test_a_search_that_is_cancelled_meanwhile_ends_its_statement(database: Database) -> None:
    async def search() -> None:
        async with database.transaction(ADMIN) as connection:
            await meanwhile(ask(connection, "SELECT pg_sleep(290)"), lambda: None)

    async def running() -> int:
        async with database.transaction(ADMIN) as connection:
            return await ask(
                connection,
                """SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(290)' AND state = 'active'
                   AND datname = current_database()""",
            )

    task = asyncio.ensure_future(search())
    for _ in range(1200):  # a request to cancel that comes before its statement is without effect
        if await running():
            break
        await asyncio.sleep(0.05)
    task.cancel()
    started = time.perf_counter()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await running() == 0
    assert time.perf_counter() - started < 60
