"""Connections and identity: every transaction carries its user, and PostgreSQL enforces what that user may see.

Also the conversion of parameters.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from rag_service.domain import Identity
from rag_service.errors import (
    AuthenticationError,
    InputError,
    NoSpaceError,
    NotFoundError,
    SearchTimeoutError,
    StoreError,
    UnreachableError,
    UnsafeRoleError,
)
from rag_service.store.migrate import LATEST
from rag_service.store.patience import waited
from rag_service.store.watchdog import Watchdog, WatchedConnection
from rag_service.turns import Turns

AT_ONCE = datetime.fromtimestamp(0, UTC)  # due whatever the time is


_BIGINT, _BIGINT_ARRAY = 20, 1016  # PostgreSQL's type numbers, the same in every database
_ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])


class HalfVector:
    """A vector as a bound parameter, to be cast in its statement: `%(vector)s::halfvec`.

    As text a vector of 384 numbers costs a quarter of a millisecond, half of it on the server.
    """

    def __init__(self, values: Sequence[float]):
        # What pgvector's halfvec_recv() reads: the dimension, 16 bits of nothing, the numbers; all big-endian.
        self.packed = (
            np.array([len(values), 0], ">i2").tobytes() + np.asarray(values, np.float32).astype(">f2").tobytes()
        )


class BigIntegers:
    """Ids as a bound parameter, a bigint[].

    psycopg inspects each number of a list and sends small ones as smallint[] or integer[]; PostgreSQL then plans the
    same statement again for each of these types.
    """

    def __init__(self, values: Collection[int] | npt.NDArray[np.int64]):
        elements = np.empty(len(values), _ELEMENT)
        elements["size"] = 8
        elements["value"] = np.fromiter(values, np.int64, len(values))
        # What array_recv() reads: one dimension (none when empty), no NULLs, the type, how many, counted from 1.
        head = [1, 0, _BIGINT, len(values), 1] if len(values) else [0, 0, _BIGINT]
        self.packed = np.array(head, ">i4").tobytes() + elements.tobytes()


class _PackedDumper(Dumper):
    format = Format.BINARY
    oid = 0  # an extension's types have other numbers in every database; the cast names them

    def dump(self, obj: HalfVector | BigIntegers) -> bytes:
        return obj.packed


class _BigIntegersDumper(_PackedDumper):
    oid = _BIGINT_ARRAY


def our_adapters() -> AdaptersMap:
    """psycopg's adapters with those above, and JSON read in a fifth of the time."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(HalfVector, _PackedDumper)
    adapters.register_dumper(BigIntegers, _BigIntegersDumper)
    set_json_loads(msgspec.json.decode, context=adapters)
    return adapters


class ConnectionTurns(Turns):
    """Turns at the connections, one user having at most half of them, so that everybody else finds one.

    They are in front of the pool, which gives up a waiting request after RAG_DATABASE_TIMEOUT: under heavy load most
    would fail. Nobody waits longer than `patience` seconds for a server that has answered nobody in that time.
    """

    def __init__(self, *, limit: int, patience: float):
        # A sync holds a connection while its documents are written over another one.
        share = min(limit, max(2, (limit + 1) // 2))
        super().__init__("database", limit=limit, patience=patience, share=share, long=False)
        self._seconds = patience
        self.answered = float("-inf")  # when a transaction last began

    def waits_on(self) -> bool:
        return time.monotonic() - self.answered < self._seconds

    def busy(self, retry_after: int) -> UnreachableError:
        return UnreachableError("The database cannot be reached.", retry_after=5)


Connection = AsyncConnection[tuple]  # type: ignore[type-arg]  # rows are plain tuples
_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")


# Set when a connection starts: as statements of each search they would cost a round trip.
SETTINGS = {
    "search_path": "rag,public",
    "jit": "off",  # compiling a search's plan takes longer than running it
    "enable_seqscan": "off",  # it would scan the whole table for a scope of a third of it
    # An HNSW search continues until its list is full despite the filters, and visits enough neighbours.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "200",
    "hnsw.max_scan_tuples": "200000",
}


class Database:
    """A pool of connections as the unprivileged role."""

    def __init__(
        self,
        conninfo: str,
        *,
        pool_size: int,
        timeout: float,
        patience: float | None = None,
        search_timeout: float = 60.0,
        idle_timeout: float = 60.0,
        share_global: bool = False,
    ):
        """Nothing is opened here; `open()` does it.

        `timeout`: seconds to wait for a connection. `patience`: seconds after which a statement fails if the server
        does not respond; None: `timeout`. `search_timeout`: seconds after which the server ends a statement of a
        `limited` transaction. `idle_timeout`: seconds after which the server ends an idle transaction, so that a frozen
        process does not keep its locks. `share_global`: whether global corpora that are created here can be read by
        every user, unless it is said with them.
        """
        self.conninfo = conninfo
        self._timeout = timeout
        self._limit = f"; SET LOCAL statement_timeout = {max(1, int(search_timeout * 1000))}"
        settings = {**SETTINGS, "idle_in_transaction_session_timeout": str(int(idle_timeout * 1000))}
        settings["rag.share_global"] = "on" if share_global else "off"
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._watchdog = Watchdog(conninfo, patience=patience or timeout)
        self._pool: AsyncConnectionPool[WatchedConnection] = AsyncConnectionPool(
            conninfo,
            connection_class=WatchedConnection,
            configure=self._watch,
            min_size=1,
            max_size=pool_size,
            timeout=timeout,
            open=False,
            # The pool's own attempts to reconnect become minutes apart. Once it has given up, the next request
            # tries at once.
            reconnect_timeout=timeout,
            kwargs={
                "options": options,
                "connect_timeout": max(1, int(timeout)),
                "context": our_adapters(),
                "autocommit": True,  # `transaction` begins what the pool commits
            },
        )
        self.turns = ConnectionTurns(limit=pool_size, patience=timeout)
        self.loop: asyncio.AbstractEventLoop | None = None  # that opened it; the connections belong to this loop
        self._role_is_safe = False  # until the server was asked; it may not have been there at the start

    async def open(self) -> None:
        """Open the pool without waiting for the server: a service that starts before its database recovers."""
        self.loop = asyncio.get_running_loop()
        self._watchdog.start()
        await self._pool.open(wait=False)

    async def close(self) -> None:
        await self._pool.close()
        await self._watchdog.stop()

    async def _watch(self, connection: WatchedConnection) -> None:
        self._watchdog.connections.add(connection)

    @asynccontextmanager
    async def transaction(
        self, identity: Identity | None, *, limited: bool = False, snapshot: bool = False
    ) -> AsyncIterator[Connection]:
        """A transaction as an identity; None sees no rows. `limited`: for searches and lists, to which no statement may
        be a burden for long. `snapshot`: all statements see what there was at the first one, and none may write.

        Raises StoreError if the database cannot be reached or fails, SearchTimeoutError if it is `limited` and a
        statement takes too long, InputError if a value is none that the database can hold, AuthenticationError if the
        user was deleted or deactivated and may write nothing, NotFoundError if a row belongs to what was deleted
        meanwhile, UnsafeRoleError if row-level security would not hold.
        """
        mode = " ISOLATION LEVEL REPEATABLE READ, READ ONLY" if snapshot else ""
        begin = f"BEGIN{mode}; SET LOCAL rag.user_id = %s" + (self._limit if limited else "")
        user_id = "" if identity is None else str(identity.user_id)
        turn = self.turns.take(None if identity is None else identity.user_id)
        async with turn, self._begun(begin, user_id, identity, limited=limited) as connection:
            yield connection

    @asynccontextmanager
    async def _begun(
        self, begin: str, user_id: str, identity: Identity | None, *, limited: bool
    ) -> AsyncIterator[Connection]:
        spent, began = waited.get(), time.monotonic()
        left = self._timeout - (spent or {}).get(self, 0.0)
        if left <= 0:
            raise UnreachableError("The database cannot be reached.", retry_after=5)
        try:
            # Connections that died while they lay idle (server restart, fail-over) show it at the first
            # statement, when nothing is lost by taking another. Asking each before would be a round trip more.
            for attempt in range(self._pool.max_size + 1):
                connection, begun = None, False
                try:
                    async with self._pool.connection(timeout=left) as connection:
                        # Begun as a user in one round trip; the pool commits, or rolls back after an error. Two
                        # statements at once go without bound parameters: psycopg quotes the value, which is a UUID's
                        # text or empty. SET LOCAL is set_config(..., true) in three quarters of the time, for it
                        # needs no plan.
                        cursor = AsyncClientCursor(connection)
                        await cursor.execute(begin, [user_id])
                        if not self._role_is_safe:
                            await _check_role(connection)
                            self._role_is_safe = True
                        begun = True
                        self.turns.answered = time.monotonic()
                        yield connection
                    return
                except psycopg.OperationalError:
                    last = attempt == self._pool.max_size
                    if begun or last or connection is None or connection.given_up or not connection.broken:
                        raise
        except (psycopg.DataError, UnicodeEncodeError) as error:
            if isinstance(error, psycopg.DataError) and error.sqlstate is not None:  # a statement of ours is wrong
                raise
            raise InputError("A text has a character that cannot be stored, such as NUL.") from error
        except psycopg.errors.InsufficientPrivilege as error:
            if identity is None or await self._is_active(identity):  # a GRANT is missing, or a statement is wrong
                raise
            raise AuthenticationError("The user has been deleted or deactivated.") from error
        except psycopg.errors.ForeignKeyViolation as error:
            # What a row belongs to was deleted since it was looked at: its user, an answer, a conversation.
            if identity is not None and not await self._is_active(identity):
                raise AuthenticationError("The user has been deleted or deactivated.") from error
            raise NotFoundError("What this belongs to has been deleted in the meantime.") from error
        except (PoolTimeout, PoolClosed, TooManyRequests) as error:
            if spent is not None:
                spent[self] = spent.get(self, 0.0) + time.monotonic() - began
            raise UnreachableError("The database cannot be reached.", retry_after=5) from error
        except (
            psycopg.OperationalError,
            psycopg.InterfaceError,
            psycopg.errors.IdleInTransactionSessionTimeout,
        ) as error:
            if limited and isinstance(error, psycopg.errors.QueryCanceled):
                raise SearchTimeoutError("The search took too long and was stopped.") from error
            if spent is not None and connection is not None and connection.given_up:
                spent[self] = self._timeout
            failure = StoreError("The database failed during the request.", retry_after=5)
            raise NoSpaceError.of(error) or failure from error

    async def _is_active(self, identity: Identity) -> bool:
        async with self.transaction(None) as connection:
            cursor = await connection.execute("SELECT FROM rag.identify_user(%s)", [identity.user_id])
            return await cursor.fetchone() is not None

    async def check(self) -> None:
        """Make sure that the schema is current and that row-level security holds for this role.

        Raises StoreError if it is unreachable or not migrated to the revision that this code needs, UnsafeRoleError if
        the role is a superuser, may bypass row-level security, or owns a table.
        """
        async with self.transaction(None) as connection:
            await _check_role(connection)
            await _check_revision(connection)


async def meanwhile(statement: Coroutine[Any, Any, _Answer], work: Callable[[], _Result]) -> tuple[_Answer, _Result]:
    """The results of a statement and of `work`, which runs while the database executes the statement.

    The statement has always ended before this returns or raises, so that its connection is free again.
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
            f"The database role {name!r} {why or 'owns the tables'}: users would not be isolated from each other.",
            field="RAG_DATABASE_URL",
        )


async def _check_revision(connection: Connection) -> None:
    revision = None
    with suppress(psycopg.errors.UndefinedTable):
        cursor = await connection.execute("SELECT version_num FROM public.schema_version")
        revision = (await cursor.fetchone() or (None,))[0]
    if revision != LATEST:
        raise StoreError(
            f"The database is at schema {revision or 'none'}, this version needs {LATEST}: run `rag-service migrate`."
        )
