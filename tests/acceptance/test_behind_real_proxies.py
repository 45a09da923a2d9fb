"""The service below /rag behind nginx and Caddy, with the examples of the guide: page, sign-in, streams and clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from openai import OpenAI

from rag_service.store.embedded import EmbeddedServer
from tests.acceptance.page_actions import ask, best_of_several, documents
from tests.doubles.ollama import OllamaDouble, ollama
from tests.doubles.openid import running_provider
from tests.doubles.proxies import ROOT, running_proxy
from tests.integration.web.browser import browser, watch_page
from tests.integration.web.real import RealService, running_service
from tests.serving import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

__all__ = ["browser", "ollama"]  # fixtures

QUESTION = "How many days of vacation do employees receive?"
NOTE = "Employees receive 25 days of vacation per calendar year."
WORDS_APART = 0.1  # seconds


@dataclass(frozen=True, kw_only=True)
class Front:
    url: str  # of the service, as clients know it
    service: RealService

    @property
    def client(self) -> httpx.Client:
        return httpx.Client(headers={"Authorization": f"Bearer {self.service.admin.key}"}, timeout=120, trust_env=False)


@pytest.fixture(params=["nginx", "caddy"])
def front(request: Any, postgres: EmbeddedServer, ollama: OllamaDouble, tmp_path: Path) -> Iterator[Front]:
    port = free_port()
    ollama.answer = f"{NOTE[:-1]} [C1]."
    ollama.token_delay = WORDS_APART
    url = f"http://127.0.0.1:{port}{ROOT}"
    settings = {"chat_provider": "ollama", "model_name": "llama3.2", "ollama_url": ollama.url, "judge": "none"}
    settings |= {"public_url": url, "trusted_proxies": "127.0.0.1", "port": 0}
    with running_provider({"ana": {"name": "Ana"}}) as provider:
        provider.url = provider.url.replace("127.0.0.1", "localhost")  # another site to the browser
        with (
            running_service(postgres, **settings, **provider.settings) as service,
            running_proxy(request.param, service.url, port, tmp_path),
        ):
            front = Front(url=url, service=service)
            with front.client as client:
                corpus = client.post(f"{url}/api/v1/corpora", json={"name": "leave", "kind": "global"})
                at = f"{url}/api/v1/corpora/{corpus.raise_for_status().json()['id']}/documents"
                upload = client.post(at, json={"text": NOTE, "title": "leave"}).raise_for_status()
                followed = urljoin(at, upload.headers["location"])
                assert followed.startswith(f"{url}/api/v1/uploads/")
                client.get(f"{followed}/events").raise_for_status()  # ends when it is indexed
            yield front


def pieces(moments: list[float]) -> int:
    """How many came alone, not together with the one before, as some do on a busy machine."""
    return sum(later - earlier > WORDS_APART / 2 for earlier, later in pairwise(moments))


def test_clients_get_streams_in_pieces_and_addresses_that_lead_back(front: Front) -> None:
    half = len(NOTE.split()) / 2
    with front.client as client:

        def stream() -> float:
            at = f"{front.url}/api/v1/query/answer/stream"
            with client.stream("POST", at, json={"query": QUESTION}) as reply:
                assert reply.status_code == 200
                return -pieces([time.monotonic() for line in reply.iter_lines() if line == "event: delta"])

        assert best_of_several(stream, -half) < -half, "the proxy kept the stream back"
        description = client.get(f"{front.url}/schema/openapi.json").json()
        assert urljoin(f"{front.url}/schema/openapi.json", description["servers"][0]["url"]) == f"{front.url}/"
        assert client.get(f"{front.url}/schema/style.css").status_code == 200
        assert str(client.get(front.url, follow_redirects=True).url) == f"{front.url}/"
        refused = client.post(f"{front.url}/mcp", headers={"Authorization": "Bearer none"})
        assert f'resource_metadata="{front.url}/.well-known/' in refused.headers["www-authenticate"]

    with OpenAI(base_url=f"{front.url}/v1", api_key=front.service.admin.key, max_retries=0) as openai:
        asked: Any = [{"role": "user", "content": QUESTION}]

        def chat() -> float:
            chunks = openai.chat.completions.create(model="rag-service", messages=asked, stream=True)
            return -pieces([time.monotonic() for one in chunks if one.choices and one.choices[0].delta.content])

        assert best_of_several(chat, -half) < -half
        response = openai.responses.create(model="rag-service", input=QUESTION)
        assert "25 days" in response.output_text

    with ThreadPoolExecutor() as pool:  # Playwright keeps an event loop of its own in this thread
        found = pool.submit(lambda: asyncio.run(_search(front))).result()
    original = httpx.get(found["url"], headers=_key(front), timeout=120, trust_env=False)
    assert (found["url"].startswith(front.url), original.text) == (True, NOTE)


def _key(front: Front) -> dict[str, str]:
    return {"Authorization": f"Bearer {front.service.admin.key}"}


async def _search(front: Front) -> dict[str, Any]:
    async with (
        httpx2.AsyncClient(headers=_key(front), timeout=120, trust_env=False) as http,
        Client(streamable_http_client(f"{front.url}/mcp", http_client=http)) as client,
    ):
        result = await client.call_tool("search", {"query": QUESTION})
    found: dict[str, Any] = result.structured_content["results"][0]
    return found


def test_page_signs_in_and_answers_without_a_failed_request(front: Front, browser: Browser) -> None:
    page = browser.new_context(locale="en-US").new_page()
    failed: list[str] = []

    def note(url: str, what: object) -> None:
        if url.startswith(front.url.removesuffix(ROOT)) and what != "net::ERR_ABORTED":  # a stream read up to `done`
            failed.append(f"{what} {url}")

    page.on("requestfailed", lambda request: note(request.url, request.failure))
    page.on("response", lambda reply: reply.status >= 400 and note(reply.url, reply.status))
    one = watch_page(page, front.service.client(), front.url)
    page.goto(front.url)
    page.wait_for_selector("#sign-in[open]")
    assert page.url == f"{front.url}/"
    page.click("#to-provider")
    page.fill("input[name=sub]", "ana")
    page.press("input[name=sub]", "Enter")
    page.wait_for_selector("#account:not([hidden])")
    documents(one)
    assert "25" in ask(one, QUESTION)
    page.click(".badge >> nth=0")
    page.wait_for_selector("#panel mark")
    page.keyboard.press("Escape")
    page.click(".languages a[lang=fr]")
    page.wait_for_selector("html.is-started[lang=fr]")
    page.wait_for_selector(".badge")  # the conversation is there again
    page.click("#theme")
    assert {one["path"] for one in page.context.cookies() if "rag_" in one["name"]} == {ROOT, f"{ROOT}/"}
    assert failed == []
    page.click("#sign-out")  # what the page is still reading then is refused, rightly
    page.wait_for_selector("#sign-in[open]")
    assert one.errors == []
    page.context.close()
