"""Converts .doc, .xls and .ppt files with LibreOffice, where it is installed; without it, `detect` refuses them.

The converter runs as `sandbox` runs the readers: no environment, no network, limits on memory and time, and with
Landlock nothing to write to but a folder of its own. Macros do not run: a new profile trusts no file.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import structlog

from rag_service.errors import DocumentError, UnsupportedMediaError
from rag_service.readers.bare_interpreter import boot, command
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.detect import old_office_ending
from rag_service.readers.old_office_child import SOCKETS
from rag_service.readers.sandbox import can_limit_files

log = structlog.get_logger(__name__)

_PROGRAMS = ("soffice", "libreoffice")
_BOOT = boot("rag_service.readers.old_office_child")
_WALL_SECONDS = 120.0  # a first start takes five seconds, a hundred pages ten
_MEMORY_BYTES = 6 * 1024**3  # of address space; LibreOffice maps its libraries, too
_CPU_SECONDS = 110
_AGAIN = 81  # exit code of a first start that has set up its profile
_MAX_OUTPUT = 100 * 1024 * 1024  # bytes


@cache
def find_converter() -> str | None:
    """The path of LibreOffice's program, or None."""
    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None:
        return None
    starter = Path(found).resolve()
    program = starter.with_name("soffice.bin")  # without the starter, which no limit on its own time would end
    return str(program if program.is_file() else starter)


async def modernise(data: bytes, name: str) -> bytes:
    """A file of an old Office format in today's, as LibreOffice converts it; any other file as it is.

    Raises DocumentError: LibreOffice cannot read it, or takes too long. The caller limits how many run at once.
    """
    ending, program = old_office_ending(data), find_converter()
    if ending is None or program is None:
        return data
    name = clean_file_name(name)
    with tempfile.TemporaryDirectory(prefix="rag-office-", ignore_cleanup_errors=True) as folder:
        old, new = Path(folder) / f"old.{ending[:-1]}", Path(folder) / "out" / f"old.{ending}"
        await asyncio.to_thread(old.write_bytes, data)
        arguments = [program, folder, old.name, ending]
        code, complaint = await _convert(folder, arguments, name)
        if code == _AGAIN:
            _, complaint = await _convert(folder, arguments, name)
        if not new.is_file() or new.is_symlink() or not 0 < new.stat().st_size <= _MAX_OUTPUT:
            log.warning("office_file_not_converted", complaint=complaint.decode(errors="replace")[:500])
            raise UnsupportedMediaError(
                f'"{name}" is in an old Office format and could not be converted; it may be damaged or protected by a '
                f'password. Open it in Microsoft Office or LibreOffice, choose "Save as" .{ending}, and upload that.'
            )
        return await asyncio.to_thread(new.read_bytes)


async def _convert(folder: str, arguments: Sequence[str], name: str) -> tuple[int | None, bytes]:
    """Run the converter to its end; returns its exit code, and what it complained about."""
    limits = map(str, (_MEMORY_BYTES, _CPU_SECONDS, os.getpid(), int(can_limit_files())))
    process = await asyncio.create_subprocess_exec(
        *command(_BOOT), *limits, *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder},
        cwd=folder,
        start_new_session=True,  # a group of its own, so that everything in it can be killed
    )  # fmt: skip
    try:
        async with asyncio.timeout(_WALL_SECONDS):
            _, complaint = await process.communicate()
            return process.returncode, complaint
    except TimeoutError as error:
        raise DocumentError(f'"{name}" took too long to convert. Save it in a newer format and upload that.') from error
    finally:
        with suppress(ProcessLookupError):  # also what the converter started and left behind
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())
        await asyncio.to_thread(_remove_dead_sockets)


def _remove_dead_sockets() -> None:
    """Remove the sockets at which no LibreOffice of this user listens any longer; the converter may not do so."""
    for path in Path(SOCKETS).glob(f"OSL_PIPE_{os.getuid()}_SingleOfficeIPC_*"):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError:
                continue
