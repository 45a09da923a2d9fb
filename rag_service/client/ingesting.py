"""Ingests the files that a caller of the service names, and reports on each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from rag_service.client.results import IngestedFile, IngestReport
from rag_service.errors import DocumentError
from rag_service.sources.files import FoundFiles
from rag_service.sources.report import Pace, SyncProgress

if TYPE_CHECKING:
    from rag_service.client.embedded import EmbeddedBackend
    from rag_service.client.remote import RemoteBackend
    from rag_service.sources.sync import OnProgress

_AT_A_TIME = 2  # files parsed at once


async def ingest_files(
    backend: EmbeddedBackend | RemoteBackend, found: FoundFiles, on_progress: OnProgress | None = None
) -> IngestReport:
    """Ingest what was found, two files at a time; `on_progress` is called before each."""
    files = found.files
    done: dict[tuple[str, Path], IngestedFile] = {}
    pace, total = Pace(), len(files)

    def tell(name: str) -> None:
        if on_progress is not None:
            left = pace.seconds_left(len(done), total)
            on_progress(SyncProgress(done=len(done), total=total, name=name, seconds_left=left))

    tell(files[0][0])
    done[files[0]] = await _ingest_one(backend, *files[0])  # alone: it creates the corpus
    waiting = iter(files[1:])

    async def work() -> None:
        for file in waiting:
            tell(file[0])
            done[file] = await _ingest_one(backend, *file)

    workers = [asyncio.ensure_future(work()) for _ in range(_AT_A_TIME)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
    tell("")
    left = (IngestedFile(name=name, outcome="skipped", reason=f"{reason}.") for name, reason in found.left)
    return IngestReport(items=(*(done[file] for file in files), *left))


async def _ingest_one(backend: EmbeddedBackend | RemoteBackend, name: str, path: Path) -> IngestedFile:
    try:
        data = await asyncio.to_thread(path.read_bytes)
    except OSError as error:
        return IngestedFile(name=name, outcome="failed", reason=f"It cannot be opened: {error.strerror}.")
    try:
        done = await backend.ingest(data, name=name, file_name=path.name)
    except DocumentError as error:
        return IngestedFile(name=name, outcome="failed", reason=error.message)
    return IngestedFile(
        name=name,
        outcome=done.outcome,
        chunk_count=done.chunk_count,
        document_id=done.document_id,
        warnings=done.warnings,
    )
