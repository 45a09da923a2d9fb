"""A user who is deleted while requests wait for their turn: they read nothing more, and keep no place."""

from __future__ import annotations

import asyncio

import pytest

from rag_service.store.accounts.users import delete_user
from rag_service.turns import Turns
from tests.integration.tenancy.conftest import ADMIN, Street
from tests.integration.tenancy.web import client_of, new_key

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = {"query": "Where do llamas sleep?"}


@pytest.mark.parametrize(("path", "kind"), [("/api/v1/query", "searches"), ("/v1/embeddings", "embeddings")])
async def test_a_user_who_is_deleted_while_waiting_finds_nothing(street: Street, path: str, kind: str) -> None:
    ana = await street.house.user(f"ana waits for {kind}")
    turns: Turns = getattr(street.application.state.services.turns, kind)
    body = {"model": "multilingual-e5-small", "input": "x"} if kind == "embeddings" else QUESTION
    async with client_of(street.application, await new_key(street.house, ana)) as client:
        hold = [turns.take(None) for _ in range(turns.limit)]
        for one in hold:
            await one.__aenter__()
        sent = asyncio.create_task(client.post(path, json=body))
        async with asyncio.timeout(60):
            while not turns.waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        async with street.house.database.transaction(ADMIN) as connection:
            await delete_user(connection, ADMIN, ana.user_id)
        for one in hold:
            await one.__aexit__(None, None, None)
        reply = await sent
        assert reply.status_code == 200
        assert kind == "embeddings" or reply.json()["passages"] == []
        assert (await client.get("/api/v1/corpora")).status_code == 401
    assert turns.is_idle
