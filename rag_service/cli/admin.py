"""`rag-service keys | users | worker | reingest`, as the local administrator; only the worker loads models."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import click

from rag_service.cli.running import (
    CLOSING_SECONDS,
    Failure,
    end_within,
    owner_and_service,
    print_table,
    progress,
    read_quiet_settings,
    read_settings,
    run_as_administrator,
    run_command,
)
from rag_service.domain import LOCAL_ADMIN, Role
from rag_service.errors import InputError, NotFoundError
from rag_service.settings import Settings
from rag_service.store.accounts.keys import Scope, create_key, list_keys, revoke_key
from rag_service.store.accounts.users import create_user, find_user, list_users, update_user
from rag_service.store.database import Connection
from rag_service.store.opening import open_database
from rag_service.store.rows import LIMIT_MAX, Slice

_ALL = Slice(limit=LIMIT_MAX)


@click.group()
def keys() -> None:
    """API keys: create, list, revoke."""


@keys.command("create")
@click.option("--user", "user_name", default="local", show_default=True, help="Owner of the key: name or id.")
@click.option("--name", required=True, help="What the key is for.")
@click.option(
    "--scope", "scopes", multiple=True, type=click.Choice([scope.value for scope in Scope]),
    help="What the key may be used for; may be given several times. Default: read and write.",
)  # fmt: skip
@click.option("--days", type=click.IntRange(1, 3650), help="Days until the key expires. Default: never.")
def create_key_command(user_name: str, name: str, scopes: tuple[str, ...], days: int | None) -> None:
    """Create a key and print it. It cannot be shown again."""

    async def create(connection: Connection) -> str:
        user = await find_user(connection, user_name)
        _, secret = await create_key(
            connection,
            user_id=user.id,
            name=name,
            scopes={Scope(scope) for scope in scopes} or {Scope.READ, Scope.WRITE},
            expires_at=None if days is None else datetime.now(UTC) + timedelta(days=days),
        )
        return secret

    click.echo(run_as_administrator(create))
    click.echo("Store it safely now: the service keeps only its hash.", err=True)


@keys.command("list")
@click.option("--user", "user_name", help="Only keys of this user: name or id.")
def list_keys_command(user_name: str | None) -> None:
    """List keys, newest first."""

    async def read(connection: Connection) -> list[Sequence[object]]:
        user_id = None if user_name is None else (await find_user(connection, user_name)).id
        names = {user.id: user.name for user in (await list_users(connection, _ALL)).items}
        found = await list_keys(connection, _ALL, user_id=user_id)
        return [
            (key.id, names.get(key.user_id, key.user_id), key.name, f"{key.prefix}…", ",".join(sorted(key.scopes)),
             "revoked" if key.revoked_at else _until(key.expires_at), _moment(key.last_used_at) or "never")
            for key in found.items
        ]  # fmt: skip

    print_table(("ID", "USER", "NAME", "KEY", "SCOPES", "STATE", "LAST USED"), run_as_administrator(read))


@keys.command("revoke")
@click.argument("key_id", type=click.UUID)
def revoke_key_command(key_id: UUID) -> None:
    """Revoke a key; it stops working within RAG_AUTH_CACHE_SECONDS."""

    run_as_administrator(revoke_key, key_id)
    click.echo("The key has been revoked.")


@click.group()
def users() -> None:
    """Users: create, invite, list, deactivate."""


@users.command("create")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Make the user an administrator.")
@click.option("--subject", help="`sub` of the user's bearer tokens.")
def create_user_command(name: str, admin: bool, subject: str | None) -> None:
    """Create a user and print the id."""

    if not name.strip():
        raise Failure(InputError("A user needs a name.", field="name"))
    role = Role.ADMIN if admin else Role.USER
    click.echo(run_as_administrator(create_user, name=name.strip(), role=role, subject=subject).id)


@users.command("invite")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Make a new user an administrator.")
def invite_user_command(name: str, admin: bool) -> None:
    """Print a link for a user (created if new) to choose a password. It works once, within a week."""
    from rag_service.auth.sign_in import make_invitation

    settings = read_quiet_settings()

    async def invite(connection: Connection) -> str:
        try:
            user = await find_user(connection, name)
        except NotFoundError:
            user = await create_user(connection, name=name.strip(), role=Role.ADMIN if admin else Role.USER)
        return await make_invitation(connection, settings, user.id)

    if not name.strip():
        raise Failure(InputError("A user needs a name.", field="name"))
    click.echo(run_as_administrator(invite))


@users.command("list")
def list_users_command() -> None:
    """List users by name."""

    rows = [
        (user.id, user.name, user.role.value, "active" if user.active else "inactive", user.subject or "")
        for user in run_as_administrator(list_users, _ALL).items
    ]
    print_table(("ID", "NAME", "ROLE", "STATE", "SUBJECT"), rows)


@users.command("deactivate")
@click.argument("name")
def deactivate_user_command(name: str) -> None:
    """Deactivate a user: refuse their keys, tokens and sessions. None of their data is deleted."""

    async def deactivate(connection: Connection) -> None:
        await update_user(connection, LOCAL_ADMIN, (await find_user(connection, name)).id, active=False)

    run_as_administrator(deactivate)
    click.echo(f"{name} has been deactivated.")


@click.command()
@click.option("--concurrency", type=click.IntRange(1, 64), help="Documents at a time (RAG_WORKER_CONCURRENCY).")
def worker(concurrency: int | None) -> None:
    """Process uploads and sync sources until stopped. Any number of workers can run, on any machine."""
    run_command(_work(read_settings(worker_concurrency=concurrency)))


async def _work(settings: Settings) -> None:
    """Run a worker until SIGTERM or SIGINT; documents in work are put back."""
    from rag_service.sources.scheduled import open_worker

    async with open_worker(settings) as work:
        task = asyncio.create_task(work())
        loop = asyncio.get_running_loop()

        def stop() -> None:
            end_within(settings.http.shutdown_seconds + CLOSING_SECONDS)
            task.cancel()

        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, stop)
        click.echo("Working. Press Ctrl-C to stop.", err=True)
        with suppress(asyncio.CancelledError):
            await task


@click.command()
@click.option("--dry-run", is_flag=True, help="Only print what is stale.")
def reingest(dry_run: bool) -> None:
    """Re-ingest stale documents of all users from their originals.

    Searches find the old version until the new one is ready. A running service or worker does the work. If the
    dimension of the embedding model has changed, the database is converted first: stop the services before that.
    """
    from rag_service.indices import load_indices
    from rag_service.ingest.reingest import Reingestion, describe_stale
    from rag_service.ingest.wiring import current_fingerprints

    settings = read_quiet_settings()

    async def work() -> None:
        if not await _fit_dimension(settings, dry_run=dry_run):
            return
        indices = load_indices(indices_path=settings.indices.path)
        async with open_database(settings, pool_size=1) as database:
            reingestion = Reingestion(database, current_fingerprints(settings, indices))
            stale = await reingestion.count()
            for index in stale:
                click.echo(describe_stale(index))
            if not stale:
                click.echo("All documents match the current settings.")
            elif not dry_run:
                await _enqueue(reingestion, sum(index.documents for index in stale))

    async def _enqueue(reingestion: Reingestion, documents: int) -> None:
        with progress() as steps:
            steps.begin("queueing", documents)
            queued = await reingestion.enqueue_all(steps.advance)
        click.echo(f"{queued} documents queued; a running `rag-service serve` or `worker` ingests them.")
        if queued < documents:
            click.echo(
                f"{documents - queued} documents not queued: they are queued already, a newer version failed, or their"
                " originals were not kept. Upload those that `reingest --dry-run` still lists afterwards."
            )

    run_command(work())


async def _fit_dimension(settings: Settings, *, dry_run: bool) -> bool:
    """Change the database to the dimension that is set, if it has another; False where it still has."""
    from rag_service.store.migrate import change_dimension, describe_dimension, stored_dimension

    external, wanted = settings.database.url, settings.embedding.dimension
    conninfo = external.get_secret_value() if external is not None else (await owner_and_service(settings))[1]
    stored = await stored_dimension(conninfo)
    if stored in (None, wanted):
        return True
    if dry_run:
        click.echo(describe_dimension(stored or 0, wanted))
        return False
    owner, _ = await owner_and_service(settings)
    await change_dimension(owner, wanted)
    click.echo(
        f"The database now stores vectors of {wanted} dimensions instead of {stored}. Until they are ingested again,"
        " documents are found by keyword search only."
    )
    return True


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def _until(at: datetime | None) -> str:
    return "active" if at is None else f"until {_moment(at)}" if at > datetime.now(UTC) else "expired"
