"""A model's window is as its server counts it, and not as we do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, CitationStatus
from rag_service.recent import keep_for
from rag_service.retrieval.question import Question
from rag_service.store.documents.documents import DocumentInput, read_text
from tests.doubles.openai import CHAT, TOKENIZE, OpenAIDouble, count_prompt, openai_server
from tests.integration.answers.conftest import OpenService
from tests.integration.models.conftest import until

__all__ = ["openai_server"]  # fixtures

QUESTION = "How long does a permit for the harbour last?"
PAGE = (
    "# Permits of harbour {number}\n\nA permit for harbour {number} lasts {number} months, and the harbour office"
    " renews it. " + "The office of the harbour keeps the register of all permits and of the boats they name. " * 20
)
WINDOW = 6000


@asynccontextmanager
async def harbours(open_service: OpenService, double: OpenAIDouble, **settings: Any) -> AsyncIterator[Components]:
    """Eight files of which all fit into the window as we count, and few as the double does."""
    given = {
        "chat_provider": "openai_like", "openai_url": double.url, "judge": "none", "context_window": WINDOW,
        "max_tokens": 200, "context_max_tokens": 8000, "similarity_threshold": 0.01, "chat_tools": "off",
        "max_chunks_in_prompt": 8,
    }  # fmt: skip
    async with open_service(**given | settings) as service:
        for number in range(2, 10):
            text = PAGE.format(number=number)
            await service.ingest(DocumentInput(data=text.encode(), file_name=f"harbour-{number}.md"), LOCAL_ADMIN)
        yield service


async def ask(service: Components, question: str = QUESTION) -> Answer:
    return await service.engine.answer(Question(question, identity=LOCAL_ADMIN, top_k=8))


async def test_where_no_passage_fits_whole_a_part_is_answered_from(
    open_service: OpenService, openai_server: OpenAIDouble
) -> None:
    openai_server.answer = "A permit for harbour 3 lasts 3 months [C1]."
    async with harbours(open_service, openai_server, context_max_tokens=150) as service:
        answer = await ask(service, "How long does a permit for harbour 3 last?")
        (shown,) = answer.shown
        async with service.database.transaction(LOCAL_ADMIN) as connection:
            text = await read_text(connection, shown.chunk.document.id)
    assert answer.model_error is None
    assert text is not None
    assert text[shown.chunk.start : shown.chunk.end] == shown.chunk.text
    assert len(shown.chunk.text) < len(text) / 2
    (citation,) = answer.citations
    assert citation.status is CitationStatus.VERIFIED
    assert "lasts 3 months" in text[citation.start : citation.end]


@pytest.mark.parametrize("tells_count", [True, False], ids=["as llama.cpp", "as OpenAI"])
async def test_a_prompt_refused_for_its_length_is_sent_again_with_fewer_passages(
    open_service: OpenService, openai_server: OpenAIDouble, tells_count: bool
) -> None:
    openai_server.window, openai_server.tells_count = WINDOW, tells_count
    async with harbours(open_service, openai_server, context_window=4 * WINDOW) as service:
        openai_server.answer = "A permit lasts three months [C1]."
        first = await ask(service)
        refused, sent = openai_server.bodies(CHAT)
        second = await ask(service)
    assert count_prompt(refused) + 200 > WINDOW >= count_prompt(sent) + 200
    assert (first.model_error, first.text.strip()) == (None, "A permit lasts three months [C1].")
    assert 0 < len(first.shown) < len(first.sources)
    shown = [hit.chunk.document.title for hit in first.shown]
    told = sent["messages"][-1]["content"]
    assert all(title in told for title in shown)
    # What was learnt holds for the next question: one request.
    assert len(openai_server.bodies(CHAT)) == 3
    assert second.model_error is None
    assert len(second.shown) == len(first.shown)


async def test_a_prompt_that_is_too_long_twice_is_answered_by_quotes(
    open_service: OpenService, openai_server: OpenAIDouble
) -> None:
    openai_server.window, openai_server.tells_count = 300, False
    async with harbours(open_service, openai_server) as service:
        answer = await ask(service)
    assert len(openai_server.bodies(CHAT)) <= 2
    assert answer.model_error == "prompt_too_long"
    assert answer.citations


async def test_a_smaller_window_of_the_server_is_kept_to(
    open_service: OpenService, openai_server: OpenAIDouble
) -> None:
    openai_server.window = 3000
    async with harbours(open_service, openai_server) as service:
        answer = await ask(service)
        assert answer.model_error is None
        await ask(service)
        with keep_for(LOCAL_ADMIN.user_id):
            assert service.chat.context_window == 3000
    assert len(openai_server.bodies(CHAT)) == 3


async def test_what_a_server_counts_corrects_the_next_prompt(
    open_service: OpenService, openai_server: OpenAIDouble
) -> None:
    """The first prompt fits; the second, with all passages, would not."""
    openai_server.window = WINDOW
    async with harbours(open_service, openai_server) as service:
        await service.engine.answer(Question(QUESTION, identity=LOCAL_ADMIN, top_k=1))
        answer = await ask(service)
    assert answer.model_error is None
    assert len(openai_server.bodies(CHAT)) == 2


async def test_a_server_that_can_count_is_asked_before_the_first_question(
    open_service: OpenService, openai_server: OpenAIDouble
) -> None:
    openai_server.window, openai_server.tokenizes = WINDOW, True
    async with harbours(open_service, openai_server) as service:
        service.chat.start()
        await until(lambda: set(service.chat.rates.rates) >= {"en", "es", "fr", "pt"})
        answer = await ask(service)
    assert answer.model_error is None
    assert len(openai_server.bodies(CHAT)) == 1


async def test_a_server_that_cannot_count_is_left_alone(open_service: OpenService, openai_server: OpenAIDouble) -> None:
    async with harbours(open_service, openai_server) as service:
        service.chat.start()
        await until(lambda: bool(openai_server.bodies(TOKENIZE)))
        answer = await ask(service)
    assert answer.model_error is None
    assert len(openai_server.bodies(TOKENIZE)) == 1
