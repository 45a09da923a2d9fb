"""What a credential may do, besides whose it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rag_service.domain import CorpusKind
from rag_service.store.accounts.agents import AgentSpec, assign_corpus, create_agent
from rag_service.store.accounts.keys import Scope
from tests.integration.tenancy.conftest import ADMIN, Street
from tests.integration.tenancy.web import client_of, new_key

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_global_corpus_is_changed_with_an_administrators_full_credential_only(street: Street) -> None:
    house = street.house
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
        async with client_of(street.application, key) as client:
            assert (await client.get(documents)).status_code == 200
            assert (await client.post(documents, json={"text": "x"})).status_code == expected
    async with client_of(street.application, reader) as client:
        assert (await client.post("/api/v1/corpora", json={"name": "n", "kind": "global"})).status_code == 403
        assert (await client.post("/api/v1/keys", json={"name": "n", "scopes": ["admin"]})).status_code == 403


async def test_ingesting_into_the_global_default_corpus_needs_the_full_credential_too(street: Street) -> None:
    limited = await new_key(street.house, ADMIN, {Scope.READ, Scope.WRITE})
    async with client_of(street.application, limited) as client:
        refused = await client.post("/api/ingest", json={"text": "x"})
        assert (refused.status_code, refused.json()["code"]) == (403, "not_permitted")
    async with client_of(street.application, await new_key(street.house, ADMIN)) as client:
        assert (await client.post("/api/ingest", json={"text": "x"})).status_code == 201


async def test_reading_goes_through_every_channel_with_a_key_that_may_only_read(street: Street) -> None:
    key = await new_key(street.house, await street.house.user("reader"), {Scope.READ})
    question = {"messages": [{"role": "user", "content": "Where do llamas sleep?"}]}
    async with client_of(street.application, key) as client:
        for path, body in (
            ("/api/v1/query", {"query": "llamas"}),
            ("/api/v1/query/answer", {"query": "llamas"}),
            ("/v1/chat/completions", {"model": "rag-service", **question}),
        ):
            assert (await client.post(path, json=body)).status_code == 200, path
        assert (await client.post("/api/v1/required-data", json={"inquiry": "llamas"})).status_code == 404


async def test_a_key_that_may_only_write_reads_through_no_channel(street: Street) -> None:
    key = await new_key(street.house, await street.house.user("writer"), {Scope.WRITE})
    question = {"messages": [{"role": "user", "content": "Where do llamas sleep?"}]}
    async with client_of(street.application, key) as client:
        for path, body in (
            ("/api/v1/query", {"query": "llamas"}),
            ("/api/v1/query/answer", {"query": "llamas"}),
            ("/api/v1/query/answer/stream", {"query": "llamas"}),
            ("/api/v1/required-data", {"inquiry": "llamas"}),
            ("/api/v1/generate-response", {"inquiry": "llamas"}),
            ("/v1/chat/completions", {"model": "rag-service", **question}),
            ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ):
            assert (await client.post(path, json=body)).status_code == 403, path
        assert (await client.get("/api/v1/corpora")).status_code == 403


async def test_expired_keys_are_refused_like_unknown_ones(street: Street) -> None:
    user = await street.house.user("late")
    key = await new_key(street.house, user, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    async with client_of(street.application, key) as client:
        reply = await client.get("/api/v1/corpora")
    assert (reply.status_code, reply.json()["code"]) == (401, "not_authenticated")
    assert reply.headers["www-authenticate"] == "Bearer"
