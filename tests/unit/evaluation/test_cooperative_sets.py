"""The eval sets of free questions that are shipped: what the calibration of relevance stands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_service.evaluation.datasets import load_set
from rag_service.evaluation.eval_set import EvalSet, translate_sets
from rag_service.language.detection import detect_language

EVALS = Path(__file__).parents[3] / "evals"
LANGUAGES = ("en", "es", "fr", "pt")


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def loaded(language: str) -> EvalSet:
    return load_set(EVALS / f"cooperative.{language}.json")


def test_answers_stand_in_their_passage_character_for_character(loaded: EvalSet) -> None:
    passages = {passage.key: passage.text for passage in loaded.passages}
    asked = [question for question in loaded.questions if question.answerable]
    assert len(asked) >= 150
    for question in asked:
        assert all(answer in passages[key] for key in question.targets for answer in question.answers), question.key


def test_it_is_large_and_varied_enough_to_leave_articles_out(loaded: EvalSet) -> None:
    assert len(loaded.groups) >= 24 and len(loaded.passages) >= 120
    assert all(60 <= len(passage.text.split()) <= 140 for passage in loaded.passages)
    assert sum(not question.answerable for question in loaded.questions) >= 30
    assert len({question.key for question in loaded.questions}) == len(loaded.questions)


def test_its_questions_are_taken_for_their_language(loaded: EvalSet, language: str) -> None:
    """A few words without an accent may leave the language open; they must not be taken for another one."""
    found = [(question.text, detect_language(question.text)) for question in loaded.questions]
    wrong = [text for text, detected in found if detected not in (language, None)]
    # "Que dia e que ha ingles", without its accents, has the words of two languages.
    assert len(wrong) <= (0.015 * len(found) if language == "pt" else 0), wrong
    assert sum(detected is None for _, detected in found) <= 0.03 * len(found)


def test_the_sets_are_translations_of_each_other() -> None:
    sets = [load_set(EVALS / f"cooperative.{language}.json") for language in LANGUAGES]
    pairs = translate_sets(sets)
    assert len(pairs) == len(LANGUAGES) * (len(LANGUAGES) - 1)
    for pair in pairs:
        assert len(pair.questions) >= 350
    passages = {some.name: len(some.passages) for some in sets}
    assert len(set(passages.values())) == 1
