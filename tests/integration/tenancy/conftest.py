"""People, corpora and workers for the tests of isolation and jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest
import pytest_asyncio
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.domain import CorpusKind, Filters, Identity, ParsedDocument, Role
from rag_service.errors import StoreError
from rag_service.indices import IndexDefinition, load_index
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.upload_job import UploadJob, WorkerOptions
from rag_service.ingest.uploads import Uploads
from rag_service.ingest.worker import Worker
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import parse
from rag_service.store.accounts.users import create_user
from rag_service.store.corpora import Corpus, create_corpus
from rag_service.store.database import Connection, Database
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.originals import Originals
from rag_service.store.documents.uploads import Upload, UploadStatus, read_upload
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.search.dense import search_dense
from rag_service.store.search.passages import read_chunk_rows, to_chunks
from tests.conftest import FakeEmbedding, cloned_database
from tests.loop_watch import apart

if TYPE_CHECKING:  # processes that tests start and kill load this module, too
    from litestar import Litestar

ADMIN = Identity(user_id=UUID("00000000-0000-4000-8000-000000000001"), role=Role.ADMIN)
QUICK = WorkerOptions(
    stalled_seconds=10.0,  # a busy machine may keep a worker from its heartbeat for one
    upkeep_seconds=0.3,
    poll_seconds=0.2,
    restart_seconds=0.1,
    grace_seconds=0.2,
    attempts=5,
    backoff_seconds=0.05,
    backoff_max_seconds=0.2,
)
IMPATIENT = replace(QUICK, stalled_seconds=1.0)  # for tests in which a worker or its job is lost
INDEX = "general"
ADVICE_INDEX = "retirement"  # its chunks have the types that the advisor asks for


@cache
def load_indices() -> dict[str, IndexDefinition]:
    return {name: load_index(name) for name in (INDEX, ADVICE_INDEX)}


async def parse_here(data: bytes, file_name: str) -> ParsedDocument:
    """The parser without its sandbox: milliseconds instead of a process."""
    with apart():
        return parse(data, file_name=file_name)


def text_file(name: str, text: str) -> DocumentInput:
    return DocumentInput(data=text.encode(), file_name=name)


@dataclass(kw_only=True)
class House:
    """A database with the parts that stand on it."""

    server: EmbeddedServer
    database: Database
    embedding: BaseEmbedding
    originals: Originals = field(default_factory=Originals)

    @property
    def fingerprints(self) -> dict[str, str]:
        return {
            name: index.fingerprint(embedding_model="fake", dimension=384) for name, index in load_indices().items()
        }

    @property
    def uploads(self) -> Uploads:
        return Uploads(self.database, self.originals, self.fingerprints, default_ttl_seconds=None)

    def ingestor(self, parser: Any = parse_here) -> Ingestor:
        reader = FileReader(parser, concurrency=2)
        return Ingestor(self.database, self.embedding, reader, model="fake", dimension=384)

    def job(self) -> UploadJob:
        return UploadJob(self.database, self.originals, self.ingestor(), load_indices(), QUICK)

    def owner(self) -> psycopg.Connection:
        """A connection that sees everything."""
        return psycopg.connect(self.server.owner_conninfo, autocommit=True)

    async def user(self, name: str, role: Role = Role.USER) -> Identity:
        async with self.database.transaction(ADMIN) as connection:
            created = await create_user(connection, name=name, role=role)
        return Identity(user_id=created.id, role=role)

    async def corpus(
        self,
        identity: Identity,
        name: str = "notes",
        kind: CorpusKind = CorpusKind.PERSONAL,
        *,
        index_name: str = INDEX,
    ) -> Corpus:
        async with self.database.transaction(identity) as connection:
            return await create_corpus(connection, identity, name=name, kind=kind, index_name=index_name)

    async def status(self, identity: Identity, upload: Upload) -> Upload:
        async with self.database.transaction(identity) as connection:
            return await read_upload(connection, upload.id)

    async def settled(self, identity: Identity, *uploads: Upload, within: float = 60.0) -> list[Upload]:
        """The uploads once all are indexed or failed."""
        limit = time.monotonic() + within
        while True:
            states: list[Upload] = []
            with suppress(StoreError):  # a test may restart the database
                states = [await self.status(identity, upload) for upload in uploads]
            if states and all(state.status.final for state in states):
                return states
            assert time.monotonic() < limit, [(state.status, state.reason, state.attempts) for state in states]
            await asyncio.sleep(0.03)

    async def ask(self, identity: Identity, question: str, filters: Filters | None = None) -> set[str]:
        """Texts that a search by the identity finds."""
        async with self.database.transaction(identity) as connection:
            return {text for text, _ in await self.search(connection, question, filters)}

    async def search(
        self, connection: Connection, question: str, filters: Filters | None = None
    ) -> list[tuple[str, UUID]]:
        """(text, corpus) of what a dense search over everything readable finds."""
        vector = self.embedding.get_query_embedding(question)
        hits = await search_dense(connection, vector, filters=filters, limit=50)
        chunks = to_chunks(await read_chunk_rows(connection, [chunk_id for chunk_id, _ in hits]))
        return [(chunk.text, chunk.document.corpus_id) for chunk in chunks.values()]

    @asynccontextmanager
    async def working(self, *, parser: Any = parse_here, options: WorkerOptions = QUICK) -> AsyncIterator[None]:
        """A worker in this process, for the length of the block."""
        worker = Worker(UploadJob(self.database, self.originals, self.ingestor(parser), load_indices(), options))
        task = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def index(
        self, identity: Identity, corpus: Corpus, *documents: DocumentInput, within: float = 60.0
    ) -> list[Upload]:
        """Upload documents and wait until they are indexed."""
        accepted = [
            await self.uploads.accept(document, corpus_id=corpus.id, identity=identity) for document in documents
        ]
        async with self.working():
            done = await self.settled(identity, *accepted, within=within)
        assert {upload.status for upload in done} == {UploadStatus.INDEXED}, [upload.reason for upload in done]
        return done


@pytest.fixture
def house(database_server: EmbeddedServer, database: Database, fake_embedding: BaseEmbedding) -> House:
    return House(server=database_server, database=database, embedding=fake_embedding)


@pytest.fixture
def quick(request: pytest.FixtureRequest) -> Callable[..., WorkerOptions]:
    """Worker options for tests, some replaced."""
    return lambda **changes: replace(QUICK, **changes)


@dataclass(frozen=True, kw_only=True)
class Street:
    """The service as `create_app` makes it, and the house behind it; shared by the tests of a module."""

    house: House
    application: Litestar


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def street(postgres: EmbeddedServer) -> AsyncIterator[Street]:
    from tests.integration.tenancy.web import real_application  # it imports this module

    embedding = FakeEmbedding(model_name="fake-bag-of-words", embed_batch_size=32)
    with cloned_database(postgres) as server:
        async with real_application(server, embedding) as (application, components):
            house = House(server=server, database=components.database, embedding=embedding)
            yield Street(house=house, application=application)
