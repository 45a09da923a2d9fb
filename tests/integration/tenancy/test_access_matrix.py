"""Every route × every kind of caller × somebody else's objects: the status that must come.

The rows are compared with the application's route table: a new route without a row fails.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import jwt
import pytest
from litestar import Litestar

from rag_service.domain import CorpusKind, Identity
from rag_service.store.agents import AgentSpec, assign_corpus, create_agent
from rag_service.store.conversations import create_conversation, create_project
from rag_service.store.keys import Scope, create_key, revoke_key
from tests.integration.tenancy.conftest import ADMIN, House, text_file
from tests.integration.tenancy.web import SECRET, build_application, client_of, new_key, web_settings

CALLERS = ("anonymous", "revoked", "expired", "reader", "stranger", "owner", "admin")
OPEN = "open"  # no login
PAGES = {"/schema", "/schema/openapi.json", "/schema/style.css", "/schema/{path}"}


@dataclass(frozen=True)
class Row:
    """What stranger, owner and administrator get. `reader` is the owner with a key that may only read."""

    stranger: int
    owner: int
    admin: int
    reader: int | None = None  # None: as the owner
    body: Mapping[str, Any] | None = None


def read(stranger: int, owner: int, admin: int) -> Row:
    return Row(stranger, owner, admin)


def write(stranger: int, owner: int, admin: int, body: Mapping[str, Any] | None = None) -> Row:
    return Row(stranger, owner, admin, reader=403, body=body)


def administer(admin: int, body: Mapping[str, Any] | None = None) -> Row:
    return Row(403, 403, admin, body=body)


AGENT = {"name": "another"}
QUERY = {"query": "llamas"}
CHAT = {"messages": [{"role": "user", "content": "llamas?"}]}
# Objects of the path are the owner's: an administrator is a stranger in personal corpora. The service's own
# functions behind /query, /ingest and /answers answer 404 here: only who gets that far is tested.
ROWS: Mapping[tuple[str, str], Row | str] = {
    ("GET", "/health"): OPEN,
    ("GET", "/health/ready"): OPEN,
    ("POST", "/api/v1/query"): Row(404, 404, 404, body=QUERY),
    ("POST", "/api/v1/query/answer"): Row(404, 404, 404, body=QUERY),
    ("POST", "/api/v1/query/answer/stream"): Row(404, 404, 404, body=QUERY),
    ("POST", "/api/ingest"): write(404, 404, 404, {"text": "x"}),
    ("GET", "/api/v1/answers/{answer_id:uuid}"): read(404, 404, 404),
    ("GET", "/api/v1/corpora"): read(200, 200, 200),
    ("POST", "/api/v1/corpora"): write(201, 201, 201, {"name": "new"}),
    ("GET", "/api/v1/corpora/{corpus_id:uuid}"): read(404, 200, 404),
    ("PATCH", "/api/v1/corpora/{corpus_id:uuid}"): write(404, 200, 404, {"name": "renamed"}),
    ("DELETE", "/api/v1/corpora/{corpus_id:uuid}"): write(404, 204, 404),
    ("GET", "/api/v1/corpora/{corpus_id:uuid}/documents"): read(404, 200, 404),
    ("POST", "/api/v1/corpora/{corpus_id:uuid}/documents"): write(404, 202, 404, {"text": "x"}),
    ("GET", "/api/v1/documents/{document_id:uuid}"): read(404, 200, 404),
    ("GET", "/api/v1/documents/{document_id:uuid}/original"): read(404, 200, 404),
    ("GET", "/api/v1/documents/{document_id:uuid}/chunks"): read(404, 200, 404),
    ("PATCH", "/api/v1/documents/{document_id:uuid}"): write(404, 200, 404, {"ttlSeconds": 60}),
    ("DELETE", "/api/v1/documents/{document_id:uuid}"): write(404, 204, 404),
    ("GET", "/api/v1/uploads/{upload_id:uuid}"): read(404, 200, 404),
    ("GET", "/api/v1/uploads/{upload_id:uuid}/events"): read(404, 200, 404),
    ("POST", "/api/v1/uploads/{upload_id:uuid}/retry"): write(404, 403, 404),
    ("GET", "/api/v1/agents"): read(200, 200, 200),
    ("POST", "/api/v1/agents"): administer(201, AGENT),
    ("GET", "/api/v1/agents/{agent_id:uuid}"): read(200, 200, 200),
    ("PUT", "/api/v1/agents/{agent_id:uuid}"): administer(200, AGENT),
    ("DELETE", "/api/v1/agents/{agent_id:uuid}"): administer(204),
    ("GET", "/api/v1/agents/{agent_id:uuid}/corpora"): read(200, 200, 200),
    ("PUT", "/api/v1/agents/{agent_id:uuid}/corpora/{corpus_id:uuid}"): write(404, 204, 404),
    ("DELETE", "/api/v1/agents/{agent_id:uuid}/corpora/{corpus_id:uuid}"): write(404, 204, 404),
    # The chat itself is missing here, so that who gets past the checks meets its absence.
    ("POST", "/api/v1/agents/{agent_id:uuid}/chat"): Row(500, 500, 500, body=CHAT),
    ("GET", "/api/v1/keys"): read(200, 200, 200),
    ("POST", "/api/v1/keys"): write(201, 201, 201, {"name": "new"}),
    ("GET", "/api/v1/keys/{key_id:uuid}"): read(404, 200, 200),
    ("DELETE", "/api/v1/keys/{key_id:uuid}"): write(404, 204, 204),
    ("GET", "/api/v1/users"): administer(200),
    ("POST", "/api/v1/users"): administer(201, {"name": "new"}),
    ("GET", "/api/v1/users/me"): read(200, 200, 200),
    ("GET", "/api/v1/users/{user_id:uuid}"): administer(200),
    ("PATCH", "/api/v1/users/{user_id:uuid}"): administer(200, {"active": True}),
    ("DELETE", "/api/v1/users/{user_id:uuid}"): administer(204),
    ("GET", "/api/v1/projects"): read(200, 200, 200),
    ("POST", "/api/v1/projects"): write(201, 201, 201, {"name": "new"}),
    ("DELETE", "/api/v1/projects/{project_id:uuid}"): write(404, 204, 404),
    ("GET", "/api/v1/conversations"): read(200, 200, 200),
    ("GET", "/api/v1/conversations/{conversation_id:uuid}/messages"): read(404, 200, 404),
    ("DELETE", "/api/v1/conversations/{conversation_id:uuid}"): write(404, 204, 404),
    ("PUT", "/api/v1/answers/{answer_id:uuid}/feedback"): write(404, 200, 404, {"thumbs": "down"}),
    ("DELETE", "/api/v1/answers/{answer_id:uuid}/feedback"): write(404, 204, 404),
    ("GET", "/api/v1/feedback"): read(200, 200, 200),
    ("GET", "/api/v1/feedback/export"): administer(200),
}


def routes_of(application: Litestar) -> set[tuple[str, str]]:
    return {
        (str(method), route.path_format or "/")
        for route in application.routes
        for method in getattr(route, "methods", ())
        if method not in ("OPTIONS", "HEAD") and route.path_format not in PAGES
    }


async def test_every_route_has_a_row(house: House) -> None:
    application = build_application(house, web_settings())
    expected = {(method, _plain(path)) for method, path in ROWS}
    assert {(method, _plain(path)) for method, path in routes_of(application)} == expected


@pytest.mark.parametrize("route", ROWS, ids=lambda route: " ".join(route))
async def test_each_caller_gets_the_status_that_the_row_says(house: House, route: tuple[str, str]) -> None:
    method, path = route
    row = ROWS[route]
    application = build_application(house, web_settings())
    world = await _World.make(house)
    for caller in CALLERS:  # the one who may delete comes last but one
        async with client_of(application) as client:
            reply = await client.request(
                method,
                world.fill(path),
                headers=world.credentials[caller],
                json=None if isinstance(row, str) else row.body,
            )
        assert reply.status_code == _expected(row, caller), (caller, reply.text)
        if reply.status_code >= 400:
            assert reply.headers["content-type"] == "application/problem+json"
            assert reply.json()["code"]
        if caller == "owner" and method == "DELETE" and reply.status_code == 204:
            world = await _World.make(house, suffix="-again")  # for the administrator


def _expected(row: Row | str, caller: str) -> int:
    if isinstance(row, str):
        return 200
    if caller in ("anonymous", "revoked", "expired"):
        return 401
    if caller == "reader":
        return row.owner if row.reader is None else row.reader
    return int(getattr(row, caller))


@dataclass
class _World:
    """Objects of an owner, and credentials of everybody."""

    ids: Mapping[str, UUID]
    credentials: Mapping[str, Mapping[str, str]]

    def fill(self, path: str) -> str:
        for name, value in self.ids.items():
            path = path.replace(f"{{{name}:uuid}}", str(value))
        return path

    @classmethod
    async def make(cls, house: House, suffix: str = "") -> _World:
        owner, stranger = await house.user("owner" + suffix), await house.user("stranger" + suffix)
        corpus = await house.corpus(owner)
        upload = await house.uploads.accept(text_file("a.txt", "Llamas."), corpus_id=corpus.id, identity=owner)
        with house.owner() as connection:  # as if a worker had been there
            connection.execute("UPDATE rag.uploads SET status = 'indexed'")
        ids = await _make_objects(house, owner, suffix) | {
            "corpus_id": corpus.id,
            "document_id": upload.document_id,
            "upload_id": upload.id,
            "user_id": stranger.user_id,
        }
        async with house.database.transaction(owner) as connection:
            await assign_corpus(connection, ids["agent_id"], corpus.id)
        token = {"sub": str(owner.user_id), "exp": int(time.time()) - 60}
        credentials = {
            "anonymous": {},
            "revoked": {"X-API-Key": await _revoked_key(house, owner)},
            "expired": {"Authorization": f"Bearer {jwt.encode(token, SECRET)}"},
            "reader": {"X-API-Key": await new_key(house, owner, {Scope.READ})},
            "stranger": {"X-API-Key": await new_key(house, stranger, {Scope.READ, Scope.WRITE})},
            "owner": {"X-API-Key": await new_key(house, owner, {Scope.READ, Scope.WRITE})},
            "admin": {"X-API-Key": await new_key(house, ADMIN)},
        }
        return cls(ids=ids, credentials=credentials)


async def _make_objects(house: House, owner: Identity, suffix: str) -> dict[str, UUID]:
    async with house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name="helper" + suffix, allows_personal_corpus=True))
    async with house.database.transaction(owner) as connection:
        project = await create_project(connection, owner, name="p")
        chat = await create_conversation(connection, owner, agent_id=agent.id, project_id=project.id, title="t")
        key, _ = await create_key(connection, user_id=owner.user_id, name="k", scopes={Scope.READ})
        answer_id = uuid4()
        await connection.execute(
            "INSERT INTO answers (id, user_id, record) VALUES (%s, %s, '{}')", [answer_id, owner.user_id]
        )
        await connection.execute(
            "INSERT INTO feedback (answer_id, user_id, thumbs) VALUES (%s, %s, 'up')", [answer_id, owner.user_id]
        )
    return {
        "agent_id": agent.id,
        "project_id": project.id,
        "conversation_id": chat.id,
        "key_id": key.id,
        "answer_id": answer_id,
    }


async def _revoked_key(house: House, owner: Identity) -> str:
    async with house.database.transaction(owner) as connection:
        key, secret = await create_key(connection, user_id=owner.user_id, name="old", scopes={Scope.READ})
        await revoke_key(connection, key.id)
    return secret


def _plain(path: str) -> str:
    return path.replace(":uuid", "")


async def test_a_global_corpus_is_changed_with_an_administrators_full_credential_only(house: House) -> None:
    application = build_application(house, web_settings())
    corpus = await house.corpus(ADMIN, "handbook", CorpusKind.GLOBAL)
    limited = await new_key(house, ADMIN, {Scope.READ, Scope.WRITE})
    full = await new_key(house, ADMIN)
    ana = await house.user("ana")
    async with house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name="helper"))
        await assign_corpus(connection, agent.id, corpus.id)
    reader = await new_key(house, ana)
    documents = f"/api/v1/corpora/{corpus.id}/documents"
    for key, expected in ((limited, 403), (reader, 403), (full, 202)):
        async with client_of(application, key) as client:
            assert (await client.get(documents)).status_code == 200
            assert (await client.post(documents, json={"text": "x"})).status_code == expected
    async with client_of(application, reader) as client:
        assert (await client.post("/api/v1/corpora", json={"name": "n", "kind": "global"})).status_code == 403
        assert (await client.post("/api/v1/keys", json={"name": "n", "scopes": ["admin"]})).status_code == 403


async def test_expired_keys_are_refused_like_unknown_ones(house: House) -> None:
    ana = await house.user("ana")
    key = await new_key(house, ana, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    async with client_of(build_application(house, web_settings()), key) as client:
        reply = await client.get("/api/v1/corpora")
    assert (reply.status_code, reply.json()["code"]) == (401, "not_authenticated")
    assert reply.headers["www-authenticate"] == "Bearer"
