"""A worker process that tests kill.

It embeds by hash and pauses inside each stage, the last transaction included, so that a kill can hit
all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from rag_service.domain import ParsedDocument
from rag_service.indices import load_index
from rag_service.ingest import upload_job
from rag_service.ingest.chunker import Chunker
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.worker import Worker
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import parse
from rag_service.store.database import Database
from rag_service.store.documents.originals import Originals
from tests.conftest import FakeEmbedding
from tests.integration.tenancy.conftest import IMPATIENT, INDEX

PAUSE = 0.08  # seconds, in each stage
OPTIONS = replace(IMPATIENT, stalled_seconds=1.2, attempts=1000)


class SlowEmbedding(FakeEmbedding):
    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(PAUSE)
        return self._get_text_embeddings(texts)


async def parse_slowly(data: bytes, file_name: str) -> ParsedDocument:
    await asyncio.sleep(PAUSE)
    return parse(data, file_name=file_name)


def slow_down_stages() -> None:
    cut, store = Chunker._parse_nodes, upload_job.write_document

    def cut_slowly(self: Chunker, *arguments: Any) -> Any:
        import time

        time.sleep(PAUSE)  # runs in a thread
        return cut(self, *arguments)

    async def store_slowly(connection: Any, document: Any, nodes: Sequence[Any]) -> None:
        await asyncio.sleep(PAUSE / 2)  # while the stage says "storing"
        await store(connection, document, nodes)
        await asyncio.sleep(PAUSE)  # written, not yet committed

    Chunker._parse_nodes = cut_slowly  # type: ignore[method-assign]
    upload_job.write_document = store_slowly


def build_worker(database: Database) -> Worker:
    embedding = SlowEmbedding(model_name="fake", embed_batch_size=2)
    reader = FileReader(parse_slowly, concurrency=2)
    ingestor = Ingestor(database, embedding, reader, model="fake", dimension=384)
    return Worker(upload_job.UploadJob(database, Originals(), ingestor, {INDEX: load_index(INDEX)}, OPTIONS))


def run(conninfo: str, ready: Connection) -> None:
    """The whole life of the process."""
    slow_down_stages()
    asyncio.run(_work(conninfo, ready))


async def _work(conninfo: str, ready: Connection) -> None:
    database = Database(conninfo, pool_size=4, timeout=5, idle_timeout=OPTIONS.stalled_seconds)
    await database.open()
    ready.send(True)
    await build_worker(database).run()
