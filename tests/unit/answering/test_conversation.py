"""Which questions of a conversation need the ones before, where no model rewrites them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from rag_service.answering.conversation import FindPassages, lean_on_history
from rag_service.domain import Hit, Scores, Turn
from rag_service.retrieval.question import FollowUp
from tests.unit.answering.proof.answers import make_hit

CEILING = "What is the hotel ceiling in Spain?"
EXTENSION = "Can I buy an extension?"


def finding(found: Mapping[str, Mapping[int, float]]) -> FindPassages:
    """Finds, for each question, the passages with these numbers; other questions must not be searched for."""

    async def find(question: str) -> Sequence[Hit]:
        return [
            replace(make_hit("text", number), scores=Scores(relevance=fused, fused=fused))
            for number, fused in found[question].items()
        ]

    return find


def said(*questions: str) -> list[Turn]:
    return [
        turn for text in questions for turn in (Turn(role="user", content=text), Turn(role="assistant", content="5"))
    ]


async def standalone(question: str, *before: str, found: Mapping[str, Mapping[int, float]] | None = None) -> str:
    return (await lean_on_history(question, said(*before), finding(found or {})))[0]


@pytest.mark.parametrize(
    "question",
    [
        "How many days of vacation does an employee receive each year?",
        "Which documents does the municipality require for residents' parking?",
    ],
)
async def test_a_question_of_many_words_stands_alone(question: str) -> None:
    assert await standalone(question, CEILING) == question


@pytest.mark.parametrize(
    ("before", "question"),
    [
        (CEILING, "And in France?"),
        (CEILING, "What about Portugal?"),
        (CEILING, "Who approves it in Madrid?"),
        (CEILING, "How much?"),
        ("¿Cuánto dura la garantía de la caldera?", "¿Y el intercambiador Termia?"),
        ("¿Cuánto dura la garantía de la caldera?", "¿Quién la repara?"),
        ("Quelle est la durée du bail ?", "Et pour les bureaux de Lyon ?"),
        ("Quelle est la durée du bail ?", "et le préavis"),
    ],
)
async def test_a_question_that_goes_on_or_refers_to_something_needs_the_one_before(before: str, question: str) -> None:
    assert await standalone(question, before) == f"{before}\n{question}"


async def test_a_question_of_few_words_stands_alone_if_its_own_passage_is_the_best_one_anyway() -> None:
    own = {EXTENSION: {1: 0.9, 2: 0.1}, CEILING: {3: 0.8, 2: 0.2}}
    assert await standalone(EXTENSION, CEILING, found=own) == EXTENSION
    shared = {EXTENSION: {1: 0.9, 2: 0.6}, CEILING: {2: 0.7, 3: 0.3}}  # the subject of before has a passage for it
    assert await standalone(EXTENSION, CEILING, found=shared) == f"{CEILING}\n{EXTENSION}"
    nothing: Mapping[str, Mapping[int, float]] = {EXTENSION: {}, CEILING: {2: 0.7}}
    assert await standalone(EXTENSION, CEILING, found=nothing) == EXTENSION


async def test_a_chain_of_questions_goes_back_to_one_that_stands_alone() -> None:
    whole = "¿Cuánto cuesta la caja de M6x20 inox A2?"
    asked = ["Quelle est la durée du bail de Lyon ?", whole, "¿y en negro?"]
    question, follow_up = await lean_on_history("¿y zincado?", said(*asked), finding({}))
    assert question == f"{whole}\n¿y en negro?\n¿y zincado?"
    assert follow_up is not None
    assert follow_up == FollowUp(asked="¿y zincado?", joined=True)
    assert await standalone("¿y zincado?") == "¿y zincado?"
    assert await standalone("¿y más?", "¿y zincado?") == "¿y zincado?\n¿y más?"
