"""`rag-service eval`: run | compare | calibrate | plot."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from rag_service.cli.running import Failure, progress, read_quiet_settings, run_command
from rag_service.errors import RagError
from rag_service.settings import Settings

_SETS = click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))


@click.group(name="eval")
def eval_group() -> None:
    """Measure retrieval and answers on eval sets.

    A set is a .jsonl file of ours, a SQuAD-format .json file, or a BEIR folder. With the embedded
    database everything happens in RAG_DATA_DIR/eval; documents that were ingested are not touched.
    """


def _numbers(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in value.split(",")}))
    except ValueError as error:
        raise click.BadParameter("write whole numbers with commas between, such as 3,5,10") from error


@eval_group.command()
@_SETS
@click.option("--mode", type=click.Choice(["hybrid", "dense", "lexical"]), default="hybrid", show_default=True)
@click.option("--alpha", type=click.FloatRange(0, 1), help="Share of the dense leg; default: the index definition's.")
@click.option(
    "--rerank",
    type=click.Choice(["none", "heuristic", "sbert", "llm", "cohere"]),
    help="Default: RAG_RERANK_STRATEGY.",
)
@click.option("--threshold", type=click.FloatRange(0, 1), help="Least relevance, for refusals; default: as requests.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Hits judged.")
@click.option("--k", "ks", callback=_numbers, default="3,5,10", show_default=True, help="Cut-offs of P and R.")
@click.option("--answers", is_flag=True, help="Also write answers: containment, refusals, citations, reliability.")
@click.option("--leave-out", type=click.IntRange(2, 100), help="Leave every n-th article out of the corpus.")
@click.option("--index", help="Index definition; default: the set's own, else RAG_INDEX.")
@click.option("--documents", type=click.Path(exists=True, path_type=Path), help="Folder that a .jsonl set is about.")
@click.option("--first", type=click.IntRange(1), help="Ask only so many questions.")
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON.")
@click.option("--save", help="Save the run under this name in evals/runs.")
def run(paths: tuple[Path, ...], as_json: bool, save: str | None, **chosen: Any) -> None:
    """Ask the questions of one or more sets and print the measures by category."""
    from rag_service.evaluation.report import print_result, wide_console
    from rag_service.evaluation.run import RunOptions
    from rag_service.evaluation.saved import describe_run, save_run

    settings = read_quiet_settings()
    try:
        options = RunOptions(**chosen)
        settings = options.applied_to(settings)
    except RagError as error:
        raise Failure(error) from error
    results = run_command(_run_sets(paths, settings, options))
    moment = datetime.now(UTC)
    described = describe_run(save or f"{moment:%Y%m%d-%H%M%S}", results, options, settings, moment=moment)
    if as_json:
        click.echo(json.dumps(described, ensure_ascii=False))
    else:
        for result in results:
            print_result(wide_console(), result, options.first or len(result.loaded.questions))
    if save is not None:
        try:
            file = save_run(described)
        except RagError as error:
            raise Failure(error) from error
        click.echo(f"Saved as {file}.", err=True)


async def _run_sets(paths: Sequence[Path], settings: Settings, options: Any) -> list[Any]:

    from rag_service.evaluation.run import find_set, run_set
    from rag_service.evaluation.workspace import open_workspace

    results = []
    found = [find_set(path, options, settings) for path in paths]  # every mistake before any work
    async with open_workspace(settings) as workspace:
        for loaded, index_name in found:
            with progress() as steps:
                index = workspace.index_named(index_name)
                results.append(await run_set(workspace, loaded, index, options, steps))
    return results


@eval_group.command()
@click.argument("before")
@click.argument("after")
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
def compare(before: str, after: str, as_json: bool) -> None:
    """Compare two saved runs (names, or paths of their files) question by question."""
    from dataclasses import asdict

    from rag_service.evaluation.compare import compare_runs
    from rag_service.evaluation.report import print_comparison, wide_console
    from rag_service.evaluation.saved import read_run

    try:
        first, second = read_run(before), read_run(after)
        differences = compare_runs(first, second)
    except RagError as error:
        raise Failure(error) from error
    if as_json:
        click.echo(json.dumps([asdict(row) | {"difference": row.difference} for row in differences]))
    else:
        print_comparison(wide_console(), first.name, second.name, differences)


@eval_group.command()
@_SETS
@click.option("--index", required=True, help="Index definition whose index.yaml gets the numbers.")
@click.option(
    "--leave-out",
    type=click.IntRange(2, 100),
    default=2,
    show_default=True,
    help="One article in so many is missing, each part in turn (SQuAD-format sets).",
)
@click.option(
    "--prior",
    type=click.FloatRange(0.01, 0.99),
    default=0.7,
    show_default=True,
    help="Share of real questions that the documents answer; the relevance is stated for it.",
)
@click.option(
    "--articles",
    type=click.Choice(["odd", "even", "all"]),
    default="all",
    show_default=True,
    help="Fit on these and measure on the others; all: cross-validate.",
)
@click.option(
    "--target-wrong-refusal",
    type=click.FloatRange(0.001, 0.5),
    default=0.05,
    show_default=True,
    help="Also say which threshold refuses this share of answerable questions.",
)
@click.option("--documents", type=click.Path(exists=True, path_type=Path), help="Folder that a .jsonl set is about.")
@click.option(
    "--language",
    type=click.Choice(["es", "fr", "en"]),
    help="The sets' questions are in this language; default: the numbers are for all languages without their own.",
)
@click.option("--run", help="Name written beside the numbers; default: sets and date.")
@click.option("--dry-run", is_flag=True, help="Report without writing into index.yaml.")
@click.option("--json", "as_json", is_flag=True, help="Print fit and curve as JSON.")
def calibrate(paths: tuple[Path, ...], as_json: bool, **chosen: Any) -> None:
    """Fit the calibrated relevance and write it into the index definition."""
    from rag_service.evaluation.calibration_run import CalibrateOptions, print_calibration
    from rag_service.evaluation.report import wide_console

    report = run_command(_calibrate(paths, read_quiet_settings(), CalibrateOptions(**chosen)))
    if as_json:
        click.echo(json.dumps(report.as_json()))
    else:
        print_calibration(wide_console(), report)


async def _calibrate(paths: Sequence[Path], settings: Settings, options: Any) -> Any:

    from rag_service.evaluation.calibration_run import calibrate_sets
    from rag_service.evaluation.workspace import open_workspace

    # What is calibrated are the legs; the order that a reranker gives them has no part in it.
    settings = settings.model_copy(update={"rerank_strategy": "none"})
    async with open_workspace(settings) as workspace:
        with progress() as steps:
            return await calibrate_sets(workspace, paths, options, steps)


@eval_group.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("eval.svg"), show_default=True)
@click.option("--measure", "measures", multiple=True, help="Only these measures; may be given several times.")
def plot(runs: tuple[str, ...], output: Path, measures: tuple[str, ...]) -> None:
    """Draw saved runs side by side as an SVG picture."""
    from rag_service.evaluation.plot import plot_runs, write_plot
    from rag_service.evaluation.saved import read_run

    try:
        write_plot(plot_runs([read_run(name) for name in runs], measures=measures), output)
    except RagError as error:
        raise Failure(error) from error
    click.echo(f"Wrote {output}.")


if __name__ == "__main__":  # pragma: no cover - for work on this module alone
    sys.exit(eval_group())
