"""`rag-service bench`: ingest, answer, retrieval, all, and what has files of its own: growth, plan."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rag_service.cli.bench_growth import growth
from rag_service.cli.bench_plan import plan
from rag_service.cli.running import Failure, read_quiet_settings, run_command
from rag_service.errors import RagError
from rag_service.settings import Settings

if TYPE_CHECKING:
    from rag_service.bench.corpus import BenchCorpus
    from rag_service.bench.retrieval import Bench, Measurement
    from rag_service.evaluation.report import ProgressSteps

T = TypeVar("T")


@click.group(name="bench")
def bench_group() -> None:
    """Measure speed on a corpus that the bench makes, in a database of its own (RAG_DATA_DIR/bench)."""


@bench_group.command()
@click.option("--chunks", type=click.IntRange(1_000, 5_000_000), default=72_000, show_default=True)
@click.option("--documents", type=click.Path(exists=True, path_type=Path), help="Real documents instead of made ones.")
@click.option("--queries", type=click.IntRange(1), default=100, show_default=True, help="Questions per selectivity.")
@click.option("--words", type=click.IntRange(1, 64), default=12, show_default=True, help="Words of a question.")
@click.option("--stock/--no-stock", default=True, show_default=True, help="Also measure stock PGVectorStore.")
@click.option("--stock-queries", type=click.IntRange(1), default=15, show_default=True, help="It takes its time.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def retrieval(as_json: bool, **chosen: Any) -> None:
    """Hybrid search by tenant size: ours under row-level security, stock PGVectorStore, and bare SQL."""
    from rag_service.bench.report import describe_bench, print_bench
    from rag_service.evaluation.report import wide_console

    settings = read_quiet_settings()
    bench, found, embedding_ms = run_command(_retrieval(settings, **chosen))
    described = describe_bench(bench, found, embedding_ms=embedding_ms)
    if as_json:
        click.echo(json.dumps(described))
    else:
        print_bench(wide_console(), described, found, bench.loaded)
    if bench.seq_scans:
        sys.exit(1)


async def _retrieval(
    settings: Settings,
    *,
    chunks: int,
    documents: Path | None,
    queries: int,
    words: int,
    stock: bool,
    stock_queries: int,
) -> tuple[Bench, list[Measurement], float | None]:
    from contextlib import AsyncExitStack

    from rich.console import Console

    from rag_service.bench.load import load_corpus, open_bench_database
    from rag_service.bench.retrieval import SELECTIVITIES, Bench, measure_all
    from rag_service.bench.stock import open_stock
    from rag_service.definitions import load_index
    from rag_service.evaluation.report import ProgressSteps, progress_bar

    async with AsyncExitStack() as stack:
        database = await open_bench_database(settings, chunks=chunks)
        stack.push_async_callback(database.database.close)
        steps = ProgressSteps(stack.enter_context(progress_bar(Console(stderr=True))))
        corpus = await _corpus(settings, chunks, documents, steps)
        steps.begin("loading", len(corpus.texts))
        loaded = await load_corpus(database, corpus, steps.advance)
        store = None
        if stock:
            steps.begin("loading the stock table", len(corpus.texts))
            store = await stack.enter_async_context(open_stock(database.owner_conninfo, corpus, steps.advance))
        bench = Bench(
            database=database,
            corpus=corpus,
            loaded=loaded,
            index=load_index("general", indices_path=settings.indices_path),
            stock=store,
            queries=queries,
            stock_queries=stock_queries,
            words=words,
        )
        steps.begin("measuring", len(SELECTIVITIES))
        found = await measure_all(bench, steps.advance)
        return bench, found, await _embedding_time(settings)


async def _corpus(settings: Settings, chunks: int, documents: Path | None, steps: Any) -> BenchCorpus:
    from rag_service.bench.corpus import generate_corpus

    if documents is None:
        steps.begin("making the corpus", 1)
        return await asyncio.to_thread(generate_corpus, chunks, dimension=settings.embedding_dimension)
    from rag_service.bench.documents import read_corpus
    from rag_service.definitions import load_index
    from rag_service.models.embeddings import build_embedding, close_embedding

    embedding = build_embedding(settings)
    steps.begin("embedding", chunks)
    advance: Callable[[int], None] = steps.advance
    try:
        index = load_index(settings.index, indices_path=settings.indices_path)
        return await read_corpus(documents, embedding, index, count=chunks, advance=advance)
    finally:
        await close_embedding(embedding)


async def _embedding_time(settings: Settings) -> float | None:
    """Median milliseconds of embedding a question, or None where the model cannot be used."""
    import statistics
    import time

    from rag_service.models.embeddings import build_embedding, close_embedding, warm_up

    try:
        embedding = build_embedding(settings)
        await warm_up(embedding)
    except RagError:
        return None
    spent = []
    for number in range(20):
        started = time.perf_counter()
        await embedding.aget_query_embedding(f"How many days of notice does contract number {number} ask for?")
        spent.append((time.perf_counter() - started) * 1000)
    await close_embedding(embedding)
    return round(statistics.median(spent), 1)


@bench_group.command()
@click.option(
    "--documents", type=click.Path(exists=True, path_type=Path), help="File or folder instead of the samples."
)
@click.option("--limit", type=click.IntRange(1), help="Most documents, in the order of their names.")
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

    described = run_command(_ingest(read_quiet_settings(), **chosen))
    if as_json:
        click.echo(json.dumps(described))
    else:
        print_ingest(wide_console(), described)


async def _ingest(
    settings: Settings, *, documents: Path | None, limit: int | None, storage_chunks: int, stock: bool
) -> dict[str, Any]:
    from rag_service.bench.corpus import generate_corpus
    from rag_service.bench.ingest import RUNS, measure_ingest, open_ingest_bench, prepare
    from rag_service.bench.load import empty_database
    from rag_service.bench.report import describe_ingest
    from rag_service.bench.storage import measure_storage

    async with open_ingest_bench(settings, chunks=storage_chunks) as bench:
        with _progress() as steps:
            steps.begin("reading documents", 1)
            prepared = await prepare(bench, documents or bench.index.documents_path, limit=limit, advance=steps.advance)
            steps.begin("ingesting", RUNS)
            found = await measure_ingest(bench, prepared, stock=stock, advance=steps.advance)
            steps.begin("storing", 1)
            corpus = await asyncio.to_thread(generate_corpus, storage_chunks, dimension=settings.embedding_dimension)
            storage = await measure_storage(bench.database, corpus, stock=stock)
            empty_database(bench.database.owner_conninfo)
            return describe_ingest(found, storage)


@bench_group.command()
@click.option(
    "--documents", type=click.Path(exists=True, path_type=Path), help="File or folder instead of the samples."
)
@click.option("--limit", type=click.IntRange(1), help="Most documents, in the order of their names.")
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

    described = run_command(_answer(read_quiet_settings(), **chosen))
    if as_json:
        click.echo(json.dumps(described))
    else:
        print_answers(wide_console(), described)


async def _answer(
    settings: Settings,
    *,
    documents: Path | None,
    limit: int | None,
    questions: int,
    connections: int,
    processes: int,
    seconds: float,
) -> dict[str, Any]:
    from rag_service.bench.answer import STEPS, measure_answers
    from rag_service.bench.ingest import open_ingest_bench, prepare
    from rag_service.bench.load import empty_database
    from rag_service.bench.report import describe_answers

    async with open_ingest_bench(settings, chunks=1_000) as bench:
        with _progress() as steps:
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


@bench_group.command(name="all")
@click.option(
    "--documents", type=click.Path(exists=True, path_type=Path), help="File or folder instead of the samples."
)
@click.option("--limit", type=click.IntRange(1), help="Most documents, in the order of their names.")
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
    ingested = run_command(_ingest(settings, documents=documents, limit=limit, storage_chunks=2_000, stock=True))
    answered = run_command(
        _answer(settings, documents=documents, limit=limit, questions=300, connections=8, processes=1, seconds=10.0)
    )
    bench, found, embedding_ms = run_command(
        _retrieval(settings, chunks=chunks, documents=None, queries=100, words=12, stock=True, stock_queries=15)
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


for command in (growth, plan):
    bench_group.add_command(command)


@contextmanager
def _progress() -> Iterator[ProgressSteps]:
    from rich.console import Console

    from rag_service.evaluation.report import ProgressSteps, progress_bar

    with progress_bar(Console(stderr=True)) as bar:
        yield ProgressSteps(bar)


if __name__ == "__main__":  # pragma: no cover - for work on this module alone
    sys.exit(bench_group())
