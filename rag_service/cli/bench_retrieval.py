"""`rag-service bench retrieval`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rag_service.cli.running import progress, read_quiet_settings, run_command
from rag_service.errors import RagError
from rag_service.settings import Settings

if TYPE_CHECKING:
    from rag_service.bench.corpus import BenchCorpus
    from rag_service.bench.retrieval import Bench, Measurement


# Questions are made of words that stop words are not among. Thirty words of running text, the length of a question in
# the baselines that stock is measured by, hold 19 such in English and 17 in Spanish (XQuAD's first 30 of each passage).
WORDS = 18
STOCK_QUERIES = 30


@click.command()
@click.option("--chunks", type=click.IntRange(1_000, 5_000_000), default=72_000, show_default=True)
@click.option("--documents", type=click.Path(exists=True, path_type=Path), help="Real documents instead of made ones.")
@click.option("--queries", type=click.IntRange(1), default=100, show_default=True, help="Questions per selectivity.")
@click.option(
    "--words", type=click.IntRange(1, 64), default=WORDS, show_default=True,
    help="Words of a question, without stop words: 30 words of running text have so many.",
)  # fmt: skip
@click.option("--stock/--no-stock", default=True, show_default=True, help="Also measure stock PGVectorStore.")
@click.option(
    "--stock-queries", type=click.IntRange(1), default=STOCK_QUERIES, show_default=True, help="It takes its time."
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def retrieval(as_json: bool, **chosen: Any) -> None:
    """Hybrid search by tenant size: ours under row-level security, stock PGVectorStore, and bare SQL."""
    from rag_service.bench.report import describe_bench, print_bench
    from rag_service.evaluation.report import wide_console

    settings = read_quiet_settings()
    bench, found, embedding_ms = run_command(run_retrieval(settings, **chosen))
    described = describe_bench(bench, found, embedding_ms=embedding_ms)
    if as_json:
        click.echo(json.dumps(described))
    else:
        print_bench(wide_console(), described, found, bench.loaded)
    if bench.seq_scans:
        sys.exit(1)


async def run_retrieval(
    settings: Settings,
    *,
    chunks: int,
    documents: Path | None,
    queries: int,
    words: int,
    stock: bool,
    stock_queries: int,
) -> tuple[Bench, list[Measurement], float | None]:
    """What is measured, how long each selectivity took, and milliseconds of embedding a question (None: no model)."""
    from contextlib import AsyncExitStack

    from rag_service.bench.load import load_corpus, open_bench_database
    from rag_service.bench.retrieval import SELECTIVITIES, Bench, measure_all
    from rag_service.bench.stock import open_stock
    from rag_service.definitions import load_index

    async with AsyncExitStack() as stack:
        database = await open_bench_database(settings, chunks=chunks)
        stack.push_async_callback(database.database.close)
        steps = stack.enter_context(progress())
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
    from rag_service.models.embedding.embeddings import build_embedding, close_embedding

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

    from rag_service.models.embedding.embeddings import build_embedding, close_embedding, warm_up

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
