"""Fits the calibrated relevance: a logistic from two signals to "this question is answered here".

The signals are the cosine and the BM25 coverage of a question's best passage. SQuAD-format sets are asked several
times, each time without other articles, so that every question is seen both answerable and not. The best passage is
the most relevant one, which depends on the fit: fitting starts from the best fused passage and is repeated with the
passages that it ranks highest until they no longer change.

The share of answerable questions in such sets is artificial. The intercept is therefore moved to a declared prior:
intercept + logit(prior) - logit(share), which keeps the order of questions (King and Zeng, "Logistic regression in
rare events data", 2001).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import numpy.typing as npt

from rag_service.errors import InputError
from rag_service.evaluation.eval_set import EvalSet, SetKind, leave_out
from rag_service.evaluation.run import RunOptions, Steps, load_corpus, search
from rag_service.evaluation.workspace import Workspace
from rag_service.indices import IndexDefinition, RelevanceFit
from rag_service.retrieval.hybrid import ABSENT_NAME

PRIOR = 0.7  # share of a team's questions that its documents answer, unless declared otherwise
FOLDS = 5
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))

_ROUNDS = 20  # of choosing passages and fitting; three or four are enough
_STEPS = 50  # of Newton's method
_RIDGE = 1e-3  # keeps the fit finite if the classes separate perfectly

_Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A question asked of one corpus."""

    set: str
    group: int  # number of its article
    answerable: bool
    passages: _Matrix  # (hits, 2): cosine and coverage, best fused first
    log_odds: float = 0.0  # added by the search for a name that no document contains


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Log-odds: intercept + cosine · (cosine of the passage) + coverage · (coverage of the passage)."""

    intercept: float
    cosine: float
    coverage: float

    def relevance(self, sample: Sample) -> _Matrix:
        """Relevance of a question's passages, 0..1."""
        exponent = sample.log_odds + self.intercept + sample.passages @ np.array([self.cosine, self.coverage])
        relevances: _Matrix = 1 / (1 + np.exp(-np.clip(exponent, -60, 60)))
        return relevances


@dataclass(frozen=True, kw_only=True)
class Point:
    """Refusals at a threshold, of questions that the fit has not seen."""

    set: str
    threshold: float
    refused_right: float  # share of unanswerable questions refused
    refused_wrong: float  # share of answerable questions refused


async def collect_samples(
    workspace: Workspace, loaded: EvalSet, index: IndexDefinition, *, every: int, steps: Steps
) -> list[Sample]:
    """Ask the set's questions; those of a SQuAD-format set `every` times, each time without another part of it.

    Raises:
        InputError: all questions are answerable and nothing can be left out.
    """
    if loaded.kind is SetKind.SQUAD:
        parts = [leave_out(loaded, every=every, offset=offset) for offset in range(every)]
    elif all(question.answerable for question in loaded.questions):
        raise InputError(f"{loaded.path}: has no unanswerable questions; use a set in SQuAD format.", field="leave_out")
    else:
        parts = [loaded]
    samples = []
    for part in parts:
        corpus = await load_corpus(workspace, part, index, steps)
        steps.begin(f"{part.name}: searching", len(part.questions))
        for question in part.questions:
            retrieval, hits = await search(workspace, corpus, question, RunOptions())
            signals = [
                [hit.scores.dense or 0.0, hit.scores.coverage or 0.0]
                for hit in sorted(hits, key=lambda hit: -(hit.scores.fused or 0.0))
            ]
            samples.append(
                Sample(
                    set=loaded.name,
                    group=question.group,
                    answerable=question.answerable,
                    passages=np.array(signals or [[0.0, 0.0]]),  # nothing found: a question without any signal
                    log_odds=ABSENT_NAME if retrieval.absent else 0.0,
                )
            )
            steps.advance(1)
    return samples


def fit_samples(samples: Sequence[Sample]) -> Fit:
    """Fit the samples' most relevant passages, each set with the same weight.

    Raises:
        InputError: the samples are all answerable or all unanswerable.
    """
    answerable = np.array([sample.answerable for sample in samples], dtype=np.float64)
    if answerable.all() or not answerable.any():
        raise InputError("Calibration needs answerable and unanswerable questions; use --leave-out 2.")
    weights = _weights(samples)
    log_odds = np.array([sample.log_odds for sample in samples])
    chosen = [0] * len(samples)  # best fused
    for _ in range(_ROUNDS):
        signals = np.array([sample.passages[best] for sample, best in zip(samples, chosen, strict=True)])
        intercept, cosine, coverage = fit_logistic(signals, answerable, weights, log_odds)
        fit = Fit(intercept=intercept, cosine=cosine, coverage=coverage)
        again = [int(np.argmax(fit.relevance(sample))) for sample in samples]
        if again == chosen:
            break
        chosen = again
    return fit


def _weights(samples: Sequence[Sample]) -> _Matrix:
    """A small set counts as much as a large one."""
    sizes = Counter(sample.set for sample in samples)
    return np.array([len(samples) / len(sizes) / sizes[sample.set] for sample in samples])


def fit_logistic(
    signals: _Matrix, labels: _Matrix, weights: _Matrix, log_odds: _Matrix, *, ridge: float = _RIDGE
) -> list[float]:
    """Intercept and coefficients of a logistic regression, by Newton's method.

    Args:
        signals: (samples, signals).
        labels: 0 or 1 for each sample.
        weights: of the samples.
        log_odds: added to each sample's.
        ridge: penalty on squared coefficients; none on the intercept.
    """
    design = np.column_stack([np.ones(len(signals)), signals])
    size = design.shape[1]
    values = np.zeros(size)
    penalty = ridge * np.diag([0.0, *np.ones(size - 1)])
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-np.clip(log_odds + design @ values, -60, 60)))
        slope = design.T @ (weights * (labels - expected)) - penalty @ values
        curvature = (design.T * (weights * expected * (1 - expected))) @ design + penalty
        step = np.linalg.solve(curvature + 1e-9 * np.eye(size), slope)
        values += np.clip(step, -5, 5)
        if np.abs(step).max() < 1e-8:
            break
    return [float(value) for value in values]


def to_prior(fit: Fit, samples: Sequence[Sample], *, prior: float) -> Fit:
    """The fit restated for a declared share of answerable questions."""
    weights = _weights(samples)
    share = float(np.average([sample.answerable for sample in samples], weights=weights))
    return replace(fit, intercept=fit.intercept + math.log(prior / (1 - prior)) - math.log(share / (1 - share)))


def cross_validate(samples: Sequence[Sample], *, prior: float) -> list[float]:
    """Relevance of each sample's best passage under a fit that saw none of its article."""
    relevances = [0.0] * len(samples)
    for fold in range(FOLDS):
        seen = [sample for sample in samples if sample.group % FOLDS != fold]
        if not seen or len({sample.answerable for sample in seen}) < 2:
            raise InputError(f"The sets have too few articles for {FOLDS} folds; add questions.")
        fit = to_prior(fit_samples(seen), seen, prior=prior)
        for number, sample in enumerate(samples):
            if sample.group % FOLDS == fold:
                relevances[number] = best_relevance(fit, sample)
    return relevances


def best_relevance(fit: Fit, sample: Sample) -> float:
    """Relevance of the most relevant passage, 0..1."""
    return float(fit.relevance(sample).max())


def curve(samples: Sequence[Sample], relevances: Sequence[float]) -> list[Point]:
    """Refusals by threshold, for each set."""
    points = []
    for name in dict.fromkeys(sample.set for sample in samples):
        chosen = [(sample, value) for sample, value in zip(samples, relevances, strict=True) if sample.set == name]
        answerable = np.array([value for sample, value in chosen if sample.answerable])
        others = np.array([value for sample, value in chosen if not sample.answerable])
        points += [
            Point(
                set=name,
                threshold=threshold,
                refused_right=float((others < threshold).mean()) if len(others) else math.nan,
                refused_wrong=float((answerable < threshold).mean()) if len(answerable) else math.nan,
            )
            for threshold in THRESHOLDS
        ]
    return points


def split_articles(samples: Sequence[Sample], articles: str) -> tuple[list[Sample], list[Sample]]:
    """(to fit on, to measure on): "odd" fits on the first, third, … article, "even" on the others."""
    rest = 0 if articles == "odd" else 1
    fitted = [sample for sample in samples if sample.group % 2 == rest]
    return fitted, [sample for sample in samples if sample.group % 2 != rest]


def as_relevance_fit(fit: Fit, run: str) -> RelevanceFit:
    """The fit as an index definition has it."""
    return RelevanceFit(run=run, **{name: round(value, 2) for name, value in asdict(fit).items()})
