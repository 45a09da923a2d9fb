"""The type of answer that a question asks for."""

from __future__ import annotations

import pytest

from rag_service.answering.quoting.answer_types import answer_type, lacks_answer
from rag_service.language.words import fold


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How much does the pass cost?", "It is 40 €."),
        ("What is the fee of the course?", "It is forty dollars."),
        ("¿Cuánto cobra Amparo Lahoz?", "Son mil dólares."),
        ("¿Qué precio tiene el abono?", "Cuesta cuarenta euros."),
        ("Quel est le montant du loyer ?", "Il est de 500 EUR."),
        ("How many days?", "Twelve."),
        ("¿Cuántos días?", "Doce."),
        ("Combien de jours ?", "Soixante."),
        ("What is the contract number of the pump?", "It is RC-117."),
        ("¿Cuál es el número de contrato de la bomba?", "Es el 4711."),
        ("Quel est le numéro de contrat de la pompe ?", "C'est le 4711."),
        ("Qual é o número do contrato da bomba?", "É o 4711."),
    ],
)
def test_sums_and_numbers_are_recognised_as_what_was_asked_for(question: str, answer: str) -> None:
    wanted = answer_type(question)
    assert wanted is not None
    assert wanted.search(fold(answer))
    assert not wanted.search(fold("The head of the workshop signs for it."))


@pytest.mark.parametrize("question", ["Who pays?", "What do citizens feel about it?", "When does it open?"])
def test_other_questions_have_no_answer_type(question: str) -> None:
    assert answer_type(question) is None


@pytest.mark.parametrize(
    ("quote", "lacks"),
    [
        ("The sand was changed for 7,350 euros. The roof was repaired in April.", True),
        ("The roof was repaired in April for 7,350 euros. The sand was changed.", False),
        ("The roof was repaired in April.", True),
        ("It came to 7,350 euros.", False),
    ],
)
def test_an_amount_beside_what_was_asked_about_is_no_answer(quote: str, lacks: bool) -> None:
    assert lacks_answer("How much did it cost to have the roof repaired?", quote, "en") is lacks
