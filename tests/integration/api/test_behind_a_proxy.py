"""Below a path, behind a proxy that strips it or not: whatever a client is told leads back to the service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from rag_service.api.mcp.server import mcp_routes
from rag_service.settings import Settings
from rag_service.web.pages import web_routes
from tests.serving import serving
from tests.unit.api.samples import Script, application_over

SAID = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "docs.example.org", "X-Forwarded-Prefix": "/team"}
Serve = Callable[..., httpx.Client]


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(**changes: Any) -> httpx.Client:
            settings = Settings(**changes)
            routes = [*web_routes(settings), *mcp_routes(settings)]
            return stack.enter_context(serving(application_over(Script().services(settings), more_routes=routes)))

        yield start


@pytest.fixture(scope="module")
def below(serve: Serve) -> httpx.Client:
    """A service below /rag."""
    return serve(root_path="/rag")


@pytest.mark.parametrize("at", ["", "/rag"], ids=["stripped", "passed on"])
def test_page_and_description_name_addresses_below_the_path(below: httpx.Client, at: str) -> None:
    page = below.get(f"{at}/")
    links = {link for link in re.findall(r'(?:href|src)="([^"]+)"', page.text) if not link.startswith("#")}
    assert page.status_code == 200 and len(links) > 5
    assert not [link for link in links if link.startswith("/") or ":" in link]
    assert below.get(f"{at}/{next(link for link in links if link.startswith('assets/'))}").status_code == 200
    reply = below.get(f"{at}/?lang=es")
    assert (reply.status_code, reply.headers["location"]) == (303, "/rag/")
    assert "Path=/rag/;" in reply.headers["set-cookie"]
    assert below.get(f"{at}/schema/openapi.json").json()["servers"] == [{"url": "/rag/"}]
    assert 'href="/rag/schema/style.css"' in below.get(f"{at}/schema").text
    assert below.post(f"{at}/api/v1/query", json={"query": "How long?"}).status_code == 200


def test_the_bare_path_leads_to_the_page(below: httpx.Client) -> None:
    reply = below.get("/rag?lang=es")
    assert (reply.status_code, reply.headers["location"]) == (308, "/rag/?lang=es")


@pytest.mark.parametrize(("trusted", "known"), [("127.0.0.1", True), ("10.0.0.0/8", False)])
def test_a_trusted_proxy_says_what_the_service_is_called(serve: Serve, trusted: str, known: bool) -> None:
    client = serve(auth="required", trusted_proxies=trusted)
    told = client.get("/.well-known/oauth-protected-resource", headers=SAID).json()["resource"]
    assert told == ("https://docs.example.org/team/mcp" if known else f"{str(client.base_url).rstrip('/')}/mcp")
    # Browsers without Sec-Fetch-Site: the page's origin is compared with the host.
    asked = {**SAID, "Origin": "https://docs.example.org"}
    assert client.post("/api/v1/query", json={"query": "How long?"}, headers=asked).status_code == (
        200 if known else 403
    )
