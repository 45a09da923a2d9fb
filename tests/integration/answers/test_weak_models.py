"""A model that comes to no end without one proved sentence is replaced by quotes."""

from __future__ import annotations

import asyncio

import pytest

from rag_service.answering.drafts.events import AnswerComplete, AnswerDelta
from rag_service.domain import LOCAL_ADMIN, Answer
from rag_service.retrieval.question import Question
from rag_service.store.documents.documents import DocumentInput
from tests.doubles.ollama import CHAT, Done, OllamaDouble, Say, chat, ollama
from tests.integration.answers.conftest import OpenService

__all__ = ["ollama"]  # a fixture

TEXT = "A parking permit costs 75 euros a year and is sold at the reception."
QUESTION = "What does a parking permit cost a year?"


async def ask(open_service: OpenService, ollama: OllamaDouble, *, retractable: bool = True) -> tuple[Answer, str]:
    """The answer, and what a reader of the stream sees in the end."""
    settings = {"chat_provider": "ollama", "ollama_url": ollama.url, "chat_tools": "off", "judge": "none"}
    async with open_service(**settings) as components:
        await components.ingest(DocumentInput(data=TEXT.encode(), file_name="parking.md"), LOCAL_ADMIN)
        query = Question(QUESTION, identity=LOCAL_ADMIN, retractable=retractable, threshold=0.05)
        seen, answer = "", None
        async with asyncio.timeout(90):
            async for event in components.engine.stream(query):
                if isinstance(event, AnswerDelta):
                    seen = event.text if event.restart else seen + event.text
                elif isinstance(event, AnswerComplete):
                    answer = event.answer
    assert answer is not None
    return answer, seen


@pytest.mark.parametrize(
    "said", ["1. 2. 3. 4. 5. 6. 7. 8.", "The answer is that the answer depends on many things and"]
)
async def test_an_answer_that_is_cut_without_proof_becomes_quotes(
    open_service: OpenService, ollama: OllamaDouble, said: str
) -> None:
    ollama.script(CHAT, chat(Say(said), Done(done_reason="length")))
    answer, seen = await ask(open_service, ollama)
    assert answer.model_error == "llm_output_invalid"
    assert TEXT.rstrip(".") in answer.text
    assert said not in answer.text
    assert seen == answer.text
    assert answer.decision.value == "uncertain"


async def test_a_reader_who_cannot_take_text_back_keeps_it_before_the_quotes(
    open_service: OpenService, ollama: OllamaDouble
) -> None:
    ollama.script(CHAT, chat(Say("1. 2. 3. 4. 5. 6. 7. 8."), Done(done_reason="length")))
    answer, seen = await ask(open_service, ollama, retractable=False)
    assert seen == answer.text
    assert answer.text.startswith("1. 2. 3.")
    assert TEXT.rstrip(".") in answer.text


async def test_a_cut_answer_with_a_proved_sentence_stays(open_service: OpenService, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say(f"{TEXT[:-1]} [C1]. And then it goes on"), Done(done_reason="length")))
    answer, _ = await ask(open_service, ollama)
    assert answer.model_error is None
    assert answer.incomplete
    assert answer.text.startswith(TEXT[:-1])
