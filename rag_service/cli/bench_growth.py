"""`rag-service bench growth`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_service.cli.running import Failure, progress, read_quiet_settings, run_command
from rag_service.errors import RagError
from rag_service.settings import Settings

if TYPE_CHECKING:
    from rag_service.bench.growth import Step


class _Sizes(click.ParamType[list[int]]):
    name = "numbers"

    def convert(self, value: str | list[int], param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        try:
            sizes = sorted({int(part.replace("_", "")) for part in value.split(",")})
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 1000,10000.", param, ctx)
        if sizes[0] < 500 or sizes[-1] > 10_000_000:
            self.fail("sizes lie between 500 and 10,000,000 chunks.", param, ctx)
        return sizes


@click.command()
@click.option("--sizes", type=_Sizes(), default="1000,10000,100000", show_default=True, help="Chunks of each step.")
@click.option("--queries", type=click.IntRange(5), default=60, show_default=True, help="Questions of each scope.")
@click.option("--words", type=click.IntRange(1, 64), default=12, show_default=True, help="Words of a question.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write the curves as an SVG file.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def growth(sizes: list[int], queries: int, words: int, plot: Path | None, as_json: bool) -> None:
    """Cost of searching, writing, disk and memory by size; a million chunks take most of an hour."""
    from rag_service.bench.growth_report import describe_growth, plot_growth, print_growth
    from rag_service.evaluation.plot import write_plot
    from rag_service.evaluation.report import wide_console

    steps = run_command(_growth(read_quiet_settings(), sizes, queries=queries, words=words))
    if plot is not None:
        try:
            write_plot(plot_growth(steps), plot)
        except RagError as error:
            raise Failure(error) from error
    if as_json:
        click.echo(json.dumps(describe_growth(steps)))
    else:
        print_growth(wide_console(), steps)


async def _growth(settings: Settings, sizes: list[int], *, queries: int, words: int) -> list[Step]:

    from rag_service.bench.growth import measure_growth
    from rag_service.bench.load import check_memory, open_bench_database
    from rag_service.definitions import load_index

    check_memory(sizes[-1], dimension=settings.embedding_dimension)
    bench = await open_bench_database(settings, chunks=sizes[-1])
    index = load_index("general", indices_path=settings.indices_path)
    found = []
    try:
        with progress() as steps:
            for size in sizes:
                steps.begin(f"{size:,} chunks", size)
                step = await measure_growth(
                    bench, settings, index, chunks=size, queries=queries, words=words, advance=steps.advance
                )
                found.append(step)
    finally:
        await bench.database.close()
    return found
