"""Connections and identity: every transaction says whose it is, and PostgreSQL does the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from rag_service.domain import Identity
from rag_service.errors import StoreError, UnsafeRoleError
from rag_service.store.migrate import LATEST
from rag_service.store.parameters import our_adapters

Connection = AsyncConnection[tuple]  # type: ignore[type-arg]  # rows are plain tuples
_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")


# Of every connection, given at its start: as statements of each search they would cost a round trip.
SETTINGS = {
    "search_path": "rag,public",
    "jit": "off",  # compiling a search's plan takes longer than running it
    "enable_seqscan": "off",  # a scope of a third of the table would be read by passing over the whole of it
    # An HNSW search goes on until its list is full in spite of the filters, and looks at enough neighbours.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "200",
    "hnsw.max_scan_tuples": "200000",
}


class Database:
    """A pool of connections as the unprivileged role."""

    def __init__(self, conninfo: str, *, pool_size: int, timeout: float, idle_timeout: float = 60.0):
        """Nothing is opened here; `open()` does it.

        Args:
            conninfo: connection string of the unprivileged role.
            pool_size: most connections held.
            timeout: seconds to wait for a connection before StoreError.
            idle_timeout: seconds after which the server ends a transaction in which nothing happens: a
                process that was frozen (a paused virtual machine, swapping) must not keep its locks.
        """
        settings = {**SETTINGS, "idle_in_transaction_session_timeout": str(int(idle_timeout * 1000))}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            conninfo,
            min_size=1,
            max_size=pool_size,
            timeout=timeout,
            open=False,
            # The pool's own attempts to connect grow further and further apart, to minutes. Once they are given
            # up, a request makes one at once: the server is found again when somebody wants it.
            reconnect_timeout=timeout,
            kwargs={
                "options": options,
                "connect_timeout": max(1, int(timeout)),
                "context": our_adapters(),
                "autocommit": True,  # `_begin` begins what the pool commits
            },
        )
        self._role_is_safe = False  # until the server was asked; it may not have been there at the start

    async def open(self) -> None:
        """Open the pool without waiting for the server: a service that starts before its database recovers."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def transaction(self, identity: Identity | None) -> AsyncIterator[Connection]:
        """A transaction as an identity; None sees no rows of anybody.

        Raises:
            StoreError: the database cannot be reached, or fails on the way.
            UnsafeRoleError: row-level security would not hold for this role.
        """
        user_id = "" if identity is None else str(identity.user_id)
        try:
            # Connections that died while they lay idle (server restart, fail-over) show it at the first
            # statement, when nothing is lost by taking another. Asking each before would be a round trip more.
            for attempt in range(self._pool.max_size + 1):
                connection, begun = None, False
                try:
                    async with self._pool.connection() as connection:
                        await _begin(connection, user_id)
                        if not self._role_is_safe:
                            await _check_role(connection)
                            self._role_is_safe = True
                        begun = True
                        yield connection
                    return
                except psycopg.OperationalError:
                    if begun or connection is None or not connection.broken or attempt == self._pool.max_size:
                        raise
        except (PoolTimeout, PoolClosed, TooManyRequests) as error:
            raise StoreError("The database cannot be reached.", retry_after=5) from error
        except (
            psycopg.OperationalError,
            psycopg.InterfaceError,
            psycopg.errors.IdleInTransactionSessionTimeout,
        ) as error:
            raise StoreError("The database failed during the request.", retry_after=5) from error

    async def check(self) -> None:
        """Make sure that the schema is current and that row-level security holds for this role.

        Raises:
            StoreError: unreachable, or not migrated to the revision that this code needs.
            UnsafeRoleError: the role is a superuser, may bypass row-level security, or owns a table.
        """
        async with self.transaction(None) as connection:
            await _check_role(connection)
            await _check_revision(connection)


async def meanwhile(statement: Coroutine[Any, Any, _Answer], work: Callable[[], _Result]) -> tuple[_Answer, _Result]:
    """What a statement gives, and what `work` returns, which takes the processor while the database is at it.

    Whatever happens, the statement has ended before this does: nobody else is given its connection until then.
    """
    asked = asyncio.ensure_future(statement)
    try:
        await asyncio.sleep(0)  # the statement is sent
        result = work()
    except BaseException:
        asked.cancel()
        await asyncio.wait({asked})
        raise
    return await asked, result


async def _begin(connection: Connection, user_id: str) -> None:
    """Begin a transaction as a user, in one round trip; the pool commits it, or rolls it back after an error."""
    # Two statements at once go without bound parameters: psycopg quotes the value, which is a UUID's text or empty.
    # SET LOCAL is set_config(..., true) in three quarters of the time, for it needs no plan.
    await AsyncClientCursor(connection).execute("BEGIN; SET LOCAL rag.user_id = %s", [user_id])


async def _check_role(connection: Connection) -> None:
    cursor = await connection.execute(
        """SELECT r.rolname, r.rolsuper, r.rolbypassrls,
                  EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                          WHERE n.nspname = 'rag' AND c.relkind = 'r'
                            AND pg_has_role(r.oid, c.relowner, 'MEMBER'))
           FROM pg_roles r WHERE r.rolname = current_user"""
    )
    row = await cursor.fetchone()
    if row is None:
        raise UnsafeRoleError("The database role cannot be inspected.")
    name, is_superuser, bypasses, owns = row
    if is_superuser or bypasses or owns:
        why = "is a superuser" if is_superuser else "may bypass row-level security" if bypasses else ""
        raise UnsafeRoleError(
            f"The database role {name!r} {why or 'owns the tables'}: isolation between users would not hold.",
            field="RAG_DATABASE_URL",
        )


async def _check_revision(connection: Connection) -> None:
    cursor = await connection.execute("SELECT to_regclass('public.schema_version') IS NOT NULL")
    row = await cursor.fetchone()
    revision = None
    if row is not None and row[0]:
        cursor = await connection.execute("SELECT version_num FROM public.schema_version")
        found = await cursor.fetchone()
        revision = None if found is None else found[0]
    if revision != LATEST:
        raise StoreError(
            f"The database is at schema {revision or 'none'}, this version needs {LATEST}: run `rag-service migrate`."
        )
