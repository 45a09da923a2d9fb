"""A client that leaves stops the model at once and frees its place: in every mode of every channel."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import httpx
import pytest

from rag_service.cli import server
from rag_service.cli.server import serve_application
from rag_service.settings import Settings
from tests.doubles.ollama import CHAT, Hang, OllamaDouble, Say, chat
from tests.integration.resilience.conftest import QUESTION, Start, add_document
from tests.serving import wait_until
from tests.soak.rig import request

ANSWER, STREAM = "/api/v1/query/answer", "/api/v1/query/answer/stream"
GOOD = "The limit for travel is 300 euros a day [C1]."
ASKED: dict[str, Any] = {"query": QUESTION}
MESSAGES: dict[str, Any] = {"messages": [{"role": "user", "content": QUESTION}]}

UNHURRIED = {"first_token_timeout": 300, "token_timeout": 300, "answer_timeout": 600}  # no test waits that long

MODES: dict[str, tuple[str, dict[str, Any], str]] = {
    "plain": (ANSWER, ASKED, "application/json"),
    "server-sent events": (STREAM, ASKED, "text/event-stream"),
    "NDJSON": (STREAM, ASKED, "application/x-ndjson"),
    "stream: true": (ANSWER, {**ASKED, "stream": True}, "text/event-stream"),
    "agent chat": ("chat", MESSAGES, "application/json"),
    "agent chat, streamed": ("chat", {**MESSAGES, "stream": True}, "text/event-stream"),
    "OpenAI": ("/v1/chat/completions", {**MESSAGES, "model": "rag-service"}, "application/json"),
    "OpenAI, streamed": ("/v1/chat/completions", {**MESSAGES, "model": "rag-service", "stream": True}, "*/*"),
}


def chat_address(client: httpx.Client) -> str:
    """Of an agent over the corpus that holds the document."""
    (corpus,) = client.get("/api/v1/corpora").json()["items"]
    agent = client.post("/api/v1/agents", json={"name": "helper"}).json()
    reply = client.put(f"/api/v1/agents/{agent['id']}/corpora/{corpus['id']}")
    assert reply.is_success, reply.text
    return f"/api/v1/agents/{agent['id']}/chat"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.slow
async def test_leaving_frees_the_model(start: Start, ollama: OllamaDouble, mode: str) -> None:
    ollama.answer = GOOD
    client = start(model_concurrency=1, model_queue=0, **UNHURRIED)
    add_document(client)
    url, body, accept = MODES[mode]
    url = chat_address(client) if url == "chat" else url
    ollama.script(CHAT, chat(Say("The limit for travel "), Hang()))
    asking = asyncio.create_task(request(client.base_url.port or 0, "POST", url, body, {"Accept": accept}))
    await asyncio.to_thread(wait_until, lambda: ollama.open_streams == 1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    left = time.monotonic()
    await asyncio.to_thread(wait_until, lambda: ollama.open_streams == 0)
    await asyncio.to_thread(wait_until, lambda: client.post(ANSWER, json=ASKED).status_code == 200)
    waited = time.monotonic() - left
    assert waited < UNHURRIED["token_timeout"], "the only place is free before a limit frees it"


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the kernel does not watch for it")
async def test_a_connection_whose_client_takes_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also once the whole reply lies in its buffer, where no route can time it."""
    monkeypatch.setattr(server, "SILENCE_SECONDS", 0.5)
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    gone = asyncio.Event()

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        if scope["type"] == "lifespan":
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(20_000_000), "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    application: Any = large
    running = asyncio.create_task(serve_application(application, Settings(port=0), announce=address.set_result))
    try:
        with socket.create_connection(("127.0.0.1", int((await address).rpartition(":")[2]))) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert await asyncio.wait_for(gone.wait(), 60), "the server still waits for a client that takes nothing"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
