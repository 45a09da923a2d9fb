"""`rag-service eval`: run | compare | calibrate | claims | plot."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from rag_service.cli.running import failures, progress, read_quiet_settings, run_command
from rag_service.language.languages import language_codes
from rag_service.settings import Settings

_SETS = click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
_DOCUMENTS = click.option(
    "--documents", type=click.Path(exists=True, path_type=Path), help="Folder with the documents of a .jsonl set."
)


@click.group(name="eval")
def eval_group() -> None:
    """Measure retrieval and answers on eval sets.

    A set is a .jsonl file, a SQuAD-format .json file, or a BEIR folder. With the embedded database, everything
    happens in RAG_DATA_DIR/eval, and ingested documents are not touched.
    """


def _numbers(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in value.split(",")}))
    except ValueError as error:
        raise click.BadParameter("must be whole numbers separated by commas, such as 3,5,10") from error


@eval_group.command()
@_SETS
@click.option("--mode", type=click.Choice(["hybrid", "dense", "lexical"]), default="hybrid", show_default=True)
@click.option("--alpha", type=click.FloatRange(0, 1), help="Weight of vector search; default: the index definition's.")
@click.option(
    "--rerank",
    type=click.Choice(["none", "heuristic", "sbert", "llm", "cohere"]),
    help="Default: RAG_RERANK_STRATEGY.",
)
@click.option(
    "--threshold", type=click.FloatRange(0, 1), help="Minimum relevance for an answer; default: as in requests."
)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Number of hits evaluated.")
@click.option(
    "--k", "ks", callback=_numbers, default="3,5,10", show_default=True, help="Cut-offs for precision and recall."
)
@click.option(
    "--answers", is_flag=True, help="Also generate answers; measure containment, refusals, citations and calibration."
)
@click.option("--leave-out", type=click.IntRange(2, 100), help="Leave every n-th article out of the corpus.")
@click.option("--index", help="Index definition; default: the one named in the set, or RAG_INDEX.")
@_DOCUMENTS
@click.option(
    "--questions", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Ask the questions of this set, which is a translation of the sets.",
)  # fmt: skip
@click.option("--first", type=click.IntRange(1), help="Number of questions to ask, from the start of each set.")
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON.")
@click.option("--save", help="Save the run under this name in evals/runs if it exists, or in the data folder.")
def run(paths: tuple[Path, ...], as_json: bool, save: str | None, **chosen: Any) -> None:
    """Ask the questions of one or more sets and print the measures by category."""
    from rag_service.evaluation.report import print_result, wide_console
    from rag_service.evaluation.run import RunOptions
    from rag_service.evaluation.saved import describe_run, save_run

    with failures():
        options = RunOptions(**chosen)
        settings = options.applied_to(read_quiet_settings())
    results = run_command(_run_sets(paths, settings, options))
    moment = datetime.now(UTC)
    described = describe_run(save or f"{moment:%Y%m%d-%H%M%S}", results, options, settings, moment=moment)
    if as_json:
        click.echo(json.dumps(described, ensure_ascii=False))
    else:
        for result in results:
            print_result(wide_console(), result, options.first or len(result.loaded.questions))
    if save is not None:
        with failures():
            file = save_run(described)
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

    from rag_service.evaluation.report import print_comparison, wide_console
    from rag_service.evaluation.saved import compare_runs, read_run

    with failures():
        first, second = read_run(before), read_run(after)
        differences = compare_runs(first, second)
    if as_json:
        click.echo(json.dumps([asdict(row) | {"difference": row.difference} for row in differences]))
    else:
        print_comparison(wide_console(), first.name, second.name, differences)


@eval_group.command()
@_SETS
@click.option("--index", help="Index definition whose index.yaml is updated; required without --answers.")
@click.option("--answers", is_flag=True, help="Fit the confidence of answers instead, and write it to --output.")
@click.option(
    "--output", type=click.Path(path_type=Path), default=Path("confidence.json"), show_default=True,
    help="File for the confidence fit, to be named in RAG_CONFIDENCE_FIT.",
)  # fmt: skip
@click.option(
    "--leave-out", type=click.IntRange(2, 100), default=2, show_default=True,
    help="Leave out every n-th article, each part in turn (SQuAD-format sets).",
)  # fmt: skip
@click.option(
    "--prior", type=click.FloatRange(0.01, 0.99), default=0.7, show_default=True,
    help="Assumed share of real questions that the documents answer.",
)  # fmt: skip
@click.option(
    "--articles", type=click.Choice(["odd", "even", "all"]), default="all", show_default=True,
    help="Fit on these articles and measure on the others; all: cross-validate.",
)  # fmt: skip
@_DOCUMENTS
@click.option(
    "--language", type=click.Choice(language_codes()),
    help="Language of the questions; default: fit for all languages without a fit of their own.",
)  # fmt: skip
@click.option(
    "--between-languages", is_flag=True,
    help="Fit the relevance of passages in another language than the question; the sets are translations.",
)  # fmt: skip
@click.option("--run", help="Name of the run, stored with the fit; default: sets and date.")
@click.option("--dry-run", is_flag=True, help="Report without changing index.yaml.")
@click.option("--json", "as_json", is_flag=True, help="Print the fit and curve as JSON.")
def calibrate(paths: tuple[Path, ...], as_json: bool, answers: bool, output: Path, **chosen: Any) -> None:
    """Fit the relevance and write it to the index definition, or fit the confidence of answers."""
    from rag_service.evaluation.calibration_run import CalibrateOptions, print_calibration
    from rag_service.evaluation.report import wide_console

    if answers:
        run_command(_calibrate_answers(paths, read_quiet_settings(), output, chosen))
        return
    if chosen["index"] is None:
        raise click.UsageError("Name the index definition with --index.")
    report = run_command(_calibrate(paths, read_quiet_settings(), CalibrateOptions(**chosen)))
    if as_json:
        click.echo(json.dumps(report.as_json()))
    else:
        print_calibration(wide_console(), report)


async def _calibrate_answers(
    paths: Sequence[Path], settings: Settings, output: Path, chosen: Mapping[str, Any]
) -> None:
    from rag_service.answering.decision.confidence import read_fit
    from rag_service.evaluation.answer_confidence import calibrate_answers, print_report, without_limit, write_fit
    from rag_service.evaluation.report import wide_console
    from rag_service.evaluation.workspace import open_workspace

    with tempfile.TemporaryDirectory() as folder:
        unlimited = Path(folder, "confidence.json")
        with failures():
            write_fit(without_limit(read_fit(settings.answers.confidence_fit)), unlimited)
        async with open_workspace(settings.replace({"confidence_fit": unlimited})) as workspace:
            with progress() as steps:
                fit, halves = await calibrate_answers(
                    workspace, paths, run=chosen["run"], documents=chosen["documents"], steps=steps
                )
    print_report(wide_console(), fit, halves)
    if not chosen["dry_run"]:
        with failures():
            write_fit(fit, output)
        click.echo(f"Wrote {output}.", err=True)


async def _calibrate(paths: Sequence[Path], settings: Settings, options: Any) -> Any:
    from rag_service.evaluation.calibration_run import calibrate_sets
    from rag_service.evaluation.workspace import open_workspace

    settings = settings.replace({"rerank_strategy": "none"})  # the scores of the search alone are calibrated
    async with open_workspace(settings) as workspace:
        with progress() as steps:
            return await calibrate_sets(workspace, paths, options, steps)


@eval_group.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print statuses as JSON.")
@click.option("--calibrate", is_flag=True, help="Fit the thresholds of the cross-encoder in RAG_JUDGE_MODEL instead.")
def claims(path: Path, as_json: bool, calibrate: bool) -> None:
    """Check hand-written claims against their passages: statuses by label and language, and doubts.

    The file has one JSON object per line: id, lang, passage, claim, and label (verbatim, light, free, inference,
    unsupported or false).
    """
    from rag_service.evaluation.claims import calibrate_judge, check_claims, print_claims, read_claims
    from rag_service.evaluation.report import wide_console

    if calibrate:
        with failures():
            read = read_claims(path)
        name = f"{path.stem}-{datetime.now(UTC):%Y%m%d}"
        thresholds = run_command(calibrate_judge(read_quiet_settings(), read, run=name))
        click.echo(json.dumps({language: vars(found) for language, found in thresholds.items()}, indent=2))
        return
    with failures():
        checked = check_claims(read_claims(path))
    if as_json:
        rows = [{"label": a, "language": b, "status": c, "claims": n} for (a, b, c), n in checked.statuses().items()]
        click.echo(json.dumps({"statuses": rows}))
    else:
        print_claims(wide_console(), checked)


@eval_group.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("eval.svg"), show_default=True)
@click.option("--measure", "measures", multiple=True, help="Plot only this measure; may be given several times.")
def plot(runs: tuple[str, ...], output: Path, measures: tuple[str, ...]) -> None:
    """Plot saved runs side by side as .svg, .png or .pdf (extra `plot`)."""
    from rag_service.evaluation.report import plot_runs, write_plot
    from rag_service.evaluation.saved import read_run

    with failures():
        write_plot(plot_runs([read_run(name) for name in runs], measures=measures), output)
    click.echo(f"Wrote {output}.")
