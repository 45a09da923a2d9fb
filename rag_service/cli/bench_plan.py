"""`rag-service bench plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from rag_service.cli.running import Failure
from rag_service.errors import InputError, RagError


@click.command()
@click.option("--chunks", type=click.IntRange(1_000, 10**12), default=10**9, show_default=True)
@click.option("--dimension", type=click.IntRange(1, 4_000), default=384, show_default=True, help="Of the vectors.")
@click.option(
    "--largest-corpus", type=click.FloatRange(0, 1), default=0.01, show_default=True, help="Its share of the chunks."
)
@click.option("--searches", type=click.FloatRange(0), default=100.0, show_default=True, help="A second.")
@click.option("--days", type=click.FloatRange(0.01), default=30.0, show_default=True, help="For the first load.")
@click.option("--replicas", type=click.IntRange(0, 100), default=1, show_default=True, help="Of each shard.")
@click.option("--cores", type=click.IntRange(1), default=16, show_default=True, help="Of a database machine.")
@click.option("--memory", "memory_gb", type=click.FloatRange(1), default=128.0, show_default=True, help="Its GB.")
@click.option("--disk", "disk_gb", type=click.FloatRange(1), default=4_000.0, show_default=True, help="Its GB.")
@click.option("--core-price", type=click.FloatRange(0), default=20.0, show_default=True, help="A core and month.")
@click.option("--memory-price", type=click.FloatRange(0), default=3.0, show_default=True, help="A GB and month.")
@click.option("--disk-price", type=click.FloatRange(0), default=0.1, show_default=True, help="A GB and month.")
@click.option("--core-hour-price", type=click.FloatRange(0), default=0.05, show_default=True, help="For embedding.")
@click.option(
    "--measured", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What `bench growth --json` printed on your machine, instead of the figures that are shipped.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def plan(measured: Path | None, as_json: bool, **chosen: Any) -> None:
    """Compute sizes, shards, times and the order of the costs, and what breaks first. Loads nothing."""
    from dataclasses import fields

    from rag_service.bench.plan import Demand, Machine, make_plan, read_measured
    from rag_service.bench.plan_report import describe_plan, print_plan
    from rag_service.evaluation.report import wide_console

    demand, machine = (
        {name: chosen[name] for name in chosen if name in {field.name for field in fields(kind)}}
        for kind in (Demand, Machine)
    )
    try:
        figures = None if measured is None else read_measured(_read_json(measured))
    except RagError as error:
        raise Failure(error) from error
    made = make_plan(Demand(**demand), Machine(**machine), figures)
    if as_json:
        click.echo(json.dumps(describe_plan(made)))
    else:
        print_plan(wide_console(), made)


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} holds no JSON.") from error
