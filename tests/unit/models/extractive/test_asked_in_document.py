"""Lists of frequent questions: the answer is quoted, never the question, in three languages."""

from __future__ import annotations

import time

import pytest

from rag_service.models.extractive.asked_in_document import mark_questions
from rag_service.models.extractive.extractive import compose
from rag_service.models.extractive.grounded_message import Evidence
from rag_service.models.extractive.quotable import read_units
from rag_service.models.extractive.sentence_choice import select_sentences
from rag_service.query.verification.verify import verify_answer
from rag_service.text.sentences import split_sentences
from rag_service.text.words import terms
from tests.unit.query.verification.answers import make_hit

REFUSAL = "Not in the documents."

ENGLISH = """Q: I lost my laptop. What do I do?
A: Call the security desk at extension 4499 at once.

Q: How often are backups made?
A: Every night at two.

Q: Can I bring my dog?
A: No.

Q: who signs expense reports above five hundred euros and where do they go
A: The head of unit signs them. They go to room 12."""
SPANISH = """P: ¿Cada cuánto se hacen copias de seguridad?
R: Todas las noches a las dos.

P: He perdido el portátil. ¿Qué hago?
R: Llame a la extensión 4499.

Pregunta: Vacaciones sin gastar
Respuesta: Caducan en marzo."""
FRENCH = """Question : J'ai perdu mon ordinateur. Que faire ?
Réponse : Appelez le poste 4499 sans attendre.

Question : À quelle fréquence les sauvegardes sont-elles faites ?
Réponse : Toutes les nuits."""
UNLABELLED = """**I lost my badge. What now?**

Ask reception for a new one.

1. What do I need to register?
- the lease of the flat
- an identity card
2. How do I book a room? In the calendar.

Why do meters matter? Because leaks are found early."""


async def answer(question: str, text: str, language: str) -> str:
    weights = dict.fromkeys(terms(question, language), 2.0)
    hits = (make_hit(text),)
    asked = Evidence(question=question, language=language, hits=hits, weights=weights, refusal=REFUSAL)
    answered = "".join(compose(await select_sentences(asked, None), REFUSAL))
    verification = verify_answer(answered, hits, language=language)
    assert not verification.flagged
    assert {citation.status.value for citation in verification.citations} == {"verified"}
    return answered


@pytest.mark.parametrize(
    ("question", "text", "language", "first"),
    [
        ("i lost my laptop", ENGLISH, "en", "Call the security desk at extension 4499 at once. [C1]"),
        ("How often are backups made?", ENGLISH, "en", "Every night at two. [C1]"),
        ("backups", ENGLISH, "en", "Every night at two. [C1]"),
        ("who signs expense reports", ENGLISH, "en", "The head of unit signs them. [C1]"),
        ("copias de seguridad", SPANISH, "es", "Todas las noches a las dos. [C1]"),
        ("he perdido el portátil", SPANISH, "es", "Llame a la extensión 4499. [C1]"),
        ("vacaciones sin gastar", SPANISH, "es", "Caducan en marzo. [C1]"),
        ("j'ai perdu mon ordinateur", FRENCH, "fr", "Appelez le poste 4499 sans attendre. [C1]"),
        ("sauvegardes", FRENCH, "fr", "Toutes les nuits. [C1]"),
        ("lost badge", UNLABELLED, "en", "Ask reception for a new one. [C1]"),
        ("what to register", UNLABELLED, "en", "- the lease of the flat\n- an identity card [C1]"),
        ("book a room", UNLABELLED, "en", "How do I book a room? [C1] In the calendar."),
        ("why do meters matter", UNLABELLED, "en", "Because leaks are found early. [C1]"),
    ],
)
async def test_the_answer_to_the_documents_own_question_is_quoted(
    question: str, text: str, language: str, first: str
) -> None:
    assert (await answer(question, text, language)).split("\n\n")[0] == first


@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (SPANISH, "es"), (FRENCH, "fr"), (UNLABELLED, "en")])
def test_no_question_and_no_label_is_quoted(text: str, language: str) -> None:
    units = [unit for unit in read_units(text, language, headings=(), whole_list=False) if not unit.short_answer]
    assert units
    assert all(unit.question and "?" not in unit.text and ": " not in unit.text for unit in units)


async def test_an_answer_of_one_word_comes_behind_its_question() -> None:
    """No citation of "No." could be checked: it stands anywhere."""
    assert await answer("can I bring a dog", ENGLISH, "en") == "Can I bring my dog? [C1] No."


async def test_an_answer_that_goes_on_needs_no_question() -> None:
    text = "## Is the card an insurance?\n\nNeither. The card does not cover the rescue in mountains."
    assert await answer("is the card an insurance", text, "en") == (
        "The card does not cover the rescue in mountains. [C1]"
    )


def test_a_question_speaks_for_its_own_answer_only() -> None:
    text = "Q: Is the pool heated?\nA: March to October.\n\nThe sauna is hot.\n\nQ: Is there a gym?\nA: In hall two."
    assert [(unit.text, unit.question) for unit in read_units(text, "en", headings=(), whole_list=False)] == [
        ("March to October.", "Q: Is the pool heated?"),
        ("The sauna is hot.", ""),
        ("In hall two.", "Q: Is there a gym?"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Call extension 4499 for help. Any questions?",
        "P: present at work\nX: resting at home",
        "Question: Lost laptop, what to do? | Answer: Call 4499",
        "| I lost my badge. What now? | Ask reception |",
    ],
)
def test_what_only_looks_like_a_question_is_quoted(text: str) -> None:
    assert read_units(text, "en", headings=(), whole_list=False)[0].text == text.split(" Any")[0].split("\n")[0]


@pytest.mark.parametrize(
    "text", ["Q: a\n" * 20_000, "*" * 50_000, "\nI " * 30_000, "Q: I am? " * 10_000, " \n" * 30_000]
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    bounds = split_sentences(text)
    started = time.process_time()
    mark_questions(text, bounds)
    assert time.process_time() - started < 5, "tenths of a second when linear, minutes when quadratic"
