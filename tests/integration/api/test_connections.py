"""Connections that send no request end, over real sockets; those with one are left alone."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn

from rag_service.api.http import connections as module
from rag_service.api.http.connections import Connections
from rag_service.cli import server as server_module
from rag_service.cli.server import _Server
from rag_service.observability.metrics import Metrics
from rag_service.settings import Settings

HEAD_SECONDS = 1.0
LARGE = b"x" * 3_000_000
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Replies at once, late, with silence in the midst, or with a large body."""
    if scope["path"] == "/body":
        while (await receive()).get("more_body"):
            pass
    if scope["path"] == "/late":
        await asyncio.sleep(4 * HEAD_SECONDS)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"transfer-encoding", b"chunked")]})
    if scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await asyncio.sleep(4 * HEAD_SECONDS)
    body = LARGE if scope["path"] == "/large" else b"last"
    await send({"type": "http.response.body", "body": body})


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer

    async def ask(self, path: bytes) -> bytes:
        self.writer.write(GET % path)
        return await self.reply()

    async def reply(self) -> bytes:
        """A reply up to its last chunk."""
        async with asyncio.timeout(60):
            return await self.reader.readuntil(b"\r\n0\r\n\r\n")

    async def drip(self, head: bytes, every: float = 0.05) -> bytes:
        """Send something letter by letter until the connection ends. Returns what came."""
        self.writer.write(head)
        came = asyncio.create_task(self.rest())
        while not came.done():
            self.writer.write(b"x")
            await asyncio.sleep(every)
        return await came

    async def rest(self) -> bytes:
        """What comes until the connection ends."""
        came = b""
        async with asyncio.timeout(60):
            with suppress(ConnectionError):
                while piece := await self.reader.read(1_000_000):
                    came += piece
        return came


class House:
    """A server, and clients of several addresses."""

    def __init__(self, port: int, connections: Connections, stack: AsyncExitStack):
        self.port, self.connections, self._stack = port, connections, stack

    async def enter(self, address: str = "127.0.0.1") -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0), limit=10**7)
        self._stack.callback(writer.close)
        await asyncio.sleep(0.02)  # until the server has seen it
        return Client(reader, writer)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_TICKS", 1)
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.1)


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[House]:
    connections = Connections(Settings(**{"head_seconds": HEAD_SECONDS, **settings}))
    config = uvicorn.Config(
        application, host="127.0.0.1", port=0, log_config=None, lifespan="off", ws="none",
        http=connections.protocol, timeout_graceful_shutdown=1,  # type: ignore[arg-type]
    )  # fmt: skip
    server = _Server(config, lambda: None, connections)
    running = asyncio.create_task(server._serve())  # without its handlers of signals
    while not server.started:  # noqa: ASYNC110 - uvicorn sets a flag, not an event
        await asyncio.sleep(0.01)
    try:
        async with AsyncExitStack() as stack:
            yield House(server.servers[0].sockets[0].getsockname()[1], connections, stack)
    finally:
        server.should_exit = True
        await running


async def test_a_connection_without_a_request_ends() -> None:
    async with serving() as house:
        client = await house.enter()
        assert house.connections.count == 1
        assert await client.rest() == b""
        assert (house.connections.count, house.connections.ended) == (0, {"late": 1})


async def test_a_head_that_drips_gets_408() -> None:
    async with serving() as house:
        client = await house.enter()
        assert (await client.drip(b"GET / HTTP/1.1\r\nX-Long: ")).startswith(b"HTTP/1.1 408 ")


async def test_the_head_of_a_second_request_drips() -> None:
    async with serving() as house:
        client = await house.enter()
        await client.ask(b"/")
        assert (await client.drip(b"GET / HTTP/1.1\r\nX-Long: ")).startswith(b"HTTP/1.1 408 ")
        assert house.connections.ended == {"late": 1}


async def test_a_body_that_nobody_reads_drips() -> None:
    async with serving() as house:
        client = await house.enter()
        came = await client.drip(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        assert came.startswith(b"HTTP/1.1 200 ")
        assert house.connections.ended == {"late": 1}


async def test_a_body_that_nobody_reads_may_arrive_at_the_usual_rate() -> None:
    async with serving() as house:
        client = await house.enter()
        client.writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 150000\r\n\r\n")
        assert b"200" in await client.reply()
        for _ in range(15):
            client.writer.write(b"x" * 10_000)
            await asyncio.sleep(HEAD_SECONDS / 5)
        assert b"last" in await client.ask(b"/")


@pytest.mark.parametrize("path", [b"/late", b"/stream"])
async def test_a_reply_that_takes_longer_is_not_cut(path: bytes) -> None:
    async with serving() as house:
        client = await house.enter()
        assert b"last" in await client.ask(path)
        assert b"last" in await client.ask(b"/")  # and the connection stays
        assert not house.connections.ended


async def test_a_body_that_is_read_and_takes_longer_is_not_cut() -> None:
    async with serving() as house:
        client = await house.enter()
        client.writer.write(b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n")
        for _ in range(20):
            client.writer.write(b"x")
            await asyncio.sleep(HEAD_SECONDS / 8)
        assert b"last" in await client.reply()


async def test_a_large_reply_that_is_taken_late_is_not_cut() -> None:
    async with serving() as house:
        client = await house.enter()
        client.writer.write(GET % b"/large")
        await asyncio.sleep(4 * HEAD_SECONDS)
        assert LARGE in await client.reply()


async def test_a_client_that_asks_again_keeps_its_connection() -> None:
    async with serving() as house:
        client = await house.enter()
        for _ in range(8):
            assert b"last" in await client.ask(b"/")
            await asyncio.sleep(HEAD_SECONDS / 3)


async def test_one_address_has_half_and_its_longest_idle_connection_goes_first() -> None:
    async with serving(connections=10, head_seconds=60) as house:
        first, *others = [await house.enter() for _ in range(5)]
        await first.ask(b"/")  # no longer the one that was idle longest
        await asyncio.sleep(0.3)
        sixth = await house.enter()
        assert await others[0].rest() == b""
        assert b"last" in await sixth.ask(b"/")
        assert b"last" in await others[1].ask(b"/")
        assert (house.connections.count, house.connections.ended) == (5, {"idle": 1})


async def test_a_connection_with_a_request_gives_its_place_to_nobody() -> None:
    async with serving(connections=10, head_seconds=60) as house:
        busy = [await house.enter() for _ in range(5)]
        replies = [asyncio.create_task(client.ask(b"/stream")) for client in busy]
        await asyncio.sleep(0.2)
        refused = await (await house.enter()).rest()
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert refused.endswith(b"Try again shortly")
        assert b"last" in await (await house.enter("127.0.0.2")).ask(b"/")  # another address finds a place
        assert all(b"last" in reply for reply in await asyncio.gather(*replies))
        assert house.connections.ended == {"refused": 1}


async def test_a_trusted_proxy_has_all_places_and_no_more() -> None:
    async with serving(connections=10, trusted_proxies="127.0.0.1") as house:
        busy = [await house.enter() for _ in range(10)]
        replies = [asyncio.create_task(client.ask(b"/late")) for client in busy]
        await asyncio.sleep(0.2)
        assert (await (await house.enter()).rest()).startswith(b"HTTP/1.1 503 ")
        assert (await (await house.enter("127.0.0.2")).rest()).startswith(b"HTTP/1.1 503 ")
        assert all(b"last" in reply for reply in await asyncio.gather(*replies))


async def test_metrics_show_connections() -> None:
    async with serving() as house:
        metrics = Metrics()
        metrics.watch_connections(house.connections)
        client = await house.enter()
        assert b"rag_connections 1.0" in metrics.render()
        await client.rest()
        assert b"rag_connections 0.0" in metrics.render()
        assert b'rag_connections_ended_total{reason="late"} 1.0' in metrics.render()


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "set_to", "expected"),
    [
        (1_024, 4_096, 2_000, 2_500, 2_000),  # raised as far as is needed
        (1_024, 1_024, 2_000, 1_024, 524),  # what is left besides other files
        (300, 300, 2_000, 300, 150),
        (20_000, 20_000, 2_000, None, 2_000),
        (-1, -1, 2_000, None, 2_000),
        (1_024, -1, 2_000, 2_500, 2_000),
    ],
)
def test_there_are_no_more_connections_than_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: int, set_to: int | None, expected: int
) -> None:
    raised: list[int] = []
    note: Callable[[int, tuple[int, int]], None] = lambda _, limits: raised.append(limits[0])  # noqa: E731
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", note)
    assert module._make_room(wanted) == expected
    assert raised == ([] if set_to is None else [set_to])
