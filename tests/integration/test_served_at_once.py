"""The address is said, and replies leave at once: no small packet waits for the acknowledgement of the one before."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from litestar import Litestar
from structlog.testing import capture_logs

from rag_service.cli import server
from rag_service.settings import Settings


async def test_nagles_algorithm_is_off_for_accepted_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[int] = []

    async def serve(_: uvicorn.Server, *, sockets: list[socket.socket]) -> None:
        """What uvicorn's event loop does with a connection."""
        sockets[0].listen()
        with socket.create_connection(sockets[0].getsockname()):
            accepted, _address = sockets[0].accept()
            accepted.setblocking(False)
            transport: Any
            transport, _protocol = await asyncio.get_running_loop().connect_accepted_socket(asyncio.Protocol, accepted)
            options.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()
        sockets[0].close()

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    await server.serve_application(Litestar(), Settings(port=0))
    assert options == [1]


async def test_the_address_is_said_when_requests_are_answered_there(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    async def start() -> None:
        await asyncio.sleep(0.3)
        events.append("started")

    async def stop_when_said(lines: list[Any]) -> str:
        while not (said := [line["address"] for line in lines if line["event"] == "serving"]):  # noqa: ASYNC110 - a log
            await asyncio.sleep(0.005)
        events.append("said")
        address = urlsplit(said[0])
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        writer.close()
        return str(said[0])

    monkeypatch.setattr(server, "create_app", lambda _: Litestar(on_startup=[start]))
    with capture_logs() as lines:
        serving = asyncio.create_task(server.serve_app(Settings(port=0)))
        address = await asyncio.wait_for(stop_when_said(lines), 60)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert events == ["started", "said"]
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*", address)
