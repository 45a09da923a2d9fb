"""Pages of allowed origins may call the service with a key, all others not, and cookies never count."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rag_service.settings import Settings
from tests.integration.api.conftest import Serve
from tests.unit.api.samples import Script

ALLOWED, OTHER = "https://wiki.example.org", "https://evil.example"
ASKED = {"query": "How long?"}
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}


def test_a_page_of_an_allowed_origin_may_ask_and_read(serve: Serve) -> None:
    client = serve(allowed_origins=f"{ALLOWED}, http://localhost:3000")
    before = client.options("/api/v1/query/answer", headers={"Origin": ALLOWED, **PREFLIGHT})
    assert before.status_code == 204
    assert before.headers["access-control-allow-origin"] == ALLOWED
    assert "Authorization" in before.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in before.headers
    for path, status in (("/api/v1/query/answer", 200), ("/nowhere", 404)):
        reply = client.post(path, json=ASKED, headers={"Origin": ALLOWED, "Sec-Fetch-Site": "cross-site"})
        assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (status, ALLOWED)
        assert "Origin" in reply.headers["vary"]
        assert reply.headers["cross-origin-resource-policy"] == "cross-origin"


@pytest.mark.parametrize(
    "origin", [OTHER, "null", f"{ALLOWED}.evil.example", f"{ALLOWED}:444", "http://wiki.example.org"]
)
def test_pages_of_other_origins_may_not(serve: Serve, origin: str) -> None:
    client = serve(allowed_origins=ALLOWED)
    before = client.options("/api/v1/query/answer", headers={"Origin": origin, **PREFLIGHT})
    asked = client.post("/api/v1/query/answer", json=ASKED, headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"})
    assert asked.status_code == 403
    for reply in (before, asked, client.get("/health", headers={"Origin": origin})):
        assert not [name for name in reply.headers if name.startswith("access-control-allow")]


def test_nobody_is_allowed_by_default(serve: Serve) -> None:
    reply = serve().post(
        "/api/v1/query/answer", json=ASKED, headers={"Origin": ALLOWED, "Sec-Fetch-Site": "cross-site"}
    )
    assert reply.status_code == 403 and "access-control-allow-origin" not in reply.headers


def test_cookies_of_another_origin_are_not_looked_at(serve: Serve) -> None:
    class Cookies(Script):
        seen: list[str | None] = []  # noqa: RUF012 - one test

        async def authenticate(self, headers):  # type: ignore[no-untyped-def]
            self.seen.append(headers.get("cookie"))
            return await super().authenticate(headers)

    client = serve(script := Cookies(), allowed_origins=ALLOWED)
    for headers in ({"Origin": ALLOWED}, {}):
        client.post("/api/v1/query", json=ASKED, headers={"Cookie": "session=stolen", **headers})
    assert script.seen == [None, "session=stolen"]


@pytest.mark.parametrize("wrong", ["*", "wiki.example.org", "https://wiki.example.org/", "ftp://x", "https://"])
def test_what_is_no_origin_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError, match="is no origin"):
        Settings(allowed_origins=wrong)  # type: ignore[call-arg]
