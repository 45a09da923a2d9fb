"""Which roles the service works as."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service.errors import UnsafeRoleError
from rag_service.store.embedded import SERVICE_ROLE, EmbeddedServer
from rag_service.store.session import Database
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
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN BYPASSRLS").format(role))
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA rag TO {}").format(role))
    database = Database(
        make_conninfo(database_server.owner_conninfo, user="tests_bypassing_role"), pool_size=1, timeout=5
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
