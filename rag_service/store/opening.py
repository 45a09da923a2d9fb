"""The one place that opens the database that the settings name."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict

from rag_service.errors import ConfigurationError, StoreError
from rag_service.settings import Settings
from rag_service.store.database import Database
from rag_service.store.embedded import kept_running, start_embedded_server
from rag_service.store.migrate import migrate
from rag_service.store.warming import warm_buffers

log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_database(
    settings: Settings, *, pool_size: int | None = None, serving: bool = False
) -> AsyncIterator[Database]:
    """The database, opened and checked; closed at the end. The embedded server is started and migrated first.

    Args:
        pool_size: maximum number of connections; None: RAG_DATABASE_POOL_SIZE.
        serving: for processes that keep running: a database that is down is only logged, because they recover when
            it is back, and the embedded one is warmed up in the background and restarted if it crashes.

    Raises:
        ConfigurationError: RAG_DATABASE_URL is no URL of PostgreSQL.
        StoreError: unreachable or not migrated, unless `serving`.
        UnsafeRoleError: the role could bypass row-level security.
    """
    database = make_database(settings, await _find_conninfo(settings, warm=serving), pool_size=pool_size)
    await database.open()
    try:
        try:
            await database.check()
        except StoreError as error:
            if not serving:
                raise
            log.error("database_not_ready", detail=error.message)
        with kept_running() if serving and settings.database.url is None else nullcontext():
            yield database
    finally:
        await database.close()


def make_database(
    settings: Settings,
    conninfo: str,
    *,
    pool_size: int | None = None,
    timeout: float | None = None,
    search_timeout: float | None = None,
) -> Database:
    """A database with the settings' pool and timeouts, not opened yet."""
    return Database(
        conninfo,
        pool_size=pool_size or settings.database.pool_size,
        timeout=timeout or settings.database.timeout,
        patience=settings.database.timeout,
        search_timeout=search_timeout or settings.database.search_timeout,
        idle_timeout=settings.worker.job_stalled_seconds,
        share_global=settings.auth.share_global,
    )


def check_conninfo(conninfo: str, *, setting: str) -> str:
    """The address of a database, if it is one of PostgreSQL. Raises ConfigurationError."""
    try:
        conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:  # its text may show the password
        raise ConfigurationError(f"{setting} is no postgresql:// URL.", field=setting) from None
    return conninfo


async def _find_conninfo(settings: Settings, *, warm: bool) -> str:
    """Connection string of the unprivileged role."""
    if settings.database.url is not None:
        return check_conninfo(settings.database.url.get_secret_value(), setting="RAG_DATABASE_URL")
    server = await start_embedded_server(settings.database.data_dir)
    await migrate(server.owner_conninfo, server.service_conninfo, dimension=settings.embedding.dimension)
    if warm:
        threading.Thread(target=warm_buffers, args=(server,), name="warm buffers", daemon=True).start()
    return server.service_conninfo
