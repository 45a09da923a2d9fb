"""Fits the confidence of written answers to what `python -m evals.written --json` wrote of the developed half.

A logistic of two signals: the share of the sentences that are verified, and whether the judge says that the answer
answers the question. Each judge counts the same. How often it was right in its examination tells nothing more: one that
errs often is not used, and beside one that errs sometimes figures count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from evals.written.judge import JUDGES
from rag_service.answering.decision.confidence import WRITTEN_SIGNALS, ConfidenceFit, written_signals
from rag_service.fitting.logistic import fit_logistic

_RIDGE = 0.1  # a judge that is always right separates the answers, and would make certain what is not
_LEAST = 0.5
_BOUNDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the service made of a written answer."""

    judge: str
    right: bool
    signals: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Band:
    """Answers of about the same confidence."""

    least: float
    answers: int
    said: float  # their mean confidence
    right: float  # share of right ones


def read_replies(path: Path, *, half: str) -> list[Reply]:
    """Return the replies of a half that a judge has seen; near misses that the model did not write are left out."""
    return [
        Reply(
            judge=line["judge"],
            right=line["right"],
            signals=written_signals(proved=line["proved"], answers=line["answers"] == "yes"),
        )
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        if line["half"] == half and line["judge"] in JUDGES and line["outcome"] == "answer" and line["answers"]
    ]


def fit_written(replies: Sequence[Reply], *, run: str) -> ConfidenceFit:
    """Fit the replies."""
    judges = [reply.judge for reply in replies]
    weights = np.array([len(judges) / len(set(judges)) / judges.count(judge) for judge in judges])
    signals = np.array([[reply.signals[name] for name in WRITTEN_SIGNALS] for reply in replies])
    right = np.array([float(reply.right) for reply in replies])
    intercept, *found = fit_logistic(signals, right, weights, np.zeros(len(replies)), ridge=_RIDGE)
    fitted = {name: round(weight, 2) for name, weight in zip(WRITTEN_SIGNALS, found, strict=True)}
    return ConfidenceFit(run=run, intercept=round(intercept, 2), weights=fitted, least=_LEAST)


def measure_bands(fit: ConfidenceFit, replies: Sequence[Reply]) -> Iterator[Band]:
    """Give the answers by their confidence."""
    rated = [(fit.probability(reply.signals), reply.right) for reply in replies]
    for least, most in pairwise(_BOUNDS):
        held = [(said, right) for said, right in rated if least <= said < most or said == most == 1]
        if held:
            said, right = np.mean(np.array(held, dtype=float), axis=0)
            yield Band(least=least, answers=len(held), said=float(said), right=float(right))


def write_fit(path: Path, fit: ConfidenceFit) -> None:
    """Write a fit as the package ships it."""
    kept = {key: value for key, value in asdict(fit).items() if key != "typical"}
    path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
