"""Local accounts: an invitation, a password, and what attempts learn."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from rag_service.auth.sign_in import _ATTEMPTS, _PASSWORDS_AT_A_TIME, _PASSWORDS_WAITING, make_invitation
from rag_service.errors import ConflictError
from rag_service.store.accounts.sessions import read_account
from tests.integration.tenancy.conftest import ADMIN, Street
from tests.integration.tenancy.web import new_key, web_settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSWORD = "correct horse battery"
TOKEN = "__Host-rag_csrf"
ADMITTED = (_PASSWORDS_AT_A_TIME + _PASSWORDS_WAITING) // 2


@pytest.fixture(autouse=True)
def _quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_service.auth.passwords._LOG_COST", 10)


@asynccontextmanager
async def browser(street: Street, address: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    application: Any = street.application  # an ASGI application
    transport = httpx.ASGITransport(app=application, client=(address, 123))
    async with httpx.AsyncClient(transport=transport, base_url="https://rag.example.org") as client:
        yield client


async def invitation(street: Street, client: httpx.AsyncClient, user_id: Any) -> str:
    headers = {"X-API-Key": await new_key(street.house, ADMIN)}
    reply = await client.post(f"/api/v1/users/{user_id}/invitation", headers=headers)
    address, _, token = reply.json()["link"].partition("#invitation=")
    assert address == "https://rag.example.org/"
    return str(token.partition("&name=")[0])


async def choose(client: httpx.AsyncClient, token: str, password: str = PASSWORD) -> httpx.Response:
    return await client.post("/api/v1/session/invitation", json={"invitation": token, "password": password})


async def sign_in(client: httpx.AsyncClient, name: str, password: str = PASSWORD) -> httpx.Response:
    return await client.post("/api/v1/session", json={"name": name, "password": password})


async def test_invited_user_chooses_a_password_once_and_signs_in_with_it(street: Street) -> None:
    eva = await street.house.user("eva")
    async with browser(street) as client, browser(street) as later:
        void, token = [await invitation(street, client, eva.user_id) for _ in range(2)]
        assert (await choose(client, token, "too short")).status_code == 400
        assert (await choose(client, void)).status_code == 401
        assert (await choose(client, token)).status_code == 204
        assert (await choose(later, token)).status_code == 401, "it is good once"
        client.headers["X-CSRF-Token"] = client.cookies[TOKEN]
        assert (await client.get("/api/v1/users/me")).json()["name"] == "eva"
        assert (await sign_in(later, "eva")).status_code == 204
        later.headers["X-CSRF-Token"] = later.cookies[TOKEN]
        assert (await later.get("/api/v1/users/me")).status_code == 200
        token = await invitation(street, client, eva.user_id)
        with street.house.owner() as connection:
            connection.execute("UPDATE rag.passwords SET invited_until = now()")
        assert (await choose(later, token)).status_code == 401, "it is too old"
        assert (await client.get("/api/v1/users/me")).status_code == 200
        token = await invitation(street, client, eva.user_id)
        async with browser(street) as elsewhere:
            assert (await choose(elsewhere, token, "another long password")).status_code == 204
        assert (await later.get("/api/v1/users/me")).status_code == 401, "a new password ends all sessions"
        assert (await sign_in(later, "eva")).status_code == 401


async def test_replies_do_not_tell_who_exists_and_attempts_are_few(street: Street) -> None:
    fay = await street.house.user("fay")
    async with browser(street) as client:
        await choose(client, await invitation(street, client, fay.user_id))
        with street.house.owner() as connection:
            connection.execute("UPDATE rag.users SET active = false WHERE name = 'fay'")
        bodies = []
        for name in ("fay", "nobody"):  # deactivated, with the right password; not there
            reply = await sign_in(client, name)
            assert reply.status_code == 401
            body = reply.json()
            body.pop("correlationId")
            bodies.append(body)
        assert bodies[0] == bodies[1]
        with street.house.owner() as connection:
            connection.execute("UPDATE rag.users SET active = true WHERE name = 'fay'")
            connection.execute("UPDATE rag.password_attempts SET full_at = now() + interval '1 minute'")
        for name in ("fay", "nobody"):
            reply = await sign_in(client, name)
            assert reply.status_code == 429, "also with the right password"
            assert 4 <= int(reply.headers["retry-after"]) <= 6  # some seconds may have passed since
        with street.house.owner() as connection:
            connection.execute("UPDATE rag.password_attempts SET full_at = now() + interval '53 seconds'")
        assert (await sign_in(client, "fay")).status_code == 204
        with street.house.owner() as connection:  # as after a clock that went a day ahead and was set back
            connection.execute("UPDATE rag.password_attempts SET full_at = now() + interval '1 day'")
        assert (await sign_in(client, "fay")).status_code == 204


async def test_an_attempt_that_began_earlier_forgets_none_of_the_later_ones(street: Street) -> None:
    database = street.house.database
    async with database.transaction(None) as earlier:
        await earlier.execute("SELECT now()")
        for _ in range(_ATTEMPTS):
            async with database.transaction(None) as later:
                assert await read_account(later, "gil", attempts=_ATTEMPTS) is not None
        assert await read_account(earlier, "gil", attempts=_ATTEMPTS) is None


async def test_passwords_are_for_services_that_say_so(street: Street) -> None:
    provider = {"oidc_issuer": "https://id.example.org", "oidc_client_id": "rag"}
    async with street.house.database.transaction(ADMIN) as connection:
        for changes in ({"public_url": None}, provider):
            with pytest.raises(ConflictError):
                await make_invitation(connection, web_settings(**changes), ADMIN.user_id)


async def test_made_up_names_and_invitations_do_not_keep_others_waiting(
    street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    all_asked = threading.Event()

    def is_password(password: str, stored: str | None) -> bool:
        hashed.append(password)
        assert all_asked.wait(120)
        return False

    async def attempt(number: int) -> httpx.Response:
        reply = await sign_in(client, f"nobody-{number}")
        refused.append(reply.status_code == 429)
        if sum(refused) == 60 - ADMITTED:
            all_asked.set()
        return reply

    monkeypatch.setattr("rag_service.auth.sign_in.is_password", is_password)
    monkeypatch.setattr("rag_service.auth.sign_in.hash_password", hashed.append)
    refused: list[bool] = []
    async with browser(street) as client:
        replies = await asyncio.gather(*map(attempt, range(60)))
        assert Counter(reply.status_code for reply in replies) == {401: ADMITTED, 429: 60 - ADMITTED}
        assert len(hashed) == ADMITTED <= 30
        assert all("retry-after" in reply.headers for reply in replies if reply.status_code == 429)
        hashed.clear()
        assert (await choose(client, "made up")).status_code == 401
        assert not hashed
        assert (await sign_in(client, "somebody")).status_code == 401, "the next one gets a turn"


@pytest.mark.parametrize(
    ("hosts", "neighbour"),
    [
        (["10.0.0.1"], "10.0.0.2"),
        (["2001:db8:1:2::1", "2001:db8:1:2:ffff::9"], "2001:db8:1:3::1"),
        (["::ffff:10.0.0.1"], "::ffff:10.0.0.2"),  # IPv4, on a socket for both
    ],
)
async def test_a_flood_from_one_network_leaves_others_their_turn(
    street: Street, monkeypatch: pytest.MonkeyPatch, hosts: list[str], neighbour: str
) -> None:
    others_asked = threading.Event()

    def is_password(password: str, stored: str | None) -> bool:
        assert others_asked.wait(120)
        return False

    async def attempt(number: int) -> int:
        return (await sign_in(clients[number % len(clients)], f"made-up-{number}")).status_code

    monkeypatch.setattr("rag_service.auth.sign_in.is_password", is_password)
    async with AsyncExitStack() as browsers:
        clients = [await browsers.enter_async_context(browser(street, host)) for host in hosts]
        flood = [asyncio.create_task(attempt(number)) for number in range(40)]
        ended = asyncio.as_completed(flood)
        assert [await next(ended) for _ in range(40 - ADMITTED)] == [429] * (40 - ADMITTED)
        async with browser(street, neighbour) as client:
            other = asyncio.create_task(sign_in(client, "somebody-else"))
            await asyncio.wait({other}, timeout=0.5)
            others_asked.set()
            assert (await other).status_code == 401, "it was looked at"
        assert [await reply for reply in ended] == [401] * ADMITTED
