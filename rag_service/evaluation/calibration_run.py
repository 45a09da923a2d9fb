"""`eval calibrate`: collect, fit, report the curve, write the numbers into the index definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table

from rag_service.definitions import Language, RelevanceFit
from rag_service.evaluation.calibrate import (
    PRIOR,
    Point,
    Sample,
    as_relevance_fit,
    best_relevance,
    collect_samples,
    cross_validate,
    curve,
    fit_samples,
    split_articles,
    to_prior,
)
from rag_service.evaluation.definition_edit import write_calibration
from rag_service.evaluation.run import RunOptions, Steps, find_set
from rag_service.evaluation.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions:
    """What a calibration varies."""

    index: str
    leave_out: int = 2
    prior: float = PRIOR
    articles: Literal["odd", "even", "all"] = "all"
    target_wrong_refusal: float = 0.05
    documents: Path | None = None
    language: Language | None = None  # of the questions that the numbers are for; None: of all others
    run: str | None = None  # name written beside the numbers
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class CalibrationReport:
    """What was fitted, and what it does to questions it has not seen."""

    fit: RelevanceFit
    prior: float
    measured_on: str  # which questions the curve is of
    questions: int
    curve: tuple[Point, ...]
    at_target: tuple[Point, ...]  # for each set, the threshold that refuses the target share wrongly
    written: str | None  # the file that holds the numbers now

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {**asdict(self), "fit": self.fit.model_dump()}


async def calibrate_sets(
    workspace: Workspace, paths: Sequence[Path], options: CalibrateOptions, steps: Steps
) -> CalibrationReport:
    """Fit over all sets together and write the result unless it is a dry run.

    Raises:
        EvalSetError, InputError: the sets cannot be used, or hold one kind of question only.
        DefinitionError: the definition cannot be written.
    """
    index = workspace.index_named(options.index)
    samples: list[Sample] = []
    for path in paths:
        loaded, _ = find_set(path, RunOptions(documents=options.documents), workspace.settings)
        samples += await collect_samples(workspace, loaded, index, every=options.leave_out, steps=steps)
    if options.articles == "all":
        fitted, measured, said = samples, samples, "cross-validated by article"
        relevances = cross_validate(samples, prior=options.prior)
    else:
        fitted, measured = split_articles(samples, options.articles)
        said = f"articles other than the {options.articles} ones of the fit"
        fit = to_prior(fit_samples(fitted), fitted, prior=options.prior)
        relevances = [best_relevance(fit, sample) for sample in measured]
    rounded = as_relevance_fit(to_prior(fit_samples(fitted), fitted, prior=options.prior), _run_name(paths, options))
    written = None
    if not options.dry_run:
        file = index.folder / "index.yaml"
        write_calibration(file, rounded, model=workspace.settings.embedding_model, language=options.language)
        written = str(file)
    return CalibrationReport(
        fit=rounded,
        prior=options.prior,
        measured_on=said,
        questions=len(measured),
        curve=tuple(curve(measured, relevances)),
        at_target=tuple(_at_target(measured, relevances, options.target_wrong_refusal)),
        written=written,
    )


def _run_name(paths: Sequence[Path], options: CalibrateOptions) -> str:
    if options.run is not None:
        return options.run
    articles = "" if options.articles == "all" else f"-{options.articles}-articles"
    return f"{'+'.join(path.stem for path in paths)}{articles}-{datetime.now(UTC):%Y%m%d}"


def _at_target(samples: Sequence[Sample], relevances: Sequence[float], target: float) -> list[Point]:
    points = []
    for name in dict.fromkeys(sample.set for sample in samples):
        answerable = sorted(r for s, r in zip(samples, relevances, strict=True) if s.set == name and s.answerable)
        if answerable:
            threshold = answerable[min(len(answerable) - 1, int(target * len(answerable)))]
            chosen = [(s, r) for s, r in zip(samples, relevances, strict=True) if s.set == name]
            points += curve([s for s, _ in chosen], [r for _, r in chosen], thresholds=[round(threshold, 4)])
    return points


def print_calibration(console: Console, report: CalibrationReport) -> None:
    """The numbers, the curve at thresholds, and where they were written."""
    fitted = report.fit
    console.print(
        f"relevance = sigmoid({fitted.intercept:g} + {fitted.cosine:g}·cosine + {fitted.coverage:g}·coverage),"
        f" stated for {report.prior:.0%} answerable questions"
    )
    table = Table(title=f"{report.questions} questions, {report.measured_on}", box=box.SIMPLE_HEAD)
    for column in ("set", "threshold", "rightly refused", "wrongly refused"):
        table.add_column(column, justify="left" if column == "set" else "right")
    for point in report.curve:
        _add(table, point)
    table.add_section()
    for point in report.at_target:
        _add(table, point)
    console.print(table)
    console.print(f"Written into {report.written}." if report.written else "Nothing was written (--dry-run).")


def _add(table: Table, point: Point) -> None:
    table.add_row(point.set, f"{point.threshold:.4g}", f"{point.refused_right:.3f}", f"{point.refused_wrong:.3f}")
