"""What a key may do of what its user may: scopes, life, and what replies show."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import jwt
import pytest

from rag_service.domain import CorpusKind
from rag_service.store.accounts.agents import AgentSpec, create_agent
from rag_service.store.accounts.keys import Scope, identify_key
from tests.integration.tenancy.conftest import ADMIN, Street
from tests.integration.tenancy.web import SECRET, client_of, new_key

pytestmark = pytest.mark.asyncio(loop_scope="module")

READ, WRITE = {Scope.READ}, {Scope.WRITE}


async def post(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> httpx.Response:
    return await client.post(path, json=body)


async def test_an_answer_that_changes_a_conversation_asks_for_the_scope_write(street: Street) -> None:
    user = await street.house.user("asker")
    question = {"query": "Where do llamas sleep?"}
    async with client_of(street.application, await new_key(street.house, user)) as client:
        kept = (await post(client, "/api/v1/query/answer", {**question, "keep": True})).json()
    going_on = {"conversationId": kept["conversationId"]}
    replacing = {**going_on, "replaces": kept["answerId"]}
    async with client_of(street.application, await new_key(street.house, user, READ)) as client:
        for more in ({"keep": True}, going_on, replacing):
            for path in ("/api/v1/query/answer", "/api/v1/query/answer/stream"):
                reply = await post(client, path, {**question, **more})
                assert (reply.status_code, reply.json()["code"]) == (403, "not_permitted"), (path, more)
        messages = await client.get(f"/api/v1/conversations/{kept['conversationId']}/messages")
        assert messages.json()["total"] == 2


async def test_a_chat_that_goes_on_asks_for_the_scope_write(street: Street) -> None:
    user = await street.house.user("chatter")
    async with street.house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name=f"agent {uuid4()}"))
    body = {"messages": [{"role": "user", "content": "Hello"}], "conversationId": str(uuid4())}
    async with client_of(street.application, await new_key(street.house, user, READ)) as client:
        assert (await post(client, f"/api/v1/agents/{agent.id}/chat", body)).status_code == 403


async def test_an_administrators_key_without_the_scope_admin_reads_as_a_user(street: Street) -> None:
    house = street.house
    ana = await house.user("ana of keys")
    async with client_of(street.application, await new_key(house, ana)) as client:
        answer = (await post(client, "/api/v1/query/answer", {"query": "Where do llamas sleep?"})).json()
        given = await client.put(f"/api/v1/answers/{answer['answerId']}/feedback", json={"thumbs": "up"})
        assert given.status_code == 200
        hers = (await client.get("/api/v1/keys")).json()["items"][0]["id"]
    async with house.database.transaction(ADMIN) as connection:
        hidden = await create_agent(connection, AgentSpec(name=f"hidden {uuid4()}", active=False))
    paths = ("/api/v1/feedback", "/api/v1/keys", "/api/v1/agents")

    async def read(scopes: set[Scope]) -> tuple[list[str], list[int]]:
        async with client_of(street.application, await new_key(house, ADMIN, scopes)) as client:
            texts = [(await client.get(path)).text for path in paths]
            single = (f"/api/v1/keys/{hers}", f"/api/v1/agents/{hidden.id}", "/metrics")
            return texts, [(await client.get(path)).status_code for path in single]

    found, codes = await read({Scope.READ, Scope.ADMIN})
    assert [name in text for name, text in zip((str(ana.user_id), hers, str(hidden.id)), found, strict=True)] != []
    assert answer["answerId"] in found[0]
    assert hers in found[1]
    assert str(hidden.id) in found[2]
    assert codes == [200, 200, 200]
    found, codes = await read({Scope.READ, Scope.WRITE})
    assert answer["answerId"] not in found[0]
    assert hers not in found[1]
    assert str(hidden.id) not in found[2]
    assert codes == [404, 403, 403]


async def test_a_key_lives_no_longer_than_the_key_that_made_it(street: Street) -> None:
    house = street.house
    user = await house.user("parent")
    soon = datetime.now(UTC) + timedelta(hours=1)
    parent = await new_key(house, user, expires_at=soon)

    async def create(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
        made: dict[str, Any] = (await post(client, "/api/v1/keys", {"name": "child", **more})).json()
        return made

    async with client_of(street.application, parent) as client:
        child = await create(client)
        later = await create(client, expiresAt=(soon + timedelta(days=9)).isoformat())
        mine = next(key for key in (await client.get("/api/v1/keys")).json()["items"] if key["name"] != "child")
    assert {datetime.fromisoformat(one["expiresAt"]) for one in (child, later)} == {soon}
    async with client_of(street.application, child["key"]) as client:
        grandchild = await create(client)
    async with client_of(street.application, await new_key(house, user)) as client:
        assert (await client.delete(f"/api/v1/keys/{mine['id']}")).status_code == 204
    async with house.database.transaction(None) as connection:
        for one in (child, later, grandchild):
            assert await identify_key(connection, one["key"]) is None


async def test_a_key_lives_no_longer_than_the_token_that_made_it(street: Street) -> None:
    user = await street.house.user("bearer")
    ends = int(time.time()) + 120
    found = []
    for claims in ({"exp": ends}, {"exp": 10**12}):  # the second ends in the year 33658
        token = jwt.encode({"sub": str(user.user_id), **claims}, SECRET)
        async with client_of(street.application) as client:
            client.headers["Authorization"] = f"Bearer {token}"
            for end in (None, ends + 10**6, ends - 60):
                expires_at = None if end is None else datetime.fromtimestamp(end, UTC).isoformat()
                made = await post(client, "/api/v1/keys", {"name": "child", "expiresAt": expires_at})
                at = made.json()["expiresAt"]
                found.append(None if at is None else datetime.fromisoformat(at).timestamp())
    leeway = 10  # with which tokens are accepted
    assert found == [ends + leeway, ends + leeway, ends - 60, None, ends + 10**6, ends - 60]


async def test_replies_to_a_key_that_may_only_write_hold_ids_alone(street: Street) -> None:
    house = street.house
    user = await house.user("silent")
    corpus = await house.corpus(user, "diary of a secret")
    async with client_of(street.application, await new_key(house, user, WRITE)) as client:
        changed = await client.patch(f"/api/v1/corpora/{corpus.id}", json={"active": True})
        assert changed.status_code == 200
        assert changed.json() == {"id": str(corpus.id)}
        added = await post(client, f"/api/v1/corpora/{corpus.id}/documents", {"text": "secret", "title": "secret"})
        assert added.status_code == 202
        assert "secret" not in added.text
        assert all(name == "id" or name.endswith("Id") for name in added.json())
        key = (await post(client, "/api/v1/keys", {"name": "more", "scopes": ["write"]})).json()
        assert key["key"].startswith("rag_")
    async with client_of(street.application, await new_key(house, user)) as client:
        assert (await client.patch(f"/api/v1/corpora/{corpus.id}", json={"active": True})).json()["name"] == corpus.name


@pytest.mark.parametrize("path", ["//api/v1/corpora", "///api/v1/corpora", "/api//v1/corpora", "/%2Fapi/v1/corpora"])
async def test_slashes_do_not_pass_by_what_looks_at_the_path(street: Street, path: str) -> None:
    key = await new_key(street.house, await street.house.user(f"slashes {path}"))
    async with client_of(street.application, key) as client:
        url = httpx.URL(scheme="http", host="testserver", raw_path=path.encode())
        reply = await client.get(url.copy_with(scheme=client.base_url.scheme, host=client.base_url.host))
    assert (reply.status_code, reply.headers["cache-control"]) == (200, "no-store")


async def test_sharing_a_personal_corpus_means_nothing(street: Street) -> None:
    user = await street.house.user("sharer of nothing")
    async with client_of(street.application, await new_key(street.house, user)) as client:
        made = (await post(client, "/api/v1/corpora", {"name": "own", "shared": True})).json()
        assert made["shared"] is False
        changed = await client.patch(f"/api/v1/corpora/{made['id']}", json={"shared": True, "groups": ["all"]})
    assert (changed.json()["shared"], changed.json()["groups"]) == (False, [])
    assert made["kind"] == CorpusKind.PERSONAL
