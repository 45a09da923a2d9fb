"""The address is said, and replies leave at once: no small packet waits for the acknowledgement of the one before."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from litestar import Litestar
from structlog.testing import capture_logs

from rag_service.server import serve_app, serve_application
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
    await serve_application(Litestar(), Settings(port=0))
    assert options == [1]


async def test_the_address_is_said_once_it_is_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def serve(_: uvicorn.Server, *, sockets: list[socket.socket]) -> None:
        sockets[0].close()

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    with capture_logs() as lines:
        await serve_app(Settings(port=0, data_dir=tmp_path))
    (address,) = [line["address"] for line in lines if line["event"] == "serving"]
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*", address)
