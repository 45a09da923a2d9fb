"""Signing in with a real OpenID provider on a local socket, through the whole application."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
import pytest_asyncio
from litestar import Litestar
from structlog.testing import capture_logs

from rag_service.app import create_app
from rag_service.auth.provider import Provider
from rag_service.cli.checks import check_provider
from rag_service.components import Components
from rag_service.domain import CorpusKind
from rag_service.errors import ConfigurationError, IssuerUnreachableError
from rag_service.settings import load_settings
from rag_service.store.corpora import update_corpus
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding, cloned_database
from tests.doubles.openid import CLIENT_ID, OpenIdProvider, running_provider
from tests.integration.tenancy.conftest import ADMIN, House, text_file
from tests.integration.tenancy.web import real_application, started_application, web_settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PUBLIC_URL = "https://rag.example.org"
SESSION, TOKEN = "__Host-rag_session", "__Host-rag_csrf"
PEOPLE = {
    "ana": {"name": "Ana", "groups": ["staff", "finance"]},
    "bea": {"name": "Bea", "groups": ["staff", "legal"]},
    "zoe": {"preferred_username": "zoe", "groups": ["bosses"]},
}


@dataclass(frozen=True, kw_only=True)
class Gate:
    house: House
    components: Components
    application: Litestar
    provider: OpenIdProvider

    @asynccontextmanager
    async def browser(self, subject: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(app=self.application)  # type: ignore[arg-type]  # an ASGI application
        async with httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL) as client:
            if subject is not None:
                assert (await self.sign_in(client, subject)).headers["location"] == "/"
                client.headers["X-CSRF-Token"] = client.cookies[TOKEN]
            yield client

    async def sign_in(
        self, client: httpx.AsyncClient, subject: str, change: Callable[[str], str] = lambda address: address
    ) -> httpx.Response:
        """The last step of the flow; `change` alters the address that the provider sends the browser back to."""
        start = await client.get("/auth/login")
        back = await asyncio.to_thread(self.provider.approve, start.headers["location"], subject)
        return await client.get(change(back))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gate(postgres: EmbeddedServer) -> AsyncIterator[Gate]:
    embedding = FakeEmbedding(model_name="fake-bag-of-words", embed_batch_size=32)
    with cloned_database(postgres) as server, running_provider(PEOPLE) as provider:
        changes = {"oidc_allowed_groups": "staff, bosses", "oidc_admin_groups": "bosses", "public_url": PUBLIC_URL}
        async with real_application(server, embedding, **provider.settings, **changes) as (application, components):
            house = House(server=server, database=components.database, embedding=embedding)
            yield Gate(house=house, components=components, application=application, provider=provider)


async def test_below_a_path_the_session_stays_below_it(gate: Gate) -> None:
    changes = {"public_url": f"{PUBLIC_URL}/rag", "worker_embedded": False}
    settings = web_settings(database_url=gate.house.server.service_conninfo, **gate.provider.settings, **changes)
    application = create_app(settings, components=gate.components)
    transport = httpx.ASGITransport(app=application)  # type: ignore[arg-type]  # an ASGI application
    async with (
        started_application(application),
        httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL) as client,
    ):
        start = await client.get("/rag/auth/login")
        back = await asyncio.to_thread(gate.provider.approve, start.headers["location"], "ana")
        assert back.startswith(f"{PUBLIC_URL}/rag/auth/callback?")
        reply = await client.get(back)
        assert (reply.status_code, reply.headers["location"]) == (303, "/rag/")
        made = {cookie.name: cookie.path for cookie in client.cookies.jar}
        assert made == {"__Secure-rag_session": "/rag", "__Secure-rag_csrf": "/rag"}
        token = {"X-CSRF-Token": client.cookies["__Secure-rag_csrf"]}
        for path in ("/rag/api/v1/users/me", "/api/v1/users/me"):  # the browser sends no cookie to the second
            assert (await client.get(path, headers=token)).status_code == (200 if path.startswith("/rag") else 401)
        await client.delete("/rag/api/v1/session", headers=token)
        assert not list(client.cookies.jar)


def with_parameter(name: str, value: str) -> Callable[[str], str]:
    def change(address: str) -> str:
        parts = urlsplit(address)
        return parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), name: value})).geturl()

    return change


async def test_first_sign_in_creates_the_user_and_later_ones_follow_the_groups(gate: Gate) -> None:
    async with gate.browser() as client:
        start = await client.get("/auth/login")
        asked = dict(parse_qsl(urlsplit(start.headers["location"]).query))
        assert (asked["redirect_uri"], asked["code_challenge_method"]) == (f"{PUBLIC_URL}/auth/callback", "S256")
        reply = await gate.sign_in(client, "zoe")
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        assert reply.headers["cache-control"] == "no-store"
        cookies = {line.partition("=")[0]: line.lower() for line in reply.headers.get_list("set-cookie")}
        for attribute in ("secure", "httponly", "samesite=strict", "path=/"):
            assert attribute in cookies[SESSION]
        assert "httponly" not in cookies[TOKEN]
        client.headers["X-CSRF-Token"] = client.cookies[TOKEN]
        first = (await client.get("/api/v1/users/me")).json()
        assert (first["name"], first["role"], first["subject"]) == ("zoe", "admin", "zoe")
    gate.provider.person("zoe", preferred_username="renamed", groups=["staff"])
    async with gate.browser("zoe") as client:
        again = (await client.get("/api/v1/users/me")).json()
        assert (again["id"], again["name"], again["role"]) == (first["id"], "zoe", "user")
        assert (await client.get("/api/v1/users")).status_code == 403


def unchanged(address: str) -> str:
    return address


@pytest.mark.parametrize(
    ("change", "claims", "reason"),
    [
        (with_parameter("state", "made-up.0000"), {}, "started in another browser"),
        (with_parameter("code", "made-up"), {}, "provider refused"),
        (with_parameter("iss", "https://evil.example"), {}, "did not sign in a user"),
        (lambda address: address.replace("code=", "error=access_denied&x="), {}, "did not sign in a user"),
        (unchanged, {"nonce": "of another sign-in"}, "belongs to another sign-in"),
        (unchanged, {"aud": "another client"}, "not valid for this service"),
        (unchanged, {"aud": [CLIENT_ID, "another"], "azp": "another"}, "for another client"),
        (unchanged, {"iss": "https://evil.example"}, "not valid for this service"),
        (unchanged, {"exp": int(time.time()) - 60}, "has expired"),
        (unchanged, {"sub": "bea", "groups": None}, "user information belongs to another user"),
        (unchanged, {"sub": "a\nb"}, "does not identify a user"),
    ],
)
async def test_reply_that_is_not_the_providers_to_this_browser_signs_nobody_in(
    gate: Gate, change: Callable[[str], str], claims: dict[str, Any], reason: str
) -> None:
    gate.provider.claims = claims
    try:
        async with gate.browser() as client:
            with capture_logs() as logs:
                reply = await gate.sign_in(client, "ana", change)
            assert reply.headers["location"] == "/?sign_in=refused"
            assert SESSION not in client.cookies
    finally:
        gate.provider.claims = {}
    assert reason in next(line["reason"] for line in logs if line["event"] == "sign_in_failed")


async def test_code_is_good_once_and_for_the_browser_that_asked(gate: Gate) -> None:
    async with gate.browser() as mine, gate.browser() as other:
        start = await mine.get("/auth/login")
        secret = mine.cookies["__Host-rag_sign_in"]
        back = await asyncio.to_thread(gate.provider.approve, start.headers["location"], "ana")
        await other.get("/auth/login")
        assert (await other.get(back)).headers["location"] == "/?sign_in=refused"
        assert (await mine.get(back)).headers["location"] == "/"
        assert (await mine.get(back)).headers["location"] == "/?sign_in=refused", "the cookie is gone"
        other.cookies.set("__Host-rag_sign_in", secret, domain="rag.example.org")
        assert (await other.get(back)).headers["location"] == "/?sign_in=refused", "the provider takes a code once"


async def test_browser_that_did_not_set_out_cannot_be_sent_back_into_a_foreign_account(gate: Gate) -> None:
    """What an attacker can make alone: everything that is derived from no secret."""
    attacker = Provider(gate.application.state.services.settings)
    for secret in ("", "x" * 43):
        back = await asyncio.to_thread(gate.provider.approve, await attacker.address(secret), "bea")
        async with gate.browser() as client:
            assert (await client.get(back)).headers["location"] == "/?sign_in=refused"
            assert SESSION not in client.cookies


async def test_provider_may_tell_groups_at_its_user_info_endpoint_alone(gate: Gate) -> None:
    gate.provider.person("uma", name="Uma", groups=["staff"])
    gate.provider.claims = {"groups": None}
    try:
        async with gate.browser("uma") as client:
            assert (await client.get("/api/v1/users/me")).json()["groups"] == ["staff"]
    finally:
        gate.provider.claims = {}


async def test_two_tabs_may_be_on_their_way_at_once(gate: Gate) -> None:
    async with gate.browser() as client:
        starts = [await client.get("/auth/login") for _ in range(2)]
        assert starts[0].headers["location"] != starts[1].headers["location"]
        back = [await asyncio.to_thread(gate.provider.approve, one.headers["location"], "ana") for one in starts]
        assert (await client.get(back[0])).headers["location"] == "/"


async def test_first_sign_in_in_two_browsers_at_once_makes_one_user(gate: Gate) -> None:
    gate.provider.person("twin", name="Twin", groups=["staff"])
    async with gate.browser() as one, gate.browser() as two:
        replies = await asyncio.gather(gate.sign_in(one, "twin"), gate.sign_in(two, "twin"))
        assert [reply.headers["location"] for reply in replies] == ["/", "/"]
    with gate.house.owner() as connection:
        assert connection.execute("SELECT name FROM rag.users WHERE subject = 'twin'").fetchall() == [("Twin",)]


async def test_provider_that_is_down_is_told_and_ends_no_session(gate: Gate) -> None:
    async with gate.browser("ana") as signed_in, gate.browser() as client:
        start = await client.get("/auth/login")
        back = await asyncio.to_thread(gate.provider.approve, start.headers["location"], "ana")
        gate.provider.down = True
        settings = gate.application.state.services.settings
        try:
            assert (await client.get(back)).headers["location"] == "/?sign_in=unavailable"
            with pytest.raises(IssuerUnreachableError):
                await check_provider(settings)
            assert (await signed_in.get("/api/v1/users/me")).status_code == 200
        finally:
            gate.provider.down = False
    assert await check_provider(settings) == gate.provider.url
    with pytest.raises(IssuerUnreachableError, match="RAG_OIDC_ISSUER"):
        await check_provider(settings.replace({"oidc_issuer": f"{gate.provider.url}/"}))


async def test_unknown_groups_and_deactivated_users_get_the_same_refusal(gate: Gate) -> None:
    gate.provider.person("outsider", name="Out", groups=["guests"])
    gate.provider.person("leaver", name="Lea", groups=["staff"])
    async with gate.browser("leaver") as client:
        me = (await client.get("/api/v1/users/me")).json()["id"]
        with gate.house.owner() as connection:
            connection.execute("UPDATE rag.users SET active = false WHERE id = %s", [me])
        assert (await client.get("/api/v1/users/me")).status_code == 401
        with gate.house.owner() as connection:
            connection.execute("UPDATE rag.users SET active = true WHERE id = %s", [me])
        assert (await client.get("/api/v1/users/me")).status_code == 401, "its sessions have ended"
        with gate.house.owner() as connection:
            connection.execute("UPDATE rag.users SET active = false WHERE id = %s", [me])
    for subject in ("outsider", "leaver"):
        async with gate.browser() as client:
            assert (await gate.sign_in(client, subject)).headers["location"] == "/?sign_in=not_permitted"
            assert SESSION not in client.cookies


async def test_who_lost_the_allowed_groups_loses_sessions_and_role_at_the_refusal(gate: Gate) -> None:
    gate.provider.person("boss", name="Bo", groups=["bosses"])
    async with gate.browser("boss") as client:
        key = (await client.post("/api/v1/keys", json={"name": "k"})).json()["key"]
        gate.provider.person("boss", name="Bo", groups=["guests"])
        async with gate.browser() as another:
            assert (await gate.sign_in(another, "boss")).headers["location"] == "/?sign_in=not_permitted"
            credential = {"Authorization": f"Bearer {key}"}
            assert (await another.get("/api/v1/users/me", headers=credential)).json()["role"] == "user"
            assert (await another.get("/api/v1/users", headers=credential)).status_code == 403
        assert (await client.get("/api/v1/users/me")).status_code == 401


async def test_session_counts_with_its_token_alone_and_ends(gate: Gate) -> None:
    async with gate.browser("ana") as client, gate.browser("ana") as another:
        right = client.headers.pop("X-CSRF-Token")
        for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": another.cookies[TOKEN]}):
            for method, path in (
                ("POST", "/api/v1/projects"),
                ("GET", "/api/v1/users/me"),
                ("DELETE", "/api/v1/session"),
            ):
                assert (await client.request(method, path, headers=headers)).status_code == 401
        foreign = {"X-CSRF-Token": right, "Origin": "https://evil.example"}
        assert (await client.post("/api/v1/projects", json={"name": "x"}, headers=foreign)).status_code == 403
        client.headers["X-CSRF-Token"] = right
        assert (await client.post("/api/v1/projects", json={"name": "x"})).status_code == 201
        session = client.cookies[SESSION]
        gone = await client.delete("/api/v1/session")
        assert (gone.status_code, SESSION in client.cookies) == (204, False)
        client.cookies.set(SESSION, session, domain="rag.example.org")
        assert (await client.get("/api/v1/users/me")).status_code == 401
        assert (await another.get("/api/v1/users/me")).status_code == 200
        for column, age in (("used_at", "121 minutes"), ("ends_at", "1 second")):
            async with gate.browser("ana") as late:
                with gate.house.owner() as connection:
                    # Newest sessions only: those of the other tests live on.
                    connection.execute(f"UPDATE rag.sessions SET {column} = now() - interval '{age}'")
                assert (await late.get("/api/v1/users/me")).status_code == 401


async def test_users_of_different_groups_see_their_corpora_in_every_list_count_and_search(gate: Gate) -> None:
    for group, text in (("finance", "The budget of finance is amber."), ("legal", "The contract of legal is violet.")):
        corpus = await gate.house.corpus(ADMIN, group, CorpusKind.GLOBAL)
        async with gate.house.database.transaction(ADMIN) as connection:
            await update_corpus(connection, corpus.id, shared=False, groups=[group])
        await gate.house.index(ADMIN, corpus, text_file(f"{group}.txt", text))
    for subject, own, other in (("ana", "finance", "legal"), ("bea", "legal", "finance")):
        async with gate.browser(subject) as client:
            corpora = (await client.get("/api/v1/corpora")).json()
            assert ([one["name"] for one in corpora["items"]], corpora["total"]) == ([own], 1)
            documents = (await client.get(f"/api/v1/corpora/{corpora['items'][0]['id']}/documents")).json()
            assert [one["fileName"] for one in documents["items"]] == [f"{own}.txt"]
            body = {"query": "budget contract amber violet", "similarityThreshold": 0}
            for path in ("/api/v1/query", "/api/v1/query/answer"):
                found = (await client.post(path, json=body)).text
                assert f"{own}.txt" in found
                assert other not in found
            assert (
                await client.patch(f"/api/v1/corpora/{corpora['items'][0]['id']}", json={"name": "x"})
            ).status_code == 403
    gate.provider.person("bea", name="Bea", groups=["staff"])
    async with gate.browser("bea") as client:
        assert (await client.get("/api/v1/corpora")).json()["total"] == 0


async def test_names_and_groups_are_not_trusted(gate: Gate) -> None:
    gate.provider.person(
        "forger", name="<script>x</script>\u202eAna\u0000\n" + "n" * 500, groups=["staff", "fin\u200bance"]
    )
    gate.provider.person("double", name="Ana", groups=["staff", 7, ["bosses"], "", "finance ", None])
    gate.provider.person("text", email="text@example.org", groups="staff")
    shown = {}
    for subject in ("ana", "forger", "double", "text"):
        async with gate.browser(subject) as client:
            me = (await client.get("/api/v1/users/me")).json()
            shown[subject] = me["name"]
            assert me["role"] == "user"
            assert (
                "finance" not in [one["name"] for one in (await client.get("/api/v1/corpora")).json()["items"]]
                or subject == "ana"
            )
    assert shown["forger"].startswith("<script>x</script>Ana nnn")
    assert len(shown["forger"]) <= 200
    assert (shown["ana"], shown["double"], shown["text"]) == ("Ana", "Ana (2)", "text@example.org")


async def test_logs_hold_no_code_state_or_token(gate: Gate, capfd: pytest.CaptureFixture[str]) -> None:
    gate.provider.claims = {}
    with capture_logs() as logs:
        async with gate.browser() as client:
            start = await client.get("/auth/login")
            back = await asyncio.to_thread(gate.provider.approve, start.headers["location"], "ana")
            await client.get(with_parameter("code", "made-up-code")(back))
            await gate.sign_in(client, "ana")
            secrets = [value for _, value in parse_qsl(urlsplit(back).query)] + list(client.cookies.values())
    written = capfd.readouterr()
    logged = written.out + written.err + str(logs)
    assert "sign_in_failed" in logged
    assert "signed_in" in logged
    assert [one for one in [*secrets, "made-up-code"] if one in logged] == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"oidc_issuer": "https://id.example"}, "RAG_PUBLIC_URL"),
        ({"oidc_client_id": "rag"}, "RAG_OIDC_ISSUER"),
        ({"public_url": "http://rag.example.org"}, "RAG_PUBLIC_URL"),
        ({"public_url": "https://rag.example.org/?below"}, "RAG_PUBLIC_URL"),
        ({"public_url": PUBLIC_URL, "auth": "none"}, "RAG_AUTH"),
        ({"public_url": PUBLIC_URL, "oidc_issuer": "http://id.example", "oidc_client_id": "rag"}, "RAG_OIDC_ISSUER"),
    ],
)
async def test_settings_that_cannot_work_are_refused_at_start(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        load_settings(**{"auth": "required", **fields})
