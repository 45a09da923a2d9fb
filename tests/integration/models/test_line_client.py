"""The client that reads a model's stream: connections, proxies, and what it makes of failures."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

import pytest
from ollama import ResponseError

from rag_service.models.servers.line_client import LineClient
from rag_service.models.servers.ollama import build_client
from rag_service.models.servers.resilience import is_connection_error, is_timeout, retry_after_of, status_of
from rag_service.settings import Settings
from tests.doubles.ollama import CHAT, Break, Hang, OllamaDouble, Say, chat, failure

BODY = {"model": "llama3.2", "messages": [{"role": "user", "content": "When?"}], "stream": True}


def make_client(url: str, *, read_timeout: float = 5.0) -> LineClient:
    return build_client(Settings(chat_provider="ollama", ollama_url=url), read_timeout=read_timeout)


async def read(client: LineClient) -> list[bytes]:
    async with aclosing(client.stream_lines(CHAT, BODY)) as reads:
        return [line async for lines in reads for line in lines if line]


async def test_connections_are_used_again() -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with suppress(asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}\n{}")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        client = make_client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        for _ in range(3):
            assert await read(client) == [b"{}", b"{}"]
        await client.close()
    assert connections == 1


async def test_a_proxy_that_the_environment_names_is_used(
    ollama: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", ollama.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    client = make_client("http://model.invalid:11434")
    with pytest.raises(ResponseError):  # the double knows no such path
        await read(client)
    await client.close()
    assert [request.path for request in ollama.requests] == ["http://model.invalid:11434/api/chat"]


async def test_no_proxy_is_used_where_the_environment_says_so(
    ollama: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    client = make_client(ollama.url)
    assert await read(client)
    await client.close()


async def test_a_refusal_tells_its_status_and_when_to_come_again(ollama: OllamaDouble) -> None:
    ollama.script(CHAT, failure(429, retry_after="7"))
    client = make_client(ollama.url)
    with pytest.raises(ResponseError) as caught:
        await read(client)
    await client.close()
    assert (status_of(caught.value), retry_after_of(caught.value)) == (429, 7.0)


async def test_silence_is_a_timeout_and_no_lost_connection(ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say("May"), Hang()))
    client = make_client(ollama.url, read_timeout=0.2)
    with pytest.raises(TimeoutError) as caught:
        await read(client)
    await client.close()
    assert is_timeout(caught.value) and not is_connection_error(caught.value)


async def test_a_cut_body_is_a_lost_connection_after_what_came(ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say("May"), Break()))
    client = make_client(ollama.url)
    seen = []
    with pytest.raises(ConnectionError) as caught:
        async with aclosing(client.stream_lines(CHAT, BODY)) as reads:
            async for lines in reads:
                seen += lines
    await client.close()
    assert b"May" in b"".join(seen) and is_connection_error(caught.value)


async def test_a_server_that_is_not_there_is_a_lost_connection() -> None:
    client = make_client("http://127.0.0.1:9")
    with pytest.raises(ConnectionError) as caught:
        await read(client)
    await client.close()
    assert is_connection_error(caught.value)
