"""`python -m evals.lab head | sentences | languages | confidence`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from evals.lab.language_directions import measure_directions, write_directions
from evals.lab.sentence_weights import Example, collect_examples, cross_validate, write_weights
from evals.lab.written_confidence import fit_written, measure_bands, read_replies, write_fit
from rag_service.answering.decision.confidence import WRITTEN_FIT, WRITTEN_SIGNALS, read_fit
from rag_service.cli.running import failures, progress, read_quiet_settings, run_command
from rag_service.evaluation.workspace import open_workspace
from rag_service.settings import Settings


@click.group()
def lab() -> None:
    """Make the weights that the package ships."""


@lab.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Also write weights learnt from all sets here.")
@click.option("--run", default="", help="Name of the run, stored with the weights; default: the date.")
def sentences(paths: tuple[Path, ...], output: Path | None, run: str) -> None:
    """Learn which sentences to quote in answers without a language model; print cross-validated figures.

    The shipped file is rag_service/answering/quoting/weights.json.
    """
    examples = run_command(_collect(paths, read_quiet_settings()))
    for figures in cross_validate(examples):
        click.echo(
            f"{figures.set_name}: {figures.questions} questions, answer in the first quote {figures.first:.3f},"
            f" in the first two {figures.two:.3f}"
        )
    if output is not None:
        write_weights(output, examples, run=run or f"sentences-{datetime.now(UTC):%Y%m%d}")
        click.echo(f"Wrote {output}.")


async def _collect(paths: Sequence[Path], settings: Settings) -> list[Example]:
    async with open_workspace(settings) as workspace:
        with progress() as steps:
            return await collect_examples(workspace, paths, steps)


@lab.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
def languages(output: Path) -> None:
    """Measure how the packaged model's vectors tell the language of a text, and write it to a file.

    The shipped file is rag_service/models/embedding/language_directions.json; documents are ingested again after a
    change.
    """
    with failures():
        write_directions(output, measure_directions())
    click.echo(f"Wrote {output}.")


@lab.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The graph.")
@click.option(
    "--leave-out", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="Files and folders whose passages must not be learnt from, beside those of evals/.",
)  # fmt: skip
@click.option("--run", default="", help="Name of the run, stored with the graph; default: the date.")
def head(files: tuple[Path, ...], output: Path, leave_out: tuple[Path, ...], run: str) -> None:
    """Train the question-answering head of the packaged model on published questions (SQuAD, SelQA, WikiQA).

    Takes about an hour of one core for 70,000 questions, and needs the extra `torch`. The shipped file is
    rag_service/models/embedding/qa_head.onnx; learn the weights of `sentences` anew after a change.
    """
    from evals.lab.qa_head.run import train_head  # torch takes its time to load

    with failures():
        train_head(files, output, leave_out=leave_out, run=run or f"head-{datetime.now(UTC):%Y%m%d}", say=click.echo)


@lab.command()
@click.argument("replies", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--half", default="developed", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Fit, and write the fit here.")
@click.option("--run", default="", help="Name of the run, stored with the fit; default: the date.")
def confidence(replies: Path, half: str, output: Path | None, run: str) -> None:
    """Fit the confidence of written answers to REPLIES, or without --output, measure the shipped fit on them.

    REPLIES is what `python -m evals.written --json REPLIES` wrote. The shipped file is
    rag_service/answering/decision/written_confidence.json.
    """
    known = read_replies(replies, half=half)
    if output is not None:
        write_fit(output, fit_written(known, run=run or f"written-{datetime.now(UTC):%Y%m%d}"))
    for band in measure_bands(read_fit(output or WRITTEN_FIT, signals=WRITTEN_SIGNALS), known):
        click.echo(f"from {band.least:.1f}: {band.answers} answers, said {band.said:.2f}, right {band.right:.2f}")


if __name__ == "__main__":
    lab(prog_name="python -m evals.lab")
