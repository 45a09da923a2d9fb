"""The database that the settings name, what it holds, and its replica."""

from __future__ import annotations

import psycopg

from rag_service.definitions import load_indices
from rag_service.errors import ConfigurationError
from rag_service.ingest.reingest import Reingestion, describe_stale
from rag_service.ingest.wiring import current_fingerprints
from rag_service.settings import Settings
from rag_service.store.replication.replica import Replica, replica_conninfo
from rag_service.store.session import Database


async def check_database(settings: Settings) -> str:
    """Reachable, migrated, as a role that row-level security holds for, with the right dimension."""
    if not settings.enabled:
        return "not used (RAG_ENABLED is false)"
    if settings.database_url is None:
        return f"embedded in {settings.data_dir}, started with the service"
    database = Database(settings.database_url.get_secret_value(), pool_size=1, timeout=settings.database_timeout)
    await database.open()
    try:
        await database.check()
        async with database.transaction(None) as connection:
            cursor = await connection.execute(
                "SELECT current_setting('server_version'), atttypmod FROM pg_attribute"
                " WHERE attrelid = 'rag.data_chunks'::regclass AND attname = 'embedding'"
            )
            row = await cursor.fetchone()
    except psycopg.Error as error:
        raise ConfigurationError(
            "RAG_DATABASE_URL: the schema cannot be read; run `rag-service migrate`.", field="RAG_DATABASE_URL"
        ) from error
    finally:
        await database.close()
    version, dimension = row if row is not None else ("?", settings.embedding_dimension)
    if dimension != settings.embedding_dimension:
        raise ConfigurationError(
            f"RAG_EMBEDDING_DIMENSION is {settings.embedding_dimension}, the database holds vectors of {dimension}: "
            f"use an embedding model with {dimension} dimensions, or ingest into a new database.",
            field="RAG_EMBEDDING_DIMENSION",
        )
    return f"PostgreSQL {version}, {dimension} dimensions"


async def check_documents(settings: Settings) -> str:
    """Whether any were made by other settings than those in force. That is no failure: they are found as they are."""
    if not settings.enabled:
        return "not used (RAG_ENABLED is false)"
    if settings.database_url is None:
        return "looked at when the service starts"
    indices = load_indices(indices_path=settings.indices_path)
    database = Database(settings.database_url.get_secret_value(), pool_size=1, timeout=settings.database_timeout)
    await database.open()
    try:
        await database.check()
        stale = await Reingestion(database, current_fingerprints(settings, indices)).count()
    finally:
        await database.close()
    return "; ".join(map(describe_stale, stale)) or "made by the settings in force"


async def check_replica(settings: Settings) -> str:
    """It is a replica of the database with its schema, its clock is right, and how far it is behind."""
    if settings.database_url is None or settings.database_replica_url is None:
        return "none"
    database, standby = (
        Database(url, pool_size=1, timeout=settings.database_timeout)
        for url in (
            settings.database_url.get_secret_value(),
            replica_conninfo(settings.database_replica_url.get_secret_value()),
        )
    )
    replica = Replica(database, standby, pause=settings.breaker_seconds, timeout=settings.database_timeout)
    await database.open()
    await standby.open()
    try:
        await replica.check()
        lag = await replica.lag()
    finally:
        await standby.close()
        await database.close()
    return "up to date" if lag is None else f"lags: {lag}"
