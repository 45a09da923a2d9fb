"""`python -m evals.sets [SET …]`."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from evals.sets.measure import Figures, Reply, ask_set, by_half, count
from evals.sets.questions import read_set, set_names
from evals.sets.thresholds import missed, save_thresholds
from rag_service import open_service


@click.command()
@click.argument("names", nargs=-1, metavar="[SET]...", type=click.Choice(set_names()))
@click.option("--replies", is_flag=True, help="Also print each reply that is not right, or green although it must not.")
@click.option("--save", is_flag=True, help="Keep the figures as thresholds of these sets.")
@click.option("--second", is_flag=True, help="Ask each question in a conversation, after one about other files.")
@click.option("--json", "as_json", is_flag=True, help="Print each reply as JSON, to compare two runs.")
def main(names: tuple[str, ...], replies: bool, save: bool, second: bool, as_json: bool) -> None:
    """Ask the questions of these sets, or of all, and count the replies.

    The service is opened with the packaged embedding model and without a chat model, in a folder of its own.
    """
    asked: dict[str, list[Reply]] = {}
    chosen: dict[str, Any] = {"database_url": None, "chat_provider": "extractive", "embedding_provider": "local"}
    with tempfile.TemporaryDirectory() as folder, open_service(data_dir=Path(folder), **chosen) as service:
        for name in names or set_names():
            click.echo(f"{name} ...", err=True)
            asked[name] = ask_set(service, read_set(name), second=second)
    halves = {name: {half: count(found) for half, found in by_half(given)} for name, given in asked.items()}
    if replies:
        _print_replies(asked)
    if as_json:
        click.echo(json.dumps({name: [asdict(reply) for reply in given] for name, given in asked.items()}))
    else:
        _print_table(asked)
    if save:
        save_thresholds(halves)
    for name, found in halves.items():
        for half, figures in found.items():
            for line in missed(name, half, figures):
                click.echo(f"below its threshold: {line}", err=True)


def _print_table(asked: dict[str, list[Reply]]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("set")
    table.add_column("half")
    table.add_column("language")
    for figure in fields(Figures):
        table.add_column(figure.name.replace("_", " "), justify="right")
    for name, replies in asked.items():
        for half, found in by_half(replies):
            languages = sorted({reply.question.language for reply in found})
            for language in languages:
                _add_row(table, name, half, language, [one for one in found if one.question.language == language])
            if len(languages) > 1:
                _add_row(table, name, half, "all", found)
        table.add_section()
    if len(asked) > 1:
        _add_row(table, "all sets", "", "", [reply for replies in asked.values() for reply in replies])
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)
    console.print(_table_of_reasons([reply for replies in asked.values() for reply in replies]))


def _table_of_reasons(replies: Sequence[Reply]) -> Table:
    """How many replies each reason holds back, by what weighs most in each."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("why not green")
    for column in ("replies", "right", "not right", "unanswerable"):
        table.add_column(column, justify="right")
    by_reason: dict[str, list[Reply]] = {}
    for reply in replies:
        if not reply.is_green:
            by_reason.setdefault(next(iter(reply.reasons), ""), []).append(reply)
    for reason, held in sorted(by_reason.items(), key=lambda pair: -len(pair[1])):
        answerable = [reply.is_right for reply in held if reply.is_answerable]
        figures = (len(held), sum(answerable), len(answerable) - sum(answerable), len(held) - len(answerable))
        table.add_row(reason, *map(str, figures))
    return table


def _add_row(table: Table, name: str, half: str, language: str, replies: list[Reply]) -> None:
    table.add_row(name, half, language, *(f"{value}" for value in asdict(count(replies)).values()))


def _print_replies(asked: dict[str, list[Reply]]) -> None:
    for name, replies in asked.items():
        for reply in replies:
            if reply.is_false or (reply.is_answerable and not reply.is_right):
                colour = "green" if reply.is_green else "not green"
                wanted = " | ".join(" & ".join(parts) for parts in reply.question.answers) or "nothing"
                click.echo(f"{name}: {reply.question.text}\n  {colour}: {reply.text[:300]!r}\n  wanted: {wanted}")


if __name__ == "__main__":
    main()
