"""`eval calibrate --answers`: fits the probability that an answer is right (`answering/decision/confidence.py`).

Each question of the sets is answered as a request would be. An answer is right if it holds one of the gold answers;
refusals are left out. People ask about what a document leaves out, and its other passages are near the question. So
the questions of each half of the passages are asked again while these are missing: every answer to them is wrong. They
count less, so that one question in five has no answer.

The fit is made on each half of the articles and measured on the other; what is written is made from all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table

from rag_service.answering.decision.confidence import SIGNALS, ConfidenceFit
from rag_service.answering.synthesizer import CitedResponse
from rag_service.domain import Decision
from rag_service.errors import ConfigurationError, InputError
from rag_service.evaluation.eval_set import EvalSet, SetKind, leave_passages_out
from rag_service.evaluation.metrics import holds_answer, is_refusal
from rag_service.evaluation.run import RunOptions, Steps, ask_of, find_set, load_corpus
from rag_service.evaluation.workspace import Workspace
from rag_service.fitting.logistic import fit_logistic
from rag_service.indices import IndexDefinition
from rag_service.retrieval.query import RagQuery

BINS = 5  # of the calibration error: quantiles, so that each has enough answers
HIGH = 0.9  # answers from here on are reported by themselves
TARGET = 0.95  # share of right answers among those that may proceed
UNANSWERABLE = 0.2  # share of the questions without an answer, as in the sets that others wrote (evals/sets)
RIDGE = 1.0
_LIMITS = tuple(round(0.01 * step, 2) for step in range(50, 100))


@dataclass(frozen=True, kw_only=True)
class RatedAnswer:
    """An answer that is no refusal, and whether it is right."""

    set: str
    group: int  # number of its article
    signals: Mapping[str, float]
    right: bool
    may_proceed: bool = True  # whether it would be `can_proceed` with any confidence
    weight: float = 1.0  # how many questions it stands for


@dataclass(frozen=True, kw_only=True)
class HalfReport:
    """How well a fit of one half of a set's articles predicts the answers to the other half."""

    set: str
    measured: str  # odd or even articles
    answers: int
    right: float  # share
    error: float  # expected calibration error, 0..1
    high: int  # answers with a confidence of at least `HIGH`
    high_right: float | None  # share of these that is right


async def calibrate_answers(
    workspace: Workspace, paths: Sequence[Path], *, run: str | None, documents: Path | None, steps: Steps
) -> tuple[ConfidenceFit, list[HalfReport]]:
    """Answer the sets' questions, fit, and measure.

    Raises:
        EvalSetError: a set cannot be used.
        InputError: all answers are right, or none is.
    """
    rated: list[RatedAnswer] = []
    near: list[RatedAnswer] = []
    options = RunOptions(documents=documents)
    for path in paths:
        loaded, index_name = find_set(path, options, workspace.settings)
        index = workspace.index_named(index_name)
        rated += await rate_answers(workspace, loaded, index, options, steps)
        if loaded.kind is SetKind.SQUAD:
            for half in (0, 1):
                left = leave_passages_out(loaded, half=half)
                near += await rate_answers(workspace, left, index, options, steps)
    name = run or f"{'+'.join(path.stem for path in paths)}-{datetime.now(UTC):%Y%m%d}"
    weight = len(rated) * UNANSWERABLE / (1 - UNANSWERABLE) / max(1, len(near))
    return fit_answers([*rated, *(replace(answer, weight=weight) for answer in near)], run=name)


async def rate_answers(
    workspace: Workspace, loaded: EvalSet, index: IndexDefinition, options: RunOptions, steps: Steps
) -> list[RatedAnswer]:
    """The answers to a set's questions that have gold answers or none in the documents.

    The workspace has a fit `without_limit`.
    """
    corpus = await load_corpus(workspace, loaded, index, steps)
    steps.begin(f"{loaded.name}: answering", len(loaded.questions))
    rated = []
    for question in loaded.questions:
        asked = ask_of(
            corpus, question, options, top_k=workspace.settings.retrieval.top_k, threshold=index.query.threshold
        )
        engine = workspace.components.engine
        response = cast("CitedResponse", await engine.aquery(RagQuery.of(engine.begin(asked))))
        answer = response.answer
        steps.advance(1)
        is_right = holds_answer(answer.text, question.answers)
        is_near = not question.answerable and bool(question.answers)
        if is_refusal(answer) or not answer.sources or (question.answerable and not question.answers):
            continue
        if is_near and is_right:  # another passage answers it too
            continue
        rated.append(
            RatedAnswer(
                set=loaded.name,
                group=question.group,
                signals=response.signals,
                right=question.answerable and is_right,
                may_proceed=answer.decision is Decision.CAN_PROCEED,
            )
        )
    return rated


def fit_answers(rated: Sequence[RatedAnswer], *, run: str) -> tuple[ConfidenceFit, list[HalfReport]]:
    """The fit of all answers, and how fits of one half predict the other.

    Raises InputError if a half has no right or no wrong answers.
    """
    halves = [[answer for answer in rated if answer.group % 2 == rest] for rest in (0, 1)]
    predicted: list[tuple[RatedAnswer, float]] = []
    reports: list[HalfReport] = []
    for measured, (seen, other) in (("even", halves), ("odd", halves[::-1])):
        fit = _fit(seen, run=run)
        pairs = [(answer, fit.probability(answer.signals)) for answer in other]
        predicted += pairs
        reports += _measure(pairs, measured)
    # An answer that may not proceed anyway does not count.
    counted = [(answer, probability) for answer, probability in predicted if answer.may_proceed]
    least = choose_least(
        [probability for _, probability in counted],
        [answer.right for answer, _ in counted],
        [answer.weight for answer, _ in counted],
    )
    return replace(_fit(rated, run=run), least=least), sorted(reports, key=lambda report: report.set)


def without_limit(fit: ConfidenceFit) -> ConfidenceFit:
    """The fit under which no answer is uncertain for its confidence alone, as `rate_answers` needs it."""
    return replace(fit, least=0.0)


def _fit(rated: Sequence[RatedAnswer], *, run: str) -> ConfidenceFit:
    if len({answer.right for answer in rated}) < 2:
        raise InputError("The confidence of answers needs right and wrong answers in both halves; add questions.")
    names = [name for name in SIGNALS if all(name in answer.signals for answer in rated)]  # a chat model has fewer
    intercept, *weights = fit_logistic(
        np.array([[answer.signals[name] for name in names] for answer in rated]),
        np.array([float(answer.right) for answer in rated]),
        np.array([answer.weight for answer in rated]),
        np.zeros(len(rated)),
        ridge=RIDGE,
    )
    return ConfidenceFit(
        run=run,
        intercept=round(intercept, 3),
        weights={name: round(weight, 3) for name, weight in zip(names, weights, strict=True)},
        typical={
            name: round(float(np.mean([answer.signals[name] for answer in rated if answer.right])), 3) for name in names
        },
        least=0.0,
    )


def _measure(pairs: Sequence[tuple[RatedAnswer, float]], measured: str) -> Iterable[HalfReport]:
    for name in dict.fromkeys(answer.set for answer, _ in pairs):
        answers = [answer for answer, _ in pairs if answer.set == name]
        probabilities = np.array([probability for answer, probability in pairs if answer.set == name])
        right = np.array([float(answer.right) for answer in answers])
        weights = np.array([answer.weight for answer in answers])
        high = probabilities >= HIGH
        yield HalfReport(
            set=name,
            measured=measured,
            answers=len(right),
            right=float(np.average(right, weights=weights)),
            error=calibration_error(probabilities, right, weights),
            high=int(high.sum()),
            high_right=float(np.average(right[high], weights=weights[high])) if high.any() else None,
        )


def calibration_error(
    expected: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    *,
    bins: int = BINS,
) -> float:
    """Expected calibration error, 0..1: the mean distance between confidence and share of right answers, over quantiles
    of the confidence (Naeini, Cooper and Hauskrecht, AAAI 2015)."""
    parts = [part for part in np.array_split(np.argsort(expected, kind="stable"), bins) if len(part)]
    gaps = [abs(float(np.dot(expected[part] - right[part], weights[part]))) for part in parts]
    return sum(gaps) / float(weights.sum()) if parts else 0.0


def choose_least(
    probabilities: Sequence[float], right: Sequence[bool], weights: Sequence[float], *, target: float = TARGET
) -> float:
    """The lowest limit at which the target share of the answers that reach it is right; the highest if none does."""
    expected, was, weighed = np.array(probabilities), np.array(right, dtype=np.float64), np.array(weights)
    for limit in _LIMITS:
        reached = expected >= limit
        if reached.any() and np.average(was[reached], weights=weighed[reached]) >= target:
            return limit
    return _LIMITS[-1]


def write_fit(fit: ConfidenceFit, file: Path) -> None:
    """Write a fit as `read_fit` reads it. Raises ConfigurationError if that is not possible."""
    try:
        file.write_text(json.dumps(asdict(fit), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be written: {error.strerror}.", field="output") from error


def print_report(console: Console, fit: ConfidenceFit, halves: Sequence[HalfReport]) -> None:
    """Print the fit, and what each half of the articles says of the fit of the other."""
    parts = [f"{value:+g}·{name}" for name, value in fit.weights.items()]
    console.print(f"log-odds = {fit.intercept:g} {' '.join(parts)}")
    console.print(f"Least confidence for can_proceed: {fit.least:.2f}")
    table = Table(title="Fitted on one half of the articles, measured on the other", box=box.SIMPLE_HEAD)
    for column in ("set", "articles", "answers", "right", "calibration error", f"from {HIGH}", "of these right"):
        table.add_column(column, justify="left" if column in ("set", "articles") else "right")
    for half in halves:
        high_right = "" if half.high_right is None else f"{half.high_right:.3f}"
        shares = (f"{half.right:.3f}", f"{half.error:.3f}", str(half.high), high_right)
        table.add_row(half.set, half.measured, str(half.answers), *shares)
    console.print(table)
