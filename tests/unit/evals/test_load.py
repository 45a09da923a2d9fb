"""Users at once: every kind of request is sent and counted, and what the processes take is told."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from evals.benchmarks.database import BenchDatabase
from evals.benchmarks.ingest import IngestBench
from evals.benchmarks.load import LoadOptions, Seen, measure_load
from rag_service.indices import load_index, shipped_folder
from rag_service.readers.file_reader import FileReader
from rag_service.settings import Settings
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer


@pytest.mark.slow  # starts two services
async def test_a_short_run_counts_each_kind_of_request(
    database: Database, database_server: EmbeddedServer, fake_embedding: BaseEmbedding
) -> None:
    bench = IngestBench(
        database=BenchDatabase(
            database=database,
            owner_conninfo=database_server.owner_conninfo,
            service_conninfo=database_server.service_conninfo,
        ),
        settings=Settings(),
        embedding=fake_embedding,
        reader=FileReader(),
        index=load_index("general"),
    )
    folder = shipped_folder("indices") / "general" / "documents"
    async with asyncio.timeout(300):
        rows = await measure_load(bench, folder, LoadOptions(users=12, seconds=8, think=0.5))
    by_name = {row["what"]: row for row in rows}
    for name in ("search", "quoted answer", "stream"):
        assert by_name[name]["requests"], rows
        assert by_name[name]["errors"] == 0, rows
    assert by_name["connections to the database, at most"]["p50 ms"]


def test_a_refusal_is_no_error_and_has_no_time() -> None:
    seen = Seen()
    for status, milliseconds in ((200, 5.0), (503, 1.0), (500, 1.0)):
        seen.note("search", status, milliseconds)
    assert seen.milliseconds["search"] == [5.0]
    assert seen.statuses["search"] == {200: 1, 503: 1, 500: 1}
