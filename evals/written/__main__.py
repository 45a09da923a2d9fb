"""`python -m evals.written [FILE …]`."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from evals.sets.questions import HALVES
from evals.written.answers import KINDS, STYLES, Answer, count_answers, find_problems, read_file, read_half
from evals.written.dump import score_dump, write_dump
from evals.written.ledger import count_sentences, weigh_checks
from evals.written.measure import WITHOUT, Bench, Reply, count, describe_reply, open_bench
from evals.written.options import NEW_PATH, PATH, shared_options
from evals.written.passages import find_unfound, read_questions, show_passages


@click.command()
@shared_options
@click.option("--ledger", is_flag=True, help="Also print what each check of code doubts.")
@click.option("--json", "lines", type=NEW_PATH, help="Append a line of JSON for each reply to this file.")
@click.option("--score", type=PATH, help="Count what readers accepted of a dump; nothing is asked.")
@click.option("--passages", type=PATH, help="Print what the model is shown for the questions of this file.")
def main(
    files: tuple[Path, ...], half: str | None, judges: tuple[str, ...], replies: bool, dump: Path | None,
    ledger: bool, lines: Path | None, score: Path | None, passages: Path | None, check: bool, folder: Path | None,
) -> None:  # fmt: skip
    """Ask the questions of written answers, of these files or of evals/written, and count the replies by kind.

    The service is opened with the packaged embedding model, and with the answers as its chat model.
    """
    if score is not None:
        click.echo("\n".join(score_dump(score)))
        return
    with tempfile.TemporaryDirectory() as made:
        kept = folder or Path(made)
        if passages is not None:
            asyncio.run(_print_passages(passages, kept))
            return
        answers = [answer for path in files for answer in read_file(path)]
        answers = answers or [answer for one in (half,) if one for answer in read_half(one)]
        answers = answers or [answer for one in HALVES for answer in read_half(one)]
        if problems := find_problems(answers):
            raise click.ClickException("\n".join(problems))
        if check:
            asyncio.run(_check(answers, kept))
            return
        for judge in judges:
            asyncio.run(_measure(answers, judge, kept, replies=replies, dump=dump, ledger=ledger, lines=lines))


async def _print_passages(path: Path, folder: Path) -> None:
    questions = read_questions(path)
    async with open_bench(WITHOUT, folder) as bench:
        await bench.ingest((one.set_name for one in questions), _tell)
        async for text in show_passages(bench, questions):
            click.echo(f"{text}\n")


async def _check(answers: Sequence[Answer], folder: Path) -> None:
    async with open_bench(WITHOUT, folder) as bench:
        for reply in await _ask_all(bench, answers):
            missing = reply.missing
            if reply.outcome == "not asked":
                click.echo(f"{reply.answer.id}: the model is not asked")
                missing = await find_unfound(bench, reply.answer)
            for words in missing:
                click.echo(f"{reply.answer.id}: in no passage that was shown: {words}")
    for name, counted in count_answers(answers).items():
        click.echo(f"{name}: " + ", ".join(f"{key} {times}" for key, times in counted.items()))


async def _measure(
    answers: Sequence[Answer], judge: str, folder: Path, *, replies: bool, dump: Path | None, ledger: bool,
    lines: Path | None,
) -> None:  # fmt: skip
    async with open_bench(judge, folder) as bench:
        examined = await bench.examine()
        found = await _ask_all(bench, answers)
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(f"judge {judge}, {examined}", highlight=False)
    console.print(_table(found))
    if ledger:
        console.print(_ledger_table(found))
    if lines is not None:
        with lines.open("a", encoding="utf-8") as file:
            for reply in found:
                file.write(json.dumps(describe_reply(reply, judge=judge)) + "\n")
    if replies:
        _print_replies(found)
    if dump is not None:
        click.echo(f"{write_dump(dump, found)} of {len(found)} answers were judged: {dump}")


async def _ask_all(bench: Bench, answers: Sequence[Answer]) -> list[Reply]:
    await bench.ingest((answer.set_name for answer in answers), _tell)
    return [await bench.ask(answer) for answer in answers]


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _table(replies: Sequence[Reply]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("half", "answers", "asked", "written", "green", "%", "calls", "why not green"):
        table.add_column(column, justify="left" if column in ("half", "answers", "why not green") else "right")
    for half in (*HALVES, ""):
        of_half = [reply for reply in replies if reply.answer.half == half]
        for name, belongs in _groups():
            if found := [reply for reply in of_half if belongs(reply.answer)]:
                figures = count(found)
                why = ", ".join(f"{code} {times}" for code, times in figures.why_not.items())
                shown = (figures.asked, figures.written, figures.green, f"{figures.share:.0f}", figures.calls, why)
                table.add_row(half, name, *map(str, shown))
        table.add_section()
    return table


def _ledger_table(replies: Sequence[Reply]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    columns = ("check", "right doubted", "alone", "near misses doubted", "alone", "right sentences", "wrong sentences")
    for column in columns:
        table.add_column(column, justify="left" if column == "check" else "right")
    right, wrong = (count_sentences(replies, right=is_right) for is_right in (True, False))
    for worth in weigh_checks(replies):
        figures = (worth.right, worth.decides_right, worth.wrong, worth.decides_wrong)
        doubted = [(worth.right_sentences, right), (worth.wrong_sentences, wrong)]
        shares = (f"{count} of {all_} ({100 * count / max(1, all_):.1f} %)" for count, all_ in doubted)
        table.add_row(worth.check, *map(str, figures), *shares)
    return table


def _groups() -> Iterator[tuple[str, Callable[[Answer], bool]]]:
    """Return the rows of the table: a name, and which answers are in it."""
    yield "right", lambda answer: answer.right
    yield "  steps", lambda answer: answer.right and bool(answer.steps)
    yield "  another language", lambda answer: answer.right and bool(answer.file_language)
    for style in filter(None, STYLES):
        yield f"  {style}", partial(_has, right=True, style=style)
    yield "near misses", lambda answer: not answer.right
    for kind in KINDS:
        yield f"  {kind}", partial(_has, right=False, kind=kind)


def _has(answer: Answer, **values: object) -> bool:
    return all(getattr(answer, name) == value for name, value in values.items())


def _print_replies(replies: Sequence[Reply]) -> None:
    for reply in replies:
        if reply.is_green != reply.answer.right:
            body = reply.body
            told = [reason.code for reason in body.reasons]
            doubts = [citation.reason for citation in body.citations if citation.reason]
            click.echo(f"{reply.answer.id}: {reply.outcome}, {body.decision} {told} {doubts}\n  {body.answer[:400]!r}")


if __name__ == "__main__":
    main()
