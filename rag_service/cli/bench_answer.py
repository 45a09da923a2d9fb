"""`rag-service bench answer`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from rag_service.cli.bench_options import document_options
from rag_service.cli.running import progress, read_quiet_settings, run_command
from rag_service.settings import Settings


@click.command()
@document_options
@click.option("--questions", type=click.IntRange(10, 100_000), default=300, show_default=True)
@click.option(
    "--connections", type=click.IntRange(1, 200), default=8, show_default=True, help="At once, for the rates."
)
@click.option(
    "--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Of the application, for the rates."
)
@click.option("--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True, help="For each rate.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def answer(as_json: bool, **chosen: Any) -> None:
    """Requests from socket to socket with a model of zero latency, beside the search that they contain."""
    from rag_service.bench.report import print_answers
    from rag_service.evaluation.report import wide_console

    described = run_command(run_answer(read_quiet_settings(), **chosen))
    if as_json:
        click.echo(json.dumps(described))
    else:
        print_answers(wide_console(), described)


async def run_answer(
    settings: Settings,
    *,
    documents: Path | None,
    limit: int | None,
    questions: int,
    connections: int,
    processes: int,
    seconds: float,
) -> dict[str, Any]:
    """The figures of requests, ready to print."""
    from rag_service.bench.answer import STEPS, measure_answers
    from rag_service.bench.ingest import open_ingest_bench, prepare
    from rag_service.bench.load import empty_database
    from rag_service.bench.report import describe_answers

    async with open_ingest_bench(settings, chunks=1_000) as bench:
        with progress() as steps:
            steps.begin("reading documents", 1)
            prepared = await prepare(bench, documents or bench.index.documents_path, limit=limit, advance=steps.advance)
            steps.begin("asking", STEPS)
            found = await measure_answers(
                bench,
                prepared,
                questions=questions,
                connections=connections,
                processes=processes,
                seconds=seconds,
                advance=steps.advance,
            )
            empty_database(bench.database.owner_conninfo)
            return describe_answers(found)
