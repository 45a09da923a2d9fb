"""`Ingestor.ingest_all`: many documents at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.domain import LOCAL_ADMIN, CorpusKind, ParsedDocument
from rag_service.errors import DocumentError
from rag_service.indices import load_index
from rag_service.ingest.documents import Ingested, Outcome
from rag_service.ingest.ingestor import Ingestor
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import parse
from rag_service.store.corpora import Corpus, create_corpus
from rag_service.store.database import Database
from rag_service.store.documents.documents import DocumentInput

USER = LOCAL_ADMIN


async def corpus_of(database: Database) -> Corpus:
    async with database.transaction(USER) as connection:
        return await create_corpus(connection, USER, name="bench", kind=CorpusKind.PERSONAL, index_name="general")


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

    async def parse_slowly(data: bytes, file_name: str) -> ParsedDocument:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
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
