"""`eval calibrate`: collect, fit, report, and write the numbers into the index definition, keeping its comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
import yaml
from rich import box
from rich.console import Console
from rich.table import Table

from rag_service.errors import DefinitionError
from rag_service.evaluation.calibrate import Point, collect_samples, cross_validate, curve, split_articles
from rag_service.evaluation.eval_set import translate_sets
from rag_service.evaluation.run import RunOptions, Steps, find_set
from rag_service.evaluation.workspace import Workspace
from rag_service.fitting.logistic import PRIOR, Sample, as_relevance_fit, best_relevance, fit_samples, to_prior
from rag_service.indices import Calibration, Language, RelevanceFit, load_index


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions:
    index: str
    leave_out: int = 2
    prior: float = PRIOR
    articles: Literal["odd", "even", "all"] = "all"
    documents: Path | None = None
    language: Language | None = None  # of the questions; None: all without numbers of their own
    between_languages: bool = False  # ask the questions of each set over the passages of its translations
    run: str | None = None  # name written next to the numbers
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class CalibrationReport:
    """The fit, and its refusals of questions that it has not seen."""

    fit: RelevanceFit
    prior: float
    measured_on: str
    questions: int
    curve: tuple[Point, ...]
    written: str | None  # the index.yaml

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "fit": self.fit.model_dump()}


async def calibrate_sets(
    workspace: Workspace, paths: Sequence[Path], options: CalibrateOptions, steps: Steps
) -> CalibrationReport:
    """Fit over all sets together, and write the result unless it is a dry run.

    Raises:
        EvalSetError, InputError: the sets cannot be used, or lack answerable or unanswerable questions.
        DefinitionError: the definition cannot be written.
    """
    index = workspace.index_named(options.index)
    samples: list[Sample] = []
    sets = [find_set(path, RunOptions(documents=options.documents), workspace.settings)[0] for path in paths]
    for loaded in translate_sets(sets) if options.between_languages else sets:
        samples += await collect_samples(workspace, loaded, index, every=options.leave_out, steps=steps)
    if options.between_languages:  # Words that two languages spell alike are accidents: "office" and "d'office".
        samples = [replace(sample, passages=sample.passages * np.array([1.0, 0.0])) for sample in samples]
    articles, run_name = "", options.run
    if options.articles == "all":
        fitted, measured, measured_on = samples, samples, "cross-validated by article"
        relevances = cross_validate(samples, prior=options.prior)
        fit = to_prior(fit_samples(fitted), fitted, prior=options.prior)
    else:
        fitted, measured = split_articles(samples, options.articles)
        measured_on = f"articles other than the {options.articles} ones of the fit"
        fit = to_prior(fit_samples(fitted), fitted, prior=options.prior)
        relevances = [best_relevance(fit, sample) for sample in measured]
        articles = f"-{options.articles}-articles"
    if run_name is None:
        run_name = f"{'+'.join(path.stem for path in paths)}{articles}-{datetime.now(UTC):%Y%m%d}"
    rounded = as_relevance_fit(fit, run_name)
    written = None
    if not options.dry_run:
        file = index.folder / "index.yaml"
        language = "between" if options.between_languages else options.language
        write_calibration(file, rounded, model=workspace.settings.embedding.model, language=language)
        written = str(file)
    return CalibrationReport(
        fit=rounded,
        prior=options.prior,
        measured_on=measured_on,
        questions=len(measured),
        curve=tuple(curve(measured, relevances)),
        written=written,
    )


def print_calibration(console: Console, report: CalibrationReport) -> None:
    """Print the numbers, the curve, and where they were written."""
    fitted = report.fit
    console.print(
        f"relevance = sigmoid({fitted.intercept:g} + {fitted.cosine:g}·cosine + {fitted.coverage:g}·coverage),"
        f" stated for {report.prior:.0%} answerable questions"
    )
    table = Table(title=f"{report.questions} questions, {report.measured_on}", box=box.SIMPLE_HEAD)
    for column in ("set", "threshold", "rightly refused", "wrongly refused"):
        table.add_column(column, justify="left" if column == "set" else "right")
    for point in report.curve:
        shares = (f"{point.refused_right:.3f}", f"{point.refused_wrong:.3f}")
        table.add_row(point.set, f"{point.threshold:.2f}", *shares)
    console.print(table)
    console.print(f"Written into {report.written}." if report.written else "Nothing was written (--dry-run).")


def write_calibration(
    file: Path, fit: RelevanceFit, *, model: str, language: Language | Literal["between"] | None = None
) -> Calibration:
    """Replace or add the `calibration:` block below `query:` of an index.yaml; returns its new content.

    Raises DefinitionError if the file cannot be written or would not load afterwards; it is left as it was.

    Args:
        file: the index.yaml.
        fit: the numbers.
        model: the embedding model that they belong to. Numbers of another model are dropped.
        language: of the questions; None: all languages without numbers of their own; "between": passages in another
            language than the question.
    """
    before = file.read_text(encoding="utf-8")
    wanted = _merge(_read(file), fit, model, language)
    try:
        file.write_text(put_calibration(before, wanted), encoding="utf-8")
        written = _read(file)
    except DefinitionError:
        file.write_text(before, encoding="utf-8")
        raise
    except OSError as error:
        raise DefinitionError(f"{file}: cannot be written: {error.strerror}.") from error
    if written != wanted:
        file.write_text(before, encoding="utf-8")
        raise DefinitionError(f"{file}: query: is not written as a block of keys; add the calibration by hand.")
    return wanted


def _read(file: Path) -> Calibration | None:
    return load_index(file.parent.name, indices_path=file.parent.parent).query.calibration


def _merge(old: Calibration | None, fit: RelevanceFit, model: str, language: str | None) -> Calibration:
    if old is None or old.model not in (None, model):
        old = Calibration(**fit.model_dump(), model=model)
    if language is None:
        return old.model_copy(update=fit.model_dump(exclude={"alpha"}) | {"model": model})
    if language == "between":
        return old.model_copy(update={"model": model, "between_languages": fit})
    fit = fit.model_copy(update={"alpha": old.languages[language].alpha if language in old.languages else None})
    return old.model_copy(update={"model": model, "languages": {**old.languages, language: fit}})


def put_calibration(text: str, calibration: Calibration) -> str:
    """The text of an index.yaml with this calibration. Raises DefinitionError if `query:` is written in one line."""
    lines = text.splitlines()
    root = yaml.compose(text)
    query = _entry(root, "query")
    if query is None:
        return "\n".join([*lines, "", "query:", *_block("  ", calibration)]) + "\n"
    if not isinstance(query[1], yaml.MappingNode) or query[1].flow_style:
        raise DefinitionError("query: is not written as a block of keys; add the calibration by hand.", field="query")
    old = _entry(query[1], "calibration")
    start = old[0].start_mark.line if old is not None else _last_line(query[1]) + 1
    end = _last_line(old[1]) + 1 if old is not None else start
    block = _block(" " * query[1].start_mark.column, calibration)
    return "\n".join([*lines[:start], *block, *lines[end:]]) + "\n"


def _entry(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((pair for pair in pairs if pair[0].value == key), None)


def _last_line(node: yaml.Node) -> int:
    """Line of the last value inside; a block's own end mark lies behind the comments that follow it."""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return int(node.end_mark.line)


def _block(indent: str, calibration: Calibration) -> list[str]:
    values = {"model": calibration.model} | calibration.model_dump(exclude_none=True)
    if not calibration.languages:
        del values["languages"]
    dumped = yaml.safe_dump({"calibration": values}, sort_keys=False, allow_unicode=True)
    return [indent + line for line in dumped.splitlines()]
