"""Two saved runs, question by question.

The p value is that of a paired randomisation test (Smucker, Allan and Carterette, "A comparison of
statistical significance tests for information retrieval evaluation", CIKM 2007): how often
differences with random signs are as large as the one seen. The interval is a paired bootstrap's.
Both are seeded, so that the same two runs always give the same table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_service.evaluation.eval_set import EvalSetError
from rag_service.evaluation.metrics import Measured
from rag_service.evaluation.saved import SavedRun, SavedSet

SAMPLES = 10_000
_SEED = 20_07


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What changed in one measure of one set."""

    set: str
    measure: str
    questions: int  # that have a value in both runs
    before: float
    after: float
    low: float  # 95 % interval of the difference
    high: float
    p_value: float

    @property
    def difference(self) -> float:
        return self.after - self.before


def compare_runs(before: SavedRun, after: SavedRun) -> list[Difference]:
    """The measures that both runs have, over the sets that both have.

    Raises:
        EvalSetError: no set is in both, or a set's questions differ.
    """
    others = {part.set: part for part in after.sets}
    shared = [(part, others[part.set]) for part in before.sets if part.set in others]
    if not shared:
        raise EvalSetError(f"The runs {before.name} and {after.name} have no set in common; run both over one set.")
    for first, second in shared:
        if first.questions != second.questions:
            raise EvalSetError(f"{first.set}: its questions differ between the runs; run it again on both sides.")
    return [difference for first, second in shared for difference in _compare_set(first, second)]


def _compare_set(before: SavedSet, after: SavedSet) -> Iterator[Difference]:
    for name, first in before.measures.items():
        second = after.measures.get(name)
        pairs = _pairs(first, second) if second is not None else None
        if pairs is not None and second is not None:
            left, right, weights = pairs
            low, high = _bootstrap(left, right, weights)
            yield Difference(
                set=before.set,
                measure=name,
                questions=len(left),
                before=float(np.average(left, weights=weights[0])),
                after=float(np.average(right, weights=weights[1])),
                low=low,
                high=high,
                p_value=_randomisation(left, right),
            )


_Column = npt.NDArray[np.float64]


def _pairs(before: Measured, after: Measured) -> tuple[_Column, _Column, tuple[_Column, _Column]] | None:
    both = [
        number
        for number, (first, second) in enumerate(zip(before.values, after.values, strict=False))
        if first is not None and second is not None
    ]
    if not both:
        return None
    return (
        np.array([before.values[number] for number in both], dtype=np.float64),
        np.array([after.values[number] for number in both], dtype=np.float64),
        (_weights(before, both), _weights(after, both)),
    )


def _weights(measured: Measured, chosen: list[int]) -> _Column:
    return np.array([1 if measured.weights is None else measured.weights[number] for number in chosen], np.float64)


def _randomisation(before: _Column, after: _Column) -> float:
    difference = after - before
    seen = abs(difference.mean())
    if seen == 0:
        return 1.0
    moved = difference[difference != 0]
    signs = np.random.default_rng(_SEED).choice(np.array([-1, 1], np.int8), size=(SAMPLES, len(moved)))
    by_chance = np.abs(signs @ moved) / len(difference)
    return float((1 + np.sum(by_chance >= seen - 1e-12)) / (1 + SAMPLES))


def _bootstrap(before: _Column, after: _Column, weights: tuple[_Column, _Column]) -> tuple[float, float]:
    generator = np.random.default_rng(_SEED)
    samples = np.empty(SAMPLES)
    for start in range(0, SAMPLES, 500):  # bounded memory: thousands of questions times 500 samples
        drawn = generator.integers(0, len(before), size=(min(500, SAMPLES - start), len(before)))
        first, second = weights[0][drawn], weights[1][drawn]
        samples[start : start + len(drawn)] = (after[drawn] * second).sum(1) / second.sum(1) - (
            before[drawn] * first
        ).sum(1) / first.sum(1)
    low, high = np.quantile(samples, [0.025, 0.975])
    return float(low), float(high)
