"""A download or a stream that nobody takes holds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from rag_service.api.http import bodies
from rag_service.api.http.events import SseEncoder, WireEvent
from rag_service.api.http.schemas import DeltaData
from rag_service.api.http.streaming import DownloadResponse, EventStreamResponse


def download(pieces: AsyncGenerator[bytes]) -> Any:
    return DownloadResponse(pieces, media_type="application/x-tar", disposition="attachment")


def event_stream(pieces: AsyncGenerator[bytes]) -> Any:
    async def events() -> AsyncGenerator[WireEvent]:
        async with aclosing(pieces):
            async for piece in pieces:
                yield WireEvent(event="delta", data=DeltaData(text=piece.decode()))

    return EventStreamResponse(events(), encoder=SseEncoder(), heartbeat_seconds=15)


@pytest.mark.parametrize("respond", [download, event_stream])
async def test_a_client_that_takes_nothing_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch, respond: Callable[[AsyncGenerator[bytes]], Any]
) -> None:
    monkeypatch.setattr(bodies, "SILENCE_SECONDS", 0.01)
    sent: list[dict[str, Any]] = []
    closed = asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes]:
        try:
            yield b"first"
            yield b"second"
        finally:
            closed.set()

    async def send(message: Any) -> None:
        sent.append(message)
        if message.get("body"):
            await asyncio.Event().wait()  # the buffers of the connection are full

    async def receive() -> Any:
        await asyncio.Event().wait()

    response = respond(pieces())
    async with asyncio.timeout(60):
        await response.to_asgi_response(None, None)({}, receive, send)
    assert closed.is_set()
    assert [message.get("more_body") for message in sent] == [None, True]  # no end: the client sees that it is cut


async def test_a_slow_client_that_takes_something_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SILENCE_SECONDS", 1.9)
    file, taken = bytes(2_000_000), bytearray()

    async def pieces() -> AsyncGenerator[bytes]:
        yield file

    async def send(message: Any) -> None:
        body = message.get("body", b"")
        await asyncio.sleep(len(body) / 1_000_000)  # as a connection of a megabyte a second
        taken.extend(body)

    async def receive() -> Any:
        await asyncio.Event().wait()

    await download(pieces()).to_asgi_response(None, None)({}, receive, send)
    assert taken == file
