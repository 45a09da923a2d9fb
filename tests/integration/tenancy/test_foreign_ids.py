"""Ids of somebody else's objects where they travel in bodies, query strings and tool arguments.

Each request is made by the owner first, who finds what is his: that proves that the others could have.
They get 404 or nothing, as for an id that never existed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import httpx
import pytest

from rag_service.store.accounts.agents import AgentSpec, create_agent
from tests.integration.tenancy.conftest import ADMIN, Street
from tests.integration.tenancy.web import client_of
from tests.integration.tenancy.world import CANARY, QUESTION, TEXT, World, make_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

Request = tuple[str, str, Mapping[str, Any] | None]  # method, path, body
Make = Callable[[World], Request]

NAMING = ("corpusIds", "documentIds", "chunkId", "projectId", "conversationId")  # what must be there
ANSWERING = ("/api/v1/query", "/api/v1/query/answer", "/api/v1/query/answer/stream")
MESSAGES = [{"role": "user", "content": QUESTION}]


def search(path: str, **filters: Callable[[World], Any]) -> Make:
    def make(world: World) -> Request:
        named = {name: value(world) for name, value in filters.items()}
        return "POST", path, {"query": QUESTION, "similarityThreshold": 0, **named}

    return make


def tool(name: str, question: str, **filters: Callable[[World], Any]) -> Make:
    def make(world: World) -> Request:
        named = {filter_name: value(world) for filter_name, value in filters.items()}
        arguments = {question: QUESTION, "similarity_threshold": 0, **named}
        params = {"name": name, "arguments": arguments}
        return "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    return make


def chat(**fields: str) -> Make:
    """Fields of a chat by the names of the owner's ids."""

    def make(world: World) -> Request:
        named = {field: str(world.ids[name]) for field, name in fields.items()}
        body = {"messages": MESSAGES, "similarityThreshold": 0, **named}
        return "POST", f"/api/v1/agents/{world.ids['agent_id']}/chat", body

    return make


def advise(path: str) -> Make:
    return lambda world: ("POST", path, {"inquiry": QUESTION, "corpusIds": [str(world.ids["articles_id"])]})


FILTERS: Mapping[str, Callable[[World], Any]] = {
    "corpusIds": lambda world: [str(world.ids["corpus_id"])],
    "documentIds": lambda world: [str(world.ids["document_id"])],
    "fileName": lambda world: world.file_name,
    "source": lambda world: world.source,
    "tags": lambda world: [world.tag],
}
SNAKE = {"corpusIds": "corpus_ids", "documentIds": "document_ids", "fileName": "file_name"}
REQUESTS: Mapping[str, Make] = {
    **{f"{path} {name}": search(path, **{name: value}) for path in ANSWERING for name, value in FILTERS.items()},
    **{
        f"{name} {given}": tool(name, question, **{SNAKE.get(given, given): value})
        for name, question in (("search_knowledge", "query"), ("answer_question", "question"))
        for given, value in FILTERS.items()
    },
    "a file named in the question": lambda world: (
        "POST", "/api/v1/query", {"query": f"{QUESTION} See {world.file_name}.", "similarityThreshold": 0},
    ),
    "check chunkId": lambda world: (
        "POST", "/api/v1/check", {"text": TEXT, "passages": [{"chunkId": str(world.ids["chunk_id"])}]},
    ),
    "chat projectId": chat(projectId="project_id"),
    "chat conversationId": chat(conversationId="conversation_id"),
    "answer conversationId": search(
        "/api/v1/query/answer", conversationId=lambda world: str(world.ids["conversation_id"])
    ),
    "conversations projectId": lambda world: (
        "GET", f"/api/v1/conversations?projectId={world.ids['project_id']}", None,
    ),
    "required-data corpusIds": advise("/api/v1/required-data"),
    "generate-response corpusIds": advise("/api/v1/generate-response"),
}  # fmt: skip


@pytest.fixture(scope="module")
def worlds() -> dict[str, World]:
    """One for all requests: none of them changes anything of the owner's."""
    return {}


@pytest.mark.parametrize("name", REQUESTS)
async def test_another_users_object_is_not_found_or_gives_nothing(
    street: Street, worlds: dict[str, World], name: str
) -> None:
    if not worlds:
        worlds["one"] = await make_world(street.house)
    world = worlds["one"]
    request = REQUESTS[name](world)
    found = await send(street, world, "owner", request)
    assert found.status_code == 200, found.text
    assert CANARY in found.text.replace(world.file_name, ""), "the owner finds nothing: this proves nothing"
    for caller in ("stranger", "admin"):
        reply = await send(street, world, caller, request)
        if (
            name.split()[-1] in ("corpusIds", "documentIds", "chunkId", "projectId", "conversationId")
            and request[0] == "POST"
        ):
            assert _is_not_found(reply), (caller, reply.text)
        assert reply.status_code in (200, 404), (caller, reply.text)
        assert CANARY not in reply.text.replace(world.file_name, ""), caller
        assert _without_ids(reply) == _without_ids(await send(street, world, caller, _never_existed(world, request)))


async def test_keys_for_other_users_are_for_administrators(street: Street) -> None:
    world = await make_world(street.house)
    body = {"name": "k", "scopes": ["read"], "userId": str(world.owner.user_id)}
    assert (await send(street, world, "stranger", ("POST", "/api/v1/keys", body))).status_code == 403
    created = await send(street, world, "admin", ("POST", "/api/v1/keys", body))
    assert created.status_code == 201  # and what administrators do with people's keys is theirs to answer for


async def test_an_agent_is_no_way_into_the_personal_corpora_assigned_to_it(street: Street) -> None:
    """The owner's corpus is assigned to it; everybody else is answered from his own."""
    world = await make_world(street.house)
    request = chat()(world)
    assert CANARY in (await send(street, world, "owner", request)).text
    for caller in ("stranger", "admin"):
        reply = await send(street, world, caller, request)
        assert reply.status_code == 200
        assert CANARY not in reply.text
        listed = await send(street, world, caller, ("GET", request[1].removesuffix("/chat") + "/corpora", None))
        assert listed.json() == {"items": [], "total": 0, "indices": []}


async def test_agents_are_models_that_answer_each_caller_from_his_own(street: Street) -> None:
    world = await make_world(street.house)
    agent = (await send(street, world, "owner", ("GET", f"/api/v1/agents/{world.ids['agent_id']}", None))).json()
    request = ("POST", "/v1/chat/completions", {"model": agent["name"], "messages": MESSAGES})
    for caller in ("owner", "stranger", "admin"):
        listed = (await send(street, world, caller, ("GET", "/v1/models", None))).json()["data"]
        assert {"rag-service", agent["name"]} <= {model["id"] for model in listed}
        reply = await send(street, world, caller, request)
        assert reply.status_code == 200
        assert (CANARY in reply.text) == (caller == "owner"), caller


async def test_an_agent_cannot_take_the_place_of_the_default_model(street: Street) -> None:
    world = await make_world(street.house)
    async with street.house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name="rag-service"))
    listed = (await send(street, world, "stranger", ("GET", "/v1/models", None))).json()["data"]
    assert {"rag-service", str(agent.id)} <= {model["id"] for model in listed}


async def test_an_inactive_agent_is_not_there(street: Street) -> None:
    world = await make_world(street.house)
    async with street.house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name=f"asleep-{uuid4().hex}", active=False))
    request = ("POST", f"/api/v1/agents/{agent.id}/chat", {"messages": MESSAGES})
    for caller in ("stranger", "owner", "admin"):
        assert (await send(street, world, caller, request)).status_code == 404, caller
    for caller in ("stranger", "owner", "admin"):
        unknown = ("POST", "/v1/chat/completions", {"model": agent.spec.name, "messages": MESSAGES})
        assert (await send(street, world, caller, unknown)).status_code == 404, caller
    path = f"/api/v1/agents/{agent.id}"
    assert (await send(street, world, "owner", ("GET", path, None))).status_code == 404
    assert (await send(street, world, "admin", ("GET", path, None))).status_code == 200


async def send(street: Street, world: World, caller: str, request: Request) -> httpx.Response:
    method, path, body = request
    accept = {"accept": "application/json, text/event-stream"} if path == "/mcp" else {}
    async with client_of(street.application) as client:
        return await client.request(method, path, json=body, headers={**world.credentials[caller], **accept})


def _never_existed(world: World, request: Request) -> Request:
    """The same request with names and ids that nobody has."""
    method, path, body = request
    text = json.dumps([path, body])
    for known in (*map(str, (world.ids[name] for name in world.ids if name != "agent_id")), *world.names):
        text = text.replace(known, str(uuid4()) if len(known) == 36 else "nothing" + known[len("nothing") :])
    path, body = json.loads(text)
    return method, path, body


def _is_not_found(reply: httpx.Response) -> bool:
    if reply.status_code == 404:
        return bool(reply.json()["code"] == "not_found")
    # An MCP call has its errors in its reply, which is an event.
    results = [json.loads(line[5:])["result"] for line in reply.text.splitlines() if line.startswith("data:")]
    return any(item["isError"] and item["content"][0]["text"].startswith("not_found:") for item in results)


def _without_ids(reply: httpx.Response) -> Any:
    """What a caller can learn from a reply: status and words, without ids of the request, times and lengths."""
    try:
        body = reply.json()
    except ValueError:
        return reply.status_code, [line for line in reply.text.splitlines() if line.startswith("event:")]
    return reply.status_code, _keys(body)


def _keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_keys(item) for item in value]
    return type(value).__name__
