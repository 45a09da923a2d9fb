"""Every question of the guides gets what its page promises, over the sample documents with the packaged model."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx
import pytest
import pytest_asyncio

from rag_service.app import create_app
from rag_service.domain import LOCAL_ADMIN
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.settings import Settings
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import cloned_database
from tests.documents import ROOT, guides
from tests.integration.answers.conftest import opened_service
from tests.serving import serving_here

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLES = ROOT / "indices" / "general" / "documents"
BORROW = "How much can I borrow from my plan?"
_QUESTION = re.compile(r'["*“](¿?[A-ZÀ-Þ][^"*“”\n]{6,120}\?)["*”]')


class Promise(NamedTuple):
    """What a page says of a question."""

    question: str
    answer: str = ""  # said by the reply, or the reply is not certain
    decisions: tuple[str, ...] = ("can_proceed",)
    before: tuple[str, ...] = ()  # earlier questions of the conversation


UNSURE = ("uncertain", "out_of_scope")
PROMISES = [
    Promise("What fees does a loan have?", "$75"),
    Promise("¿Cuál es la tasa del DNI?", "12 euros"),
    Promise("Quelle était la valeur du stock à la fin du mois de mars ?", "18,4 millions"),
    Promise("Quel est le taux de service ?", "95,8 %", ("can_proceed", "uncertain")),
    Promise("Who won the football final?", decisions=("out_of_scope",)),
    Promise(BORROW, "50%", ("can_proceed", "uncertain")),
    Promise("How much can I borrow?", "50%", ("can_proceed", "uncertain")),
    Promise("And how long may I take to repay it?", decisions=UNSURE, before=(BORROW,)),
]
OF_OTHER_DOCUMENTS = {
    "What does it cost, and how long does it last?",
    "And in Paris?",
    "And how long does it take?",
    "When does gate 4 open?",
    "When does the gate open?",
    "How many places does the day care have?",
    "How many kilos did Ben sell?",
}


async def test_every_question_of_the_guides_is_asked() -> None:
    asked = {question for page in guides() for question in _QUESTION.findall(page.read_text(encoding="utf-8"))}
    assert asked == {promise.question for promise in PROMISES} | OF_OTHER_DOCUMENTS


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(postgres: EmbeddedServer) -> AsyncIterator[httpx.AsyncClient]:
    """Of one service with the sample documents, which no test changes."""
    embedding: Any = build_embedding(Settings())
    with cloned_database(postgres) as server:
        async with opened_service(server, embedding, similarity_threshold=0.6) as service:
            for file in sorted(SAMPLES.iterdir()):
                await service.ingest(DocumentInput(data=file.read_bytes(), file_name=file.name), LOCAL_ADMIN)
            async with serving_here(create_app(service.settings, components=service)) as connected:
                yield connected


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.question)
async def test_the_question_gets_what_its_page_promises(client: httpx.AsyncClient, promise: Promise) -> None:
    messages = [{"role": "user", "content": question} for question in promise.before]
    reply = await client.post("/api/v1/query/answer", json={"query": promise.question, "messages": messages})
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    assert answer["decision"] in promise.decisions, answer
    assert promise.answer in answer["answer"] or answer["decision"] != "can_proceed", answer
