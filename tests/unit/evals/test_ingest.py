"""The ingestion benchmark end to end with small documents, and the questions made of them."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from evals.benchmarks.answer import make_questions
from evals.benchmarks.database import BenchDatabase
from evals.benchmarks.ingest import IngestBench, ingest_folder, measure_ingest
from rag_service.domain import ParsedDocument
from rag_service.errors import InputError
from rag_service.indices import load_index
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import parse
from rag_service.settings import Settings
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer

TEXTS = {
    "bees.txt": "Bees dance to tell each other where flowers are, how far and how good.",
    "rivers.md": "# Rivers\n\nRivers carry sand to the sea.\n\n## Floods\n\nFloods leave mud on the fields.",
    "empty.txt": "",
}


async def parse_here(data: bytes, file_name: str) -> ParsedDocument:
    return parse(data, file_name=file_name)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def bench(database: Database, database_server: EmbeddedServer, fake_embedding: BaseEmbedding) -> IngestBench:
    return IngestBench(
        database=BenchDatabase(
            database=database,
            owner_conninfo=database_server.owner_conninfo,
            service_conninfo=database_server.service_conninfo,
        ),
        settings=Settings(),
        embedding=fake_embedding,
        reader=FileReader(parse_here),
        index=load_index("general"),
    )


async def test_every_way_is_measured_over_the_same_chunks_and_leaves_nothing_behind(
    bench: IngestBench, documents: Path
) -> None:
    rows = await measure_ingest(bench, documents)
    assert [row["way"] for row in rows] == ["ours, files to store", "embedding model alone", "stock, chunks to store"]
    assert {row["chunks"] for row in rows} == {2}  # one per file; the empty one is left out
    with psycopg.connect(bench.database.owner_conninfo) as connection:
        assert connection.execute("SELECT count(*) FROM rag.documents").fetchone() == (0,)
        assert connection.execute("SELECT to_regclass('public.data_bench_ingest')").fetchone() == (None,)


async def test_a_second_run_embeds_everything_again(bench: IngestBench, documents: Path) -> None:
    first = await ingest_folder(bench, documents)
    assert sorted(await ingest_folder(bench, documents)) == sorted(first)  # files are ingested side by side


async def test_a_folder_without_documents_is_an_error(bench: IngestBench, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match="holds no document"):
        await ingest_folder(bench, tmp_path)


def test_questions_are_distinct_reproducible_and_taken_from_the_texts() -> None:
    texts = [TEXTS["bees.txt"]]
    questions = make_questions(texts, 3)
    assert len(set(questions)) == 3
    assert questions == make_questions(texts, 3)
    assert all(question in texts[0] for question in questions)
    with pytest.raises(InputError, match="too short for 5000"):
        make_questions(texts, 5000)
