"""Which roles the service works as."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service.errors import SearchTimeoutError, StoreError, UnsafeRoleError
from rag_service.store.database import SETTINGS, Database
from rag_service.store.embedded import SERVICE_ROLE, EmbeddedServer
from tests.integration.store.texts import ADMIN


async def test_owner_of_the_tables_is_refused_before_the_first_statement(database_server: EmbeddedServer) -> None:
    """A service that started before its database has not checked the role; the first transaction does."""
    database = Database(database_server.owner_conninfo, pool_size=1, timeout=5)
    await database.open()
    try:
        with pytest.raises(UnsafeRoleError):
            async with database.transaction(ADMIN):
                pytest.fail("a transaction was given to a role that sees everything")
        with pytest.raises(UnsafeRoleError):
            await database.check()
    finally:
        await database.close()


async def test_role_that_may_bypass_row_level_security_is_refused(database_server: EmbeddedServer) -> None:
    role = sql.Identifier("tests_bypassing_role")
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN BYPASSRLS PASSWORD 'of this test'").format(role))
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA rag TO {}").format(role))
    database = Database(
        make_conninfo(database_server.owner_conninfo, user="tests_bypassing_role", password="of this test"),
        pool_size=1,
        timeout=5,
    )
    await database.open()
    try:
        with pytest.raises(UnsafeRoleError, match="may bypass row-level security"):
            async with database.transaction(ADMIN):
                pytest.fail("a transaction was given to a role that sees everything")
    finally:
        await database.close()
        with psycopg.connect(database_server.owner_conninfo, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
            connection.execute(sql.SQL("DROP ROLE {}").format(role))


async def test_role_of_the_migrations_passes(database: Database) -> None:
    await database.check()
    async with database.transaction(ADMIN) as connection:
        cursor = await connection.execute("SELECT current_user")
        assert await cursor.fetchone() == (SERVICE_ROLE,)


async def test_a_transaction_in_which_nothing_happens_lets_go_of_its_locks(database_server: EmbeddedServer) -> None:
    """A frozen process holds no lock for longer than it may be silent."""
    frozen = Database(database_server.service_conninfo, pool_size=1, timeout=5, idle_timeout=1.0)
    other = Database(database_server.service_conninfo, pool_size=1, timeout=5)
    await frozen.open()
    await other.open()
    try:
        with pytest.raises(StoreError):
            async with frozen.transaction(ADMIN) as connection:
                await connection.execute("SELECT pg_advisory_xact_lock(1)")
                async with asyncio.timeout(20), other.transaction(ADMIN) as waiting:
                    await waiting.execute("SELECT pg_advisory_xact_lock(1)")
                await connection.execute("SELECT 1")
        async with frozen.transaction(ADMIN) as connection:
            await connection.execute("SELECT 1")
    finally:
        await frozen.close()
        await other.close()


async def test_only_limited_transactions_end_statements_that_take_long(database_server: EmbeddedServer) -> None:
    database = Database(database_server.service_conninfo, pool_size=1, timeout=5, search_timeout=0.1)
    await database.open()
    try:
        with pytest.raises(SearchTimeoutError):
            async with database.transaction(ADMIN, limited=True) as connection:
                await connection.execute("SELECT pg_sleep(60)")
        async with database.transaction(ADMIN) as connection:  # the same connection
            await connection.execute("SELECT pg_sleep(0.15)")
    finally:
        await database.close()


async def test_every_connection_searches_with_the_settings_of_this_module(database: Database) -> None:
    """pgvector looks at its settings when a vector is first touched; a name that it does not know has no effect."""
    async with database.transaction(None) as connection:
        await connection.execute("SELECT '[1,2]'::halfvec <=> '[1,3]'::halfvec")
        cursor = await connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(SETTINGS)]
        )
        shown = dict(await cursor.fetchall())
    assert shown.pop("search_path").replace(" ", "") == SETTINGS["search_path"]
    assert shown == {name: value for name, value in SETTINGS.items() if name != "search_path"}
