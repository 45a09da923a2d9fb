"""Calibration: the fit finds the truth it was sampled from, and the definition keeps its comments."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml

from rag_service.errors import DefinitionError, InputError
from rag_service.evaluation.calibrate import cross_validate, curve, split_articles
from rag_service.evaluation.calibration_run import put_calibration, write_calibration
from rag_service.fitting.logistic import Sample, as_relevance_fit, best_relevance, fit_samples, to_prior
from rag_service.indices import Calibration, QueryDefinition, RelevanceFit, load_index
from rag_service.models.embedding.relevance import ModelRelevance

TRUE = (-8.0, 9.0, 15.0)


def sample_questions(count: int, *, seed: int = 1, name: str = "made") -> list[Sample]:
    """Questions whose answerability follows the true logistic at their best passage."""
    generator = np.random.default_rng(seed)
    samples = []
    for number in range(count):
        passages = np.column_stack([generator.uniform(0, 1, 5), generator.uniform(0, 0.5, 5)])
        exponent = (TRUE[0] + passages @ np.array(TRUE[1:])).max()
        answerable = bool(generator.random() < 1 / (1 + math.exp(-exponent)))
        samples.append(Sample(set=name, group=number % 20, answerable=answerable, passages=passages))
    return samples


def test_the_fit_finds_the_numbers_that_the_data_was_made_with() -> None:
    fit = fit_samples(sample_questions(20_000))
    assert (fit.intercept, fit.cosine, fit.coverage) == pytest.approx(TRUE, rel=0.1)


@pytest.mark.slow
def test_what_else_is_known_of_a_question_is_not_fitted_again() -> None:
    """The search adds it to the log odds itself: whoever fits the rest must count it, and only once."""
    plain = sample_questions(20_000)
    generator = np.random.default_rng(4)
    samples = []
    for sample in plain:
        log_odds = -3.0 if generator.random() < 0.5 else 0.0
        exponent = log_odds + (TRUE[0] + sample.passages @ np.array(TRUE[1:])).max()
        answerable = bool(generator.random() < 1 / (1 + math.exp(-exponent)))
        samples.append(replace(sample, log_odds=log_odds, answerable=answerable))
    fit = fit_samples(samples)
    assert (fit.intercept, fit.cosine, fit.coverage) == pytest.approx(TRUE, rel=0.1)


def test_relevance_is_stated_for_the_declared_prior() -> None:
    samples = sample_questions(4_000)
    share = sum(sample.answerable for sample in samples) / len(samples)
    fit = fit_samples(samples)
    assert to_prior(fit, samples, prior=share).intercept == pytest.approx(fit.intercept)
    moved = to_prior(fit, samples, prior=0.5)
    assert moved.intercept - fit.intercept == pytest.approx(-math.log(share / (1 - share)))
    assert (moved.cosine, moved.coverage) == (fit.cosine, fit.coverage)


def test_a_small_set_counts_as_much_as_a_large_one() -> None:
    small = sample_questions(400, seed=3, name="small")
    large = sample_questions(800, seed=2)
    copied = [replace(sample, group=n) for sample in large for n in range(5)]
    once, five_times = fit_samples([*small, *large]), fit_samples([*small, *copied])
    assert (once.intercept, once.cosine, once.coverage) == pytest.approx(
        (five_times.intercept, five_times.cosine, five_times.coverage), rel=1e-2
    )


@pytest.mark.slow
def test_the_curve_rises_and_measures_what_the_fit_has_not_seen() -> None:
    samples = sample_questions(3_000)
    points = curve(samples, cross_validate(samples, prior=0.65))
    for former, latter in pairwise(points):
        assert latter.refused_right >= former.refused_right
        assert latter.refused_wrong >= former.refused_wrong
    middle = next(point for point in points if point.threshold == 0.6)
    assert middle.refused_right > 0.8 > 0.2 > middle.refused_wrong


def test_odd_and_even_articles_share_nothing() -> None:
    samples = sample_questions(100)
    fitted, measured = split_articles(samples, "odd")
    assert {sample.group % 2 for sample in fitted} == {0}, "the first article is number 1"
    assert {sample.group % 2 for sample in measured} == {1}
    assert split_articles(samples, "even") == (measured, fitted)


def test_one_kind_of_question_is_not_enough() -> None:
    samples = [Sample(set="s", group=n, answerable=True, passages=np.array([[0.5, 0.2]])) for n in range(10)]
    with pytest.raises(InputError, match="--leave-out"):
        fit_samples(samples)


def test_perfectly_separated_questions_still_give_finite_numbers() -> None:
    samples = [
        Sample(set="s", group=n, answerable=n % 2 == 0, passages=np.array([[0.9, 0.9] if n % 2 == 0 else [0.1, 0.1]]))
        for n in range(40)
    ]
    fit = fit_samples(samples)
    assert all(math.isfinite(value) for value in (fit.intercept, fit.cosine, fit.coverage))
    assert best_relevance(fit, samples[0]) > 0.9 > 0.1 > best_relevance(fit, samples[1])


DEFINITION = """\
# What this index is for.
name: sample
description: Of a test.

ingest:
  language: es # of all documents

query:
  alpha: 0.4 # set by hand
  {old}
  # a remark at the end
  prompt: grounded
"""
OLD = "calibration:\n    intercept: 1\n    cosine: 2 # remark\n    coverage: 3\n    run: old"
MODEL = "a-model"
FIT = RelevanceFit(intercept=-9.17, cosine=7.64, coverage=25.4, run="new-run")
NEW = Calibration(**FIT.model_dump(), model=MODEL)


def write_index(folder: Path, text: str) -> Path:
    file = folder / "sample" / "index.yaml"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("old", [OLD, ""])
def test_the_numbers_are_written_and_comments_and_order_stay(tmp_path: Path, old: str) -> None:
    file = write_index(tmp_path, DEFINITION.replace("  {old}\n", f"  {old}\n" if old else ""))
    write_calibration(file, FIT, model=MODEL)
    assert load_index("sample", indices_path=tmp_path).query.calibration == NEW
    text = file.read_text(encoding="utf-8")
    for kept in ("# What this index is for.", "# of all documents", "# set by hand", "# a remark at the end"):
        assert kept in text
    assert "run: old" not in text
    assert text.index("alpha") < text.index("prompt") < len(text)
    write_calibration(file, FIT, model=MODEL)
    assert file.read_text(encoding="utf-8") == text, "writing twice changes nothing"


def fit_for(rules: QueryDefinition, language: str) -> RelevanceFit:
    assert rules.calibration is not None
    return rules.calibration.languages.get(language, rules.calibration)


def test_a_language_has_numbers_of_its_own_and_the_others_keep_theirs(tmp_path: Path) -> None:
    file = write_index(tmp_path, DEFINITION.replace("{old}", OLD))
    spanish = RelevanceFit(intercept=-1.5, cosine=2.5, coverage=3.5, run="spanish")
    write_calibration(file, FIT, model=MODEL)
    write_calibration(file, spanish, model=MODEL, language="es")
    held = load_index("sample", indices_path=tmp_path).query
    assert fit_for(held, "es") == spanish
    assert fit_for(held, "fr") == fit_for(held, "unknown") == held.calibration
    write_calibration(file, FIT.model_copy(update={"run": "newer"}), model=MODEL)
    held = load_index("sample", indices_path=tmp_path).query
    assert fit_for(held, "es") == spanish, "numbers for the rest leave a language's own alone"
    write_calibration(file, spanish, model="another-model", language="en")
    held = load_index("sample", indices_path=tmp_path).query
    assert fit_for(held, "es") == held.calibration, "numbers of another model are worth nothing"
    assert fit_for(held, "fr").intercept == spanish.intercept


def test_passages_in_another_language_have_numbers_of_their_own(tmp_path: Path) -> None:
    file = write_index(tmp_path, DEFINITION.replace("{old}", OLD))
    between = RelevanceFit(intercept=-1.5, cosine=2.5, coverage=0.5, run="between")
    write_calibration(file, FIT, model=MODEL)
    write_calibration(file, between, model=MODEL, language="between")
    write_calibration(file, FIT.model_copy(update={"run": "newer"}), model=MODEL)
    held = load_index("sample", indices_path=tmp_path).query
    assert held.calibration is not None
    assert (held.calibration.run, held.calibration.between_languages) == ("newer", between)
    assert ModelRelevance(MODEL).fit_for(held, "es", between=True) == between
    unknown = ModelRelevance("another-model").fit_for(held, "es", between=True)
    assert unknown is not None and unknown.cosine < between.cosine, "until it is measured, its cosines are spread out"


def test_a_definition_without_a_query_part_gets_one() -> None:
    text = put_calibration("name: sample\n", NEW)
    assert yaml.safe_load(text)["query"]["calibration"] == NEW.model_dump(exclude={"languages"}, exclude_none=True)


def test_a_definition_that_would_not_load_is_left_as_it_was(tmp_path: Path) -> None:
    text = "name: sample\nquery: {alpha: 0.4}\n"
    file = write_index(tmp_path, text)
    with pytest.raises(DefinitionError):
        write_calibration(file, FIT, model=MODEL)
    assert file.read_text(encoding="utf-8") == text


def test_numbers_are_rounded_for_people() -> None:
    fitted = as_relevance_fit(fit_samples(sample_questions(500)), "run")
    assert fitted.intercept == round(fitted.intercept, 2)
