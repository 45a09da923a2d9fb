"""The whole service with Ollama as its model server: from socket to socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rag_service.app import create_app
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN
from rag_service.retrieval.question import Question
from rag_service.store.documents.documents import DocumentInput
from tests.doubles.ollama import Done, OllamaDouble, Say, chat, ollama
from tests.integration.answers.conftest import Ingest, OpenService, ingest, open_service
from tests.serving import serving_here

__all__ = ["ingest", "ollama", "open_service"]  # fixtures

QUESTION: dict[str, Any] = {"query": "How many days of vacation do employees receive?", "similarityThreshold": 0.1}
REPLY = "Employees receive 25 days of vacation per calendar year. [C1]"


@pytest.fixture
async def service(open_service: OpenService, ollama: OllamaDouble) -> AsyncIterator[Components]:
    async with open_service(chat_provider="ollama", model_name="llama3.2", ollama_url=ollama.url) as components:
        yield components


@pytest.fixture
async def client(service: Components, ingest: Ingest) -> AsyncIterator[httpx.AsyncClient]:
    await ingest("Employees receive 25 days of vacation per calendar year.", "leave.md")
    async with serving_here(create_app(service.settings, components=service)) as opened:
        yield opened


async def read_events(client: httpx.AsyncClient, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    events = []
    headers = {"Accept": "application/x-ndjson"}
    async with client.stream("POST", "/api/v1/query/answer/stream", json=body, headers=headers) as response:
        async for line in response.aiter_lines():
            event = json.loads(line)
            events.append((event["event"], event["data"]))
    return events


def steady(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in {"answerId", "latencyMs", "timings"}}


async def test_the_request_carries_window_length_and_temperature(
    client: httpx.AsyncClient, ollama: OllamaDouble
) -> None:
    ollama.script("/api/chat", chat(Say(REPLY), Done()))
    reply = (await client.post("/api/v1/query/answer", json=QUESTION)).json()
    (body,) = ollama.bodies("/api/chat")
    assert body["stream"] is True
    assert body["options"]["num_ctx"] == 8192
    assert body["options"]["num_predict"] == 700
    assert body["options"]["temperature"] == 0.1
    assert reply["answer"] == REPLY
    assert [citation["status"] for citation in reply["citations"]] == ["verified"]
    assert reply["citations"][0]["quote"] in REPLY


async def test_plain_and_streamed_replies_end_in_the_same_body(client: httpx.AsyncClient, ollama: OllamaDouble) -> None:
    pieces = [Say(piece) for piece in ("Employees receive 25 days ", "of vacation per calendar year. ", "[C", "1]")]
    ollama.script("/api/chat", chat(*pieces, Done()), chat(*pieces, Done()))
    plain = (await client.post("/api/v1/query/answer", json=QUESTION)).json()
    events = await read_events(client, QUESTION)
    names = [name for name, _ in events if name != "heartbeat"]
    assert names[0] == "sources"
    assert names[-2:] == ["final", "done"]
    assert steady(dict(events)["final"]) == steady(plain)
    assert "".join(data["text"] for name, data in events if name == "delta") == plain["answer"]


async def test_a_claim_that_the_document_does_not_make_is_flagged(
    client: httpx.AsyncClient, ollama: OllamaDouble
) -> None:
    ollama.script("/api/chat", chat(Say("Employees receive 30 days of vacation per calendar year. [C1]"), Done()))
    reply = (await client.post("/api/v1/query/answer", json=QUESTION)).json()
    (citation,) = reply["citations"]
    assert (citation["status"], citation["reason"]) == ("unchecked", "“30” does not stand in the words cited.")
    assert reply["decision"] == "uncertain"


async def test_replay_names_the_model_that_changed_and_that_it_answers_otherwise(
    open_service: OpenService, ollama: OllamaDouble
) -> None:
    document = DocumentInput(data=b"Employees receive 25 days of vacation per calendar year.", file_name="leave.md")
    query = Question(QUESTION["query"], identity=LOCAL_ADMIN, threshold=0.1)
    settings = {"chat_provider": "ollama", "ollama_url": ollama.url}
    ollama.script("/api/chat", *[chat(Say(REPLY)) for _ in range(3)])
    async with open_service(model_name="llama3.2", **settings) as service:
        await service.ingest(document, LOCAL_ADMIN)
        answer = await service.engine.answer(query)
        assert await service.replay(answer.id, LOCAL_ADMIN) == []
    async with open_service(model_name="mistral", **settings) as service:
        same = await service.replay(answer.id, LOCAL_ADMIN)
        ollama.script("/api/chat", chat(Say("They receive 25 days. [C1]")))
        other = await service.replay(answer.id, LOCAL_ADMIN)
    assert [(one.what, one.detail) for one in same] == [("model", "name: llama3.2 → mistral")]
    assert [one.what for one in other][:2] == ["model", "answer"]
