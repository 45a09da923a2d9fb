"""`rag-service sync | sources`: sync corpora with folders, sites, stores and readers, as the local administrator."""

from __future__ import annotations

import sys
from dataclasses import asdict
from uuid import UUID

import click
from rich.console import Console

from rag_service.cli.progress import show_progress
from rag_service.cli.running import (
    as_administrator,
    print_table,
    read_quiet_settings,
    run_as_administrator,
    run_command,
)
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import RagError
from rag_service.settings import Settings
from rag_service.store.corpora import DEFAULT_CORPUS, find_or_create_corpus
from rag_service.store.documents.sources import (
    ScheduledSource,
    add_source,
    list_sources,
    read_source,
    remove_source,
)
from rag_service.store.rows import LIMIT_MAX, Slice

_EVERY = {"hour": 3600, "day": 86_400, "week": 7 * 86_400}  # seconds
_COUNTS = ("added", "changed", "renamed", "deleted", "unchanged", "kept", "not_taken")

_CORPUS = click.option(
    "--corpus", metavar="NAME", help="Global corpus, created if missing. Default: the default corpus."
)
_DEPTH = click.option(
    "--depth",
    type=click.IntRange(0, 20),
    default=0,
    show_default=True,
    help="How many links deep to follow from a page.",
)


@click.command(name="sync")
@click.argument("target")
@_CORPUS
@_DEPTH
@click.option("--watch", is_flag=True, help="Keep running, and sync again whenever something changes.")
@click.option(
    "--delete/--keep", default=None,
    help="Delete or keep the documents of files that are gone. Only documents that a sync of this target added are"
    " deleted. Default: delete, unless the target is empty.",
)  # fmt: skip
def sync_command(target: str, corpus: str | None, depth: int, watch: bool, delete: bool | None) -> None:
    """Keep a corpus equal to a folder, a page, a sitemap, a bucket or a LlamaIndex reader.

    TARGET is a folder, the address of a page or a sitemap, s3://BUCKET/FOLDER, or reader:NAME for a reader that is
    declared in the file of RAG_SOURCE_READERS. Unchanged files are not read again,
    and renamed ones are not embedded again. A sync can be interrupted at any time; the next one continues.
    """
    run_command(_sync(read_quiet_settings(), target, corpus, depth=depth, watch=watch, delete=delete))


async def _sync(
    settings: Settings, target: str, corpus: str | None, *, depth: int, watch: bool, delete: bool | None
) -> None:
    from rag_service.components import open_components

    console, output = Console(stderr=True), Console()
    async with open_components(settings) as components:
        with show_progress(console, "Syncing") as show:
            sync = await components.open_sync(
                target, LOCAL_ADMIN, corpus_name=corpus, depth=depth, delete=delete,
                on_progress=show,
            )  # fmt: skip
            if watch:
                async for happened in sync.watch():
                    _print(output, happened.message if isinstance(happened, RagError) else str(happened))
                return
            report = await sync.run()
        _print(output, str(report))


def _print(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    sys.stdout.flush()


@click.group()
def sources() -> None:
    """Sources that a running `serve` or `worker` syncs: add, list, run, remove."""


@sources.command("add")
@click.argument("target")
@_CORPUS
@_DEPTH
@click.option("--every", type=click.Choice(list(_EVERY)), default="day", show_default=True, help="How often.")
def add_command(target: str, corpus: str | None, depth: int, every: str) -> None:
    """Sync TARGET regularly: a folder, the address of a page or a sitemap, s3://BUCKET/FOLDER, or reader:NAME."""

    async def add() -> None:
        from rag_service.sources.opening import open_source

        settings = read_quiet_settings()
        source = open_source(target, settings, depth=depth)
        async with as_administrator(settings) as connection:
            name, index = corpus or DEFAULT_CORPUS, settings.indices.default
            found = await find_or_create_corpus(connection, LOCAL_ADMIN, name, index)
            added = await add_source(
                connection, LOCAL_ADMIN, corpus_id=found.id, target=source.target, depth=depth,
                every_seconds=_EVERY[every],
            )  # fmt: skip
        click.echo(f"{added.id}: synced into {found.name} every {every} while `serve` or `worker` is running.")

    run_command(add())


@sources.command("list")
def list_command() -> None:
    """List the sources of global corpora, with the outcome of the last run."""

    page = run_as_administrator(list_sources, Slice(limit=LIMIT_MAX))
    rows = [(source.id, source.corpus_name, source.target, source.status, _outcome(source)) for source in page.items]
    print_table(("id", "corpus", "source", "status", "last run"), rows)


def _outcome(source: ScheduledSource) -> str:
    if source.error or source.report is None or source.last_run_at is None:
        return source.error or "never"
    report = asdict(source.report)
    counts = [f"{report[word]} {word.replace('_', ' ')}" for word in _COUNTS if report[word]]
    return f"{source.last_run_at:%Y-%m-%d %H:%M} {', '.join(counts) or 'empty'}"


@sources.command("run")
@click.argument("source_id", type=click.UUID)
def run_now_command(source_id: UUID) -> None:
    """Sync a source now, in this process, and print the report."""

    async def run() -> None:
        from rag_service.components import open_components

        async with open_components(read_quiet_settings()) as components:
            async with components.database.transaction(LOCAL_ADMIN) as connection:
                await read_source(connection, source_id)
            with show_progress(Console(stderr=True), "Syncing") as show:
                report = await components.source_runner().run_now(source_id, on_progress=show)
        _print(Console(), str(report))

    run_command(run())


@sources.command("remove")
@click.argument("source_id", type=click.UUID)
@click.option("--with-documents", is_flag=True, help="Also delete the documents that it added.")
def remove_command(source_id: UUID, with_documents: bool) -> None:
    """Remove a source and keep its documents."""

    run_as_administrator(remove_source, source_id, documents=with_documents)
    click.echo("Removed.")
