"""Faithful and faulty answers: what readers see of them, and what is decided."""

from __future__ import annotations

from itertools import chain

import pytest

from rag_service.answering.decision.conclusion import decide, find_doubts
from rag_service.answering.decision.gate import is_refusal
from rag_service.answering.drafts.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.proof.verify import REFUTED
from rag_service.domain import Decision
from tests.unit.answering.proof.answers import make_hit
from tests.unit.answering.whole_answers import FAITHFUL, FAULTY, PASSAGES


def check(language: str, answer: str) -> CheckedAnswer:
    shown = [make_hit(text, number) for number, text in enumerate(PASSAGES[language], start=1)]
    checker = AnswerChecker(shown, notice="-", language=language)
    checker.feed(answer)
    return checker.finish()[1]


def decide_on(language: str, checked: CheckedAnswer) -> Decision:
    refused = is_refusal(checked.text, checked.citations, refusal="No.", language=language)
    unproved, refuted = bool(checked.flagged), checked.refuted > 0
    return decide(find_doubts({Doubt.NOT_ANSWERED: refused, Doubt.UNPROVED: unproved, Doubt.CONTRADICTED: refuted}))


def test_sentences_of_faithful_answers_are_hardly_ever_refuted() -> None:
    citations = list(chain(*(check(language, answer).citations for language, answer in FAITHFUL)))
    refuted = [citation for citation in citations if citation.status in REFUTED]
    assert len(citations) >= 36
    assert len(refuted) <= 0.05 * len(citations), refuted


@pytest.mark.parametrize(("language", "fault", "answer"), FAULTY)
def test_no_faulty_answer_can_proceed(language: str, fault: str, answer: str) -> None:
    checked = check(language, answer)
    assert decide_on(language, checked) is (Decision.OUT_OF_SCOPE if fault == "refusal" else Decision.UNCERTAIN)


def test_an_answer_of_quotes_can_proceed() -> None:
    checked = check("en", "A lost key costs 18 euros [C1].\n\nDogs are allowed, cats are not [C2].")
    assert (checked.flagged, decide_on("en", checked)) == ((), Decision.CAN_PROCEED)


REFUSALS = [
    ("en", "The documents do not say what a bicycle costs."),
    ("en", "I'm sorry, but I cannot find any information about that."),
    ("en", "There is no information about parking in the passages [C1]."),
    ("es", "Lo siento, no tengo esa información."),
    ("es", "Los documentos no indican el precio."),
    ("es", "No he encontrado información sobre ese trámite."),
    ("fr", "Je suis désolé, je n'ai pas trouvé cette information."),
    ("fr", "Les passages ne mentionnent pas cette démarche."),
    ("fr", "Aucune information ne figure dans les documents."),
    ("pt", "Lamento, não tenho essa informação."),
    ("pt", "Os documentos não indicam o preço."),
    ("pt", "Não encontrei informações sobre isso nos documentos."),
]


@pytest.mark.parametrize(("language", "answer"), REFUSALS)
def test_a_refusal_in_other_words_is_one(language: str, answer: str) -> None:
    assert is_refusal(answer, (), refusal="No.", language=language)


@pytest.mark.parametrize(
    ("language", "answer"),
    [
        ("en", "Documents without a date are not accepted [C1]."),
        ("en", "You do not need any document to have access [C1]."),
        ("es", "Los documentos no caducan [C1]."),
        ("es", "No se necesita cita [C1]."),
        ("fr", "Les documents ne sont pas rendus [C1]."),
        ("pt", "Os documentos não caducam [C1]."),
    ],
)
def test_a_negative_answer_is_no_refusal(language: str, answer: str) -> None:
    assert not is_refusal(answer, (), refusal="No.", language=language)


def test_an_answer_with_a_verified_sentence_is_no_refusal() -> None:
    checked = check("en", "The documents do not say how many keys there are. A lost key costs 18 euros [C1].")
    assert decide_on("en", checked) is Decision.UNCERTAIN
