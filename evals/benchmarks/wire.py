"""Both ends of the wire: the served application as a process, and an HTTP client that costs nearly nothing.

A full client would take more of two cores than the server that is measured.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from rag_service.errors import RagError, StoreError
from rag_service.settings import PREFIX, setting_name

_SERVE = "from rag_service.cli import main; main()"
_READY_SECONDS = 90.0  # on a busy machine the import of torch alone takes twenty


class Client:
    """One kept connection; posts JSON and reads JSON, one request at a time."""

    def __init__(self, port: int):
        self._port = port

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def post(self, path: str, body: Any) -> bytes:
        """The body of the reply.

        Raises:
            StoreError: the service answers with another status than 200.
        """
        return await self._send(b"POST", path, msgspec.json.encode(body))

    async def get(self, path: str) -> bytes:
        """Likewise, without a body to send."""
        return await self._send(b"GET", path, b"")

    async def status(self, path: str, body: Any) -> int:
        """The status of a reply, which is read to its end, also as a stream."""
        head = await self._begin(b"POST", path, msgspec.json.encode(body))
        if b"transfer-encoding: chunked" in head:
            while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
                await self._reader.readexactly(size + 2)
            await self._reader.readexactly(2)
        else:
            await self._reader.readexactly(_length(head))
        return _status(head)

    async def _send(self, method: bytes, path: str, payload: bytes) -> bytes:
        head = await self._begin(method, path, payload)
        body = await self._reader.readexactly(_length(head))
        if (status := _status(head)) != 200:
            raise StoreError(f"{path} gave status {status}: {body[:300].decode(errors='replace')}")
        return body

    async def _begin(self, method: bytes, path: str, payload: bytes) -> bytes:
        """Send a request; the head of the reply, in lower case."""
        self._writer.write(
            b"%b %b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (method, path.encode(), self._port, len(payload), payload)
        )
        return (await self._reader.readuntil(b"\r\n\r\n")).lower()


def _status(head: bytes) -> int:
    return int(head.split(b" ", 2)[1])


def _length(head: bytes) -> int:
    return int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])


@dataclass(frozen=True, kw_only=True)
class Service:
    """A running application."""

    port: int
    pid: int

    def memory_mb(self) -> float:
        """Resident memory of the process."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))

    def processor_seconds(self) -> float:
        """What the process has used of the processors since its start, without its children."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def served(settings: Mapping[str, object]) -> AsyncIterator[Service]:
    """`rag-service serve` with these settings and no others, ready and warm.

    Args:
        settings: by field name.

    Raises:
        StoreError: it does not become ready.
    """
    port = _free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {setting_name(field): str(value) for field, value in settings.items()}
    # Its log is written, as it is in service, but nowhere.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SERVE, "serve", "--port", str(port),
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await _wait_ready(process, port)
        yield Service(port=port, pid=process.pid)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _wait_ready(process: asyncio.subprocess.Process, port: int) -> None:
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end and process.returncode is None:
        try:
            async with Client(port) as client:
                await client.get("/health/ready")
                return
        except (OSError, RagError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.1)
    raise StoreError("The served application did not become ready.")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
