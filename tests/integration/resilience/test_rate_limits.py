"""Quotas of callers: shared by all replicas, told in headers, and never what fails."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psycopg
import pytest

from rag_service.app import create_app
from rag_service.domain import LOCAL_ADMIN, Identity, Role
from rag_service.errors import ConfigurationError
from rag_service.settings import Settings
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.accounts.rate_limits import spend
from rag_service.store.accounts.users import create_user
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer
from tests.doubles.ollama import CHAT, OllamaDouble
from tests.integration.resilience.conftest import QUESTION, Start, StoppableServer, add_document
from tests.serving import wait_until

ANSWER, STREAM, SEARCH = "/api/v1/query/answer", "/api/v1/query/answer/stream", "/api/v1/query"
ADMIN = LOCAL_ADMIN
CORPORA = "/api/v1/corpora"  # cheap, and limited like every other route


def assert_limited(response: httpx.Response, policy: str = "requests") -> None:
    assert response.status_code == 429, response.text
    problem = response.json()
    assert (problem["code"], problem["status"]) == ("rate_limited", 429)
    assert policy in problem["detail"]
    assert response.headers["content-type"] == "application/problem+json"
    assert 1 <= int(response.headers["retry-after"]) == problem["retryAfter"] <= 60


async def _people(conninfo: str, *names: str) -> list[tuple[Identity, list[str]]]:
    """Users with two keys each."""
    database = Database(conninfo, pool_size=1, timeout=5)
    await database.open()
    made = []
    async with database.transaction(ADMIN) as connection:
        for name in names:
            user = await create_user(connection, name=name, role=Role.USER)
            keys = [
                (await create_key(connection, user_id=user.id, name=kind, scopes=ALL_SCOPES))[1] for kind in ("a", "b")
            ]
            made.append((Identity(user_id=user.id), keys))
    await database.close()
    return made


def test_two_replicas_share_the_quota_and_tell_it(start: Start) -> None:
    replicas = [start(rate_limit_per_minute=6), start(rate_limit_per_minute=6)]
    replies = [replicas[turn % 2].get(CORPORA) for turn in range(7)]
    assert [reply.status_code for reply in replies] == [200] * 6 + [429]
    assert_limited(replies[-1])
    left = [re.fullmatch(r'"requests";r=(\d+);t=(\d+)', reply.headers["ratelimit"]) for reply in replies]
    assert all(left)
    assert [int(match[1]) for match in left if match] == [5, 4, 3, 2, 1, 0, 0]
    assert all(0 < int(match[2]) <= 60 for match in left if match)
    assert {reply.headers["ratelimit-policy"] for reply in replies} == {'"requests";q=6;w=60'}
    assert "x-request-id" in replies[-1].headers
    assert 'rag_errors_total{code="rate_limited"} 1.0' in replicas[0].get("/metrics").text
    assert replicas[0].get("/health/ready").status_code == 200  # not counted


def test_many_at_once_get_no_more_than_the_quota(start: Start) -> None:
    replicas = [start(rate_limit_per_minute=20), start(rate_limit_per_minute=20)]
    began = time.monotonic()
    with ThreadPoolExecutor(16) as threads:
        statuses = list(threads.map(lambda turn: replicas[turn % 2].get(CORPORA).status_code, range(60)))
    assert 20 <= statuses.count(200) <= 21 + (time.monotonic() - began) / 3  # three seconds give one back
    assert statuses.count(200) + statuses.count(429) == 60


def test_the_keys_of_a_user_share_a_quota_and_nobody_uses_anothers(
    start: Start, database_server: EmbeddedServer
) -> None:
    (_, (first, second)), (_, (other, _)) = asyncio.run(_people(database_server.service_conninfo, "ana", "ben"))
    client = start(auth="required", rate_limit_per_minute=2)

    def ask(key: str, times: int) -> list[int]:
        return [client.get(CORPORA, headers={"X-API-Key": key}).status_code for _ in range(times)]

    assert ask(first, 1) == [200]
    assert ask(second, 2) == [200, 429]
    assert ask(other, 1) == [200]
    assert client.get(CORPORA).status_code == 401  # who is nobody has no quota to use up
    assert "ratelimit" not in client.get(CORPORA).headers


def test_the_openai_routes_refuse_in_their_own_shape(start: Start) -> None:
    client = start(rate_limit_per_minute=1)
    assert client.get("/v1/models").status_code == 200
    reply = client.get("/v1/models")
    assert reply.status_code == 429
    error = reply.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limited")
    assert int(reply.headers["retry-after"]) >= 1
    assert reply.headers["ratelimit-policy"] == '"requests";q=1;w=60'


def test_mcp_is_limited_too(start: Start) -> None:
    client = start(rate_limit_per_minute=1)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}
    assert client.post("/mcp", json=call, headers=headers).status_code != 429
    assert_limited(client.post("/mcp", json=call, headers=headers))


def test_answers_have_a_quota_of_their_own_in_every_mode(start: Start, ollama: OllamaDouble) -> None:
    ollama.answer = "The limit for travel is 300 euros a day [C1]."
    client = start(rate_limit_answers_per_minute=2)
    add_document(client)
    question = {"query": QUESTION}
    assert client.post(ANSWER, json=question).status_code == 200
    assert client.post(STREAM, json=question).status_code == 200
    for url in (ANSWER, STREAM):
        assert_limited(client.post(url, json=question), "answers")
    completion = {"model": "rag-service", "messages": [{"role": "user", "content": QUESTION}]}
    for stream in (False, True):
        reply = client.post("/v1/chat/completions", json={**completion, "stream": stream})
        assert (reply.status_code, reply.json()["error"]["code"]) == (429, "rate_limited")
    agent = client.post("/api/v1/agents", json={"name": "helper"}).json()
    chat = {"messages": [{"role": "user", "content": QUESTION}]}
    assert_limited(client.post(f"/api/v1/agents/{agent['id']}/chat", json=chat), "answers")
    assert client.post(SEARCH, json=question).status_code == 200  # asks no model
    assert len(ollama.bodies(CHAT)) == 2


@pytest.mark.slow
def test_without_the_database_nothing_is_limited(stoppable: StoppableServer, start: Start) -> None:
    client = start(database_url=stoppable.conninfo, database_timeout=2.0, rate_limit_per_minute=1)
    address = "/v1/nothing"  # limited like everything there, and needs no database itself
    assert client.get(address).status_code == 404
    assert client.get(address).status_code == 429
    stoppable.stop()
    assert [client.get(address).status_code for _ in range(3)] == [404] * 3
    reply = client.post(SEARCH, json={"query": QUESTION})
    assert (reply.status_code, reply.json()["code"]) == (500, "store_unavailable")
    stoppable.start()
    # An orderly stop keeps the counts.
    wait_until(lambda: client.get(address).status_code == 429)


def test_off_means_no_headers_and_no_rows(start: Start, database_server: EmbeddedServer) -> None:
    client = start()
    assert "ratelimit" not in client.get(CORPORA).headers
    with psycopg.connect(database_server.owner_conninfo) as owner:
        assert owner.execute("SELECT count(*) FROM rag.rate_limits").fetchone() == (0,)


def test_without_a_database_a_limit_is_refused_at_start() -> None:
    with pytest.raises(ConfigurationError, match="RAG_RATE_LIMIT"):
        create_app(Settings(enabled=False, rate_limit_per_minute=5))


# -- the statement


async def _spend(database: Database, identity: Identity, limit: int = 3, **changes: Any) -> Any:
    values = {"user_id": identity.user_id, "policy": "requests", "limit": limit, **changes}
    async with database.transaction(identity) as connection:
        return await spend(connection, **values)


async def test_a_used_up_quota_comes_back_evenly(database: Database, database_server: EmbeddedServer) -> None:
    began = time.monotonic()
    quotas = [await _spend(database, ADMIN) for _ in range(4)]
    spent = time.monotonic() - began
    assert [quota.granted for quota in quotas] == [True, True, True, False]
    assert [quota.remaining for quota in quotas] == [2, 1, 0, 0]
    assert 20 - spent - 0.1 < quotas[-1].retry_in <= 20
    _move(database_server, "21 s")
    assert [(await _spend(database, ADMIN)).granted for _ in range(2)] == [True, False]
    _move(database_server, "1 hour")
    assert (await _spend(database, ADMIN)).remaining == 2


def _move(server: EmbeddedServer, interval: str) -> None:
    """As if that much time had passed."""
    with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:
        owner.execute("UPDATE rag.rate_limits SET full_at = full_at - %s::interval", [interval])


async def test_a_clock_set_back_locks_nobody_out(database: Database, database_server: EmbeddedServer) -> None:
    assert (await _spend(database, ADMIN)).granted
    _move(database_server, "-3 hours")
    refused = await _spend(database, ADMIN)
    assert not refused.granted
    assert refused.retry_in <= 21 and refused.full_in <= 61


async def test_nobody_reads_or_uses_rows_of_others(database: Database, database_server: EmbeddedServer) -> None:
    (ana, _), (ben, _) = await _people(database_server.service_conninfo, "ana", "ben")
    assert (await _spend(database, ana)).granted
    for eyes in (ben, ADMIN, None):
        async with database.transaction(eyes) as connection:
            cursor = await connection.execute("SELECT count(*) FROM rate_limits")
            assert await cursor.fetchone() == (0,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await _spend(database, ben, user_id=ana.user_id)


async def test_limits_that_do_not_divide_a_minute_grant_all_of_it(
    database: Database, database_server: EmbeddedServer
) -> None:
    for limit in (1, 7, 59, 997):
        _move(database_server, "1 hour")
        quotas = [await _spend(database, ADMIN, limit) for _ in range(min(limit, 60))]
        assert all(quota.granted for quota in quotas)


@pytest.mark.parametrize("limit", [0, 100])
async def test_a_database_that_stands_still_makes_each_request_wait_once(
    stoppable: StoppableServer, start: Start, limit: int
) -> None:
    """To know whose request it is, to count it and to serve it share one timeout."""
    client = start(
        database_url=stoppable.conninfo, database_timeout=4.0, auth="required", auth_cache_seconds=0.0,
        rate_limit_per_minute=limit,
    )  # fmt: skip
    ((_, (known, unknown)),) = await _people(stoppable.conninfo, "ana")
    assert client.get(CORPORA, headers={"X-API-Key": known}).status_code == 200
    stoppable.signal(signal.SIGSTOP)
    try:
        for key in (known, unknown) * 2:
            began = time.monotonic()
            assert client.get(CORPORA, headers={"X-API-Key": key}).json()["code"] == "store_unavailable"
            assert time.monotonic() - began < 7.8  # two would take 8.0
    finally:
        stoppable.signal(signal.SIGCONT)
