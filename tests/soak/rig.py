"""The real server as a process: its own PostgreSQL, the double of Ollama in another process, and a thin client.

The client speaks just enough HTTP to read a stream: a full client would take more of the machine than
the server that is being measured.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import migrate

ROOT = Path(__file__).parents[2]
_SERVE = "from rag_service.cli import main; main()"
_ADDRESS = re.compile(r'"address": ?"http://[^"]*:(\d+)"')  # in the server's log


@dataclass(kw_only=True)
class Rig:
    """What runs."""

    server: Process
    port: int
    log: Path  # the server's log, one JSON object a line
    ready_after: float = 0.0  # seconds from the start of the process to its first answer at /health/ready

    def memory_mb(self) -> float:
        """Resident memory of the server."""
        for line in Path(f"/proc/{self.server.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("the server has gone")

    def processor_seconds(self) -> float:
        """Processor time of the server so far; unlike the clock's it does not count what others took."""
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(encoding="utf-8")

    def lines(self) -> list[dict[str, Any]]:
        """What the server has logged."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]


@dataclass(kw_only=True)
class Reply:
    """One reply, with the times at which its parts came (seconds after the request)."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    events: list[tuple[str, Any, float]] = field(default_factory=list)  # (name, data, when)
    body: bytes = b""  # of a reply that is no stream
    broken: bool = False  # the connection ended before the reply did

    def at(self, name: str) -> float | None:
        """When the first event of that name came."""
        return next((when for event, _, when in self.events if event == name), None)

    @property
    def ending(self) -> str:
        """`done`, a problem's code, or what went wrong."""
        if self.broken:
            return "broken"
        if self.status != 200:
            return str(json.loads(self.body).get("code", self.status))
        name, data, _ = self.events[-1] if self.events else ("nothing", {}, 0.0)
        return str(data["code"]) if name == "error" else name


@asynccontextmanager
async def running_rig(folder: Path, *, words: int, pace: float, **settings: object) -> AsyncIterator[Rig]:
    """Start it all, and stop it again. Keywords are settings of the server."""
    database = await start_embedded_server(folder)
    await migrate(database.owner_conninfo, database.service_conninfo, dimension=384)
    command = [sys.executable, "-m", "tests.soak.paced_ollama", str(words), str(pace)]
    double = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=PIPE)
    try:
        assert double.stdout is not None
        url = (await double.stdout.readline()).decode().strip()
        defaults = {
            "database_url": database.service_conninfo,
            "chat_provider": "ollama",
            "embedding_provider": "ollama",
            "embedding_model": "nomic-embed-text",
            "fit_relevance": False,
            "ollama_url": url,
            "similarity_threshold": 0.05,
        }
        async with running_server(folder / "server.log", **(defaults | settings)) as rig:
            yield rig
    finally:
        double.kill()
        await double.wait()


@asynccontextmanager
async def running_server(log: Path, *, within: float = 60.0, **settings: object) -> AsyncIterator[Rig]:
    """`rag-service serve` with these settings, ready; killed at the end if it still runs.

    Args:
        log: where its standard error goes.
        within: seconds that it has to become ready.
        settings: by field name.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAG_")}
    environment |= {f"RAG_{name.upper()}": str(value) for name, value in settings.items()}
    started = time.monotonic()
    with log.open("wb") as errors:
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _SERVE, "serve", "--port", "0", cwd=ROOT, env=environment, stderr=errors
        )
    rig = Rig(server=server, port=0, log=log)
    try:
        async with asyncio.timeout(within):
            rig.port = await _told_port(rig)
        await wait_ready(rig, within=within)
        rig.ready_after = time.monotonic() - started
        yield rig
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


async def _told_port(rig: Rig) -> int:
    """The port that the server has been given, as it logs it."""
    while not (told := _ADDRESS.search(rig.said())):
        assert rig.server.returncode is None, rig.said()
        await asyncio.sleep(0.02)
    return int(told[1])


async def wait_ready(rig: Rig, *, within: float) -> None:
    """Until /health/ready answers 200 or says what is missing; raises TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while True:
            assert rig.server.returncode is None, rig.log.read_text()
            try:
                if (await request(rig.port, "GET", "/health/ready")).status in (200, 503):
                    return
            except OSError:
                await asyncio.sleep(0.02)


async def request(
    port: int, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """One request on a connection of its own."""
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    payload = b"" if body is None else json.dumps(body).encode()
    wanted = {
        "Host": f"127.0.0.1:{port}",
        "Connection": "close",
        "Accept": "application/x-ndjson, application/json",
        "Content-Type": "application/json",
        "Content-Length": str(len(payload)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in wanted.items())
    reply = Reply()
    try:
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + payload)
        await _read(reader, reply, started)
    except (asyncio.IncompleteReadError, ConnectionError):
        reply.broken = True
    finally:
        writer.close()
    return reply


async def _read(reader: asyncio.StreamReader, reply: Reply, started: float) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    reply.status = int(head[0].split()[1])
    reply.headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    if reply.headers.get("transfer-encoding") != "chunked":
        reply.body = await reader.readexactly(int(reply.headers.get("content-length", 0)))
        return
    rest = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        rest += (await reader.readexactly(size + 2))[:-2]
        when = time.perf_counter() - started
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if not line.startswith(b"{"):
                continue  # of server-sent events, which nobody here reads
            event = json.loads(line)
            reply.events.append((event["event"], event.get("data"), when))
    await reader.readexactly(2)


@asynccontextmanager
async def paced_embedder(seconds: float) -> AsyncIterator[str]:
    """URL of a double of Ollama in a process of its own, which takes so long for each call."""
    command = [sys.executable, "-m", "tests.soak.paced_embedder", str(seconds)]
    double = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=PIPE)
    try:
        assert double.stdout is not None
        yield (await double.stdout.readline()).decode().strip()
    finally:
        double.kill()
        await double.wait()
