"""`rag-service keys | users | worker`: for whoever holds the database's credentials.

The commands act as the local administrator that migrations create. They open the database alone, so
that they answer at once; models are loaded by the worker only.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import click

from rag_service.cli.running import read_quiet_settings, read_settings, run_command
from rag_service.domain import Identity, Role
from rag_service.errors import InputError
from rag_service.settings import Settings
from rag_service.store.migrate import LOCAL_ADMIN_ID, migrate
from rag_service.store.paging import LIMIT_MAX, Slice
from rag_service.store.people.keys import Scope, create_key, list_keys, revoke_key
from rag_service.store.people.users import create_user, find_user, list_users, update_user
from rag_service.store.session import Connection, Database

_ADMIN = Identity(user_id=UUID(LOCAL_ADMIN_ID), role=Role.ADMIN)
_ALL = Slice(limit=LIMIT_MAX)


async def service_conninfo(settings: Settings) -> str:
    """Connection string of the unprivileged role; the embedded server is started and migrated for it."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    from rag_service.store.embedded import start_embedded_server

    server = await start_embedded_server(settings.data_dir)
    await migrate(server.owner_conninfo, server.service_conninfo, dimension=settings.embedding_dimension)
    return server.service_conninfo


@asynccontextmanager
async def _transaction() -> AsyncIterator[Connection]:
    """A transaction as the local administrator."""
    settings = read_quiet_settings()
    database = Database(await service_conninfo(settings), pool_size=1, timeout=settings.database_timeout)
    await database.open()
    try:
        await database.check()
        async with database.transaction(_ADMIN) as connection:
            yield connection
    finally:
        await database.close()


def _print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    texts = [tuple(headings), *(tuple("" if cell is None else str(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(headings))]
    for row in texts:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@click.group()
def keys() -> None:
    """API keys: create, list, revoke."""


@keys.command("create")
@click.option("--user", "user_name", default="local", show_default=True, help="Whose key it is.")
@click.option("--name", required=True, help="What it is for.")
@click.option(
    "--scope", "scopes", multiple=True, type=click.Choice([scope.value for scope in Scope]),
    help="What it may be used for; repeat for several. Default: read and write.",
)  # fmt: skip
@click.option("--days", type=click.IntRange(1, 3650), help="Days until it expires; without: never.")
def create_key_command(user_name: str, name: str, scopes: tuple[str, ...], days: int | None) -> None:
    """Create a key and print it, the only time that it can be read."""

    async def work() -> str:
        async with _transaction() as connection:
            user = await find_user(connection, user_name)
            _, secret = await create_key(
                connection,
                user_id=user.id,
                name=name,
                scopes={Scope(scope) for scope in scopes} or {Scope.READ, Scope.WRITE},
                expires_at=None if days is None else datetime.now(UTC) + timedelta(days=days),
            )
            return secret

    click.echo(run_command(work()))
    click.echo("Keep it now: only its hash is stored.", err=True)


@keys.command("list")
@click.option("--user", "user_name", help="Of this user only.")
def list_keys_command(user_name: str | None) -> None:
    """List keys, newest first."""

    async def work() -> list[Sequence[object]]:
        async with _transaction() as connection:
            user_id = None if user_name is None else (await find_user(connection, user_name)).id
            names = {user.id: user.name for user in (await list_users(connection, _ALL)).items}
            found = await list_keys(connection, _ALL, user_id=user_id)
            return [
                (
                    key.id,
                    names.get(key.user_id, key.user_id),
                    key.name,
                    f"{key.prefix}…",
                    ",".join(sorted(key.scopes)),
                    "revoked" if key.revoked_at else _until(key.expires_at),
                    _moment(key.last_used_at) or "never",
                )
                for key in found.items
            ]

    _print_table(("ID", "USER", "NAME", "KEY", "SCOPES", "STATE", "LAST USED"), run_command(work()))


@keys.command("revoke")
@click.argument("key_id", type=click.UUID)
def revoke_key_command(key_id: UUID) -> None:
    """Revoke a key; it stops working within RAG_AUTH_CACHE_SECONDS."""

    async def work() -> None:
        async with _transaction() as connection:
            await revoke_key(connection, key_id)

    run_command(work())
    click.echo("The key is revoked.")


@click.group()
def users() -> None:
    """Users: create, list, deactivate."""


@users.command("create")
@click.argument("name")
@click.option("--admin", is_flag=True, help="An administrator.")
@click.option("--subject", help="`sub` of the user's bearer tokens.")
def create_user_command(name: str, admin: bool, subject: str | None) -> None:
    """Create a user and print the id."""

    async def work() -> UUID:
        if not name.strip():
            raise InputError("A user needs a name.", field="name")
        async with _transaction() as connection:
            role = Role.ADMIN if admin else Role.USER
            return (await create_user(connection, name=name.strip(), role=role, subject=subject)).id

    click.echo(run_command(work()))


@users.command("list")
def list_users_command() -> None:
    """List users by name."""

    async def work() -> list[Sequence[object]]:
        async with _transaction() as connection:
            return [
                (user.id, user.name, user.role.value, "active" if user.active else "inactive", user.subject)
                for user in (await list_users(connection, _ALL)).items
            ]

    _print_table(("ID", "NAME", "ROLE", "STATE", "SUBJECT"), run_command(work()))


@users.command("deactivate")
@click.argument("name")
def deactivate_user_command(name: str) -> None:
    """Refuse a user's keys and tokens from now on; nothing of theirs is deleted."""

    async def work() -> None:
        async with _transaction() as connection:
            await update_user(connection, _ADMIN, (await find_user(connection, name)).id, active=False)

    run_command(work())
    click.echo(f"{name} is deactivated.")


@click.command()
@click.option("--concurrency", type=click.IntRange(1, 64), help="Documents at a time (RAG_WORKER_CONCURRENCY).")
def worker(concurrency: int | None) -> None:
    """Process uploads until stopped; start as many as you like, on any machine."""
    run_command(_work(read_settings(worker_concurrency=concurrency)))


async def _work(settings: Settings) -> None:
    """Run a worker until SIGTERM or SIGINT; documents in work are put back."""
    from rag_service.ingest.wiring import open_worker

    async with open_worker(settings, await service_conninfo(settings)) as running:
        task = asyncio.create_task(running.run())
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, task.cancel)
        click.echo("Working; stop with Ctrl-C.", err=True)
        with suppress(asyncio.CancelledError):
            await task


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def _until(at: datetime | None) -> str:
    return "active" if at is None else f"until {_moment(at)}" if at > datetime.now(UTC) else "expired"
