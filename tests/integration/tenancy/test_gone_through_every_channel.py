"""What has expired, was deleted or deactivated is gone from that second on, whichever channel is used."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from rag_service.store.accounts.users import delete_user, update_user
from tests.integration.tenancy.conftest import ADMIN, Street
from tests.integration.tenancy.test_access_matrix import ROWS, call
from tests.integration.tenancy.web import client_of
from tests.integration.tenancy.world import CANARY, World, make_world

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPENED = [route for route in ROWS if route[0] == "GET" and "{document_id}" in route[1]]
ASKED = [route for route, row in ROWS.items() if row.body is not None and row.shows and "{" not in route[1]] + [
    ("POST", "/api/v1/agents/{agent_id}/chat"),
    ("POST", "/v1/vector_stores/{corpus_id}/search"),
]
LISTED = ("GET", "/api/v1/corpora/{corpus_id}/documents")


async def test_every_channel_is_checked() -> None:
    assert len(OPENED) == 7  # description, text, original, chunks; as a file: description, content, state in its store
    assert len(ASKED) == 10  # search, two answers, two of the advisor, three of OpenAI, MCP, an agent's chat


@pytest.mark.parametrize("how", ["expired", "deleted", "deactivated"])
async def test_nothing_of_it_comes_back(street: Street, how: str) -> None:
    world = await make_world(street.house)
    for route in (*OPENED, *ASKED):
        reply = await call(street.application, route, ROWS[route], world, "owner")
        shows = ROWS[route].shows or route in ASKED
        assert (reply.status_code, CANARY in reply.text) == (200, shows), route
    await _end(street, world, how)
    for route in OPENED:
        reply = await call(street.application, route, ROWS[route], world, "owner")
        # A deactivated corpus is kept: its owner may open what lies in it, and is answered nothing from it.
        assert reply.status_code == (200 if how == "deactivated" else 404), (route, reply.text)
    for route in ASKED:
        reply = await call(street.application, route, ROWS[route], world, "owner")
        assert CANARY not in reply.text, route
    listed = await call(street.application, LISTED, ROWS[LISTED], world, "owner")
    assert listed.json()["total"] == (1 if how == "deactivated" else 0)


async def _end(street: Street, world: World, how: str) -> None:
    corpora = [world.ids["corpus_id"], world.ids["articles_id"]]
    if how == "expired":  # and no worker runs here that could purge it
        with street.house.owner() as owner:
            owner.execute(
                "UPDATE rag.documents SET expires_at = now() - interval '1 second' WHERE corpus_id = ANY(%s)",
                [corpora],
            )
        return
    async with client_of(street.application) as client:
        headers = world.credentials["owner"]
        for corpus_id in corpora:
            path = f"/api/v1/corpora/{corpus_id}"
            if how == "deactivated":
                assert (await client.patch(path, json={"active": False}, headers=headers)).status_code == 200
                continue
            for item in (await client.get(f"{path}/documents", headers=headers)).json()["items"]:
                reply = await client.delete(f"/api/v1/documents/{item['id']}", headers=headers)
                assert reply.status_code == 204


@pytest.mark.parametrize("how", ["deleted", "deactivated"])
async def test_a_credential_that_outlives_its_user_fails_on_no_route(
    street: Street, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Within RAG_AUTH_CACHE_SECONDS the service takes it, and the database lets it write nothing."""
    monkeypatch.setattr(street.application.state.services.authenticate.__self__, "_seconds", 600.0)
    world, me = await make_world(street.house), ("GET", "/api/v1/users/me")
    assert (await call(street.application, me, ROWS[me], world, "owner")).status_code == 200
    async with street.house.database.transaction(ADMIN) as connection:
        if how == "deleted":
            await delete_user(connection, ADMIN, world.owner.user_id)
        else:
            await update_user(connection, ADMIN, world.owner.user_id, active=False)
    statuses = {}
    with capture_logs() as logged:
        for route, row in ROWS.items():
            reply = await call(street.application, route, row, world, "owner")
            assert CANARY not in reply.text, route
            statuses[route] = reply.status_code
    assert [line["event"] for line in logged if line["log_level"] in ("warning", "error")] == []
    assert max(statuses.values()) < 500
    assert {route for route, status in statuses.items() if status == 401} == {
        ("POST", "/api/v1/query/answer"),
        ("POST", "/api/v1/projects"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/responses"),
    }


async def test_a_missing_grant_is_an_error_of_the_service(street: Street) -> None:
    world, route = await make_world(street.house), ("POST", "/api/v1/projects")
    with street.house.owner() as owner:
        owner.execute("REVOKE INSERT ON rag.projects FROM rag_service")
        try:
            with capture_logs() as logged:
                reply = await call(street.application, route, ROWS[route], world, "owner")
        finally:
            owner.execute("GRANT INSERT ON rag.projects TO rag_service")
    assert (reply.status_code, reply.json()["code"]) == (500, "internal_error")
    assert [(line["log_level"], str(line["exc_info"])) for line in logged if line["event"] == "request_failed"] == [
        ("error", "permission denied for table projects")
    ]
