"""The fit of the confidence of answers, and the thresholds of judges."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np

from rag_service.answering.decision.confidence import SIGNALS, read_fit
from rag_service.evaluation.answer_confidence import (
    RatedAnswer,
    calibration_error,
    choose_least,
    fit_answers,
    without_limit,
    write_fit,
)
from rag_service.evaluation.claims import LabelledClaim, choose_thresholds


def test_the_calibration_error_is_the_distance_between_confidence_and_right_answers() -> None:
    ones, right = np.ones(10), np.array([1.0] * 5 + [0.0] * 5)
    assert abs(calibration_error(0.9 * ones, right, ones, bins=1) - 0.4) < 1e-9
    assert abs(calibration_error(0.5 * ones, right, ones, bins=1)) < 1e-9
    assert abs(calibration_error(0.5 * ones, right, np.array([3.0] * 5 + [1.0] * 5), bins=1) - 0.25) < 1e-9
    assert calibration_error(np.array([]), np.array([]), np.array([])) == 0.0


def test_the_limit_is_the_lowest_that_reaches_the_target() -> None:
    right = [False, False, True, True]
    assert choose_least([0.76, 0.78, 0.82, 0.9], right, [1.0] * 4, target=0.9) == 0.79
    assert choose_least([0.76, 0.78, 0.82, 0.9], right, [0.1, 0.1, 1.0, 1.0], target=0.9) == 0.5
    assert choose_least([0.76, 0.78], [False, False], [1.0] * 2, target=0.9) == 0.99


def test_a_fit_finds_the_probability_that_made_the_answers_and_is_read_again(tmp_path: Path) -> None:
    draw = random.Random(3)  # noqa: S311
    rated = []
    for number in range(2000):
        signals = {name: draw.uniform(-2, 2) for name in SIGNALS}
        right = draw.random() < 0.5 + signals["relevance"] / 5
        rated.append(RatedAnswer(set="s", group=number, signals=signals, right=right))
    fit, halves = fit_answers(rated, run="test")
    assert all(half.error < 0.06 for half in halves)
    write_fit(fit, tmp_path / "fit.json")
    assert read_fit(tmp_path / "fit.json") == fit


def test_answers_that_may_not_proceed_anyway_do_not_raise_the_limit() -> None:
    draw = random.Random(5)  # noqa: S311
    rated = []
    for number in range(4000):
        signals = dict.fromkeys(SIGNALS, 0.0) | {"relevance": draw.uniform(-4, 4)}
        right = draw.random() < 1 / (1 + math.exp(-signals["relevance"]))
        rated.append(RatedAnswer(set="s", group=number, signals=signals, right=right))
    fit, _ = fit_answers(rated, run="test")
    stopped = [replace(one, may_proceed=one.right or one.signals["relevance"] < 1) for one in rated]
    lenient, _ = fit_answers(stopped, run="test")
    assert 0 < lenient.least < fit.least < 1
    assert without_limit(fit).least == 0


def test_signals_that_an_answer_does_not_have_count_as_typical_ones() -> None:
    fit = read_fit()
    known = dict.fromkeys(SIGNALS, 0.0)
    quoted = {name: known[name] for name in SIGNALS if name != "lead"}
    typical = known | {name: fit.typical[name] for name in ["lead"]}
    assert fit.probability(quoted) == fit.probability(typical) != fit.probability(known)


def test_a_fit_of_a_chat_models_answers_has_no_signals_of_quotes() -> None:
    draw = random.Random(4)  # noqa: S311
    names = [name for name in SIGNALS if name != "lead"]
    rated = [
        RatedAnswer(
            set="s",
            group=number,
            signals={name: draw.uniform(-2, 2) for name in names},
            right=number % 4 > 1,
        )
        for number in range(200)
    ]
    fit, _ = fit_answers(rated, run="test")
    assert list(fit.weights) == names


def test_the_threshold_of_a_judge_keeps_untrue_claims_out() -> None:
    labels = [("free", 0.9), ("light", 0.8), ("false", 0.7), ("free", 0.6)]
    claims = [
        LabelledClaim(id=str(p), lang="en", passage="p", claim="c", label=label)  # type: ignore[arg-type]
        for label, p in labels
    ]
    found = choose_thresholds(claims, [p for _, p in labels], run="r")["en"]
    assert (found.threshold, found.precision) == (0.8, 1.0)
    hopeless = choose_thresholds(claims[2:3], [0.9], run="r")["en"]
    assert hopeless.threshold > 1
