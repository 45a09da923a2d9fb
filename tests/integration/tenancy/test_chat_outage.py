"""An agent's chat goes on while the database is down, for who has used the agent before."""

from __future__ import annotations

import time

import httpx
import jwt
import pytest

from rag_service.app import create_app
from rag_service.domain import LOCAL_ADMIN
from rag_service.settings import Settings
from tests.conftest import FakeEmbedding
from tests.integration.resilience.conftest import StoppableServer, stoppable
from tests.integration.tenancy.web import SECRET
from tests.serving import serving

__all__ = ["stoppable"]


@pytest.mark.slow
def test_a_chat_answers_without_context_and_says_so(
    stoppable: StoppableServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_service.components.build_embedding", lambda _, **__: fake_embedding)
    settings = Settings(
        database_url=stoppable.conninfo,  # type: ignore[arg-type]  # as text
        database_timeout=1.0,
        worker_embedded=False,
        auth="required",
        auth_cache_seconds=0,
        jwt_secret=SECRET,  # type: ignore[arg-type]
    )
    token = bearer(jwt.encode({"sub": str(LOCAL_ADMIN.user_id), "exp": time.time() + 900}, SECRET))
    with serving(create_app(settings)) as client:
        made = (client.post("/api/v1/agents", json={"name": name}, headers=token).json()["id"] for name in "ab")
        known, unknown = made
        key, revoked, unused = (bearer(make_key(client, token)) for _ in range(3))
        for headers in (token, key, revoked):
            assert ask(client, known, headers).status_code == 200
        for listed in client.get("/api/v1/keys", headers=token).json()["items"]:
            if revoked["Authorization"].startswith(f"Bearer {listed['prefix']}"):
                client.delete(f"/api/v1/keys/{listed['id']}", headers=token)
        assert ask(client, known, revoked).status_code == 401
        stoppable.stop("immediate")
        for headers in (token, key):
            reply = ask(client, known, headers)
            assert reply.status_code == 200, reply.text
            assert (reply.json()["ragUsed"], reply.json()["conversationId"]) == (False, None)
        for agent, headers in ((unknown, key), (known, revoked), (known, unused)):
            assert code_of(ask(client, agent, headers)) == (500, "store_unavailable")
        assert code_of(client.post("/api/v1/query", json={"query": "llamas"}, headers=key))[0] == 500
        stoppable.start()


def bearer(credential: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {credential}"}


def make_key(client: httpx.Client, headers: dict[str, str]) -> str:
    key: str = client.post("/api/v1/keys", json={"name": "a key"}, headers=headers).json()["key"]
    return key


def code_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def ask(client: httpx.Client, agent_id: str, headers: dict[str, str]) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": "Where do llamas live?"}]}
    return client.post(f"/api/v1/agents/{agent_id}/chat", json=body, headers=headers)
