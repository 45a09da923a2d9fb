"""`rag-service export | import`: a corpus as one file, as the local administrator."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import click
from rich.console import Console

from rag_service.cli.progress import show_progress
from rag_service.cli.running import read_quiet_settings, run_command
from rag_service.client.transferring import to_transfer_progress
from rag_service.domain import LOCAL_ADMIN, CorpusKind
from rag_service.errors import ConflictError, NotFoundError
from rag_service.store.corpora import select_corpora
from rag_service.store.database import Database


@click.command(name="export")
@click.argument("corpus")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export_command(corpus: str, file: Path) -> None:
    """Write a corpus to one file, with originals and vectors.

    The file has all that searches and answers need, and the settings of the corpus, as they were at the start; the
    corpus can be searched and changed meanwhile. CORPUS is the name or the id of a global corpus, or of one of the
    local administrator's own. FILE must not exist.
    """

    async def run() -> None:
        from rag_service.components import open_components
        from rag_service.ingest.transfer.files import write_export

        async with open_components(read_quiet_settings()) as components:
            corpus_id = await _find(components.database, corpus)
            with show_progress(Console(stderr=True), "Exporting") as show:
                pieces = components.transfers.export(corpus_id, LOCAL_ADMIN, to_transfer_progress(show))
                size = await write_export(pieces, file)
        click.echo(f"{corpus} was exported to {file} ({size / 1e6:,.1f} MB).")

    run_command(run())


@click.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", metavar="NAME", help="Name of the new corpus. Default: as in the file.")
@click.option("--kind", type=click.Choice([kind.value for kind in CorpusKind]), help="Default: as in the file.")
@click.option("--index", metavar="NAME", help="Index of the new corpus. Default: as in the file.")
@click.option(
    "--keep-access", is_flag=True,
    help="Share a global corpus, and with the same groups, as in the file. Default: only administrators can read it.",
)  # fmt: skip
def import_command(file: Path, name: str | None, kind: str | None, index: str | None, keep_access: bool) -> None:
    """Read an exported corpus into a new corpus.

    Texts are embedded again if the file has the vectors of another embedding model. Nothing is stored before all of the
    file has been read and checked.
    """

    async def run() -> None:
        from rag_service.api.corpora.transfer import present_import
        from rag_service.client.results import ImportReport
        from rag_service.components import open_components
        from rag_service.ingest.transfer.importing import ImportOptions

        options = ImportOptions(
            name=name, kind=None if kind is None else CorpusKind(kind), index_name=index, keep_access=keep_access
        )
        async with open_components(read_quiet_settings()) as components:
            with show_progress(Console(stderr=True), "Importing") as show:
                imported = await components.transfers.read_file(file, LOCAL_ADMIN, options, to_transfer_progress(show))
        click.echo(repr(ImportReport(body=present_import(imported))))

    run_command(run())


async def _find(database: Database, corpus: str) -> UUID:
    """The id of a corpus by name or id. Raises NotFoundError, or ConflictError if two have the name."""
    async with database.transaction(LOCAL_ADMIN) as connection:
        found = await select_corpora(connection, "name = %(named)s OR id::text = %(named)s", {"named": corpus})
    if not found:
        raise NotFoundError(f"There is no corpus {corpus!r} that the local administrator can read.")
    if len(found) > 1:
        ids = ", ".join(f"{one.id} ({one.kind})" for one in found)
        raise ConflictError(f"Several corpora are named {corpus!r}; give the id: {ids}.")
    return found[0].id
