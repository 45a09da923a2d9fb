"""`rag-service sync`: keeps a corpus equal to a folder or site, as the local administrator."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from rag_service.cli.progress import told_progress
from rag_service.cli.running import read_quiet_settings, run_command
from rag_service.errors import RagError
from rag_service.settings import Settings


@click.command(name="sync")
@click.argument("target")
@click.option("--corpus", metavar="NAME", help="Global corpus, created if missing. Default: the default corpus.")
@click.option("--depth", type=click.IntRange(0, 20), default=0, show_default=True, help="Links to follow from a page.")
@click.option("--watch", is_flag=True, help="Go on, and sync again whenever something changes.")
@click.option(
    "--delete/--keep", default=None,
    help="Delete the documents of files that are gone, or keep them. Only documents that a sync of this target brought"
    " in are deleted. Default: delete, unless the target is empty.",
)  # fmt: skip
def sync_command(target: str, corpus: str | None, depth: int, watch: bool, delete: bool | None) -> None:
    """Keep a corpus equal to TARGET: a folder, the address of a page or a sitemap, or s3://BUCKET/FOLDER.

    Unchanged files are not read again, and a renamed one is not embedded again. It may be interrupted at any time; the
    next sync goes on.
    """
    run_command(_sync(read_quiet_settings(), target, corpus, depth=depth, watch=watch, delete=delete))


async def _sync(
    settings: Settings, target: str, corpus: str | None, *, depth: int, watch: bool, delete: bool | None
) -> None:
    from rag_service.app import LOCAL_ADMIN, open_components

    console, output = Console(stderr=True), Console()
    async with open_components(settings) as components:
        with told_progress(console, "Syncing") as tell:
            sync = await components.open_sync(
                target, LOCAL_ADMIN, corpus_name=corpus, depth=depth, delete=delete,
                on_progress=lambda step: tell(step.done, step.total, step.name, step.seconds_left),
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
