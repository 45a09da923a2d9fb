"""`rag-service reingest`: after a change of an index's `ingest` part, of the embedding model, or of the version."""

from __future__ import annotations

import click

from rag_service.cli.admin import service_conninfo
from rag_service.cli.running import progress, read_quiet_settings, run_command
from rag_service.store.session import Database


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what is stale.")
def reingest(dry_run: bool) -> None:
    """Ingest documents again that other settings made, from their originals, of all users.

    They are found as they are until their new version is ready. A running service or worker does the work.
    """
    from rag_service.definitions import load_indices
    from rag_service.ingest.reingest import Reingestion, describe_stale
    from rag_service.ingest.wiring import current_fingerprints

    settings = read_quiet_settings()

    async def work() -> None:
        indices = load_indices(indices_path=settings.indices_path)
        database = Database(await service_conninfo(settings), pool_size=1, timeout=settings.database_timeout)
        await database.open()
        try:
            await database.check()
            reingestion = Reingestion(database, current_fingerprints(settings, indices))
            stale = await reingestion.count()
            for index in stale:
                click.echo(describe_stale(index))
            if not stale:
                click.echo("All documents were made by the settings in force.")
            elif not dry_run:
                await _enqueue(reingestion, sum(index.documents for index in stale))
        finally:
            await database.close()

    async def _enqueue(reingestion: Reingestion, documents: int) -> None:
        with progress() as steps:
            steps.begin("queueing", documents)
            queued = await reingestion.enqueue_all(steps.advance)
        click.echo(f"{queued} documents are queued: a running `rag-service serve` or `worker` ingests them.")
        if queued < documents:
            click.echo(
                f"{documents - queued} are not: they wait in the queue already, a newer version of them failed, or"
                " their originals are not kept. Upload what `reingest --dry-run` still names after that."
            )

    run_command(work())
