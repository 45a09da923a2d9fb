"""Forks the children of the sandbox, which takes milliseconds: the service's side; `sandbox_server` is the other.

    server = ForkServer()
    child = await server.start(memory_bytes, cpu_seconds, open_files)

A child has three sockets, and the server reports its end over a fourth; closing that one ends the child. Only on
Linux: elsewhere fork is not safe, or nothing tells the end of one child among others.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import structlog

from rag_service.readers.bare_interpreter import ENVIRONMENT, boot, command

log = structlog.get_logger(__name__)

# Files after which a server is replaced: its children have everything at the same places in memory, so code that
# guesses them may not try for ever.
FILES_EACH = 1_000
_BOOT = boot("rag_service.readers.sandbox_server")
_MOST_LOST = 3  # servers that end one after the other, with no child having ended in between: then there is none
_PATIENCE = 10.0  # seconds in which a server kills a child; then it is killed itself


@cache
def can_fork() -> bool:
    """Whether this system can run a fork server."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # Linux before 5.3
        return False
    return True


class ServerLostError(Exception):
    """The fork server ended, and its children with it."""


@dataclass
class Forked:
    """A forked child; its streams are named as those of `asyncio.subprocess.Process`."""

    server: ForkServer
    number: int  # of the server among those that were started
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    _control: asyncio.StreamReader
    _sockets: Sequence[asyncio.StreamWriter]  # as those above
    returncode: int | None = None

    async def wait(self) -> None:
        """Wait for the end of the child; raises ServerLostError."""
        code = await self._control.read()
        self.server.note(self.number, ended=bool(code))
        if not code:
            raise ServerLostError
        self.returncode = int(code)

    async def end(self) -> None:
        """Kill the child if it still runs, and close the sockets when it has ended."""
        try:
            if self.returncode is None and not self._control.at_eof():
                self._sockets[3].write_eof()
                async with asyncio.timeout(_PATIENCE):
                    await self._control.read()
        except TimeoutError:
            self.server.close()
        finally:
            for one in self._sockets:
                one.close()


class ForkServer:
    """A process that forks children, started with the first and replaced whenever that is needed.

    For all threads and event loops of this process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0  # files until it is replaced
        self._number = 0  # of servers that were started
        self._lost = self._last_lost = 0  # servers that were lost one after the other; the number of the last
        self._requests: socket.socket | None = None
        self._end = weakref.finalize(self, _kill, None, None)

    def __reduce__(self) -> tuple[type[ForkServer], tuple[()]]:
        return ForkServer, ()  # a copy in another process has a server of its own

    async def start(self, memory_bytes: int, cpu_seconds: int, open_files: int) -> Forked | None:
        """Fork a child with these limits; None: the server cannot be used."""
        if self._lost >= _MOST_LOST or not can_fork():
            return None
        pairs = [socket.socketpair() for _ in range(4)]
        streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        try:
            number = self._send(
                f"{memory_bytes} {cpu_seconds} {open_files}".encode(), [theirs.fileno() for _, theirs in pairs]
            )
            for ours, _ in pairs:
                streams.append(await asyncio.open_unix_connection(sock=ours))
        except OSError as error:
            log.warning("fork_server_not_started", exc_info=error)
            self.note(self._number, ended=False)
            return None
        finally:
            for ours, theirs in pairs:
                theirs.close()
                if len(streams) < len(pairs):
                    ours.close()
        (_, stdin), (stdout, _), (stderr, _), (control, _) = streams
        return Forked(self, number, stdin, stdout, stderr, control, [writer for _, writer in streams])

    def note(self, number: int, *, ended: bool) -> None:
        """Note whether a child of a server has `ended`, or that server before it."""
        with self._lock:
            if ended:
                self._lost = 0
            elif number > self._last_lost:
                self._last_lost, self._left = number, 0
                self._lost += 1
                log.warning("fork_server_lost", given_up=self._lost >= _MOST_LOST)

    def close(self) -> None:
        """Kill the server and its children; the next child is forked by another."""
        with self._lock:
            self._end()
            self._requests = None

    def _send(self, message: bytes, descriptors: Sequence[int]) -> int:
        """Ask for a child; returns the number of the server."""
        with self._lock:
            self._left -= 1
            if self._requests is not None and self._left > 0:
                with suppress(OSError):  # it has ended, as it does when it is idle
                    socket.send_fds(self._requests, [message], descriptors)
                    return self._number
            self._requests = self._replace()
            self._left, self._number = FILES_EACH, self._number + 1
            socket.send_fds(self._requests, [message], descriptors)
            return self._number

    def _replace(self) -> socket.socket:
        """Start a server and return the socket of its requests. One before it ends when it has no more children."""
        if self._requests is not None:
            self._requests.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - our own code
                command(_BOOT),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        threading.Thread(target=process.wait, name="fork-server", daemon=True).start()
        ours.setblocking(False)  # where a server that stands still takes nothing more, it is replaced
        self._end.detach()
        self._end = weakref.finalize(self, _kill, ours, process)
        return ours


def _kill(requests: socket.socket | None, process: subprocess.Popen[bytes] | None) -> None:
    if requests is not None and process is not None:
        requests.close()
        process.kill()
        process.wait()
