"""A plan as tables and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rag_service.bench.plan import Plan


def describe_plan(plan: Plan) -> dict[str, Any]:
    """Everything as `--json` prints it; a limit that is never met has no chunks."""
    limits = [{**asdict(limit), "chunks": _finite(limit.chunks)} for limit in plan.limits]
    return {
        "demand": asdict(plan.demand),
        "lines": [asdict(line) for line in plan.lines],
        "limits": limits,
        "beyond": [limit.what for limit in plan.beyond],
    }


def _finite(value: float) -> int | None:
    return None if math.isinf(value) else round(value)


def print_plan(console: Console, plan: Plan) -> None:
    """What it takes, then what breaks first."""
    table = Table(title=f"{plan.demand.chunks:,} chunks of {plan.demand.dimension} dimensions", box=box.SIMPLE_HEAD)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("")
    table.add_column("basis")
    for line in plan.lines:
        table.add_row(line.what, _short(line.value), line.unit, line.basis.value)
    console.print(table)
    table = Table(title="What breaks first", box=box.SIMPLE_HEAD)
    table.add_column("limit")
    table.add_column("chunks", justify="right")
    table.add_column("basis")
    table.add_column("way out")
    beyond = plan.beyond
    for limit in plan.limits:
        style = "bold" if limit in beyond else "dim"
        table.add_row(limit.what, _short(limit.chunks), limit.basis.value, limit.way_out, style=style)
    console.print(table)
    console.print(f"{plan.demand.chunks:,} chunks are beyond {len(beyond)} of these limits.", style="dim")


def _short(value: float) -> str:
    """Three figures are more than a plan knows."""
    if math.isinf(value):
        return "never"
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"
