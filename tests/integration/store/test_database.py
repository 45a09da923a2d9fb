"""Which roles the service works as."""

from __future__ import annotations

import asyncio
import time
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service.domain import Identity, Role
from rag_service.errors import AuthenticationError, NotFoundError, SearchTimeoutError, StoreError, UnsafeRoleError
from rag_service.store.accounts.answers import store_answer
from rag_service.store.accounts.users import create_user
from rag_service.store.database import SETTINGS, Connection, Database
from rag_service.store.embedded import SERVICE_ROLE, EmbeddedServer
from rag_service.store.patience import one_patience
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
                async with asyncio.timeout(60), other.transaction(ADMIN) as waiting:
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


async def test_the_transactions_of_a_request_together_wait_no_longer_than_one() -> None:
    database = Database("postgresql://rag@127.0.0.1:9/rag", pool_size=1, timeout=1.0)
    await database.open()

    async def wait() -> float:
        began = time.monotonic()
        with pytest.raises(StoreError):
            async with database.transaction(ADMIN):
                pytest.fail("there is no database")
        return time.monotonic() - began

    try:
        with one_patience():
            first, second, third = await wait(), await wait(), await wait()
        assert first >= 0.9
        assert second + third < first / 2
        assert await wait() >= 0.9  # another request has a patience of its own
    finally:
        await database.close()


async def test_what_belongs_to_a_user_who_was_deleted_meanwhile_is_refused_with_401(
    database: Database, database_server: EmbeddedServer
) -> None:
    async with database.transaction(ADMIN) as connection:
        user = await create_user(connection, name="ana", role=Role.USER)
    ana = Identity(user_id=user.id, role=Role.USER)
    with pytest.raises(AuthenticationError):
        async with database.transaction(ana) as connection:
            with psycopg.connect(
                make_conninfo(database_server.owner_conninfo, dbname=await name_of(connection))
            ) as owner:
                owner.execute("DELETE FROM rag.users WHERE id = %s", [ana.user_id])
            await store_answer(connection, ana, answer_id=uuid4(), record={})


async def test_what_belongs_to_something_deleted_meanwhile_is_not_found(database: Database) -> None:
    with pytest.raises(NotFoundError, match="deleted in the meantime"):
        async with database.transaction(ADMIN):
            raise psycopg.errors.ForeignKeyViolation("such as feedback on an answer that was deleted")


async def name_of(connection: Connection) -> str:
    row = await (await connection.execute("SELECT current_database()")).fetchone()
    assert row is not None
    return str(row[0])
