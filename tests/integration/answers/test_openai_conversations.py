"""Responses that go on from the previous one, and tasks without a model, on a real database."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest

from rag_service.app import create_app
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Identity, Role
from tests.integration.answers.conftest import Ingest
from tests.serving import serving_here

HOTELS = "The ceiling for a hotel night is 95 euros in ordinary towns. In Paris the ceiling is 160 euros a night."
QUESTION = "What is the ceiling for a hotel night in ordinary towns?"
OTHER = Identity(user_id=UUID(int=4711), role=Role.USER)


@pytest.fixture
async def client(service: Components, ingest: Ingest) -> AsyncIterator[httpx.AsyncClient]:
    await ingest(HOTELS, "travel.md")

    async def authenticate(headers: Mapping[str, str]) -> Identity:
        return OTHER if headers.get("x-who") == "other" else LOCAL_ADMIN

    application = create_app(service.settings, components=service)
    async with serving_here(application) as connected:
        application.state.services = replace(application.state.services, authenticate=authenticate)
        yield connected


async def respond(client: httpx.AsyncClient, question: str, previous: str | None = None, **more: Any) -> Any:
    headers = {"X-Who": more.pop("who", "me")}
    body = {"model": "rag-service", "input": question, "previous_response_id": previous, **more}
    return (await client.post("/v1/responses", json=body, headers=headers)).json()


async def test_a_response_goes_on_from_the_previous_one_of_the_same_caller(client: httpx.AsyncClient) -> None:
    first = await respond(client, QUESTION)
    second = await respond(client, "And in Paris?", first["id"])
    assert "160 euros" in second["output"][0]["content"][0]["text"]
    assert second["rag"]["searchedFor"] == f"{QUESTION}\nAnd in Paris?"
    record = (await client.get(f"/api/v1/answers/{second['rag']['answerId']}")).json()
    assert [turn["content"] for turn in record["request"]["said"]][::2] == [QUESTION, "And in Paris?"]
    forgotten = await respond(client, QUESTION, store=False)
    for previous, who in (
        (first["id"], "other"),
        ("resp_" + "0" * 32, "me"),
        ("resp_1", "me"),
        (f"chatcmpl-{first['id'].removeprefix('resp_')}", "me"),
        (forgotten["id"], "me"),
    ):
        error = (await respond(client, "And in Paris?", previous, who=who))["error"]
        assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")


async def test_a_streamed_response_is_gone_on_from_by_the_id_it_began_with(client: httpx.AsyncClient) -> None:
    reply = await client.post("/v1/responses", json={"model": "rag-service", "input": QUESTION, "stream": True})
    events = [json.loads(line.removeprefix("data: ")) for line in reply.text.splitlines() if line.startswith("data:")]
    (key,) = {event["response"]["id"] for event in events if "response" in event}
    assert "160 euros" in (await respond(client, "And in Paris?", key))["output"][0]["content"][0]["text"]


async def test_without_a_model_a_task_gets_words_of_the_question_and_no_search(client: httpx.AsyncClient) -> None:
    task = 'Generate a title. JSON: {"title": ""}'
    content = f"### Task:\n{task}\n<chat_history>\nUSER: {QUESTION}\nASSISTANT: 95 euros.\n</chat_history>"
    body = {"model": "rag-service", "messages": [{"role": "user", "content": content}]}
    reply = (await client.post("/v1/chat/completions", json=body)).json()
    message = reply["choices"][0]["message"]
    assert json.loads(message["content"]) == {"title": "What is the ceiling for a hotel night"}
    assert message["citations"] == []
    assert (await client.get(f"/api/v1/answers/{reply['rag']['answerId']}")).status_code == 404, "no record"
