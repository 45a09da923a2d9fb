"""Exports on the disk: a file has its name only when it is complete."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from rag_service.errors import InputError


async def write_export(pieces: AsyncGenerator[bytes], file: Path) -> int:
    """Write an export to a file that does not exist yet; returns its size in bytes.

    It is written beside it, as `FILE.part`, which a failure removes; after a kill the next export replaces it.

    Raises InputError if the file exists or cannot be written, and whatever `pieces` raises.
    """
    unfinished = file.with_name(f"{file.name}.part")
    try:
        if await asyncio.to_thread(os.path.lexists, file):
            raise InputError(f"{file} exists; choose another name, or move it away.")
        async with aclosing(pieces):
            try:
                with unfinished.open("wb") as out:
                    async for piece in pieces:
                        await asyncio.to_thread(out.write, piece)
                    size = out.tell()
                    out.flush()
                    await asyncio.to_thread(os.fsync, out.fileno())
                unfinished.replace(file)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from error
    return size
