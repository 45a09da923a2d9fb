"""Hostile files of issue 4, made on the spot, and a watch on what reading them costs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.unit.readers import samples


def children(of: int | None = None) -> set[int]:
    """Processes started by this one, or another, that still exist, zombies included."""
    found = set()
    for file in Path(f"/proc/{of or os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended since
            found |= {int(pid) for pid in file.read_text().split()}
    return found


def descendants() -> set[int]:
    """Children, and what a fork server among them has forked."""
    return {pid for child in children() for pid in (child, *children(child))}


def is_server(pid: int) -> bool:
    """Whether a process is a fork server, or has not yet become what it will be."""
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"sandbox_server" in command and pid in children()
    return False


async def kill_started(before: set[int]) -> None:
    """Wait until this process has started children beside those before, and kill these."""
    for _ in range(12_000):
        if started := {pid for pid in descendants() - before if not is_server(pid)}:
            for child in started:
                os.kill(child, signal.SIGKILL)
            return
        await asyncio.sleep(0.005)
    raise AssertionError("no process was started")


@contextlib.asynccontextmanager
async def watched_memory() -> AsyncIterator[list[int]]:
    """Peaks of the sandboxes' resident memory in bytes, each as last seen, read every few milliseconds.

    Not RUSAGE_CHILDREN: that is the largest of all children that this process ever had.
    """
    peaks: dict[int, int] = {}
    seen: list[int] = []

    def look() -> None:
        for pid in descendants():
            with contextlib.suppress(OSError, ValueError, StopIteration):
                if b"rag_service.readers.sandbox" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    continue  # not yet what it will be, and still with its parent's memory
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                peaks[pid] = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024

    async def watch() -> None:
        while True:
            look()
            await asyncio.sleep(0.005)

    task = asyncio.create_task(watch())
    try:
        yield seen
    finally:
        task.cancel()
        seen += peaks.values()


def password_workbook() -> bytes:
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(2000)


def macro_workbook() -> bytes:
    return samples.with_members(samples.xlsx([["x"]]), {"xl/vbaProject.bin": b"\0" * 100})


def million_rows() -> bytes:
    """Without column names: not a table whose rows may be more than the text has."""
    return b"".join(b"%d;%d;%d\n" % (i, i, i) for i in range(1_000_000))


def pdf_bomb() -> bytes:
    """A page that unpacks to 600 MB; PDFium holds nearly twice as much, and aborts where memory ends."""
    bomb = zlib.compress(zlib.compress(bytes(600 * 2**20), 1), 9)
    return samples.pdf_with_stream(bomb, filters="/Filter[/FlateDecode/FlateDecode]")


def pdf_of_many_operations() -> bytes:
    return samples.pdf_with_stream(
        zlib.compress(b"BT /F1 9 Tf " + b"1 0 0 1 5 5 Tm (x) Tj " * 3_000_000 + b"ET"), filters="/Filter/FlateDecode"
    )


def gigabyte_of_zeros() -> bytes:
    return samples.with_zeros(samples.xlsx([["x"]]), "xl/worksheets/sheet2.xml", 2**30)


def zip_bomb() -> bytes:
    return samples.with_zeros(samples.word("x"), "word/media/z", 150 * 2**20)


def many_members() -> bytes:
    return samples.with_members(samples.word("x"), {f"word/media/{i}": b"" for i in range(6000)})
