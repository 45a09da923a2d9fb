"""What the calibrated relevance is fitted to, and how well it refuses what it has not seen.

SQuAD-format sets are asked several times, each time without other articles, so that every question is seen both
answerable and not. `rag_service.fitting.logistic` fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_service.errors import InputError
from rag_service.evaluation.eval_set import EvalSet, SetKind, leave_out
from rag_service.evaluation.run import RunOptions, Steps, load_corpus, search
from rag_service.evaluation.workspace import Workspace
from rag_service.fitting.logistic import Sample, best_relevance, fit_samples, to_prior
from rag_service.indices import IndexDefinition
from rag_service.retrieval.fusion import ABSENT_NAME

FOLDS = 5
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))


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

    Raises InputError if all questions are answerable and nothing can be left out.
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
            found = await search(workspace, corpus, question, RunOptions())
            signals = [
                [hit.scores.dense or 0.0, hit.scores.coverage or 0.0]
                for hit in sorted(found.passages, key=lambda hit: -(hit.scores.fused or 0.0))
            ]
            samples.append(
                Sample(
                    set=loaded.name,
                    group=question.group,
                    answerable=question.answerable,
                    passages=np.array(signals or [[0.0, 0.0]]),  # nothing found: a question without any signal
                    log_odds=ABSENT_NAME if found.absent else 0.0,
                )
            )
            steps.advance(1)
    return samples


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
