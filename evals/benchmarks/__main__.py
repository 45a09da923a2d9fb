"""`python -m evals.benchmarks retrieval | growth | ingest | answer | quotes | judge | load | fair | conversation`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click
import psycopg
from rich import box
from rich.console import Console
from rich.table import Table

from evals.benchmarks.answer import AnswerOptions, measure_answers
from evals.benchmarks.attacks import WAYS
from evals.benchmarks.conversation import measure_conversation
from evals.benchmarks.corpus import EVERYTHING, SHARES, generate_corpus
from evals.benchmarks.database import load_corpus, open_bench_database
from evals.benchmarks.fair import FairOptions, measure_fairness
from evals.benchmarks.ingest import measure_ingest, open_ingest_bench, write_notes
from evals.benchmarks.judge import measure_judge_prompt
from evals.benchmarks.load import LoadOptions, measure_load
from evals.benchmarks.quotes import ask_twice, summarise_quotes
from evals.benchmarks.retrieval import Bench, measure_retrieval
from evals.benchmarks.stock import fill_stock, open_stock
from evals.benchmarks.timing import Row, machine
from rag_service.cli.running import read_quiet_settings, run_command
from rag_service.indices import load_index, shipped_folder
from rag_service.settings import Settings

_STOCK_TABLE = "bench_stock"
_EVALS = Path(__file__).parents[1]
_QUOTED = ("samples.jsonl", "retirement.jsonl")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
_QUERIES = click.option("--queries", type=click.IntRange(1), default=100, show_default=True, help="Per selectivity.")
_DOCUMENTS = click.option(
    "--documents",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=shipped_folder("indices") / "general" / "documents",
    help="Folder that is ingested; default: sample documents.",
)


@click.group()
def benchmarks() -> None:
    """Measure speed in a database of its own (RAG_DATA_DIR/bench)."""


@benchmarks.command()
@click.option("--chunks", type=click.IntRange(1_000), default=72_000, show_default=True)
@_QUERIES
@click.option("--stock/--no-stock", default=True, show_default=True, help="Also measure stock PGVectorStore.")
@_JSON
def retrieval(chunks: int, queries: int, stock: bool, as_json: bool) -> None:
    """Hybrid search by the share of the chunks that it may reach: ours, bare SQL and stock."""
    selectivities = (*SHARES, EVERYTHING)
    _show(run_command(_measure(read_quiet_settings(), chunks, selectivities, queries, stock=stock)), as_json=as_json)


@benchmarks.command()
@click.option("--sizes", default="1000,10000,100000", show_default=True, help="Numbers of chunks.")
@_QUERIES
@_JSON
def growth(sizes: str, queries: int, as_json: bool) -> None:
    """Hybrid search and disk as the corpus grows."""
    rows: list[Row] = []
    for size in sizes.split(","):
        rows += run_command(_measure(read_quiet_settings(), int(size), ("1 %", EVERYTHING), queries, stock=False))
    _show(rows, as_json=as_json)


@benchmarks.command()
@_DOCUMENTS
@click.option("--notes", type=click.IntRange(1), help="Instead of a folder, so many files of 500 bytes.")
@_JSON
def ingest(documents: Path, notes: int | None, as_json: bool) -> None:
    """Documents from their files to the store: ours, the embedding model alone, and stock."""

    async def run() -> list[Row]:
        async with open_ingest_bench(read_quiet_settings()) as bench:
            if notes is None:
                return await measure_ingest(bench, documents)
            with TemporaryDirectory(prefix="rag-notes-") as folder:
                write_notes(Path(folder), notes)
                return await measure_ingest(bench, Path(folder), notes=True)

    _show(run_command(run()), as_json=as_json)


@benchmarks.command()
@_DOCUMENTS
@click.option("--questions", type=click.IntRange(10), default=300, show_default=True)
@click.option("--connections", type=click.IntRange(1), default=8, show_default=True, help="At once, for the rates.")
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="Of the application.")
@click.option("--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True, help="For each rate.")
@_JSON
def answer(documents: Path, questions: int, connections: int, processes: int, seconds: float, as_json: bool) -> None:
    """Requests with a chat model of zero latency, beside the search that they contain."""
    options = AnswerOptions(questions=questions, connections=connections, processes=processes, seconds=seconds)

    async def run() -> list[Row]:
        async with open_ingest_bench(read_quiet_settings()) as bench:
            return await measure_answers(bench, documents, options)

    _show(run_command(run()), as_json=as_json)


@benchmarks.command()
@_DOCUMENTS
@click.option("--rounds", type=click.IntRange(10), default=60, show_default=True, help="Of each turn.")
@_JSON
def conversation(documents: Path, rounds: int, as_json: bool) -> None:
    """The 2nd, 50th and 100th turn of a conversation with a chat model of zero latency."""

    async def run() -> list[Row]:
        async with open_ingest_bench(read_quiet_settings()) as bench:
            return await measure_conversation(bench, documents, rounds=rounds)

    _show(run_command(run()), as_json=as_json)


@benchmarks.command()
@_DOCUMENTS
@click.option("--users", type=click.IntRange(1), default=200, show_default=True)
@click.option("--seconds", type=click.FloatRange(1), default=180.0, show_default=True)
@click.option("--think", type=click.FloatRange(0.1), default=20.0, show_default=True, help="Mean, between requests.")
@click.option("--processes", type=click.IntRange(2), default=2, show_default=True, help="Half write, half quote.")
@_JSON
def load(documents: Path, users: int, seconds: float, think: float, processes: int, as_json: bool) -> None:
    """Many users at once: searches, quoted answers, streams, uploads."""
    options = LoadOptions(users=users, seconds=seconds, think=think, processes=processes)

    async def run() -> list[Row]:
        async with open_ingest_bench(read_quiet_settings()) as bench:
            return await measure_load(bench, documents, options)

    _show(run_command(run()), as_json=as_json)


@benchmarks.command()
@_DOCUMENTS
@click.option("--seconds", type=click.FloatRange(2), default=10.0, show_default=True, help="Of each attack.")
@click.option("--control", type=click.FloatRange(2), default=4.0, show_default=True, help="Seconds before each.")
@click.option("--way", "ways", multiple=True, type=click.Choice(list(WAYS)), help="Default: all.")
@_JSON
def fair(documents: Path, seconds: float, control: float, ways: tuple[str, ...], as_json: bool) -> None:
    """One account does its worst, and what another sees of it."""
    options = FairOptions(seconds=seconds, control=control, ways=ways)

    async def run() -> list[Row]:
        async with open_ingest_bench(read_quiet_settings()) as bench:
            return await measure_fairness(bench, documents, options)

    _show(run_command(run()), as_json=as_json)


@benchmarks.command()
@click.argument("sets", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--replies", type=click.Path(dir_okay=False, path_type=Path), help="Write each reply to this file.")
@_JSON
def quotes(sets: tuple[Path, ...], replies: Path | None, as_json: bool) -> None:
    """Processor time of answers without a chat model, over the questions of SETS; default: samples and retirement."""
    asked = run_command(ask_twice(read_quiet_settings(), sets or tuple(map(_EVALS.joinpath, _QUOTED))))
    if replies is not None:
        lines = [
            json.dumps(
                {"set": one.set_name, "id": one.key, "decision": one.reply.decision, "text": one.reply.text},
                ensure_ascii=False,
            )
            for one in asked
        ]
        replies.write_text("\n".join(lines) + "\n", encoding="utf-8")
    _show(summarise_quotes(asked), as_json=as_json)


@benchmarks.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_DOCUMENTS
@click.option(
    "--passages",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="The default fills a quarter of a window of 8,192 tokens, as a prompt does.",
)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
def judge(model: Path, documents: Path, passages: int, rounds: int) -> None:
    """The judge's prompt right after the writer's, beside the same alone, with MODEL (GGUF) in llama.cpp."""
    shares: list[float] = []
    for cost in measure_judge_prompt(model, documents, passages=passages, rounds=rounds):
        alone, after = cost.alone, cost.after_writer
        shares.append(after.milliseconds / alone.milliseconds)
        click.echo(
            f"alone {alone.tokens} tokens, {alone.milliseconds:.0f} ms; after the writer {after.tokens} tokens,"
            f" {after.milliseconds:.0f} ms: {shares[-1]:.2f}"
        )
    click.echo(f"median {median(shares):.2f}")


async def _measure(
    settings: Settings, chunks: int, selectivities: Sequence[str], queries: int, *, stock: bool
) -> list[Row]:
    async with open_bench_database(settings) as database:
        click.echo(f"Generating and loading {chunks:,} chunks ...", err=True)
        corpus = await asyncio.to_thread(generate_corpus, chunks, dimension=settings.embedding.dimension)
        loaded = await load_corpus(database, corpus)
        size = _table_megabytes(database.owner_conninfo)
        index = load_index("general", indices_path=settings.indices.path)
        bench = Bench(database=database, corpus=corpus, loaded=loaded, index=index)
        if not stock:
            rows = await measure_retrieval(bench, selectivities, queries=queries)
            return [row | {"MB on disk": size} for row in rows]
        owner, dimension = database.owner_conninfo, settings.embedding.dimension
        async with open_stock(owner, table=_STOCK_TABLE, dimension=dimension) as store:
            click.echo("Loading the stock table ...", err=True)
            await asyncio.to_thread(fill_stock, owner, corpus, table=_STOCK_TABLE)
            click.echo("Measuring ...", err=True)
            return await measure_retrieval(replace(bench, stock=store), selectivities, queries=queries)


def _table_megabytes(owner_conninfo: str) -> int:
    with psycopg.connect(owner_conninfo) as connection:
        row = connection.execute(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c"
            " WHERE c.relnamespace = 'rag'::regnamespace AND c.relkind = 'r'"
        ).fetchone()
    return round(int(row[0]) / 1e6) if row else 0


def _show(rows: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"machine": machine(), "rows": rows}))
        return
    columns = dict.fromkeys(column for row in rows for column in row)
    table = Table(title=", ".join(f"{name} {value}" for name, value in machine().items()), box=box.SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*("" if row.get(column) is None else f"{row[column]}" for column in columns))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


if __name__ == "__main__":
    benchmarks()
