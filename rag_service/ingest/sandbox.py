"""Parses one document in a process of its own, which may die without harm.

What Apache Tika's server does: an uploaded file is an enemy until it is text. The child gets the bytes by
stdin and nothing else (no environment, no credentials, no open files), has hard limits on memory,
CPU time, files and processes, and answers in msgpack, which cannot carry code.

The network is taken away by `unshare` where the kernel permits it (root, or unprivileged user
namespaces). In a container that forbids both, the child could open sockets; deny egress there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from rag_service.domain import ParsedDocument, Span
from rag_service.errors import DocumentError, TooLargeError, UnsupportedMediaError
from rag_service.ingest.parse import clean_file_name
from rag_service.ingest.sandbox_child import OUT_OF_MEMORY, Reply, Success, frame

# -I: no PYTHON* variables, no user site. -S: no .pth files, which run code and cost 10 ms. -B: writes nothing.
_FLAGS = ("-I", "-S", "-B", "-X", "utf8")
_BOOT = "import sys; sys.path += sys.argv.pop(1).split(':'); from rag_service.ingest.sandbox_child import main; main()"
_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": ""}  # an empty PATH: there is nothing that a parser may run
_PIPE_CHUNK = 1024 * 1024
_MAX_COMPLAINT = 8_192  # bytes of stderr kept for the log
_ERRORS = {error.code: error for error in (DocumentError, UnsupportedMediaError, TooLargeError)}
_DECODER: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_SPANS: msgspec.msgpack.Decoder[tuple[Span, ...]] = msgspec.msgpack.Decoder(tuple[Span, ...])


@dataclass(frozen=True, kw_only=True)
class ParseLimits:
    """What one document may cost. The defaults hold 10 MB files of every format with room to spare."""

    memory_bytes: int = 1024**3  # address space of the child, the interpreter's ~40 MB included
    cpu_seconds: int = 55  # of processor time
    wall_seconds: float = 60.0  # from start to answer; then the child is killed
    output_bytes: int = 128 * 1024**2  # longest reply; five million characters with places take about 60 MB
    open_files: int = 64  # descriptors; the child opens modules only


class ChildFailure(Exception):  # noqa: N818 - it is the cause of a DocumentError, never raised alone
    """How the child ended, for the log: exit code or signal, and its last words."""


async def parse_in_sandbox(data: bytes, *, file_name: str, limits: ParseLimits | None = None) -> ParsedDocument:
    """Parse a file in a subprocess; see `rag_service.ingest.parse.parse` for formats and result.

    Never blocks the event loop while the child works. When the caller is cancelled, or the parent
    process dies, the child is killed. How many run at once is the caller's business.

    Raises:
        DocumentError: as `parse` does, or the child took too long or crashed; `__cause__` says how.
        UnsupportedMediaError, TooLargeError: kinds of DocumentError; the latter also when memory or
            output limits are reached.
    """
    limits = limits or ParseLimits()
    name = clean_file_name(file_name)
    process = await _start(limits)
    try:
        async with asyncio.timeout(limits.wall_seconds):
            output, complaint = await _converse(process, name, data, limits)
            await process.wait()
    except TimeoutError as error:
        raise _too_slow(name) from error
    finally:
        await _end(process)
    if len(output) > limits.output_bytes:
        raise TooLargeError(f'"{name}" holds too much text. Split it into smaller files.')
    return await _interpret(output, process.returncode, complaint, name)


async def _start(limits: ParseLimits) -> asyncio.subprocess.Process:
    numbers = (limits.memory_bytes, limits.cpu_seconds, limits.open_files, os.getpid())
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *_FLAGS,
        "-c",
        _BOOT,
        _import_path(),
        *map(str, numbers),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_ENVIRONMENT,
        cwd="/",
        start_new_session=True,  # a group of its own, so that everything in it can be killed
    )


def _import_path() -> str:
    """Where this process imports from, made absolute: the child starts in / and reads no .pth files."""
    return ":".join(str(Path(folder).absolute()) for folder in sys.path)


async def _converse(
    process: asyncio.subprocess.Process, name: str, data: bytes, limits: ParseLimits
) -> tuple[bytes, bytes]:
    """Send the document while reading answer and complaints: a full pipe must not stop either side."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise RuntimeError("the sandbox was started without pipes")
    _, output, complaint = await asyncio.gather(
        _feed(process.stdin, frame(name, data)),
        _read(process.stdout, limits.output_bytes),
        _read(process.stderr, _MAX_COMPLAINT),
    )
    return output, complaint


async def _feed(pipe: asyncio.StreamWriter, parts: tuple[bytes, bytes]) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # the child died; its exit code tells why
        for part in parts:
            for start in range(0, len(part), _PIPE_CHUNK):
                pipe.write(part[start : start + _PIPE_CHUNK])
                await pipe.drain()
        pipe.close()
        await pipe.wait_closed()


async def _read(pipe: asyncio.StreamReader, limit: int) -> bytes:
    """Read to the end, keeping one byte more than the limit as the sign that there was more."""
    received = bytearray()
    while part := await pipe.read(_PIPE_CHUNK):
        received += part[: limit + 1 - len(received)]
    return bytes(received)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Leave nothing behind: kill what still runs, empty the pipes, reap. A cancellation waits for that."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
    reaping = asyncio.ensure_future(process.communicate())
    cancelled: asyncio.CancelledError | None = None
    while not reaping.done():
        try:
            await asyncio.shield(reaping)
        except asyncio.CancelledError as error:
            cancelled = error  # a killed child is reaped within milliseconds
    if cancelled is not None:
        raise cancelled


async def _interpret(output: bytes, exit_code: int | None, complaint: bytes, name: str) -> ParsedDocument:
    try:
        reply = _DECODER.decode(output)
    except msgspec.MsgspecError as error:
        last_words = complaint.decode(errors="replace").strip()
        cause = ChildFailure(f"exit code {exit_code}, {type(error).__name__}: {last_words}")
        raise _ended_badly(exit_code, last_words, name) from cause
    if isinstance(reply, Success):
        spans: list[Span] = []
        for batch in reply.spans:
            spans += _SPANS.decode(batch)
            await asyncio.sleep(0)  # 300,000 spans take 0.3 s: let others in between
        return replace(reply.document, spans=tuple(spans))
    origin = ChildFailure(reply.detail) if reply.detail else None
    if reply.code == OUT_OF_MEMORY:
        raise _too_hungry(name) from origin
    raise _ERRORS.get(reply.code, DocumentError)(reply.message) from origin


def _ended_badly(exit_code: int | None, last_words: str, name: str) -> DocumentError:
    """No reply: judge by how the child ended."""
    if exit_code == -signal.SIGABRT and not last_words:
        return _too_hungry(name)  # PDFium, where it is given no memory; the C library aborts with a word on stderr
    if exit_code == -signal.SIGXCPU:
        return _too_slow(name)
    if exit_code == -signal.SIGKILL:  # not by us: the hard CPU limit, or the kernel short of memory
        return _too_hungry(name)
    return DocumentError(
        f'"{name}" made the reader fail; it is probably damaged. '
        "Open it in the program it came from, save it again and upload that."
    )


def _too_slow(name: str) -> DocumentError:
    return DocumentError(
        f'"{name}" took too long to read and was given up. Split it, or save it again in a simpler form.'
    )


def _too_hungry(name: str) -> DocumentError:
    return TooLargeError(f'"{name}" needs too much memory to be read. Split it into smaller files.')
