"""Brings a database to the newest schema and creates the role that the service connects as.

Runs as the owner, never inside the service: `rag-service migrate`, or at start of the embedded
database. Safe to run again and from several processes at once (an advisory lock lets one through).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from rag_service.errors import ConfigurationError

LATEST = "0009"  # newest revision below versions/; a test compares the two
LOCAL_ADMIN_ID = "00000000-0000-4000-8000-000000000001"  # the one user of RAG_AUTH=none
_LOCK = 0x5241_4753  # any constant: "RAGS"


async def migrate(owner_conninfo: str, service_conninfo: str, *, dimension: int) -> bool:
    """Bring the database up to date; returns whether anything was changed.

    Args:
        owner_conninfo: connection string of the owning role.
        service_conninfo: connection string of the unprivileged role; it is created when missing.
        dimension: length of the embedding vectors, fixed for the life of the database.

    Raises:
        ConfigurationError: the stored dimension is another one, or the owner may not create roles.
    """
    return await asyncio.to_thread(_migrate, owner_conninfo, service_conninfo, dimension)


def _migrate(owner_conninfo: str, service_conninfo: str, dimension: int) -> bool:
    service = conninfo_to_dict(service_conninfo)
    role = str(service.get("user") or "")
    if not role:
        raise ConfigurationError("RAG_DATABASE_URL names no user.", field="RAG_DATABASE_URL")
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        current = _revision(connection)
        if current is None or current < LATEST:
            _create_role(connection, role, str(service.get("password") or "") or None)
            _upgrade(owner_conninfo, role, dimension)
        _check_dimension(connection, dimension)
        connection.execute(
            "INSERT INTO rag.users (id, name, role) VALUES (%s, 'local', 'admin') ON CONFLICT DO NOTHING",
            [LOCAL_ADMIN_ID],
        )
        return current != LATEST


def _revision(connection: psycopg.Connection) -> str | None:
    found = connection.execute("SELECT to_regclass('public.schema_version')").fetchone()
    if found is None or found[0] is None:
        return None
    row = connection.execute("SELECT version_num FROM public.schema_version").fetchone()
    return None if row is None else str(row[0])


def _create_role(connection: psycopg.Connection, role: str, password: str | None) -> None:
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
        return
    options = sql.SQL("LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE").format()
    if password is not None:
        options += sql.SQL(" PASSWORD {}").format(sql.Literal(password))
    try:
        connection.execute(sql.SQL("CREATE ROLE {} ").format(sql.Identifier(role)) + options)
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            f"RAG_DATABASE_OWNER_URL may not create the role {role!r}; create it by hand: "
            f"CREATE ROLE {role} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD '…';",
            field="RAG_DATABASE_OWNER_URL",
        ) from error


def _upgrade(owner_conninfo: str, role: str, dimension: int, *, revision: str = "head") -> None:
    # Alembic and SQLAlchemy are imported only where there is something to migrate: 0.2 s saved at start.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["parameters"] = {
        "role": sql.Identifier(role).as_string(None),
        "dimension": str(int(dimension)),
    }
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(owner_conninfo), poolclass=NullPool)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def _check_dimension(connection: psycopg.Connection, dimension: int) -> None:
    stored = connection.execute(
        "SELECT atttypmod FROM pg_attribute WHERE attrelid = 'rag.data_chunks'::regclass AND attname = 'embedding'"
    ).fetchone()
    if stored is not None and stored[0] != dimension:
        raise ConfigurationError(
            f"The database holds vectors of {stored[0]} dimensions, RAG_EMBEDDING_DIMENSION is {dimension}."
            " Use an embedding model with the stored dimension, or ingest into a new database.",
            field="RAG_EMBEDDING_DIMENSION",
        )
