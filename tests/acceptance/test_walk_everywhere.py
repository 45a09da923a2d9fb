"""One conversation with a capable model, through every channel: the same texts, proofs, passages and calls."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec
import pytest

from evals.conversations.turns import Turn, read_turn
from evals.written.judge import WrittenJudge
from evals.written.model import MODEL, ModelServer, WrittenModel
from rag_service.api.http.schemas import AnswerBody
from rag_service.app import create_app
from rag_service.client import open_service as open_in_python
from rag_service.domain import LOCAL_ADMIN
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.integration.answers.conftest import SAMPLES, OpenService, open_service
from tests.integration.interfaces.test_mcp import over_http
from tests.judges import llm_judge, pass_examination
from tests.serving import serving_here

__all__ = ["open_service"]  # a fixture

LOANS, HARDSHIP = "retirement-plan-loans.en.md", "hardship-withdrawals.en.md"
FEE = {"file": LOANS, "words": "A one-time origination fee of $75"}
TAX = {"file": HARDSHIP, "words": "Ten percent is withheld for federal tax"}


def says(text: str, *evidence: Mapping[str, str]) -> dict[str, Any]:
    return {"text": text, "right": True, "evidence": evidence}


def turn(asks: str, asked: str, standalone: str, *sentences: Mapping[str, Any], language: str = "en") -> Turn:
    row = {"id": "walk", "set": "samples", "language": language}
    said = {"asks": asks, "asked": asked, "standalone": standalone, "answers": "yes", "sentences": sentences}
    return read_turn(row, said, half="developed", number=1)


TURNS = [
    turn(
        "first",
        "What is the origination fee of a plan loan?",
        "What is the origination fee of a plan loan?",
        says("It is $75, once", FEE),
    ),
    turn(
        "ellipsis",
        "and in a hardship withdrawal, how much is withheld?",
        "How much is withheld for federal tax from a hardship withdrawal?",
        says("Ten percent is withheld for federal tax", TAX),
    ),
    turn(
        "comparison",
        "which of the two costs more if I take $1,000?",
        "What is withheld from a hardship withdrawal of $1,000, compared with a plan loan?",
        says("The withdrawal does, with $100 withheld against a fee of $75", TAX, FEE),
    ),
    turn(
        "source",
        "where does it say that?",
        "Where does it say what is withheld from a hardship withdrawal?",
        says("The guide to plan loans says it under Fees", FEE),
        says("The procedure for hardship withdrawals says it under Taxes", TAX),
    ),
    turn(
        "language",
        "lo mismo en español, por favor",
        "¿Cuánto se retiene de una retirada por necesidad grave?",
        says("La guía de préstamos lo dice en Fees", FEE),
        says("El procedimiento de retiradas lo dice en Taxes", TAX),
        language="es",
    ),
]

# What every channel tells of each turn: text, what each citation rests on, and the earlier turn of each passage.
TOLD = [
    ("It is $75, once [C1].", {1: FEE}, {1: None}),
    ("Ten percent is withheld for federal tax [C2].", {2: TAX}, {1: 1, 2: None}),
    (
        "The withdrawal does, with $100 withheld against a fee of $75 [C1][C2].",
        {1: TAX, 2: FEE},
        {1: None, 2: 1},
    ),
    (
        "The guide to plan loans says it under Fees [C2]. The procedure for hardship withdrawals says it under Taxes "
        "[C1].",
        {2: FEE, 1: TAX},
        {1: 3, 2: 3},
    ),
    (
        "La guía de préstamos lo dice en Fees [C1]. El procedimiento de retiradas lo dice en Taxes [C2].",
        {1: FEE, 2: TAX},
        {1: 4, 2: 4},
    ),
]


@dataclass(kw_only=True)
class Walk:
    """A conversation as far as it has come."""

    client: httpx.AsyncClient
    settings: Mapping[str, Any]  # of the service
    said: list[str] = field(default_factory=list)  # by the user, by the service, and so on
    goes_on: Any = None  # what the channel needs to go on: an id

    def messages(self, *asked: str) -> list[dict[str, str]]:
        roles = itertools.cycle(("user", "assistant"))
        return [{"role": role, "content": text} for role, text in zip(roles, [*self.said, *asked], strict=False)]

    async def post(self, path: str, body: Mapping[str, Any]) -> httpx.Response:
        return (await self.client.post(path, json=body)).raise_for_status()


async def by_rest(walk: Walk, asked: str) -> Any:
    return (await walk.post("/api/v1/query/answer", {"query": asked, "messages": walk.messages()})).json()


async def by_kept_rest(walk: Walk, asked: str) -> Any:
    """The service keeps the conversation."""
    goes_on = {"conversationId": walk.goes_on} if walk.goes_on else {"keep": True}
    body = (await walk.post("/api/v1/query/answer", {"query": asked, **goes_on})).json()
    walk.goes_on = body["conversationId"]
    return body


async def by_stream(walk: Walk, asked: str) -> Any:
    reply = await walk.post("/api/v1/query/answer/stream", {"query": asked, "messages": walk.messages()})
    events = [json.loads(line.removeprefix("data: ")) for line in reply.text.splitlines() if line.startswith("data: ")]
    (final,) = [one for one in events if "decision" in one]
    assert "".join(one["text"] for one in events if set(one) == {"text"}).startswith(final["answer"].split("[")[0])
    return final


async def by_agent(walk: Walk, asked: str) -> Any:
    if walk.goes_on is None:
        walk.goes_on = (await walk.post("/api/v1/agents", {"name": "Helper"})).json()["id"]
        (corpus,) = (await walk.client.get("/api/v1/corpora")).json()["items"]
        (await walk.client.put(f"/api/v1/agents/{walk.goes_on}/corpora/{corpus['id']}")).raise_for_status()
    return (await walk.post(f"/api/v1/agents/{walk.goes_on}/chat", {"messages": walk.messages(asked)})).json()


async def by_chat_completions(walk: Walk, asked: str) -> Any:
    body = {"model": "rag-service", "messages": walk.messages(asked)}
    reply = (await walk.post("/v1/chat/completions", body)).json()
    message = reply["choices"][0]["message"]
    return {**reply["rag"], "answer": message["content"], "citations": message["citations"]}


async def by_streamed_chat_completions(walk: Walk, asked: str) -> Any:
    body = {"model": "rag-service", "messages": walk.messages(asked), "stream": True}
    lines = (await walk.post("/v1/chat/completions", body)).text.splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    text = "".join(one["choices"][0]["delta"].get("content") or "" for one in chunks if one["choices"])
    return {**chunks[-1]["rag"], "answer": text, "citations": chunks[-1]["citations"]}


async def by_responses(walk: Walk, asked: str) -> Any:
    body = {"model": "rag-service", "input": asked, "previous_response_id": walk.goes_on}
    reply = (await walk.post("/v1/responses", body)).json()
    walk.goes_on = reply["id"]
    return {**reply["rag"], "answer": reply["output"][0]["content"][0]["text"], "citations": reply["citations"]}


async def by_mcp(walk: Walk, asked: str) -> Any:
    async with over_http(str(walk.client.base_url).rstrip("/"), "nobody") as tools:
        called = await tools.call_tool("answer_question", {"question": asked, "messages": walk.messages()})
    return called.structured_content


async def by_python(walk: Walk, asked: str) -> Any:
    def ask() -> AnswerBody:
        with open_in_python(**walk.settings) as service:
            return service.ask(asked, messages=walk.messages()).body

    return msgspec.to_builtins(await asyncio.to_thread(ask))


async def by_remote_python(walk: Walk, asked: str) -> Any:
    def ask() -> AnswerBody:
        with open_in_python(url=str(walk.client.base_url)) as service:
            return service.ask(asked, messages=walk.messages()).body

    return msgspec.to_builtins(await asyncio.to_thread(ask))


CHANNELS: Mapping[str, Callable[[Walk, str], Awaitable[Any]]] = {
    "rest": by_rest,
    "kept by rest": by_kept_rest,
    "stream": by_stream,
    "agent": by_agent,
    "chat completions": by_chat_completions,
    "streamed chat completions": by_streamed_chat_completions,
    "responses": by_responses,
    "mcp": by_mcp,
    "python": by_python,
    "remote python": by_remote_python,
}


@pytest.mark.parametrize("channel", CHANNELS)
async def test_a_conversation_is_the_same_through_every_channel(
    database_server: EmbeddedServer, open_service: OpenService, channel: str
) -> None:
    """Each channel has a service of its own: what another one left in the records cannot help it."""
    await pass_examination(database_server, llm_judge(MODEL))
    model = WrittenModel(judge=WrittenJudge("right"))
    async with AsyncExitStack() as stack:
        server = stack.enter_context(ModelServer(model))
        chat = {"chat_provider": "openai_like", "openai_url": server.url, "model_name": MODEL, "chat_tools": "on"}
        settings = {**chat, "topk_default": 1}
        service = await stack.enter_async_context(open_service(**settings))
        for name in (LOANS, HARDSHIP):
            await service.ingest(DocumentInput(data=(SAMPLES / name).read_bytes(), file_name=name), LOCAL_ADMIN)
        client = await stack.enter_async_context(serving_here(create_app(service.settings, components=service)))
        own = {"database_url": database_server.service_conninfo, "similarity_threshold": 0.3}
        walk = Walk(client=client, settings={**settings, **own})
        for number, (one, (text, evidence, turns)) in enumerate(zip(TURNS, TOLD, strict=True)):
            model.begin(one.answer)
            body = await CHANNELS[channel](walk, one.answer.question)
            walk.said += [one.answer.question, body["answer"]]
            answer, _, _ = body["answer"].partition("\n\n[C")  # chat programs get the sources below the text
            assert (answer, body["decision"]) == (text, "can_proceed")
            assert [(cited["status"], cited["mark"], cited["quote"]) for cited in body["citations"]] == [
                ("verified", mark, piece["words"]) for mark, piece in evidence.items()
            ]
            if not channel.endswith(("completions", "responses")):  # these list no passages
                shown = {passage["mark"]: passage["fromTurn"] for passage in body["contextUsed"]}
                assert {mark: shown[mark] for mark in turns} == turns
            assert [call.purpose for call in model.calls] == ["rewrite"] * (number > 0) + ["answer", "judge"]
