"""Fits the calibrated relevance: a logistic from two signals to "this question is answered here".

The signals are the cosine and the BM25 coverage of a question's best passage; what a search adds for a
name that nobody mentions is given (`query.fusion.log_odds_of`). The questions are those
of sets with answerable and unanswerable ones; SQuAD-format sets are asked several times, each time with
other articles left out of the corpus, so that every question is seen both answered and not.

The passage that counts is the most relevant one, which depends on the fit: the fit starts from the best
fused passage and is repeated with the passages that it ranks highest until they stay the same.

The shares of answerable questions in such sets are made, not found. The intercept is therefore moved
from the share in the training data to a declared prior: intercept + logit(prior) - logit(share), which
leaves the order of questions as it is (King and Zeng, "Logistic regression in rare events data", 2001).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_service.definitions import IndexDefinition, RelevanceFit
from rag_service.errors import InputError
from rag_service.evaluation.eval_set import EvalSet, Question, SetKind, leave_out
from rag_service.evaluation.run import Steps, embed_questions, load_corpus, search
from rag_service.evaluation.workspace import Workspace
from rag_service.query.engine import RERANKED
from rag_service.query.retrieval.fusion import log_odds_of

PRIOR = 0.7  # share of a team's questions that its documents answer, unless declared otherwise
FOLDS = 5
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))

_ROUNDS = 20  # of choosing passages and fitting; it settles after three or four
_STEPS = 50  # of Newton's method
_RIDGE = 1e-3  # keeps the fit finite where the classes separate perfectly

_Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A question asked of one corpus."""

    set: str
    group: int  # number of its article
    answerable: bool
    passages: _Matrix  # (hits, 2): cosine and coverage, best fused first
    log_odds: float = 0.0  # what else is known of the question, as `query.fusion` adds it


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The logistic in log-odds: intercept + cosine·c + coverage·v."""

    intercept: float
    cosine: float
    coverage: float

    def relevance(self, sample: Sample) -> _Matrix:
        """Relevance of a question's passages, 0..1."""
        exponent = sample.log_odds + self.intercept + sample.passages @ np.array([self.cosine, self.coverage])
        relevances: _Matrix = 1 / (1 + np.exp(-np.clip(exponent, -60, 60)))
        return relevances

    def shifted(self, log_odds: float) -> Fit:
        return Fit(intercept=self.intercept + log_odds, cosine=self.cosine, coverage=self.coverage)


@dataclass(frozen=True, kw_only=True)
class Point:
    """What a threshold does to questions that the fit has not seen."""

    set: str
    threshold: float
    refused_right: float  # share of unanswerable questions refused
    refused_wrong: float  # share of answerable questions refused


async def collect_samples(
    workspace: Workspace, loaded: EvalSet, index: IndexDefinition, *, every: int | None, steps: Steps
) -> list[Sample]:
    """Ask the set's questions; a SQuAD-format set once for each part that is left out.

    Args:
        every: one article in so many is left out; None only for sets with unanswerable questions.

    Raises:
        InputError: all questions are answerable and nothing is left out.
    """
    if every is not None and loaded.kind is SetKind.SQUAD:
        parts = [leave_out(loaded, every=every, offset=offset) for offset in range(every)]
    elif all(question.answerable for question in loaded.questions):
        raise InputError(f"{loaded.path}: holds no unanswerable question; use --leave-out 2.", field="leave_out")
    else:
        parts = [loaded]
    workspace.retriever.hold(mode="hybrid", alpha=None)
    samples = []
    for part in parts:
        corpus = await load_corpus(workspace, part, index, steps)
        await embed_questions(workspace, part.questions, "hybrid", steps)
        steps.begin(f"{part.name}: searching", len(part.questions))
        for question in part.questions:
            retrieval, hits = await search(workspace, corpus, question, limit=RERANKED)
            signals = [
                [hit.scores.dense or 0.0, hit.scores.coverage or 0.0]
                for hit in sorted(hits, key=lambda hit: -(hit.scores.fused or 0.0))
            ]
            samples.append(_sample(loaded.name, question, signals, log_odds_of(retrieval.absent)))
            steps.advance(1)
    return samples


def _sample(name: str, question: Question, signals: Sequence[Sequence[float]], log_odds: float) -> Sample:
    passages = np.array(signals, dtype=np.float64).reshape(-1, 2)
    if not len(passages):
        passages = np.zeros((1, 2))  # nothing found at all: a question without any signal
    return Sample(set=name, group=question.group, answerable=question.answerable, passages=passages, log_odds=log_odds)


def fit_samples(samples: Sequence[Sample]) -> Fit:
    """The logistic over the samples' most relevant passages, every set weighing the same.

    Raises:
        InputError: they are all answerable or all unanswerable.
    """
    answerable = np.array([sample.answerable for sample in samples], dtype=np.float64)
    if answerable.all() or not answerable.any():
        raise InputError("Calibration needs answerable and unanswerable questions; use --leave-out 2.")
    weights = _weights(samples)
    log_odds = np.array([sample.log_odds for sample in samples])
    chosen = [0] * len(samples)  # best fused
    for _ in range(_ROUNDS):
        signals = np.array([sample.passages[best] for sample, best in zip(samples, chosen, strict=True)])
        fit = _newton(signals, answerable, weights, log_odds)
        again = [int(np.argmax(fit.relevance(sample))) for sample in samples]
        if again == chosen:
            break
        chosen = again
    return fit


def _weights(samples: Sequence[Sample]) -> _Matrix:
    """A small set counts as much as a large one: languages must not outvote each other."""
    sizes: dict[str, int] = {}
    for sample in samples:
        sizes[sample.set] = sizes.get(sample.set, 0) + 1
    return np.array([len(samples) / len(sizes) / sizes[sample.set] for sample in samples])


def _newton(signals: _Matrix, answerable: _Matrix, weights: _Matrix, log_odds: _Matrix) -> Fit:
    design = np.column_stack([np.ones(len(signals)), signals])
    values = np.zeros(3)
    ridge = _RIDGE * np.diag([0.0, 1.0, 1.0])
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-np.clip(log_odds + design @ values, -60, 60)))
        slope = design.T @ (weights * (answerable - expected)) - ridge @ values
        curvature = (design.T * (weights * expected * (1 - expected))) @ design + ridge
        step = np.linalg.solve(curvature + 1e-9 * np.eye(3), slope)
        values += np.clip(step, -5, 5)
        if np.abs(step).max() < 1e-8:
            break
    return Fit(intercept=float(values[0]), cosine=float(values[1]), coverage=float(values[2]))


def to_prior(fit: Fit, samples: Sequence[Sample], *, prior: float) -> Fit:
    """The fit restated for a declared share of answerable questions."""
    weights = _weights(samples)
    share = float(np.average([sample.answerable for sample in samples], weights=weights))
    return fit.shifted(math.log(prior / (1 - prior)) - math.log(share / (1 - share)))


def cross_validate(samples: Sequence[Sample], *, prior: float, folds: int = FOLDS) -> list[float]:
    """Relevance of each sample's best passage under a fit that saw none of its article."""
    relevances = [0.0] * len(samples)
    for fold in range(folds):
        seen = [sample for sample in samples if sample.group % folds != fold]
        if not seen or len({sample.answerable for sample in seen}) < 2:
            raise InputError(f"The sets have too few articles for {folds} folds; add questions.")
        fit = to_prior(fit_samples(seen), seen, prior=prior)
        for number, sample in enumerate(samples):
            if sample.group % folds == fold:
                relevances[number] = best_relevance(fit, sample)
    return relevances


def best_relevance(fit: Fit, sample: Sample) -> float:
    """Relevance of the most relevant passage, 0..1."""
    return float(fit.relevance(sample).max())


def curve(
    samples: Sequence[Sample], relevances: Sequence[float], *, thresholds: Iterable[float] = THRESHOLDS
) -> list[Point]:
    """Refusals by threshold, for each set."""
    points = []
    for name in dict.fromkeys(sample.set for sample in samples):
        pairs = [(s.answerable, r) for s, r in zip(samples, relevances, strict=True) if s.set == name]
        answerable = np.array([relevance for is_answerable, relevance in pairs if is_answerable])
        others = np.array([relevance for is_answerable, relevance in pairs if not is_answerable])
        for threshold in thresholds:
            points.append(  # noqa: PERF401 - a comprehension over this would hide the point
                Point(
                    set=name,
                    threshold=threshold,
                    refused_right=float((others < threshold).mean()) if len(others) else math.nan,
                    refused_wrong=float((answerable < threshold).mean()) if len(answerable) else math.nan,
                )
            )
    return points


def split_articles(samples: Sequence[Sample], articles: str) -> tuple[list[Sample], list[Sample]]:
    """(to fit on, to measure on) by the number of the article, counted from 1.

    Args:
        articles: "odd" fits on the first, third, …, "even" on the others.
    """
    rest = 0 if articles == "odd" else 1
    fitted = [sample for sample in samples if sample.group % 2 == rest]
    return fitted, [sample for sample in samples if sample.group % 2 != rest]


def as_relevance_fit(fit: Fit, run: str) -> RelevanceFit:
    """As an index definition holds it."""
    return RelevanceFit(
        intercept=round(fit.intercept, 2), cosine=round(fit.cosine, 2), coverage=round(fit.coverage, 2), run=run
    )
