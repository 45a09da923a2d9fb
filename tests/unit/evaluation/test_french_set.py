"""The French eval set that is shipped: what the calibration of French questions stands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_service.evaluation.datasets import load_set
from rag_service.evaluation.eval_set import EvalSet
from rag_service.text.words import detect_language


@pytest.fixture(scope="module")
def french() -> EvalSet:
    return load_set(Path(__file__).parents[3] / "evals" / "cooperative.fr.json")


def test_answers_stand_in_their_passage_character_for_character(french: EvalSet) -> None:
    passages = {passage.key: passage.text for passage in french.passages}
    asked = [question for question in french.questions if question.answerable]
    assert len(asked) >= 150
    for question in asked:
        assert all(answer in passages[key] for key in question.targets for answer in question.answers), question.key


def test_it_is_large_and_varied_enough_to_leave_articles_out(french: EvalSet) -> None:
    assert len(french.groups) >= 24 and len(french.passages) >= 120
    assert all(60 <= len(passage.text.split()) <= 140 for passage in french.passages)
    assert sum(not question.answerable for question in french.questions) >= 30
    assert len({question.key for question in french.questions}) == len(french.questions)


def test_its_questions_are_taken_for_french(french: EvalSet) -> None:
    mistaken = [question.text for question in french.questions if detect_language(question.text) not in ("fr", None)]
    unknown = [question.text for question in french.questions if detect_language(question.text) is None]
    assert mistaken == [] and len(unknown) <= 2
