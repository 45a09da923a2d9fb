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

from rag_service.definitions import load_index
from rag_service.domain import ParsedDocument
from rag_service.ingest import stages as stages_module
from rag_service.ingest.parse import parse
from rag_service.ingest.stages import EmbeddingModel, Stages
from rag_service.ingest.worker import Worker
from rag_service.store.documents.originals import DatabaseOriginals
from rag_service.store.session import Database
from tests.conftest import FakeEmbedding
from tests.integration.tenancy.conftest import INDEX, QUICK

PAUSE = 0.08  # seconds, in each stage
OPTIONS = replace(QUICK, stalled_seconds=1.2, policy=replace(QUICK.policy, attempts=1000))


class SlowEmbedding(FakeEmbedding):
    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(PAUSE)
        return self._get_text_embeddings(texts)


async def parse_slowly(data: bytes, file_name: str) -> ParsedDocument:
    await asyncio.sleep(PAUSE)
    return parse(data, file_name=file_name)


def slow_down_stages() -> None:
    cut, store = stages_module.cut, stages_module.store_document

    def cut_slowly(*arguments: Any) -> Any:
        import time

        time.sleep(PAUSE)  # runs in a thread
        return cut(*arguments)

    async def store_slowly(connection: Any, document: Any, nodes: Sequence[Any]) -> None:
        await asyncio.sleep(PAUSE / 2)  # while the stage says "storing"
        await store(connection, document, nodes)
        await asyncio.sleep(PAUSE)  # written, not yet committed

    stages_module.cut = cut_slowly
    stages_module.store_document = store_slowly


def build_worker(conninfo: str, database: Database) -> Worker:
    model = EmbeddingModel(embedding=SlowEmbedding(model_name="fake", embed_batch_size=2), name="fake", dimension=384)
    originals = DatabaseOriginals()
    stages = Stages(database, originals, model, parse_slowly, {INDEX: load_index(INDEX)}, parse_concurrency=2)
    return Worker(conninfo, database, stages, originals, OPTIONS)


def run(conninfo: str, ready: Connection) -> None:
    """The whole life of the process."""
    slow_down_stages()
    asyncio.run(_work(conninfo, ready))


async def _work(conninfo: str, ready: Connection) -> None:
    database = Database(conninfo, pool_size=4, timeout=5, idle_timeout=OPTIONS.stalled_seconds)
    await database.open()
    ready.send(True)
    await build_worker(conninfo, database).run()
