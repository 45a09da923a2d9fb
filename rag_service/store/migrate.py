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

from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import ConfigurationError, NoSpaceError, StoreError

LATEST = "0038"  # newest of the migrations; a test compares the two
QUEUE_SCHEMA = "03.04.00_50_post_add_retry_failed_job_procedure.sql"  # newest migration of procrastinate that we apply
_QUEUE_REVISION = "0002"  # begins with procrastinate's own schema; a release that changes it needs a migration of ours
_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x5241_4753  # any constant: "RAGS"


async def migrate(owner_conninfo: str, service_conninfo: str, *, dimension: int) -> bool:
    """Bring the database up to date; returns whether anything was changed.

    The service role is created if missing. `change_dimension` changes the dimension later. Raises ConfigurationError
    if the stored dimension differs or the owner may not create roles, StoreError if the database cannot be reached or
    fails: it is as it was before.
    """
    try:
        return await asyncio.to_thread(_migrate, owner_conninfo, service_conninfo, dimension)
    except psycopg.OperationalError as error:
        failure = StoreError("The database could not be brought up to date, and is as it was before.")
        raise NoSpaceError.of(error) or failure from error


def _migrate(owner_conninfo: str, service_conninfo: str, dimension: int) -> bool:
    service = conninfo_to_dict(service_conninfo)
    role = str(service.get("user") or "")
    if not role:
        raise ConfigurationError("RAG_DATABASE_URL does not contain a user name.", field="RAG_DATABASE_URL")
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        current = _revision(connection)
        if current is None or current < LATEST:
            _create_role(connection, role, str(service.get("password") or "") or None)
            _upgrade(connection, role, dimension, current=current)
        stored = _stored_dimension(connection)
        if stored not in (None, dimension):
            raise ConfigurationError(describe_dimension(stored or 0, dimension), field="RAG_EMBEDDING_DIMENSION")
        connection.execute(
            "INSERT INTO rag.users (id, name, role) VALUES (%s, 'local', 'admin') ON CONFLICT DO NOTHING",
            [LOCAL_ADMIN.user_id],
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
            f"The role in RAG_DATABASE_OWNER_URL cannot create the role {role!r}. Create it by hand: "
            f"CREATE ROLE {role} LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD '…';",
            field="RAG_DATABASE_OWNER_URL",
        ) from error


def _upgrade(
    connection: psycopg.Connection, role: str, dimension: int, *, current: str | None = None, revision: str = LATEST
) -> None:
    """Run the migrations after `current`, up to `revision`, in one transaction."""
    placeholders = {"{role}": sql.Identifier(role).as_string(None), "{dimension}": str(int(dimension))}
    with connection.transaction():
        connection.execute("CREATE TABLE IF NOT EXISTS public.schema_version (version_num varchar(32) PRIMARY KEY)")
        for file in sorted(_MIGRATIONS.glob("*.sql")):
            number = file.name.partition("_")[0]
            if number > revision or number <= (current or ""):
                continue
            if number == _QUEUE_REVISION:
                from procrastinate.schema import SchemaManager  # takes half a second to load

                connection.execute("SET LOCAL search_path = rag, public")  # the names in it are not qualified
                connection.execute(SchemaManager.get_schema().encode())
                connection.execute("RESET search_path")
            text = file.read_text(encoding="utf-8")
            for name, value in placeholders.items():
                text = text.replace(name, value)
            connection.execute(text.encode())
        connection.execute("DELETE FROM public.schema_version")
        connection.execute("INSERT INTO public.schema_version VALUES (%s)", [revision])


def _stored_dimension(connection: psycopg.Connection) -> int | None:
    """Length of the vectors in the database; None where there are no tables yet."""
    found = connection.execute(
        "SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass('rag.data_chunks') AND attname = 'embedding'"
    ).fetchone()
    return None if found is None else int(found[0])


def describe_dimension(stored: int, dimension: int) -> str:
    """What to do about a database with vectors of another length than the one set."""
    return (
        f"The database stores vectors of {stored} dimensions, but RAG_EMBEDDING_DIMENSION is {dimension}. Stop the"
        " services and run `rag-service reingest`, which converts the database and queues every document, or go back to"
        " the previous embedding model."
    )


async def stored_dimension(conninfo: str) -> int | None:
    """Length of the vectors in the database; None where there are no tables yet."""

    def read() -> int | None:
        with psycopg.connect(conninfo) as connection:
            return _stored_dimension(connection)

    return await asyncio.to_thread(read)


async def change_dimension(owner_conninfo: str, dimension: int) -> None:
    """Make the column of vectors hold those of another model, as the owner of the database.

    No chunk has a vector until its document is ingested anew; meanwhile it is found by its words.
    """
    count, target = int(dimension), min(dimension * 2 + 300, 8160)  # as in migration 0005

    def change() -> None:
        with psycopg.connect(owner_conninfo) as connection:  # one transaction
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            query = "SELECT pg_get_indexdef('rag.data_chunks_embedding'::regclass)"
            indexes = connection.execute(query).fetchall()
            connection.execute("DROP INDEX rag.data_chunks_embedding")
            connection.execute(
                f"ALTER TABLE rag.data_chunks ALTER COLUMN embedding TYPE public.halfvec({count}) USING NULL,"
                f" ALTER COLUMN embedding SET STORAGE MAIN, SET (toast_tuple_target = {target})".encode()
            )
            for (definition,) in indexes:
                connection.execute(str(definition).encode())

    await asyncio.to_thread(change)
