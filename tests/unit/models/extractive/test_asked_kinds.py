"""What a question asks for, and whether sentences could be an answer to it."""

from __future__ import annotations

import pytest

from rag_service.models.extractive.asked_kinds import kind_asked
from rag_service.models.extractive.grounded_message import Evidence
from rag_service.models.extractive.sentence_choice import select_sentences
from rag_service.text.words import fold
from tests.unit.query.verification.answers import make_hit

ASK_MONEY = [
    "How much does the pass cost?", "What is the fee of the course?", "¿Cuánto cobra Amparo Lahoz?",
    "¿Qué precio tiene el abono?", "Quel est le montant du loyer ?", "Combien coûte la carte ?",
]  # fmt: skip


@pytest.mark.parametrize("question", ASK_MONEY)
def test_what_something_costs_is_told_by_a_sum_or_by_its_being_free(question: str) -> None:
    kind = kind_asked(fold(question))
    assert kind is not None
    for answer in ("It is 40.", "Cuesta cuarenta euros.", "Es gratuito.", "There is no charge.", "C'est sans frais."):
        assert kind.may_be_told_by(["A word.", answer]), answer
    assert not kind.may_be_told_by(["The head of the workshop is Amparo Lahoz.", "She signs for it."])


@pytest.mark.parametrize(
    "question", ["What do citizens feel about it?", "Who pays?", "How many days?", "When does it open?"]
)
def test_other_questions_are_answered_by_other_things(question: str) -> None:
    kind = kind_asked(fold(question))
    assert kind is None or kind.may_be_told_by(["Nobody knows."])


async def test_no_sentence_is_quoted_for_a_price_that_none_names() -> None:
    hit = make_hit("The head of the workshop is Amparo Lahoz. She signs for the tools.")

    async def chosen(question: str) -> list[str]:
        evidence = Evidence(question=question, language="en", hits=(hit,), weights={"amparo": 3.0, "lahoz": 3.0})
        return [sentence.text for sentence in await select_sentences(evidence, None)]

    assert await chosen("How much does Amparo Lahoz cost us in fees?") == []
    assert (await chosen("Who is Amparo Lahoz?"))[0].startswith("The head of the workshop")


async def test_a_sum_that_is_the_whole_answer_to_the_documents_own_question_is_told() -> None:
    hit = make_hit(
        "Q: How much does the parking card cost?\nA: 40.\n\nQ: Who signs for the tools?\nA: Amparo Lahoz does."
    )
    asked = Evidence(
        question="How much does the parking card cost?",
        language="en",
        hits=(hit,),
        weights={"park": 3.0, "card": 3.0, "cost": 2.0},
    )
    (sentence,) = [found for found in await select_sentences(asked, None) if found.unit.short_answer]
    assert sentence.unit.told == "How much does the parking card cost? 40."
