"""Every route of the real application × every kind of caller × somebody else's objects.

The rows are compared with the application's own route table: a new route without a row fails. Besides
the status, nothing of the owner's may stand in what others get (`CANARY`).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import pytest
from litestar import Litestar
from litestar.routes import ASGIRoute

from rag_service.turns import Owner, Turns
from tests.integration.tenancy.conftest import Street
from tests.integration.tenancy.web import client_of
from tests.integration.tenancy.world import CANARY, QUESTION, World, make_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNERS = ("reader", "owner")  # `reader` is the owner with a key that may only read
# Queues that heavy work passes. Without those that each request, transaction and call of an embedding server passes.
_COUNTED = {
    "search", "quoting", "ingest", "check", "embeddings", "original", "transfer", "import_body", "tables", "sign_in",
}  # fmt: skip
CALLERS = ("anonymous", "revoked", "expired", "reader", "stranger", "owner", "admin")


@dataclass(frozen=True, kw_only=True)
class Row:
    """The status that each caller gets, and what for."""

    stranger: int
    owner: int
    admin: int
    reader: int | None = None  # None: as the owner
    anonymous: int = 401  # without a credential, or with one that is no longer good
    body: Mapping[str, Any] | None = None
    shows: bool = False  # the owner finds his own in it: that proves that the others could have
    reviewed: bool = False  # administrators see it, too
    turns: frozenset[str] = frozenset()  # of `_COUNTED`, that the owner's request takes


def read(stranger: int, owner: int, admin: int, *, reviewed: bool = False, turns: Set[str] = frozenset()) -> Row:
    return Row(stranger=stranger, owner=owner, admin=admin, shows=True, reviewed=reviewed, turns=frozenset(turns))


def write(
    stranger: int,
    owner: int,
    admin: int,
    body: Mapping[str, Any] | None = None,
    *,
    shows: bool = False,
    turns: Set[str] = frozenset(),
) -> Row:
    return Row(stranger=stranger, owner=owner, admin=admin, reader=403, body=body, shows=shows, turns=frozenset(turns))


def administer(admin: int, body: Mapping[str, Any] | None = None, *, reviewed: bool = False) -> Row:
    return Row(stranger=403, owner=403, admin=admin, body=body, reviewed=reviewed)


def common(status: int, body: Any = None, *, turns: Set[str] = frozenset()) -> Row:
    """The same for all who have a credential, and nothing of anybody's in it."""
    return Row(stranger=status, owner=status, admin=status, body=body, turns=frozenset(turns))


def public(status: int = 200, body: Any = None) -> Row:
    """The same for everybody."""
    return Row(stranger=status, owner=status, admin=status, anonymous=status, body=body)


def ask(body: Mapping[str, Any], turns: str = "quoting", *, shows: bool = True) -> Row:
    """Everybody may ask, and finds what is his."""
    return Row(stranger=200, owner=200, admin=200, body=body, shows=shows, turns=frozenset({turns}))


def advise() -> Row:
    """Who has no corpus of an advisor's index is told so."""
    return Row(stranger=404, owner=200, admin=404, body={"inquiry": QUESTION}, shows=True, turns=QUOTING)


QUOTING = frozenset({"quoting"})
SEARCH = {"query": QUESTION, "similarityThreshold": 0}
MESSAGES = [{"role": "user", "content": QUESTION}]
TOOL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "search_knowledge", "arguments": {"query": QUESTION, "similarity_threshold": 0}},
}
ANY = "ANY"  # a mounted application: it takes every method
API, V1 = "/api/v1", "/v1"

# Objects of the path are the owner's: an administrator is a stranger in personal corpora.
ROWS: Mapping[tuple[str, str], Row] = {
    ("GET", "/"): public(),
    ("GET", "/assets/{version}/{name}"): public(404),
    ("GET", "/schema"): public(),
    ("GET", "/schema/openapi.json"): public(),
    ("GET", "/schema/style.css"): public(),
    ("GET", "/openapi.json"): public(307),
    ("GET", "/docs"): public(307),
    ("GET", "/schema/{path}"): public(404),
    ("GET", "/health"): public(),
    ("GET", "/health/ready"): public(),
    ("GET", "/metrics"): administer(200),
    ("POST", f"{API}/query"): ask(SEARCH, "search"),
    ("POST", f"{API}/query/answer"): ask(SEARCH),
    ("POST", f"{API}/query/answer/stream"): ask(SEARCH),
    ("POST", f"{API}/check"): ask({"text": QUESTION, "passages": [{"text": QUESTION}]}, "check", shows=False),
    ("GET", f"{API}/check/{{check_id}}"): common(404),  # of others: tests/unit/api/http/test_check_jobs.py
    ("POST", f"{API}/required-data"): advise(),
    ("POST", f"{API}/generate-response"): advise(),
    ("POST", "/api/ingest"): write(201, 201, 201, {"text": "x"}, turns={"ingest"}),
    ("GET", f"{API}/answers/{{answer_id}}"): read(404, 200, 404),
    ("POST", f"{API}/answers/{{answer_id}}/replay"): Row(stranger=404, owner=200, admin=404, turns=QUOTING),
    ("GET", f"{API}/corpora"): read(200, 200, 200),
    ("GET", f"{API}/examples"): read(200, 200, 200),
    ("POST", f"{API}/corpora"): write(201, 201, 201, {"name": "new"}),
    ("GET", f"{API}/corpora/{{corpus_id}}"): read(404, 200, 404),
    ("PATCH", f"{API}/corpora/{{corpus_id}}"): write(404, 200, 404, {"active": True}, shows=True),
    ("DELETE", f"{API}/corpora/{{corpus_id}}"): write(404, 204, 404),
    ("GET", f"{API}/corpora/{{corpus_id}}/export"): read(404, 200, 404, turns={"transfer"}),
    ("POST", f"{API}/corpora/import"): write(415, 415, 415, {}),  # whose it becomes: test_transfer.py
    ("GET", f"{API}/corpora/{{corpus_id}}/documents"): read(404, 200, 404),
    ("POST", f"{API}/corpora/{{corpus_id}}/documents"): write(404, 202, 404, {"text": "x"}),
    ("POST", f"{API}/corpora/{{corpus_id}}/sources"): write(404, 201, 404, {"target": "https://example.org/new"}),
    ("GET", f"{API}/sources"): read(200, 200, 200),
    ("GET", f"{API}/sources/{{source_id}}"): read(404, 200, 404),
    ("POST", f"{API}/sources/{{source_id}}/run"): write(404, 202, 404, shows=True),
    ("DELETE", f"{API}/sources/{{source_id}}"): write(404, 204, 404),
    ("GET", f"{API}/tags"): read(200, 200, 200),
    ("GET", f"{API}/documents/{{document_id}}"): read(404, 200, 404),
    ("GET", f"{API}/documents/{{document_id}}/text"): read(404, 200, 404),
    ("GET", f"{API}/documents/{{document_id}}/original"): read(404, 200, 404, turns={"original"}),
    ("GET", f"{API}/documents/{{document_id}}/chunks"): read(404, 200, 404),
    ("PATCH", f"{API}/documents/{{document_id}}"): write(404, 200, 404, {"ttlSeconds": 60}, shows=True),
    ("DELETE", f"{API}/documents/{{document_id}}"): write(404, 204, 404),
    # Whose documents are touched by it: test_batch.py.
    ("POST", f"{API}/documents/batch"): write(200, 200, 200, {"action": "delete", "documentIds": [str(UUID(int=9))]}),
    ("GET", f"{API}/uploads/{{upload_id}}"): read(404, 200, 404),
    ("GET", f"{API}/uploads/{{upload_id}}/events"): read(404, 200, 404),
    ("POST", f"{API}/uploads/{{upload_id}}/retry"): write(404, 409, 404),
    ("GET", f"{API}/agents"): common(200),
    ("POST", f"{API}/agents"): administer(201, {"name": "new"}),
    ("GET", f"{API}/agents/{{agent_id}}"): common(200),
    ("PUT", f"{API}/agents/{{agent_id}}"): administer(200, {"name": "renamed"}),
    ("DELETE", f"{API}/agents/{{agent_id}}"): administer(204),
    ("GET", f"{API}/agents/{{agent_id}}/corpora"): read(200, 200, 200),
    ("PUT", f"{API}/agents/{{agent_id}}/corpora/{{corpus_id}}"): write(404, 204, 404),
    ("DELETE", f"{API}/agents/{{agent_id}}/corpora/{{corpus_id}}"): write(404, 204, 404),
    ("POST", f"{API}/agents/{{agent_id}}/chat"): ask({"messages": MESSAGES, "similarityThreshold": 0}),
    ("GET", f"{API}/keys"): common(200),
    ("POST", f"{API}/keys"): write(201, 201, 201, {"name": "new"}),
    ("GET", f"{API}/keys/{{key_id}}"): Row(stranger=404, owner=200, admin=200),
    ("DELETE", f"{API}/keys/{{key_id}}"): write(404, 204, 204),
    ("GET", f"{API}/users"): administer(200),
    ("POST", f"{API}/users"): administer(201, {"name": "new"}),
    ("GET", f"{API}/users/me"): common(200),
    ("GET", f"{API}/users/{{user_id}}"): administer(200),
    ("PATCH", f"{API}/users/{{user_id}}"): administer(200, {"active": True}),
    ("DELETE", f"{API}/users/{{user_id}}"): administer(204),
    ("POST", f"{API}/users/{{user_id}}/invitation"): administer(201),
    ("POST", f"{API}/session"): public(400, {}),
    ("POST", f"{API}/session/invitation"): public(400, {}),
    ("DELETE", f"{API}/session"): public(204),
    ("GET", f"{API}/projects"): read(200, 200, 200),
    ("POST", f"{API}/projects"): write(201, 201, 201, {"name": "new"}),
    ("DELETE", f"{API}/projects/{{project_id}}"): write(404, 204, 404),
    ("GET", f"{API}/conversations"): read(200, 200, 200),
    ("GET", f"{API}/conversations/{{conversation_id}}/messages"): read(404, 200, 404),
    ("GET", f"{API}/conversations/{{conversation_id}}"): read(404, 200, 404),
    ("GET", f"{API}/conversations/{{conversation_id}}/export"): read(404, 200, 404),
    ("PATCH", f"{API}/conversations/{{conversation_id}}"): write(404, 200, 404, {"title": "renamed"}),
    ("DELETE", f"{API}/conversations/{{conversation_id}}"): write(404, 204, 404),
    # Who reads what is shared: test_shared_conversations.py.
    ("POST", f"{API}/conversations/{{conversation_id}}/share"): write(404, 200, 404, shows=True),
    ("DELETE", f"{API}/conversations/{{conversation_id}}/share"): write(404, 204, 404),
    ("PUT", f"{API}/answers/{{answer_id}}/feedback"): write(404, 200, 404, {"thumbs": "down"}, shows=True),
    ("DELETE", f"{API}/answers/{{answer_id}}/feedback"): write(404, 204, 404),
    ("GET", f"{API}/feedback"): read(200, 200, 200, reviewed=True),
    ("GET", f"{API}/feedback/export"): administer(200, reviewed=True),
    ("POST", f"{V1}/chat/completions"): ask({"model": "rag-service", "messages": MESSAGES}),
    ("POST", f"{V1}/responses"): ask({"model": "rag-service", "input": MESSAGES}),
    ("POST", f"{V1}/embeddings"): common(
        200, {"model": "multilingual-e5-small", "input": "text"}, turns={"embeddings"}
    ),
    ("GET", f"{V1}/files"): read(200, 200, 200),
    ("POST", f"{V1}/files"): write(415, 415, 415, {}),  # whose it becomes: test_vector_stores.py
    ("GET", f"{V1}/files/{{document_id}}"): read(404, 200, 404),
    ("GET", f"{V1}/files/{{document_id}}/content"): read(404, 200, 404, turns={"original"}),
    ("DELETE", f"{V1}/files/{{document_id}}"): write(404, 200, 404),
    ("GET", f"{V1}/vector_stores"): read(200, 200, 200),
    ("POST", f"{V1}/vector_stores"): write(200, 200, 200, {}),
    ("GET", f"{V1}/vector_stores/{{corpus_id}}"): read(404, 200, 404),
    ("POST", f"{V1}/vector_stores/{{corpus_id}}"): write(404, 200, 404, {}, shows=True),
    ("DELETE", f"{V1}/vector_stores/{{corpus_id}}"): write(404, 200, 404),
    ("POST", f"{V1}/vector_stores/{{corpus_id}}/search"): Row(
        stranger=404,
        owner=200,
        admin=404,
        body={"query": QUESTION, "ranking_options": {"score_threshold": 0}},
        shows=True,
        turns=frozenset({"search"}),
    ),
    # Of files of a store, ids and states: nothing that could be shown.
    ("GET", f"{V1}/vector_stores/{{corpus_id}}/files"): Row(stranger=404, owner=200, admin=404),
    ("POST", f"{V1}/vector_stores/{{corpus_id}}/files"): write(404, 404, 404, {"file_id": str(UUID(int=9))}),
    ("GET", f"{V1}/vector_stores/{{corpus_id}}/files/{{document_id}}"): Row(stranger=404, owner=200, admin=404),
    ("POST", f"{V1}/vector_stores/{{corpus_id}}/files/{{document_id}}"): write(404, 200, 404, {"attributes": {}}),
    ("DELETE", f"{V1}/vector_stores/{{corpus_id}}/files/{{document_id}}"): write(404, 200, 404),
    ("GET", f"{V1}/models"): common(200),
    ("GET", f"{V1}/models/{{model_id}}"): common(404),
    (ANY, "/mcp"): ask(TOOL, "search"),
    ("GET", "/.well-known/oauth-protected-resource"): public(),
    ("GET", "/.well-known/oauth-protected-resource/mcp"): public(),
    # What that API has elsewhere and this one does not.
    **{
        (method, f"{V1}/{name}"): public(404)
        for method in ("GET", "PUT", "PATCH", "DELETE")
        for name in ("chat/completions", "embeddings", "responses")
    },
    **{(method, f"{V1}/{{address}}"): public(404) for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
}


def routes_of(application: Litestar) -> set[tuple[str, str]]:
    found = set()
    for route in application.routes:
        methods = {ANY} if isinstance(route, ASGIRoute) else {str(method) for method in route.methods} - {"OPTIONS"}
        found |= {(method, route.path_format or "/") for method in methods}
    return found


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The queues that were passed."""
    kinds: set[str] = set()
    begin, admit = Turns._begin, Turns.admit

    async def begin_noted(self: Turns, owner: Owner) -> None:
        kinds.add(self.kind)
        await begin(self, owner)

    def admit_noted(self: Turns, owner: Owner) -> AbstractContextManager[None]:
        kinds.add(self.kind)
        return admit(self, owner)

    monkeypatch.setattr(Turns, "_begin", begin_noted)
    monkeypatch.setattr(Turns, "admit", admit_noted)
    return kinds


async def test_every_route_has_a_row(street: Street) -> None:
    assert routes_of(street.application) == set(ROWS)


@pytest.mark.parametrize("route", ROWS, ids=lambda route: " ".join(route))
async def test_each_caller_gets_the_status_that_the_row_says(
    street: Street, route: tuple[str, str], taken: set[str]
) -> None:
    """And takes a turn at heavy work."""
    row = ROWS[route]
    world = await make_world(street.house)
    shown = False
    for caller in CALLERS:  # the one who may delete comes last but one
        taken.clear()
        reply = await call(street.application, route, row, world, caller)
        assert caller != "owner" or taken & _COUNTED == row.turns
        assert reply.status_code == _expected(row, caller), (caller, reply.text)
        if caller not in OWNERS and not (caller == "admin" and row.reviewed):
            assert CANARY not in reply.text, caller
            assert CANARY not in str(reply.headers), caller
        shown = shown or CANARY in reply.text
        if reply.status_code >= 400:
            _check_error(reply, route)
        if caller == "owner" and route[0] == "DELETE" and reply.status_code in (200, 204):
            world = await make_world(street.house)  # for the administrator
    assert shown or not row.shows, "the owner's own is not in it: this row proves nothing"


@pytest.mark.parametrize(
    ("tool", "arguments", "turns"),
    [
        ("search_knowledge", {"query": QUESTION}, {"search"}),
        ("answer_question", {"question": QUESTION}, {"quoting"}),
        ("check_answer", {"text": QUESTION, "passages": [{"text": QUESTION}]}, {"check"}),
        ("search", {"query": QUESTION}, {"search"}),
        ("fetch", {"id": "{document_id}"}, {"search"}),
        ("read", {"document": "{document_id}"}, {"search"}),
        ("compute", {"document": "{document_id}", "operation": "count"}, {"search"}),  # it has no table
    ],
)
async def test_each_tool_takes_a_turn(
    street: Street, tool: str, arguments: Mapping[str, Any], turns: set[str], taken: set[str]
) -> None:
    world = await make_world(street.house)
    filled = {name: world.fill(value) if isinstance(value, str) else value for name, value in arguments.items()}
    body = {**TOOL, "params": {"name": tool, "arguments": filled}}
    taken.clear()
    reply = await call(street.application, (ANY, "/mcp"), ask(body), world, "owner")
    assert reply.status_code == 200
    assert tool == "compute" or '"isError":true' not in reply.text
    assert taken & _COUNTED - {"tables"} == turns


async def call(application: Litestar, route: tuple[str, str], row: Row, world: World, caller: str) -> httpx.Response:
    method, path = route
    headers = {**world.credentials[caller]}
    if method == ANY:
        method, headers["accept"] = "POST", "application/json, text/event-stream"
    async with client_of(application) as client:
        return await client.request(
            method, world.fill(path).replace("{check_id}", str(UUID(int=9))), headers=headers, json=row.body
        )


def _expected(row: Row, caller: str) -> int:
    if caller in ("anonymous", "revoked", "expired"):
        return row.anonymous
    if caller == "reader":
        return row.owner if row.reader is None else row.reader
    return int(getattr(row, caller))


def _check_error(reply: httpx.Response, route: tuple[str, str]) -> None:
    """A stable code, in the shape of the API that was called."""
    if route[1].startswith(V1):
        assert reply.json()["error"]["code"]
        return
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["code"]
