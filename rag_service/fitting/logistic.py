"""The logistic regression behind the calibrated relevance: from cosine and coverage to "it is answered here".

The signals are those of a question's best passage. The best passage is the most relevant one, which depends on the fit:
fitting starts from the best fused passage and is repeated with the passages that it ranks highest until they no longer
change.

The share of answerable questions in question sets is artificial. The intercept is therefore moved to a declared prior:
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
from rag_service.indices import RelevanceFit

PRIOR = 0.7  # share of a team's questions that its documents answer, unless declared otherwise

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


def fit_samples(samples: Sequence[Sample]) -> Fit:
    """Fit the samples' most relevant passages, each set with the same weight.

    Raises InputError if the samples are all answerable or all unanswerable.
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
        ridge: penalty on squared coefficients of standardised signals; none on the intercept.
    """
    # Cosines of some models differ by hundredths, so that their coefficients are large.
    mean, spread = signals.mean(axis=0), np.maximum(signals.std(axis=0), 1e-9)
    design = np.column_stack([np.ones(len(signals)), (signals - mean) / spread])
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
    coefficients = values[1:] / spread
    return [float(values[0] - coefficients @ mean), *map(float, coefficients)]


def to_prior(fit: Fit, samples: Sequence[Sample], *, prior: float) -> Fit:
    """The fit restated for a declared share of answerable questions."""
    weights = _weights(samples)
    share = float(np.average([sample.answerable for sample in samples], weights=weights))
    return replace(fit, intercept=fit.intercept + math.log(prior / (1 - prior)) - math.log(share / (1 - share)))


def best_relevance(fit: Fit, sample: Sample) -> float:
    """Relevance of the most relevant passage, 0..1."""
    return float(np.max(fit.relevance(sample)))


def as_relevance_fit(fit: Fit, run: str) -> RelevanceFit:
    """The fit as an index definition has it."""
    return RelevanceFit(run=run, **{name: round(value, 2) for name, value in asdict(fit).items()})
