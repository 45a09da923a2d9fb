"""`rag-service bench ingest`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from rag_service.cli.bench_options import document_options
from rag_service.cli.running import progress, read_quiet_settings, run_command
from rag_service.settings import Settings


@click.command()
@document_options
@click.option(
    "--storage-chunks", type=click.IntRange(100, 1_000_000), default=2_000, show_default=True,
    help="Generated chunks for the storage leg alone.",
)  # fmt: skip
@click.option("--stock/--no-stock", default=True, show_default=True, help="Also measure stock LlamaIndex.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def ingest(as_json: bool, **chosen: Any) -> None:
    """Documents from their bytes to the store: ours, the embedder alone, stock IngestionPipeline; storage alone."""
    from rag_service.bench.report import print_ingest
    from rag_service.evaluation.report import wide_console

    described = run_command(run_ingest(read_quiet_settings(), **chosen))
    if as_json:
        click.echo(json.dumps(described))
    else:
        print_ingest(wide_console(), described)


async def run_ingest(
    settings: Settings, *, documents: Path | None, limit: int | None, storage_chunks: int, stock: bool
) -> dict[str, Any]:
    """The figures of ingestion and of storage alone, ready to print."""
    from rag_service.bench.corpus import generate_corpus
    from rag_service.bench.ingest import RUNS, measure_ingest, open_ingest_bench, prepare
    from rag_service.bench.load import empty_database
    from rag_service.bench.report import describe_ingest
    from rag_service.bench.storage import measure_storage

    async with open_ingest_bench(settings, chunks=storage_chunks) as bench:
        with progress() as steps:
            steps.begin("reading documents", 1)
            prepared = await prepare(bench, documents or bench.index.documents_path, limit=limit, advance=steps.advance)
            steps.begin("ingesting", RUNS)
            found = await measure_ingest(bench, prepared, stock=stock, advance=steps.advance)
            steps.begin("storing", 1)
            corpus = await asyncio.to_thread(generate_corpus, storage_chunks, dimension=settings.embedding_dimension)
            storage = await measure_storage(bench.database, corpus, stock=stock)
            empty_database(bench.database.owner_conninfo)
            return describe_ingest(found, storage)
