"""`bench ingest` end to end with small documents, and the ingestion of many that it measures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.bench.answer import make_questions
from rag_service.bench.corpus import generate_corpus
from rag_service.bench.ingest import IngestBench, ingest_prepared, measure_ingest, prepare
from rag_service.bench.load import BENCH_USER, BenchDatabase, empty_database, refuse_real_data
from rag_service.bench.storage import measure_storage
from rag_service.definitions import load_index
from rag_service.domain import CorpusKind, ParsedDocument
from rag_service.errors import DocumentError, InputError
from rag_service.ingest.parse import parse
from rag_service.ingest.pipeline import DocumentInput, Ingested, Ingestor, Outcome
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus, create_corpus
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.session import Database

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
def bench_database(database: Database, database_server: EmbeddedServer) -> BenchDatabase:
    return BenchDatabase(
        database=database,
        owner_conninfo=database_server.owner_conninfo,
        service_conninfo=database_server.service_conninfo,
    )


@pytest.fixture
def bench(bench_database: BenchDatabase, fake_embedding: BaseEmbedding) -> IngestBench:
    return IngestBench(
        database=bench_database,
        settings=Settings(),
        embedding=fake_embedding,
        parser=parse_here,
        index=load_index("general"),
    )


async def test_every_way_is_measured_over_the_same_chunks(bench: IngestBench, documents: Path) -> None:
    steps: list[int] = []
    prepared = await prepare(bench, documents, limit=None, advance=steps.append)
    assert [document.name for document in prepared.documents] == ["bees.txt", "rivers.md"]  # one cannot be read
    found = await measure_ingest(bench, prepared, stock=True, advance=steps.append)
    assert found.stock is not None
    assert {rate.count for rate in (found.ours, found.floor, found.stock)} == {found.chunks} == {len(prepared.texts)}
    assert found.share_of_floor > 0
    with psycopg.connect(bench.database.owner_conninfo) as connection:  # it leaves nothing behind
        assert connection.execute("SELECT count(*) FROM rag.documents").fetchone() == (0,)
        assert connection.execute("SELECT to_regclass('public.data_bench_ingest')").fetchone() == (None,)


async def test_a_cache_from_the_last_run_does_not_help(bench: IngestBench, documents: Path) -> None:
    prepared = await prepare(bench, documents, limit=None, advance=lambda _: None)
    asked: list[str] = []

    class Counting(type(bench.embedding)):  # type: ignore[misc]  # the fixture's class
        async def _aget_text_embedding(self, text: str) -> list[float]:
            asked.append(text)
            return self._get_text_embedding(text)  # type: ignore[no-any-return]

    counting = IngestBench(
        database=bench.database,
        settings=bench.settings,
        embedding=Counting(model_name="fake-bag-of-words"),
        parser=parse_here,
        index=bench.index,
    )
    for _ in range(2):
        asked.clear()
        await ingest_prepared(counting, prepared)
        assert sorted(asked) == sorted(prepared.texts)


async def test_nothing_to_read_is_said(bench: IngestBench, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match="holds no document"):
        await prepare(bench, tmp_path, limit=None, advance=lambda _: None)


async def test_questions_are_distinct_the_same_every_time_and_taken_from_the_documents(
    bench: IngestBench, documents: Path
) -> None:
    prepared = await prepare(bench, documents, limit=1, advance=lambda _: None)
    questions = make_questions(prepared, 3)
    assert len(set(questions)) == 3
    assert questions == make_questions(prepared, 3)
    assert all(question in TEXTS["bees.txt"] for question in questions)
    with pytest.raises(InputError, match="too short for 5000"):
        make_questions(prepared, 5000)


async def test_the_storage_leg_counts_what_follows_its_warm_up(bench_database: BenchDatabase) -> None:
    corpus = generate_corpus(200, dimension=384)
    found = await measure_storage(bench_database, corpus, stock=True)
    assert found.stock is not None
    ways = (found.ours, found.ours_without_graph, found.floor, found.floor_without_graph, found.stock)
    assert len({way.count for way in ways}) == 1
    assert 0 < found.ours.count < 200
    with psycopg.connect(bench_database.owner_conninfo) as connection:
        assert connection.execute("SELECT count(*) FROM rag.data_chunks").fetchone() == (200,)
        assert connection.execute("SELECT to_regclass('rag.data_chunks_embedding') IS NOT NULL").fetchone() == (True,)
        assert connection.execute("SELECT to_regclass('public.bench_rows')").fetchone() == (None,)


async def test_a_database_with_real_data_is_refused_and_stays_as_it_is(bench_database: BenchDatabase) -> None:
    async with bench_database.database.transaction(BENCH_USER) as connection:
        for name in ("bench old", "contracts"):
            await create_corpus(connection, BENCH_USER, name=name, kind=CorpusKind.PERSONAL, index_name="general")
    with pytest.raises(InputError, match="'contracts'"):
        refuse_real_data(bench_database.owner_conninfo)
    empty_database(bench_database.owner_conninfo)
    with psycopg.connect(bench_database.owner_conninfo) as connection:
        assert connection.execute("SELECT name FROM rag.corpora").fetchall() == [("contracts",)]


# -- many documents at once


async def corpus_of(database: Database) -> Corpus:
    async with database.transaction(BENCH_USER) as connection:
        return await create_corpus(connection, BENCH_USER, name="bench", kind=CorpusKind.PERSONAL, index_name="general")


async def sources(*names: str) -> AsyncIterator[DocumentInput]:
    for name in names:
        yield DocumentInput(data=f"Something about {name}.".encode(), file_name=name)


async def test_an_unreadable_document_does_not_stop_the_others(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    async def picky(data: bytes, file_name: str) -> ParsedDocument:
        if file_name == "b.txt":
            raise DocumentError("b.txt is damaged.")
        return parse(data, file_name=file_name)

    ingestor = Ingestor(database, fake_embedding, picky, model="fake", dimension=384)
    outcomes = {
        source.file_name: outcome
        async for source, outcome in ingestor.ingest_all(
            sources("a.txt", "b.txt", "c.txt"),
            corpus=await corpus_of(database),
            index=load_index("general"),
            identity=BENCH_USER,
        )
    }
    assert isinstance(outcomes["b.txt"], DocumentError)
    assert isinstance(outcomes["a.txt"], Ingested)
    assert isinstance(outcomes["c.txt"], Ingested)


async def test_the_next_document_is_parsed_while_one_is_in_work_and_no_more(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    running = most = 0

    async def parse_slowly(data: bytes, file_name: str) -> ParsedDocument:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return parse(data, file_name=file_name)

    ingestor = Ingestor(database, fake_embedding, parse_slowly, model="fake", dimension=384)
    names = [f"{number}.txt" for number in range(6)]
    found = [
        source.file_name
        async for source, _ in ingestor.ingest_all(
            sources(*names), corpus=await corpus_of(database), index=load_index("general"), identity=BENCH_USER
        )
    ]
    assert sorted(found) == names
    assert most == 2


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"one.txt": b"The same text.", "other.txt": b"The same text."}, [Outcome.ADDED, Outcome.UNCHANGED]),
        ({"a/same.txt": b"One text.", "b/same.txt": b"Another text."}, [Outcome.ADDED, Outcome.REPLACED]),
    ],
    ids=["copies", "versions"],
)
async def test_documents_that_belong_together_take_turns(
    database: Database, fake_embedding: BaseEmbedding, files: dict[str, bytes], expected: list[Outcome]
) -> None:
    async def found_files() -> AsyncIterator[DocumentInput]:
        for path, data in files.items():
            name = Path(path).name
            yield DocumentInput(data=data, file_name=name, name=name)

    async def parse_slowly(data: bytes, file_name: str) -> ParsedDocument:
        await asyncio.sleep(0.05)
        return parse(data, file_name=file_name)

    ingestor = Ingestor(database, fake_embedding, parse_slowly, model="fake", dimension=384)
    found = ingestor.ingest_all(
        found_files(), corpus=await corpus_of(database), index=load_index("general"), identity=BENCH_USER
    )
    assert [outcome.outcome async for _, outcome in found if isinstance(outcome, Ingested)] == expected
