"""Why an answer is not one that can proceed."""

from __future__ import annotations

import pytest

from rag_service.answering.decision.conclusion import decide, find_doubts, make_reasons
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.prompt.templates import load_prompts
from rag_service.domain import Decision
from rag_service.language.languages import language_codes
from rag_service.web.languages import load_strings


def test_without_doubt_an_answer_can_proceed() -> None:
    assert find_doubts(dict.fromkeys(Doubt, False)) == ()
    assert decide(()) is Decision.CAN_PROCEED


@pytest.mark.parametrize("doubt", Doubt)
def test_each_doubt_lowers_the_decision_and_has_a_sentence_in_every_language(doubt: Doubt) -> None:
    (found,) = find_doubts({doubt: True})
    assert decide([found]) is not Decision.CAN_PROCEED
    messages = load_prompts().messages
    told = {make_reasons([doubt], messages, language)[0].text for language in language_codes()}
    assert len(told) == len(language_codes())
    assert {load_strings()[language]["client"][f"reason_{doubt}"] for language in language_codes()} == told


def test_where_there_is_no_answer_only_that_is_told() -> None:
    found = find_doubts({Doubt.LOW_CONFIDENCE: True, Doubt.UNPROVED: True, Doubt.NOT_ANSWERED: True})
    assert found == (Doubt.NOT_ANSWERED,)
    assert decide(found) is Decision.OUT_OF_SCOPE


def test_what_weighs_most_is_told_first() -> None:
    found = find_doubts({Doubt.LOW_CONFIDENCE: True, Doubt.CONTRADICTED: True, Doubt.MODEL_FAILED: True})
    assert found == (Doubt.MODEL_FAILED, Doubt.CONTRADICTED, Doubt.LOW_CONFIDENCE)


def test_a_language_without_sentences_gets_english() -> None:
    (reason,) = make_reasons([Doubt.UNPROVED], load_prompts().messages, "nl")
    assert reason.text == "Some sentences are not proved by their source."
