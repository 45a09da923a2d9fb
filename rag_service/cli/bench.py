"""`rag-service bench`: the group, and all of its measurements one after the other; each has a file of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from rag_service.cli.bench_answer import answer, run_answer
from rag_service.cli.bench_growth import growth
from rag_service.cli.bench_ingest import ingest, run_ingest
from rag_service.cli.bench_options import document_options
from rag_service.cli.bench_plan import plan
from rag_service.cli.bench_retrieval import STOCK_QUERIES, WORDS, retrieval, run_retrieval
from rag_service.cli.running import Failure, read_quiet_settings, run_command
from rag_service.errors import RagError


@click.group(name="bench")
def bench_group() -> None:
    """Measure speed on a corpus that the bench makes, in a database of its own (RAG_DATA_DIR/bench)."""


@bench_group.command(name="all")
@document_options
@click.option(
    "--chunks", type=click.IntRange(1_000, 5_000_000), default=10_000, show_default=True,
    help="Generated chunks for the searches.",
)  # fmt: skip
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write the rates as an SVG file.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def everything(documents: Path | None, limit: int | None, chunks: int, plot: Path | None, as_json: bool) -> None:
    """Ingest, answer and retrieval, one after the other, each with its usual options."""
    from rag_service.bench.plot import plot_rates
    from rag_service.bench.report import describe_bench, describe_machine, print_answers, print_bench, print_ingest
    from rag_service.evaluation.plot import write_plot
    from rag_service.evaluation.report import wide_console

    settings, console = read_quiet_settings(), wide_console()
    ingested = run_command(run_ingest(settings, documents=documents, limit=limit, storage_chunks=2_000, stock=True))
    answered = run_command(
        run_answer(settings, documents=documents, limit=limit, questions=300, connections=8, processes=1, seconds=10.0)
    )
    bench, found, embedding_ms = run_command(
        run_retrieval(
            settings, chunks=chunks, documents=None, queries=100, words=WORDS, stock=True, stock_queries=STOCK_QUERIES
        )
    )
    retrieved = describe_bench(bench, found, embedding_ms=embedding_ms)
    described = {"machine": describe_machine(), "ingest": ingested, "answer": answered, "retrieval": retrieved}
    if plot is not None:
        try:
            write_plot(plot_rates(described), plot)
        except RagError as error:
            raise Failure(error) from error
    if as_json:
        click.echo(json.dumps(described))
        return
    console.print("{cores} cores, {memory_gb} GB, Python {python}".format(**described["machine"]), style="dim")
    print_ingest(console, ingested)
    print_answers(console, answered)
    print_bench(console, retrieved, found, bench.loaded)


for command in (ingest, answer, retrieval, growth, plan):
    bench_group.add_command(command)


if __name__ == "__main__":  # pragma: no cover - for work on this module alone
    sys.exit(bench_group())
