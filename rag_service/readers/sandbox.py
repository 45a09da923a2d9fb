"""Parses one document in a separate process, which may crash without harm.

An uploaded file is treated as hostile. The child gets its bytes by stdin and nothing else (no environment, credentials
or open files), has hard limits on memory, CPU time, files and processes, and replies in msgpack, which cannot carry
code. Landlock leaves it nothing but reading Python's modules and the system's libraries, where the kernel has it.
`unshare` removes the network where the kernel permits it (root, or unprivileged user namespaces); deny egress in
containers that forbid both.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import structlog

from rag_service.domain import ParsedDocument, Span
from rag_service.errors import (
    DocumentError,
    NoTextError,
    ProtectedError,
    ReaderKilledError,
    ScannedError,
    TooLargeError,
    UnsupportedMediaError,
)
from rag_service.readers.bare_interpreter import ENVIRONMENT, boot, command
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.fork_server import Forked, ForkServer, ServerLostError
from rag_service.readers.landlock import landlock_version
from rag_service.readers.ocr.recognition import NeedsOcrError
from rag_service.readers.parse import ReaderClass
from rag_service.readers.sandbox_child import NEEDS_OCR, OUT_OF_MEMORY, SYSTEM_FILES, Reply, Request, Success, frame
from rag_service.readers.seccomp import can_filter_calls

log = structlog.get_logger(__name__)

_BOOT = boot("rag_service.readers.sandbox_child")
_PIPE_CHUNK = 1024 * 1024
_MAX_COMPLAINT = 8_192  # bytes of stderr kept for the log
_LIBRARIES = ("docx", "lxml", "msgspec", "openpyxl", "pypdfium2")  # that the child loads
_RAISED = (DocumentError, NoTextError, ProtectedError, ScannedError, UnsupportedMediaError, TooLargeError)
_ERRORS = {error.code: error for error in _RAISED}
_DECODER: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_SPANS: msgspec.msgpack.Decoder[tuple[Span, ...]] = msgspec.msgpack.Decoder(tuple[Span, ...])


@dataclass(frozen=True, kw_only=True)
class ParseLimits:
    """Limits for one document. The defaults are ample for 10 MB files of every format."""

    memory_bytes: int = 1024**3  # address space of the child, the interpreter's ~40 MB included
    cpu_seconds: int = 55  # of processor time
    wall_seconds: float = 240.0  # from start to reply; then the child is killed. Others may want the processor, too
    output_bytes: int = 128 * 1024**2  # longest reply; five million characters with places take about 60 MB
    open_files: int = 64  # descriptors; the child opens only modules


# A page takes 8 s of a processor and a gigabyte; `ocr.MAX_PAGES` pages must fit.
OCR_LIMITS = ParseLimits(memory_bytes=2 * 1024**3, cpu_seconds=1_500, wall_seconds=6_000.0)


def limits_for(size: int) -> ParseLimits:
    """The default limits, with a second more of a processor for each megabyte: a million rows take their time.

    `size`: of the file in bytes.
    """
    more = size // 1_000_000
    usual = ParseLimits()
    return replace(usual, cpu_seconds=usual.cpu_seconds + more, wall_seconds=usual.wall_seconds + 4 * more)


class ChildFailure(Exception):  # noqa: N818 - only used as the cause of a DocumentError
    """How the child ended, for the log: exit code or signal, and its stderr."""


async def parse_in_sandbox(
    data: bytes,
    *,
    file_name: str,
    reader: ReaderClass | None = None,
    limits: ParseLimits | None = None,
    ocr: bool | None = None,
    forks: ForkServer | None = None,
) -> ParsedDocument:
    """Parse a file in a subprocess without blocking the event loop; see `parse` for formats and result.

    The child is killed when the caller is cancelled or the parent dies. The caller limits how many run at once.

    Args:
        file_name: as uploaded.
        reader: used instead of our parsers; gets the path of a copy of the file.
        ocr: whether to recognise text; None: where pages need it and the extra is installed, in a second process.
        forks: forks the child, unless it gets a `reader` or recognises text; None: it is started.

    Raises:
        NeedsOcrError: `ocr` is False, and recognition is installed and would help.
        DocumentError: as `parse`, or the child took too long or crashed; `__cause__` says how.
        UnsupportedMediaError, TooLargeError: subclasses; the latter also for the memory and output limits.
        ReaderKilledError: somebody else ended the child; another try may succeed.
    """
    limits = limits or limits_for(len(data))
    name = clean_file_name(file_name)
    if reader is None:
        try:
            if not ocr:
                return await _run(data, Request(name), limits, forks)
        except NeedsOcrError:
            if ocr is not None:
                raise
        return await _run(data, Request(name, ocr=True), max(limits, OCR_LIMITS, key=lambda one: one.cpu_seconds))
    with tempfile.TemporaryDirectory(prefix="rag-reader-") as folder:
        copy = Path(folder) / name
        await asyncio.to_thread(copy.write_bytes, data)
        return await _run(os.fsencode(copy), Request(name, reader, folder), limits)


async def _run(data: bytes, request: Request, limits: ParseLimits, forks: ForkServer | None = None) -> ParsedDocument:
    request = msgspec.structs.replace(request, restricted=can_limit_files())
    warn_of_missing_limits()
    if forks is not None and (child := await forks.start(limits.memory_bytes, limits.cpu_seconds, limits.open_files)):
        # Where the server is lost, that is no fault of the file: it is read by a child of the other kind.
        with suppress(ServerLostError):
            return await _read_with(child, request, data, limits)
    return await _read_with(await _start(limits), request, data, limits)


async def _read_with(
    child: asyncio.subprocess.Process | Forked, request: Request, data: bytes, limits: ParseLimits
) -> ParsedDocument:
    try:
        async with asyncio.timeout(limits.wall_seconds):
            output, complaint = await _converse(child, request, data, limits)
            await child.wait()
    except TimeoutError as error:
        raise _too_slow(request.name) from error
    finally:
        await finish(child.end() if isinstance(child, Forked) else _end(child))
    if len(output) > limits.output_bytes:
        raise TooLargeError(f'"{request.name}" contains too much text. Split it into smaller files.')
    return await asyncio.to_thread(_interpret, output, child.returncode, complaint, request.name)


@cache
def warn_of_missing_limits() -> None:
    """Log once what the operating system does not limit."""
    for limit in missing_limits():
        log.warning(f"sandbox_without_{limit}", platform=sys.platform, landlock=landlock_version())


def missing_limits() -> list[str]:
    """What the operating system does not limit: `memory_limit`, `file_limits` or `call_filter`."""
    has = {
        "memory_limit": sys.platform != "darwin",
        "file_limits": can_limit_files(),
        "call_filter": can_filter_calls(),
    }
    return [limit for limit, there in has.items() if not there]


@cache
def can_limit_files() -> bool:
    """Whether the kernel can limit the child to the import path, and the child can do with that.

    It cannot if libraries are links that lead elsewhere (`uv --link-mode symlink`): then documents are read without.
    """
    folders = tuple(f"{os.path.realpath(folder)}{os.sep}" for folder in (*sys.path, *SYSTEM_FILES))
    found = [find_spec(name) for name in _LIBRARIES]
    origins = [os.path.realpath(spec.origin) for spec in found if spec is not None and spec.origin is not None]
    return landlock_version() > 0 and all(origin.startswith(folders) for origin in origins)


async def _start(limits: ParseLimits) -> asyncio.subprocess.Process:
    numbers = (limits.memory_bytes, limits.cpu_seconds, limits.open_files, os.getpid())
    return await asyncio.create_subprocess_exec(
        *command(_BOOT),
        *map(str, numbers),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
        cwd="/",
        start_new_session=True,  # a group of its own, so that everything in it can be killed
    )


async def _converse(
    process: asyncio.subprocess.Process | Forked, request: Request, data: bytes, limits: ParseLimits
) -> tuple[bytes, bytes]:
    """Send the document while reading stdout and stderr, so that a full pipe blocks neither side."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise RuntimeError("the sandbox was started without pipes")
    _, output, complaint = await asyncio.gather(
        feed(process.stdin, *frame(request, data)),
        _read(process.stdout, limits.output_bytes),
        _read(process.stderr, _MAX_COMPLAINT),
    )
    return output, complaint


async def feed(pipe: asyncio.StreamWriter, *parts: bytes) -> None:
    """Send a child its input. If it dies on the way, that is no error here; see its exit code."""
    with suppress(BrokenPipeError, ConnectionResetError):
        for part in parts:
            if pipe.is_closing():  # uvloop raises RuntimeError then
                return
            pipe.write(part)
            await pipe.drain()
        pipe.write_eof()


async def _read(pipe: asyncio.StreamReader, limit: int) -> bytes:
    """Read to the end, keeping at most one byte more than the limit, which shows that it was exceeded."""
    received = bytearray()
    while part := await pipe.read(_PIPE_CHUNK):
        received += part[: limit + 1 - len(received)]
    return bytes(received)


async def end_child(process: asyncio.subprocess.Process) -> None:
    """Kill the child if it still runs, drain its pipes and reap it; a cancellation is raised afterwards."""
    await finish(_end(process))


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
    await process.communicate()


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Await work of milliseconds to its end; a cancellation is raised afterwards."""
    working = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not working.done():
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    working.result()


def _interpret(output: bytes, exit_code: int | None, complaint: bytes, name: str) -> ParsedDocument:
    try:
        reply = _DECODER.decode(output)
    except msgspec.MsgspecError as error:
        stderr_text = complaint.decode(errors="replace").strip()
        cause = ChildFailure(f"exit code {exit_code}, {type(error).__name__}: {stderr_text}")
        raise _ended_badly(exit_code, stderr_text, name) from cause
    if isinstance(reply, Success):
        spans: list[Span] = []
        for batch in reply.spans:
            spans += _SPANS.decode(batch)  # batches, because no other thread runs while one is decoded
        return replace(reply.document, spans=tuple(spans))
    origin = ChildFailure(reply.detail) if reply.detail else None
    if reply.code == NEEDS_OCR:
        raise NeedsOcrError
    if reply.code == OUT_OF_MEMORY:
        raise _out_of_memory(name) from origin
    raise _ERRORS.get(reply.code, DocumentError)(reply.message) from origin


def _ended_badly(exit_code: int | None, stderr_text: str, name: str) -> DocumentError:
    """The error for a child that sent no reply, by its exit code."""
    if exit_code == -signal.SIGABRT and not stderr_text:
        return _out_of_memory(name)  # PDFium out of memory; the C library would write to stderr
    if exit_code == -signal.SIGXCPU:
        return _too_slow(name)
    if exit_code == -signal.SIGKILL:  # its own limits end it otherwise
        return ReaderKilledError(
            f'The process that read "{name}" was killed, perhaps because the machine is out of memory.'
        )
    return DocumentError(
        f'"{name}" made the reader fail; it is probably damaged. '
        "Open it in the program that created it, save it again and upload the new file."
    )


def _too_slow(name: str) -> DocumentError:
    return DocumentError(f'"{name}" took too long to read. Split it, or save it again in a simpler form.')


def _out_of_memory(name: str) -> DocumentError:
    return TooLargeError(f'"{name}" needs too much memory to be read. Split it into smaller files.')
