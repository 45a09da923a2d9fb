"""`Ingestor.ingest_all`: many documents at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode

from rag_service.domain import LOCAL_ADMIN, CorpusKind, ParsedDocument
from rag_service.errors import DocumentError
from rag_service.indices import load_index
from rag_service.ingest import ingestor as ingestor_module
from rag_service.ingest.batches import MOST_BYTES
from rag_service.ingest.documents import Ingested, Outcome
from rag_service.ingest.ingestor import Ingestor
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import parse
from rag_service.store.corpora import Corpus, create_corpus
from rag_service.store.database import Connection, Database
from rag_service.store.documents.documents import DocumentInput, NewDocument
from rag_service.store.documents.originals import Originals

USER = LOCAL_ADMIN


async def corpus_of(database: Database) -> Corpus:
    async with database.transaction(USER) as connection:
        return await create_corpus(connection, USER, name="bench", kind=CorpusKind.PERSONAL, index_name="general")


async def parse_at_once(data: bytes, file_name: str) -> ParsedDocument:
    return parse(data, file_name=file_name)


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

    ingestor = Ingestor(database, fake_embedding, FileReader(picky), model="fake", dimension=384)
    outcomes = {
        source.file_name: outcome
        async for source, outcome in ingestor.ingest_all(
            sources("a.txt", "b.txt", "c.txt"),
            corpus=await corpus_of(database),
            index=load_index("general"),
            identity=USER,
        )
    }
    assert isinstance(outcomes["b.txt"], DocumentError)
    assert isinstance(outcomes["a.txt"], Ingested)
    assert isinstance(outcomes["c.txt"], Ingested)


async def test_the_next_document_is_parsed_while_one_is_in_work_and_no_more(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    running = most = 0
    two_run = asyncio.Event()

    async def parse_slowly(data: bytes, file_name: str) -> ParsedDocument:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            two_run.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(20):
                await two_run.wait()
        await asyncio.sleep(0.05)  # for a third one to begin
        running -= 1
        return parse(data, file_name=file_name)

    ingestor = Ingestor(database, fake_embedding, FileReader(parse_slowly), model="fake", dimension=384)
    names = [f"{number}.txt" for number in range(6)]
    found = [
        source.file_name
        async for source, _ in ingestor.ingest_all(
            sources(*names), corpus=await corpus_of(database), index=load_index("general"), identity=USER
        )
    ]
    assert sorted(found) == names
    assert most == 2


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"one.txt": b"The same text.", "other.txt": b"The same text."}, [Outcome.ADDED, Outcome.ADDED]),
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

    ingestor = Ingestor(database, fake_embedding, FileReader(parse_slowly), model="fake", dimension=384)
    found = ingestor.ingest_all(
        found_files(), corpus=await corpus_of(database), index=load_index("general"), identity=USER
    )
    assert [outcome.outcome async for _, outcome in found if isinstance(outcome, Ingested)] == expected


async def small_sources(number: int, more: str = "", **wrong: bytes) -> AsyncIterator[DocumentInput]:
    for one in range(number):
        name = f"{one:03}.txt"
        yield DocumentInput(data=wrong.get(f"n{one}", f"Something about {name}.{more}".encode()), file_name=name)


async def test_small_documents_are_stored_together_and_a_large_one_alone(
    database: Database, fake_embedding: BaseEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    real = ingestor_module.write_documents

    async def write(connection: Connection, documents: Sequence[tuple[NewDocument, Sequence[BaseNode]]]) -> None:
        written.append(len(documents))
        await real(connection, documents)

    monkeypatch.setattr(ingestor_module, "write_documents", write)
    ingestor = Ingestor(
        database, fake_embedding, FileReader(parse_at_once), originals=Originals(), model="fake", dimension=384
    )
    corpus = await corpus_of(database)
    large = b"A sentence of some length. " * (MOST_BYTES // 20)
    for expected, more in ((Outcome.ADDED, ""), (Outcome.UNCHANGED, ""), (Outcome.REPLACED, " More.")):
        found = {
            source.file_name: outcome
            async for source, outcome in ingestor.ingest_all(
                small_sources(70, more, n5=b"", n40=large + more.encode()),
                corpus=corpus,
                index=load_index("general"),
                identity=USER,
            )
        }
        assert len(found) == 70
        assert isinstance(found.pop("005.txt"), DocumentError)
        assert {outcome.outcome for outcome in found.values() if isinstance(outcome, Ingested)} == {expected}
    assert sum(written) == 2 * 69
    assert len(written) <= 2 * 8
    async with database.transaction(USER) as connection:
        rows = await (
            await connection.execute(
                "SELECT d.name, t.text, d.chunk_count, (SELECT count(*) FROM data_chunks c WHERE c.document_id = d.id),"
                " (SELECT count(DISTINCT term) FROM postings p WHERE p.document_id = d.id) > 0, o.data"
                " FROM documents d JOIN document_texts t ON t.document_id = d.id"
                " JOIN originals o ON o.document_id = d.id ORDER BY d.name"
            )
        ).fetchall()
    assert len(rows) == 69
    for name, text, count, chunks, has_terms, data in rows:
        assert (name in text or name == "040.txt") and "More." in text
        assert (count, has_terms) == (chunks, True)
        assert bytes(data).decode().strip() == text.strip()


async def test_what_the_database_refuses_of_one_document_concerns_no_other_of_its_batch(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    async def record(connection: Connection, source: DocumentInput, document_id: UUID) -> None:
        if source.file_name == "003.txt":
            raise DocumentError("refused")

    ingestor = Ingestor(database, fake_embedding, FileReader(parse_at_once), model="fake", dimension=384)
    corpus = await corpus_of(database)
    found = {
        source.file_name: outcome
        async for source, outcome in ingestor.ingest_all(
            small_sources(8), corpus=corpus, index=load_index("general"), identity=USER, stored=record
        )
    }
    assert [name for name, outcome in found.items() if isinstance(outcome, DocumentError)] == ["003.txt"]
    async with database.transaction(USER) as connection:
        cursor = await connection.execute("SELECT count(*) FROM documents")
        assert await cursor.fetchone() == (7,)


async def test_what_sources_raise_ends_the_run(database: Database, fake_embedding: BaseEmbedding) -> None:
    async def failing() -> AsyncIterator[DocumentInput]:
        yield DocumentInput(data=b"One.", file_name="one.txt")
        raise OSError("gone")

    ingestor = Ingestor(database, fake_embedding, FileReader(parse_at_once), model="fake", dimension=384)
    found = ingestor.ingest_all(failing(), corpus=await corpus_of(database), index=load_index("general"), identity=USER)
    with pytest.raises(OSError, match="gone"):
        _ = [outcome async for outcome in found]


async def test_what_comes_slowly_does_not_wait_for_a_batch(database: Database, fake_embedding: BaseEmbedding) -> None:
    stored = asyncio.Event()

    async def slow() -> AsyncIterator[DocumentInput]:
        yield DocumentInput(data=b"One.", file_name="one.txt")
        await asyncio.wait_for(stored.wait(), 60)
        yield DocumentInput(data=b"Two.", file_name="two.txt")

    async def record(connection: Connection, source: DocumentInput, document_id: UUID) -> None:
        stored.set()

    ingestor = Ingestor(database, fake_embedding, FileReader(parse_at_once), model="fake", dimension=384)
    found = ingestor.ingest_all(
        slow(), corpus=await corpus_of(database), index=load_index("general"), identity=USER, stored=record
    )
    assert [source.file_name async for source, _ in found] == ["one.txt", "two.txt"]
