"""A download that nobody takes holds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from rag_service.api.http import streaming
from rag_service.api.http.streaming import DownloadResponse


async def test_a_client_that_takes_nothing_holds_up_no_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SILENCE_SECONDS", 0.01)
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

    response: Any = DownloadResponse(pieces(), media_type="application/x-tar", disposition="attachment")
    async with asyncio.timeout(5):
        await response.to_asgi_response(None, None)({}, receive, send)
    assert closed.is_set()
    assert [message.get("body") for message in sent] == [None, b"first"]  # no end: the client sees that it is cut
