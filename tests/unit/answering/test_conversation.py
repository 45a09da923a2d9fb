"""Which questions of a conversation lean on the one before, where no model rewrites them."""

from __future__ import annotations

import pytest

from rag_service.answering.conversation import lean_on_history
from rag_service.domain import Turn

CEILING = "What is the hotel ceiling in Spain?"


@pytest.mark.parametrize(
    ("before", "question", "language"),
    [
        (CEILING, "¿Qué significa E07?", "es"),
        ("¿Y el intercambiador?", CEILING, "en"),
        ("Who approves expensive trips?", "¿Qué significa el código E07?", "es"),
        ("¿Cuánto dura la garantía de la caldera?", "Quel est le loyer annuel ?", "fr"),
        (CEILING, "How many days of vacation does an employee receive each year?", "en"),
    ],
)
def test_a_whole_question_on_another_subject_stands_alone(before: str, question: str, language: str) -> None:
    assert lean_on_history(question, [Turn(role="user", content=before)], language) == question


@pytest.mark.parametrize(
    ("before", "question", "language"),
    [
        (CEILING, "And in France?", "en"),
        (CEILING, "What about Portugal?", "en"),
        (CEILING, "Who approves it in Madrid?", "en"),
        (CEILING, "How much?", "en"),
        ("¿Cuánto dura la garantía de la caldera?", "¿Y el intercambiador Termia?", "es"),
        ("¿Cuánto dura la garantía de la caldera?", "¿Quién la repara?", "es"),
        ("Quelle est la durée du bail ?", "Et pour les bureaux de Lyon ?", "fr"),
        ("Quelle est la durée du bail ?", "et le préavis", "fr"),
        ("How many days of vacation do employees get?", "How many days for interns?", "en"),
    ],
)
def test_a_question_that_goes_on_or_refers_to_something_leans_on_the_one_before(
    before: str, question: str, language: str
) -> None:
    assert lean_on_history(question, [Turn(role="user", content=before)], language) == f"{before}\n{question}"


def test_a_chain_of_questions_goes_back_to_one_that_stands_alone() -> None:
    asked = ["Quelle est la durée du bail de Lyon ?", "¿Cuánto cuesta la caja de M6x20 inox A2?", "¿y en negro?"]
    history = [
        turn for text in asked for turn in (Turn(role="user", content=text), Turn(role="assistant", content="5"))
    ]
    assert lean_on_history("¿y zincado?", history, "es") == f"{asked[1]}\n{asked[2]}\n¿y zincado?"
    assert lean_on_history("¿y zincado?", [], "es") == "¿y zincado?"
    assert lean_on_history("¿y más?", [Turn(role="user", content="¿y zincado?")], "es") == "¿y zincado?\n¿y más?"
