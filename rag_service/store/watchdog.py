"""Ends the statements of a server that no longer responds.

A server that stands still, or a machine that is gone without a word, leaves statements waiting without end. How long a
statement runs tells nothing: so when one takes long, a new connection shows whether the server still answers.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import psycopg
import structlog
from psycopg import AsyncConnection

from rag_service.tasks import end_tasks

log = structlog.get_logger(__name__)

_CANCEL_SECONDS = 1.0  # for the server to take the cancellation of a statement


class WatchedConnection(AsyncConnection[tuple]):  # type: ignore[type-arg]  # rows are plain tuples
    """A connection that knows since when it waits for the server."""

    waits_since: float | None = None  # time.monotonic()
    given_up = False  # the server did not respond

    async def wait(self, *arguments: Any, **options: Any) -> Any:
        """As psycopg's, through which every statement goes."""
        self.waits_since = time.monotonic()
        try:
            return await super().wait(*arguments, **options)
        finally:
            self.waits_since = None

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - as psycopg declares it
        """As psycopg's, by which a cancelled task ends its statement. It would wait ten seconds for a server that
        does not respond, and with it whoever has a time limit, such as a check of the service's state."""
        try:
            await super().cancel_safe(timeout=min(timeout, _CANCEL_SECONDS))
        except psycopg.errors.CancellationTimeout:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Let what waits fail with an OperationalError."""
        self.given_up = True
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)


class Watchdog:
    """Watches the connections of a pool."""

    def __init__(self, conninfo: str, *, patience: float):
        """`patience`: seconds after which a statement of a server that does not respond has ended."""
        self.connections: WeakSet[WatchedConnection] = WeakSet()
        self._task: asyncio.Task[None] | None = None
        self._conninfo = conninfo
        self._half = patience / 2  # for the statement, then for the new connection

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch(), name="database watchdog")

    async def stop(self) -> None:
        if self._task is not None:
            await end_tasks(self._task)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._half / 4)
            if not self._waiting(time.monotonic() - self._half * 0.75):
                continue
            try:
                responds = await self._responds()
            except Exception as error:  # whatever a connection raises, the watch goes on
                log.warning("database_watch_failed", exc_info=error)
                responds = True
            if responds:
                await asyncio.sleep(self._half * 0.75)
                continue
            late = self._waiting(time.monotonic() - self._half)
            log.error("database_does_not_respond", statements=len(late))
            for connection in late:
                connection.give_up()

    def _waiting(self, before: float) -> list[WatchedConnection]:
        """The connections whose statements were sent before a time."""
        return [one for one in self.connections if one.waits_since is not None and one.waits_since < before]

    async def _responds(self) -> bool:
        """Whether the server answers a new connection, were it with an error; if we were late ourselves, it may."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._half):
                await (await AsyncConnection.connect(self._conninfo, connect_timeout=3600)).close()
        except TimeoutError:
            return time.monotonic() - began > 1.5 * self._half
        except psycopg.Error:
            pass
        return True
