"""`python -m evals.conversations [FILE …]`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from evals.conversations.long import LongReply, hold_long, read_long
from evals.conversations.measure import TurnFigures, TurnReply, count_replies, hold
from evals.conversations.turns import (
    ASKS,
    Conversation,
    count_turns,
    find_turn_problems,
    read_file,
    read_half,
)
from evals.sets.questions import HALVES
from evals.written.dump import write_dump
from evals.written.measure import WITHOUT, open_bench
from evals.written.options import shared_options


@click.command()
@shared_options
@click.option("--long", "is_long", is_flag=True, help="Instead: what was said first, asked for in turn 30.")
def main(
    files: tuple[Path, ...], half: str | None, judges: tuple[str, ...], replies: bool, dump: Path | None,
    check: bool, is_long: bool, folder: Path | None,
) -> None:  # fmt: skip
    """Hold written conversations, of these files or of evals/conversations, and count the replies by what is asked.

    The service is opened with the packaged embedding model, and with the answers as its chat model.
    """
    given = [one for path in files for one in read_file(path)]
    given = given or [one for name in HALVES if half in (None, name) for one in read_half(name)]
    if problems := find_turn_problems(given):
        raise click.ClickException("\n".join(problems))
    with tempfile.TemporaryDirectory() as made:
        if is_long:
            _print_long(asyncio.run(_hold_long(folder or Path(made))))
            return
        for judge in (WITHOUT,) if check else judges:
            found = asyncio.run(_hold_all(given, judge, folder or Path(made)))
            if check:
                _print_check(given, found)
                continue
            console = Console(width=None if sys.stdout.isatty() else 200)
            console.print(f"judge {judge}")
            console.print(_table(found))
            if replies:
                _print_replies(found)
            if dump is not None:
                click.echo(f"{write_dump(dump, [one.reply for one in found])} of {len(found)} were judged: {dump}")


async def _hold_all(given: Sequence[Conversation], judge: str, folder: Path) -> list[TurnReply]:
    async with open_bench(judge, folder) as bench:
        await bench.examine()
        await bench.ingest((one.set_name for one in given), lambda text: click.echo(text, err=True))
        return [reply for one in given for reply in await hold(bench, one)]


async def _hold_long(folder: Path) -> list[LongReply]:
    developed = read_half("developed")
    async with open_bench("right", folder) as bench:
        await bench.examine()
        await bench.ingest((one.set_name for one in developed), lambda text: click.echo(text, err=True))
        return await hold_long(bench, developed, read_long())


def _print_long(found: Sequence[LongReply]) -> None:
    for one in found:
        reply = one.reply
        state = f"told={one.is_told} shown={one.is_shown} green={reply.is_green} prompt={one.characters}"
        click.echo(f"{reply.answer.id} {reply.answer.question!r}: {state} {reply.why_not}")
    counts = (
        sum(one.is_told for one in found),
        sum(one.is_shown for one in found),
        sum(one.reply.is_green for one in found),
    )
    click.echo("of {}: {} told what was said, {} shown what it rests on, {} green".format(len(found), *counts))


def _print_check(given: Sequence[Conversation], found: Sequence[TurnReply]) -> None:
    for one in found:
        for words in one.reply.missing:
            click.echo(f"{one.reply.answer.id}: in no passage that was shown: {words}")
        if one.reply.outcome == "not asked":
            click.echo(f"{one.reply.answer.id}: the model is not asked")
    for name, counted in count_turns(given).items():
        click.echo(f"{name}: " + ", ".join(f"{key} {times}" for key, times in counted.items()))


def _table(found: Sequence[TurnReply]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("half", "asks", *(field.name.replace("_", " ") for field in fields(TurnFigures)), "why not green"):
        table.add_column(column, justify="left" if column in ("half", "asks", "why not green") else "right")
    for half in (*HALVES, ""):
        of_half = [one for one in found if one.reply.answer.half == half]
        right = [one for one in of_half if one.reply.answer.right]
        near = [one for one in of_half if not one.reply.answer.right]
        rows = [("all", right), *((asks, [one for one in right if one.turn.asks == asks]) for asks in ASKS)]
        for name, replies in (*rows, ("near misses", near)):
            if replies:
                why = Counter(one.reply.why_not for one in replies if one.reply.why_not)
                told = ", ".join(f"{code} {times}" for code, times in why.most_common())
                table.add_row(half, name, *map(str, astuple(count_replies(replies))), told)
        table.add_section()
    return table


def _print_replies(found: Sequence[TurnReply]) -> None:
    for one in found:
        reply = one.reply
        is_well = one.is_right and one.is_clean and reply.is_green if reply.answer.right else not reply.is_green
        if not is_well:
            told = [reason.code for reason in reply.body.reasons]
            doubts = [citation.reason for citation in reply.body.citations if citation.reason]
            state = f"right={one.is_right} clean={one.is_clean} green={reply.is_green} {reply.outcome}"
            click.echo(f"{reply.answer.id} {reply.answer.question!r}: {state} {told} {doubts}")
            click.echo(f"  {reply.body.answer[:300]!r}")


if __name__ == "__main__":
    main()
