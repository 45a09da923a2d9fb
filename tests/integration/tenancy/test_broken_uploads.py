"""Uploads that go wrong on the wire: raw sockets against the service behind uvicorn."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag_service.api.http import bodies
from rag_service.app import create_app
from rag_service.domain import ParsedDocument
from tests.integration.tenancy.conftest import House, parse_here
from tests.integration.tenancy.web import new_key, web_settings
from tests.serving import PATIENCE, serving, wait_until

MEGABYTE = 2**20
BOUNDARY = b"a-boundary"
LLAMAS = b"Llamas live in the Andes."
TABLES = ("documents", "uploads", "originals", "procrastinate_jobs", "data_chunks")


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A running service, one user's client to it, and what is needed to speak to it byte by byte."""

    client: httpx.Client
    house: House
    documents: str  # path of the user's corpus

    def connect(self) -> socket.socket:
        url = self.client.base_url
        return socket.create_connection((url.host, url.port or 80), timeout=PATIENCE)

    def head(self, length: int) -> bytes:
        """Head of an upload that announces a body of that length."""
        lines = [
            f"POST {self.documents} HTTP/1.1",
            "Host: 127.0.0.1",
            f"X-API-Key: {self.client.headers['x-api-key']}",
            f"Content-Type: multipart/form-data; boundary={BOUNDARY.decode()}",
            f"Content-Length: {length}",
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    def counts(self) -> dict[str, int]:
        with self.house.owner() as owner:
            return {name: owner.execute(f"SELECT count(*) FROM rag.{name}").fetchone()[0] for name in TABLES}


NOTHING = dict.fromkeys(TABLES, 0)


def form(data: bytes, name: str = "a.txt") -> bytes:
    disposition = f'Content-Disposition: form-data; name="file"; filename="{name}"'.encode()
    return b"--%s\r\n%s\r\n\r\n%s\r\n--%s--\r\n" % (BOUNDARY, disposition, data, BOUNDARY)


@pytest.fixture
async def wire(house: House, monkeypatch: pytest.MonkeyPatch) -> Any:
    ana = await house.user("ana")
    corpus = await house.corpus(ana)
    key = await new_key(house, ana)
    monkeypatch.setattr("rag_service.components.build_embedding", lambda _, **__: house.embedding)
    # One connection to the database: whoever held it while a body arrives would stop everybody.
    settings = web_settings(
        database_url=house.server.service_conninfo, worker_embedded=False, database_pool_size=1, database_timeout=10
    )
    with ExitStack() as stack:
        client = await asyncio.to_thread(stack.enter_context, serving(create_app(settings)))
        client.headers["X-API-Key"] = key
        yield Wire(client=client, house=house, documents=f"/api/v1/corpora/{corpus.id}/documents")
        await asyncio.to_thread(stack.close)


def resident_bytes() -> int:
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024


def open_sockets() -> int:
    return sum(1 for file in Path("/proc/self/fd").iterdir() if _link(file).startswith("socket:"))


def _link(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:
        return ""


def break_off(wire: Wire, *, reset: bool) -> None:
    body = form(b"x" * (9 * MEGABYTE))
    with closing(wire.connect()) as connection:
        connection.sendall(wire.head(len(body)) + body[: 8 * MEGABYTE])
        if reset:  # as a process that is killed, or a network that goes
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_an_upload_broken_off_halfway_leaves_nothing(wire: Wire, reset: bool) -> None:
    wire.client.get(wire.documents)  # by now the service has its connection to the database
    sockets = open_sockets()
    for _ in range(4):  # the first ones load code and make room that stays
        await asyncio.to_thread(break_off, wire, reset=reset)
    await asyncio.to_thread(wait_until, lambda: open_sockets() <= sockets)
    before = resident_bytes()
    for _ in range(24):
        await asyncio.to_thread(break_off, wire, reset=reset)
    await asyncio.to_thread(wait_until, lambda: open_sockets() <= sockets)
    await asyncio.to_thread(wait_until, lambda: resident_bytes() - before < 96 * MEGABYTE)  # of 192 that were sent
    assert wire.counts() == NOTHING
    assert wire.client.get(wire.documents).json() == {"items": [], "total": 0}


async def test_uploads_on_their_way_hold_no_connection_to_the_database(wire: Wire) -> None:
    body = form(LLAMAS)
    with ExitStack() as stack:
        halves = [stack.enter_context(closing(wire.connect())) for _ in range(5)]
        for half in halves:
            half.sendall(wire.head(len(body)) + body[:20])
        reply = await asyncio.to_thread(wire.client.get, wire.documents)
        assert (reply.status_code, reply.json()["total"]) == (200, 0)
        for half in halves:
            half.sendall(body[20:])
            assert (await asyncio.to_thread(half.recv, 100)).startswith(b"HTTP/1.1 202")
    assert wire.counts() == {"documents": 1, "uploads": 1, "originals": 1, "procrastinate_jobs": 1, "data_chunks": 0}


async def test_an_upload_that_falls_silent_is_ended(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that was unplugged never says so; its memory and connection must not wait for it."""
    monkeypatch.setattr(bodies, "SILENCE_SECONDS", 0.3)
    body = form(LLAMAS)
    with closing(wire.connect()) as connection:
        connection.sendall(wire.head(len(body)) + body[:-10])
        reply = await asyncio.to_thread(read_reply, connection)
        assert connection.recv(1) == b""  # and closed
    assert reply.startswith(b"HTTP/1.1 408")
    assert b'"code":"request_timeout"' in reply
    assert wire.counts() == NOTHING


@pytest.mark.parametrize("missing", [1, 30])
@pytest.mark.slow
async def test_a_file_larger_than_its_content_length_is_refused(wire: Wire, missing: int) -> None:
    body = form(LLAMAS)
    with closing(wire.connect()) as connection:
        connection.sendall(wire.head(len(body) - missing) + body)
        reply = await asyncio.to_thread(read_reply, connection)
    if missing == 1:  # the line break after the form's end: nothing of the form is missing
        assert reply.startswith(b"HTTP/1.1 202")
        return
    assert reply.startswith(b"HTTP/1.1 400")
    assert b'"code":"invalid_input"' in reply
    assert wire.counts() == NOTHING


async def test_a_body_that_announces_more_than_is_allowed_is_refused_unread(wire: Wire) -> None:
    with closing(wire.connect()) as connection:
        connection.sendall(wire.head(2**40) + form(LLAMAS)[:50])
        reply = await asyncio.to_thread(read_reply, connection)
    assert reply.startswith(b"HTTP/1.1 413")
    assert b'"code":"too_large"' in reply
    assert wire.counts() == NOTHING


def read_reply(connection: socket.socket) -> bytes:
    """One reply; it has a Content-Length."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += _more(connection)
    return head + b"\r\n\r\n" + body


def _more(connection: socket.socket) -> bytes:
    part = connection.recv(65536)
    assert part, "closed before the end of a reply"
    return part


async def test_one_file_sent_many_times_at_the_same_moment_is_one_document(wire: Wire) -> None:
    ready = threading.Barrier(6)

    def send(_: int) -> httpx.Response:
        with httpx.Client(
            base_url=wire.client.base_url, headers=wire.client.headers, timeout=PATIENCE, trust_env=False
        ) as client:
            ready.wait()
            return client.post(wire.documents, files={"file": ("a.txt", LLAMAS)})

    with ThreadPoolExecutor(6) as threads:
        replies = await asyncio.to_thread(lambda: list(threads.map(send, range(6))))
    assert {reply.status_code for reply in replies} == {202}
    assert len({reply.json()["uploadId"] for reply in replies}) == 1
    assert wire.counts() == {"documents": 1, "uploads": 1, "originals": 1, "procrastinate_jobs": 1, "data_chunks": 0}


async def test_two_versions_sent_at_the_same_moment_end_as_one_of_them(wire: Wire) -> None:
    versions = [b"Llamas, version %d." % number for number in range(4)]

    def send(version: bytes) -> httpx.Response:
        return wire.client.post(wire.documents, files={"file": ("a.txt", version)})

    with ThreadPoolExecutor(4) as threads:
        replies = await asyncio.to_thread(lambda: list(threads.map(send, versions)))
    assert {reply.status_code for reply in replies} == {202}
    async with wire.house.working():
        ends = [await asyncio.to_thread(settle, wire, reply.headers["location"]) for reply in replies]
        await asyncio.to_thread(wait_until, lambda: wire.counts()["procrastinate_jobs"] == 0)
    assert sorted((end["status"], end["code"]) for end in ends) == [*[("failed", "superseded")] * 3, ("indexed", None)]
    winner = next(reply for reply, end in zip(replies, ends, strict=True) if end["status"] == "indexed")
    document = f"/api/v1/documents/{winner.json()['documentId']}"
    expected = versions[replies.index(winner)]
    assert wire.client.get(document + "/original").content == expected
    assert wire.client.get(document + "/text").json()["text"].strip().encode() == expected
    assert wire.counts() == {**NOTHING, "documents": 1, "uploads": 4, "originals": 1, "data_chunks": 1}


def settle(wire: Wire, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def final() -> bool:
        found.update(wire.client.get(path).json())
        return found["status"] in ("indexed", "failed")

    wait_until(final)
    return found


@pytest.mark.parametrize("what", ["document", "corpus"])
async def test_deleting_what_is_being_indexed_ends_it(wire: Wire, what: str) -> None:
    """Whoever watches is told, whoever asks gets 404, and the worker goes on with the next one."""
    parsing, go_on = asyncio.Event(), asyncio.Event()

    async def slow(data: bytes, name: str) -> ParsedDocument:
        if name == "a.txt":
            parsing.set()
            await go_on.wait()
        return await parse_here(data, name)

    upload = wire.client.post(wire.documents, files={"file": ("a.txt", LLAMAS)})
    status = upload.headers["location"]
    async with wire.house.working(parser=slow):
        await asyncio.wait_for(parsing.wait(), PATIENCE)
        events: list[str] = []
        watching = asyncio.create_task(asyncio.to_thread(watch, wire, status, events))
        await asyncio.to_thread(wait_until, lambda: events)
        path = wire.documents.removesuffix("/documents")
        path = path if what == "corpus" else f"/api/v1/documents/{upload.json()['documentId']}"
        assert (await asyncio.to_thread(wire.client.delete, path)).status_code == 204
        await asyncio.wait_for(watching, PATIENCE)
        assert '"status":"parsing"' in events[0]
        assert '"code":"not_found"' in events[-1]
        assert wire.client.get(status).status_code == 404
        assert wire.client.post(status + "/retry").status_code == 404
        assert wire.client.delete(path).status_code == 404
        go_on.set()
        if what == "document":
            again = wire.client.post(wire.documents, files={"file": ("b.txt", LLAMAS)})
            assert (await asyncio.to_thread(settle, wire, again.headers["location"]))["status"] == "indexed"
        await asyncio.to_thread(wait_until, lambda: wire.counts()["procrastinate_jobs"] == 0)
    left = 1 if what == "document" else 0
    assert wire.counts() == {**NOTHING, "documents": left, "uploads": left, "originals": left, "data_chunks": left}


def watch(wire: Wire, path: str, events: list[str]) -> None:
    with wire.client.stream("GET", path + "/events", headers={"Accept": "application/x-ndjson"}) as reply:
        events.extend(line for line in reply.iter_lines() if "heartbeat" not in line)
