"""An application behind uvicorn on a real socket, in a thread of its own or in the loop of the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import uvicorn
from litestar import Litestar

PATIENCE = 60.0  # seconds for what takes milliseconds, on a machine that may be slow and busy


def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE) -> float:
    """Wait for a condition; how long it took.

    What a time limit of the service would bring about as well proves nothing unless that limit is longer.
    """
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "waited in vain"
        time.sleep(0.01)
    return time.monotonic() - started


HANDED_OUT = 32_768  # the first port that systems give to whoever asks for any, and to connections


def free_port() -> int:
    """A port for a program that must be told its own: below those that others get by chance before it listens."""
    while True:
        port = HANDED_OUT - 1 - secrets.randbelow(12_000)  # not `random`, which all workers seed alike
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def leave_when(condition: Callable[[], Any], client: httpx.Client, url: str, question: str) -> None:
    """Ask a question of the application, and close the connection without a reply once the condition holds."""
    body = json.dumps({"query": question}).encode()
    head = f"POST {url} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    with socket.create_connection((client.base_url.host, client.base_url.port or 80), timeout=PATIENCE) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        wait_until(condition)


@contextmanager
def served(application: Litestar, *, grace_seconds: int = 2) -> Iterator[str]:
    """Base URL of the running application; it is shut down at the end, streams after the grace."""
    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=0,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=grace_seconds,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive(), 180)
        assert server.started, "the application did not start"
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


@contextmanager
def serving(application: Litestar, *, grace_seconds: int = 2) -> Iterator[httpx.Client]:
    """A client of the running application."""
    with (
        served(application, grace_seconds=grace_seconds) as url,
        httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client,
    ):
        yield client


@asynccontextmanager
async def serving_here(application: Litestar) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application, which runs in this event loop, as what the test gave it must."""
    config = uvicorn.Config(
        application, host="127.0.0.1", port=0, log_config=None, access_log=False, proxy_headers=False
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn sets a flag, not an event
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        await running
