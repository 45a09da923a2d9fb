"""The command line: one group, its commands imported where they are short and lazily where they load models."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import click

from rag_service import __version__
from rag_service.cli.admin import keys, users, worker
from rag_service.cli.bench import bench_group
from rag_service.cli.eval import eval_group
from rag_service.cli.mcp import mcp_command
from rag_service.cli.reingest import reingest
from rag_service.cli.running import read_quiet_settings, read_settings, run_command
from rag_service.cli.settings import settings_command
from rag_service.errors import RagError
from rag_service.settings import Settings

if TYPE_CHECKING:
    from rag_service.definitions import IndexDefinition


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rag-service")
def main() -> None:
    """Answers questions from your own documents and proves every answer."""


@main.command()
@click.option(
    "--documents", type=click.Path(exists=True, path_type=Path), help="File or folder instead of the samples."
)
@click.option("--question", help="Asked instead of the sample question.")
@click.option("--once", is_flag=True, help="Leave after the answer instead of serving.")
@click.option("--port", type=int, help="Port to serve on.")
def quickstart(documents: Path | None, question: str | None, once: bool, port: int | None) -> None:
    """Set everything up, ingest documents, ask a question, and serve the page and the API."""
    from rag_service.quickstart import run_quickstart

    settings = read_settings(port=port, log_level="WARNING", log_format="console")
    run_command(run_quickstart(settings, documents=documents, question=question, serve=not once))


@main.command()
@click.option("--host", help="Address to listen on (RAG_HOST).")
@click.option("--port", type=int, help="Port to listen on (RAG_PORT).")
def serve(host: str | None, port: int | None) -> None:
    """Serve the API and the page."""
    gc.disable()  # until the server is up: an eighth of its start would go into searching what is there to stay
    from rag_service.server import serve_app

    run_command(serve_app(read_settings(host=host, port=port)))


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--ray", "address", metavar="[ADDRESS]", is_flag=False, flag_value="local",
    help="Read and embed on a Ray cluster (extra `ray`): HOST:PORT of its head, `auto` for the one of this machine; "
    "without an address one is started here.",
)  # fmt: skip
def ingest(paths: tuple[Path, ...], address: str | None) -> None:
    """Ingest files or folders into the default corpus."""
    from rag_service.quickstart import ingest_paths

    failed = run_command(ingest_paths(read_quiet_settings(), paths, ray=address))
    if failed:
        sys.exit(1)


@main.command()
@click.argument("question")
def ask(question: str) -> None:
    """Ask a question and print the answer with its citations."""
    from rag_service.quickstart import ask_once

    run_command(ask_once(read_quiet_settings(), question))


@main.command()
@click.argument("answer_id", type=click.UUID)
def replay(answer_id: UUID) -> None:
    """Ask a recorded question again and show what changed."""
    from rag_service.app import LOCAL_ADMIN, open_components

    settings = read_quiet_settings()

    async def work() -> int:
        async with open_components(settings) as components:
            differences = await components.replay(answer_id, LOCAL_ADMIN)
        for difference in differences:
            click.echo(f"{difference.what}: {difference.detail}")
        return len(differences)

    if not run_command(work()):
        click.echo("Identical: nothing that decides the answer has changed.")


@main.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    from rag_service.store.embedded import start_embedded_server
    from rag_service.store.migrate import migrate as migrate_database

    settings = read_settings()

    async def work() -> bool:
        if settings.database_url is None:
            server = await start_embedded_server(settings.data_dir)
            owner, service = server.owner_conninfo, server.service_conninfo
        else:
            service = settings.database_url.get_secret_value()
            if settings.database_owner_url is None:
                raise click.UsageError("Set RAG_DATABASE_OWNER_URL to the URL of the role that owns the database.")
            owner = settings.database_owner_url.get_secret_value()
        return await migrate_database(owner, service, dimension=settings.embedding_dimension)

    click.echo("The database was brought up to date." if run_command(work()) else "The database is up to date.")


def _calibration_remark(index: IndexDefinition, settings: Settings) -> str:
    """Relevance and threshold rest on the cosines of one embedding model."""
    calibration = index.query.calibration
    if calibration is None:
        return ", relevance not calibrated: run `rag-service eval calibrate`"
    if calibration.model not in (None, settings.embedding_model):
        return (
            f", but its relevance is calibrated for {calibration.model} and not for {settings.embedding_model}:"
            " run `rag-service eval calibrate`"
        )
    return ""


@main.command()
@click.option("--live", is_flag=True, help="Also ask the database and the model servers.")
def check(live: bool) -> None:
    """Check settings, index definitions and prompts; prints one line each."""
    from rag_service.definitions import list_indices, load_index
    from rag_service.query.prompting.prompt import load_prompts

    settings = read_settings()
    failed = 0
    click.echo("settings: ok")
    for name in list_indices(indices_path=settings.indices_path):
        try:
            index = load_index(name, indices_path=settings.indices_path)
            click.echo(f"index {name}: ok{_calibration_remark(index, settings)}")
        except RagError as error:
            failed += 1
            click.echo(f"index {name}: {error.message}", err=True)
    try:
        prompts = load_prompts(settings.prompts_path, replacement=settings.prompt_template_path)
        click.echo(f"prompts: ok ({len(prompts.templates)} templates)")
    except RagError as error:
        failed += 1
        click.echo(f"prompts: {error.message}", err=True)
    if live:
        from rag_service.checks.live import check_live

        for result in run_command(check_live(settings)):
            click.echo(result.line, err=not result.ok)
            failed += not result.ok
    if failed:
        sys.exit(1)


for command in (keys, users, worker, reingest, eval_group, bench_group, mcp_command, settings_command):
    main.add_command(command)
