"""Search on a read replica: a hot standby that streams from the primary.

Every transaction there must show the position (`position`) of the primary at the start of the search; after some
hundredths of a second the search goes to the primary instead. The position is compared on the connection that then
searches: behind one address there may be several replicas. A replica that fails is not used for a while.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag_service.domain import Identity
from rag_service.errors import ConfigurationError, RagError, StoreError, UnsafeRoleError
from rag_service.store.database import Connection, Database
from rag_service.store.replication.position import Position, read_position
from rag_service.store.replication.timeouts import CANCEL_AGAIN, await_server
from rag_service.tasks import end_tasks

log = structlog.get_logger(__name__)

T = TypeVar("T")

SETTING = "RAG_DATABASE_REPLICA_URL"
CONNECT_SECONDS = 1.0  # at most, for a connection to a replica
PATIENCE = 0.05  # seconds that a search waits for the replica to catch up
_POLL = 0.004  # seconds between two looks
_IMPATIENT = 1.0  # seconds after a wait in vain during which nobody waits again
_LAG_PATIENCE = 0.2  # seconds in which a replica without lag catches up
_CLOCKS_APART = 2.0  # seconds; expiry is judged by the clock of the server that searches

# Without these the kernel keeps a connection to a machine that vanished for up to two hours.
_TCP = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}

_SERVER = """SELECT (SELECT system_identifier FROM pg_control_system()),
        (SELECT oid FROM pg_database WHERE datname = current_database()),
        pg_is_in_recovery(), extract(epoch FROM clock_timestamp())::float8"""
_LAG = """SELECT greatest(pg_wal_lsn_diff(%s::pg_lsn, pg_last_wal_replay_lsn()), 0)::bigint,
        extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8"""


class ReplicaBehindError(Exception):
    """The replica does not show yet what the primary does."""


@dataclass(frozen=True, kw_only=True)
class Lag:
    """How far a replica is behind."""

    bytes: int  # of write-ahead log
    seconds: float | None  # since the last transaction that it has replayed was committed; None: none was yet

    def __str__(self) -> str:
        return f"{self.bytes} bytes" + ("" if self.seconds is None else f", {self.seconds:.1f} s") + " behind"


def replica_conninfo(url: str) -> str:
    """The connection string as given, with limits on how long a lost connection goes unnoticed.

    Raises ConfigurationError if it is not a connection string.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise ConfigurationError(f"{SETTING} is not a connection string.", field=SETTING) from error
    return make_conninfo(url, **{key: value for key, value in _TCP.items() if key not in given})


@dataclass(eq=False)
class Replica:
    """A replica beside its primary, watched from `open` to `close`."""

    primary: Database
    standby: Database  # opened and closed here
    _: KW_ONLY
    pause: float  # seconds between two checks, and after a failure
    timeout: float  # seconds of a transaction
    up: bool = field(default=False, init=False)  # whether searches may try it now
    _error: RagError = field(default_factory=lambda: StoreError("The replica has not been checked yet."), init=False)
    _failed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _watcher: asyncio.Task[None] | None = field(default=None, init=False)
    _impatient_until: float = field(default=float("-inf"), init=False)

    async def open(self) -> None:
        """Open the pool and begin to check; the replica is used once a check succeeds."""
        await self.standby.open()
        self._watcher = asyncio.create_task(self._watch())

    async def close(self) -> None:
        self.up = False
        if self._watcher is not None:
            await end_tasks(self._watcher, patience=CANCEL_AGAIN)
        await self.standby.close()

    async def position(self, identity: Identity, corpus_ids: tuple[UUID, ...]) -> Position:
        """Where the primary is now, for what the identity may read in these corpora (none: in all).

        Raises StoreError if the primary cannot be reached, SearchTimeoutError if it takes too long.
        """
        async with self.primary.transaction(identity, limited=True) as connection:
            return await read_position(connection, corpus_ids)

    def at(self, position: Position) -> ReplicaAt:
        """The replica for one search; every transaction on it sees the position or something later."""
        return ReplicaAt(self, self.standby, position)

    async def wait_for(self, position: Position, connection: Connection) -> None:
        """Wait until a connection of the replica shows a position; ReplicaBehindError if it does not in time."""
        deadline = time.monotonic() + PATIENCE
        while not await position.is_shown_on(connection):
            now = time.monotonic()
            if now < self._impatient_until:
                raise ReplicaBehindError
            if now >= deadline:
                self._impatient_until = now + _IMPATIENT
                raise ReplicaBehindError
            await asyncio.sleep(_POLL)

    async def run(self, search: Coroutine[Any, Any, T], view: ReplicaAt) -> T:
        """Await a search on the replica; StoreError if a transaction takes longer than `timeout`."""
        return await await_server(search, limit=self.timeout, waited=lambda: view.busy_seconds)

    def stop_using(self, error: RagError) -> None:
        """Stop using the replica for a while after an error of a search, unless it was a recovery conflict."""
        if _is_recovery_conflict(error):
            return
        self._give_up(error)
        self._failed.set()

    async def check(self) -> None:
        """Make sure that it may serve searches.

        Raises StoreError if it or the primary cannot be reached or its schema is not current, ConfigurationError if it
        is no replica of this primary, its clock is wrong, or row-level security would not hold for the role.
        """
        try:
            await self.standby.check()
            before = time.monotonic()
            async with self.primary.transaction(None) as ours, self.standby.transaction(None) as theirs:
                system, database, _, clock = await _read_row(ours, _SERVER)
                its_system, its_database, in_recovery, its_clock = await _read_row(theirs, _SERVER)
                elapsed = time.monotonic() - before
        except UnsafeRoleError as error:
            raise UnsafeRoleError(error.message, field=SETTING) from error
        except psycopg.Error as error:
            raise StoreError("The replica cannot be inspected.", field=SETTING) from error
        if (system, database) != (its_system, its_database):
            raise ConfigurationError(
                f"{SETTING} does not lead to a copy of the database in RAG_DATABASE_URL.", field=SETTING
            )
        if not in_recovery:
            raise ConfigurationError(
                f"{SETTING} does not lead to a standby, but to a primary or a promoted standby.", field=SETTING
            )
        if abs(its_clock - clock) > _CLOCKS_APART + elapsed:
            raise ConfigurationError(
                f"The replica's clock is {its_clock - clock:+.0f} s off the primary's; expiry goes by it.",
                field=SETTING,
            )

    async def report(self) -> Lag | None:
        """As `lag`, but raises at once if the replica is not used, with the reason."""
        if not self.up:
            raise self._error.with_traceback(None)
        return await await_server(self.lag(), limit=self.timeout)

    async def lag(self) -> Lag | None:
        """How far it is behind where the primary was a moment ago; None: it got there in no time.

        Raises StoreError if one of the two cannot be reached.
        """
        async with self.primary.transaction(None) as connection:
            (place,) = await _read_row(connection, "SELECT pg_current_wal_flush_lsn()::text")
        deadline = time.monotonic() + _LAG_PATIENCE
        async with self.standby.transaction(None) as connection:
            while True:
                bytes_behind, seconds = await _read_row(connection, _LAG, [place])
                if not bytes_behind:
                    return None
                if time.monotonic() >= deadline:
                    return Lag(bytes=bytes_behind, seconds=seconds)
                await asyncio.sleep(_POLL)

    async def _watch(self) -> None:
        while True:
            await self._look()
            self._failed.clear()
            try:
                async with asyncio.timeout(self.pause):
                    await self._failed.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(self.pause)

    async def _look(self) -> None:
        try:
            await await_server(self.check(), limit=2 * self.timeout)
        except RagError as error:
            if not _is_recovery_conflict(error):
                self._give_up(error)
        else:
            if not self.up:
                log.info("replica_used")
            self.up = True

    def _give_up(self, error: RagError) -> None:
        if self.up or error.message != self._error.message:  # the same is not said again
            log.error("replica_not_used", detail=error.message, setting=SETTING, exc_info=error)
        self.up, self._error = False, error


class ReplicaAt(Database):
    """A replica's pool whose transactions begin at a position, or do not begin."""

    def __init__(self, replica: Replica, standby: Database, position: Position):
        self._replica = replica
        self._standby = standby
        self._position = position
        self._busy_since: float | None = None

    @property
    def busy_seconds(self) -> float:
        """Since when the present transaction runs; 0 between transactions."""
        return 0.0 if self._busy_since is None else time.monotonic() - self._busy_since

    @asynccontextmanager
    async def transaction(
        self, identity: Identity | None, *, limited: bool = False, snapshot: bool = False
    ) -> AsyncIterator[Connection]:
        """As `Database.transaction`; raises ReplicaBehindError if the replica is not there yet."""
        self._busy_since = time.monotonic()
        try:
            async with self._standby.transaction(identity, limited=limited, snapshot=snapshot) as connection:
                await self._replica.wait_for(self._position, connection)
                yield connection
        finally:
            self._busy_since = None


def _is_recovery_conflict(error: RagError) -> bool:
    """Whether a standby ended a transaction because it delayed replay, which is no fault of the replica."""
    return isinstance(error.__cause__, psycopg.errors.SerializationFailure | psycopg.errors.DeadlockDetected)


async def _read_row(connection: Connection, query: str, parameters: Any = None) -> tuple[Any, ...]:
    cursor = await connection.execute(query, parameters)
    row: tuple[Any, ...] | None = await cursor.fetchone()
    if row is None:
        raise StoreError("The database gave no answer.")
    return row
