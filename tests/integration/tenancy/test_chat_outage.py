"""An agent's chat goes on while the database is down, for who has used the agent before."""

from __future__ import annotations

import httpx
import pytest

from rag_service.app import create_app
from rag_service.settings import Settings
from tests.conftest import FakeEmbedding
from tests.integration.resilience.conftest import StoppableServer, stoppable
from tests.serving import serving

__all__ = ["stoppable"]


def test_a_chat_answers_without_context_and_says_so(
    stoppable: StoppableServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_service.components.build_embedding", lambda _, **__: fake_embedding)
    settings = Settings(database_url=stoppable.conninfo, database_timeout=0.5, worker_embedded=False)  # type: ignore[arg-type]  # as text
    with serving(create_app(settings)) as client:
        known, unknown = (client.post("/api/v1/agents", json={"name": name}).json()["id"] for name in ("a", "b"))
        assert ask(client, known).status_code == 200
        stoppable.stop("immediate")
        reply = ask(client, known)
        assert reply.status_code == 200, reply.text
        assert (reply.json()["ragUsed"], reply.json()["conversationId"]) == (False, None)
        refused = ask(client, unknown)
        assert (refused.status_code, refused.json()["code"]) == (500, "store_unavailable")
        stoppable.start()


def ask(client: httpx.Client, agent_id: str) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": "Where do llamas live?"}]}
    return client.post(f"/api/v1/agents/{agent_id}/chat", json=body)
