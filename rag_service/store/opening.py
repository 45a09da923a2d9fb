"""The one place that opens the database that the settings name."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from rag_service.errors import StoreError
from rag_service.settings import Settings
from rag_service.store.database import Database
from rag_service.store.embedded import start_embedded_server
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
            it is back, and the embedded one is warmed up in the background.

    Raises:
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
        yield database
    finally:
        await database.close()


def make_database(
    settings: Settings, conninfo: str, *, pool_size: int | None = None, timeout: float | None = None
) -> Database:
    """A database with the settings' pool and timeouts, not opened yet."""
    return Database(
        conninfo,
        pool_size=pool_size or settings.database.pool_size,
        timeout=timeout or settings.database.timeout,
        idle_timeout=settings.worker.job_stalled_seconds,
        share_global=settings.auth.share_global,
    )


async def _find_conninfo(settings: Settings, *, warm: bool) -> str:
    """Connection string of the unprivileged role."""
    if settings.database.url is not None:
        return settings.database.url.get_secret_value()
    server = await start_embedded_server(settings.database.data_dir)
    await migrate(server.owner_conninfo, server.service_conninfo, dimension=settings.embedding.dimension)
    if warm:
        threading.Thread(target=warm_buffers, args=(server,), name="warm buffers", daemon=True).start()
    return server.service_conninfo
