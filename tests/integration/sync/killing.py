"""Kills a sync again and again; used by a test and by `make soak`."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from uuid import UUID

from rag_service.ingest.ingestor import Ingestor
from rag_service.readers.file_reader import FileReader
from rag_service.sources.declared import DeclaredReader
from rag_service.sources.folder import FolderSource
from rag_service.sources.reader import ReaderPolicy, ReaderSource
from rag_service.sources.source import Source
from rag_service.sources.sync import Sync
from rag_service.store.corpora import read_corpus
from rag_service.store.database import Database
from tests.conftest import FakeEmbedding
from tests.integration.sync.conftest import Desk
from tests.integration.tenancy.conftest import ADMIN, INDEX, load_indices, parse_here

PAUSE = 0.1  # seconds for each document
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.integration.sync.killing"])


class SlowEmbedding(FakeEmbedding):
    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(PAUSE)
        return self._get_text_embeddings(texts)


OpenSource = Callable[[Path], Source]  # the source of a folder


def open_reader(folder: Path) -> ReaderSource:
    """A folder by LlamaIndex's own reader. The ids of its documents are the paths of their files."""
    options = {"input_dir": str(folder), "recursive": True, "filename_as_id": True}
    made = DeclaredReader(use="llama_index.core.readers:SimpleDirectoryReader", files=(folder,), **{"with": options})
    return ReaderSource("papers", {"papers": made}, ReaderPolicy())


def run(conninfo: str, folder: str, corpus_id: UUID, open_source: OpenSource) -> None:
    """One sync, the whole life of a process."""
    asyncio.run(_sync(conninfo, open_source(Path(folder)), corpus_id))


async def _sync(conninfo: str, source: Source, corpus_id: UUID) -> None:
    database = Database(conninfo, pool_size=4, timeout=5)
    await database.open()
    async with database.transaction(ADMIN) as connection:
        corpus = await read_corpus(connection, corpus_id)
    ingestor = Ingestor(
        database, SlowEmbedding(model_name="fake"), FileReader(parse_here, concurrency=2), model="fake", dimension=384
    )
    index = load_indices()[INDEX]
    await Sync(
        source, database=database, ingestor=ingestor, corpus=corpus, index=index, identity=ADMIN
    ).run()  # fmt: skip
    await database.close()


def change_folder(desk: Desk, draw: random.Random) -> None:
    """Add, change, rename and delete some files."""
    files = sorted(path for path in desk.folder.rglob("*") if path.is_file())
    for path in draw.sample(files, len(files) // 10):
        act = draw.choice(["change", "rename", "delete", "add"])
        if act == "change":
            path.write_text(f"Changed to {draw.random()}.")
        elif act == "rename":
            path.rename(path.with_name(f"renamed-{draw.random()}.txt"))
        elif act == "delete":
            path.unlink()
        else:
            path.with_name(f"added-{draw.random()}.txt").write_text(f"Added {draw.random()}.")


async def sync_under_fire(desk: Desk, *, kills: int, seed: int = 7, open_source: OpenSource = FolderSource) -> int:
    """Kill syncs with signal 9 after some documents each; the folder changes in between. Returns how many died."""
    draw = random.Random(seed)  # noqa: S311 - the same every time
    died = 0
    for _ in range(kills):
        before = _rows(desk)
        process = _FORKS.Process(
            target=run,
            args=(desk.house.server.service_conninfo, str(desk.folder), desk.corpus.id, open_source),
            daemon=True,
        )
        await asyncio.to_thread(process.start)
        await _work_a_while(desk, process, before, draw)
        died += process.is_alive()
        process.kill()
        await asyncio.to_thread(process.join, 60)
        process.close()
        change_folder(desk, draw)
    return died


async def _work_a_while(desk: Desk, process: ForkServerProcess, before: set[object], draw: random.Random) -> None:
    """Until some rows have changed, and some milliseconds more, so that any statement may be under way."""
    deadline = time.monotonic() + 120
    while process.is_alive() and len(_rows(desk) ^ before) < draw.randint(3, 20):
        assert time.monotonic() < deadline, "the sync does nothing"
        await asyncio.sleep(0.002)
    await asyncio.sleep(draw.random() * PAUSE)


def _rows(desk: Desk) -> set[object]:
    with desk.house.owner() as owner:
        return set(owner.execute("SELECT path, document_id, content_hash FROM rag.synced_files").fetchall())
