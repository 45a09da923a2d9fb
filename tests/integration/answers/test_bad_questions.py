"""Questions as nobody should ask them, without a chat model: each gets an answer, places or a plain refusal."""

from __future__ import annotations

import pytest

from rag_service.answering.quoting.quotes import MAX_PLACES
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, Decision, ReplyKind
from rag_service.language.words import count_words
from rag_service.retrieval.question import Question
from tests.integration.answers.conftest import Ingest

LEAVE = """# Leave policy

Employees receive 25 days of vacation per calendar year. Unused days expire on 31 March.
"""
LOG = "ERREUR le service de la base de données est arrêté, connexion refusée par le serveur\n" * 150  # 2,100 words
LONGEST_PLACE = 120  # words: a row is cut to some ninety


async def reply_to(service: Components, question: str) -> Answer:
    return await service.engine.answer(Question(question, identity=LOCAL_ADMIN))


async def test_one_word_is_answered_by_what_stands_about_it(service: Components, ingest: Ingest) -> None:
    await ingest(LEAVE, "leave.md")
    answer = await reply_to(service, "vacation")
    shown = [place.text for place in answer.places] or [answer.text]
    assert "25 days of vacation" in shown[0]


async def test_a_log_before_the_question_neither_changes_its_language_nor_makes_it_certain(
    service: Components, ingest: Ingest
) -> None:
    await ingest(LEAVE, "leave.md")
    answer = await reply_to(service, f"{LOG}\nHow many days of vacation do employees receive?")
    assert answer.language == "en"
    assert answer.decision is not Decision.CAN_PROCEED


@pytest.mark.parametrize("question", ["ረቂቅ ሕጉ መቼ ይጸድቃል?", "कर्मचारियों को कितने दिन मिलते हैं?", "Πόσες ημέρες άδειας;"])
async def test_a_script_that_no_document_has_is_never_answered_with_certainty(
    service: Components, ingest: Ingest, question: str
) -> None:
    await ingest(LEAVE, "leave.md")
    answer = await reply_to(service, question)
    assert answer.kind in (ReplyKind.PLACES, ReplyKind.NOTHING)
    assert answer.decision is not Decision.CAN_PROCEED


async def test_capital_letters_change_no_answer(service: Components, ingest: Ingest) -> None:
    await ingest(LEAVE, "leave.md")
    question = "How many days of vacation do employees receive?"
    plain, shouted = await reply_to(service, question), await reply_to(service, question.upper())
    assert [place.text for place in shouted.places] == [place.text for place in plain.places]
    assert (shouted.language, shouted.kind, shouted.text) == (plain.language, plain.kind, plain.text)


async def test_the_name_of_a_file_alone_shows_that_file(service: Components, ingest: Ingest) -> None:
    await ingest(LEAVE, "leave.md")
    await ingest("# Parking\n\nThe car park opens at seven.", "parking.md")
    answer = await reply_to(service, "leave.md")
    assert {hit.chunk.document.file_name for hit in answer.sources} == {"leave.md"}
    assert answer.text


async def test_a_cell_of_ten_thousand_characters_is_cut_around_what_was_asked(
    service: Components, ingest: Ingest
) -> None:
    note = f"{'The depot was inspected again. ' * 160}The vest costs 30 euros. {'Nothing else was found. ' * 210}"
    assert len(note) > 10_000
    await ingest(f"Item,Note\nVest,{note}\nBoots,They are sold in pairs.\n", "stock.csv")
    answer = await reply_to(service, "What does the vest cost?")
    assert 0 < len(answer.places) <= MAX_PLACES
    assert any("The vest costs 30 euros" in place.text for place in answer.places)
    assert max(count_words(place.text) for place in answer.places) <= LONGEST_PLACE
