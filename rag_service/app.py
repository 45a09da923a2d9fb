"""Wires the service together; the only place that does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from litestar import Litestar
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.api.answers import answers_route
from rag_service.api.application import create_litestar
from rag_service.api.services import Probe, Services
from rag_service.definitions import IndexDefinition, list_indices, load_index
from rag_service.domain import Answer, AnswerQuery, CorpusKind, Hit, Identity, Role
from rag_service.errors import ConfigurationError, StoreError
from rag_service.ingest.pipeline import DocumentInput, Ingested, Ingestor
from rag_service.ingest.sandbox import parse_in_sandbox
from rag_service.models.chat import ChatModel, build_chat
from rag_service.models.embeddings import build_embedding, close_embedding, warm_up
from rag_service.models.extractive import ExtractiveLLM
from rag_service.models.rerankers import build_reranker
from rag_service.query.engine import AnswerEngine
from rag_service.query.events import AnswerEvent
from rag_service.query.prompt import load_prompts
from rag_service.query.provenance import AnswerRecorder, Difference, compare_records, read_query
from rag_service.query.retriever import Retrieval, Retriever
from rag_service.settings import Settings
from rag_service.store.answers import read_answer
from rag_service.store.corpora import Corpus, create_corpus, find_corpus
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import LOCAL_ADMIN_ID, migrate
from rag_service.store.session import Database
from rag_service.text.words import terms

log = structlog.get_logger(__name__)

DEFAULT_CORPUS = "documents"
LOCAL_ADMIN = Identity(user_id=UUID(LOCAL_ADMIN_ID), role=Role.ADMIN)


@dataclass(frozen=True, kw_only=True)
class Components:
    """The opened parts of the service."""

    settings: Settings
    database: Database
    embedding: BaseEmbedding
    chat: ChatModel
    indices: Mapping[str, IndexDefinition]
    retriever: Retriever
    engine: AnswerEngine
    recorder: AnswerRecorder
    ingestor: Ingestor

    async def default_corpus(self, identity: Identity) -> Corpus:
        """The corpus that takes documents which name no other; made at first use."""
        async with self.database.transaction(identity) as connection:
            found = await find_corpus(connection, name=DEFAULT_CORPUS, kind=CorpusKind.GLOBAL)
            return found or await create_corpus(
                connection,
                identity,
                name=DEFAULT_CORPUS,
                kind=CorpusKind.GLOBAL,
                index_name=self.settings.index,
            )

    async def read_answer(self, answer_id: UUID, identity: Identity) -> dict[str, Any]:
        """The provenance record of an answer."""
        async with self.database.transaction(identity) as connection:
            return await read_answer(connection, answer_id)

    async def replay(self, answer_id: UUID, identity: Identity) -> list[Difference]:
        """Ask a recorded question again, keeping no record, and say what changed."""
        before = await self.read_answer(answer_id, identity)
        after: dict[str, Any] = {}

        async def keep(query: AnswerQuery, answer: Answer, retrieval: Retrieval, _: Identity) -> None:
            after.update(self.recorder.make_record(query, answer, retrieval))

        await self.engine.recording_to(keep).answer(read_query(before), identity)
        return compare_records(before, after)

    async def ingest(self, source: DocumentInput, identity: Identity) -> Ingested:
        """Ingest into the default corpus."""
        corpus = await self.default_corpus(identity)
        return await self.ingestor.ingest(
            source, corpus=corpus, index=self.indices[corpus.index_name], identity=identity
        )


@asynccontextmanager
async def open_components(settings: Settings) -> AsyncIterator[Components]:
    """Open everything that the service needs, and close it again.

    The embedded database is started and migrated. An external one may be unreachable: the service
    starts all the same, says so in /health/ready, and recovers by itself.

    Raises:
        ConfigurationError: a setting or definition is wrong.
        UnsafeRoleError: the database role could bypass row-level security.
    """
    prompts = load_prompts(settings.prompts_path, replacement=settings.prompt_template_path)
    indices = {
        name: load_index(name, indices_path=settings.indices_path)
        for name in list_indices(indices_path=settings.indices_path)
    }
    if settings.index not in indices:
        load_index(settings.index, indices_path=settings.indices_path)  # says which there are
    async with AsyncExitStack() as stack:
        database = await _open_database(settings)
        stack.push_async_callback(database.close)
        embedding = build_embedding(settings)
        stack.push_async_callback(close_embedding, embedding)
        chat = build_chat(settings, extractive=ExtractiveLLM(embedding))
        stack.push_async_callback(chat.aclose)
        reranker = build_reranker(settings, analyse=lambda text: terms(text, "en"), chat=chat)
        retriever = Retriever(database, embedding, indices, default_index=settings.index)
        recorder = AnswerRecorder(database, prompts, chat, settings)
        yield Components(
            settings=settings,
            database=database,
            embedding=embedding,
            chat=chat,
            indices=indices,
            retriever=retriever,
            engine=AnswerEngine(
                retriever, chat, reranker, prompts, settings, identity=LOCAL_ADMIN, record=recorder.record
            ),
            recorder=recorder,
            ingestor=Ingestor(
                database,
                embedding,
                lambda data, name: parse_in_sandbox(data, file_name=name),
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
            ),
        )


async def _open_database(settings: Settings) -> Database:
    if settings.database_url is None:
        server = await start_embedded_server(settings.data_dir)
        await migrate(server.owner_conninfo, server.service_conninfo, dimension=settings.embedding_dimension)
        conninfo = server.service_conninfo
    else:
        conninfo = settings.database_url.get_secret_value()
    database = Database(conninfo, pool_size=settings.database_pool_size, timeout=settings.database_timeout)
    await database.open()
    try:
        await database.check()
    except StoreError as error:
        log.error("database_not_ready", detail=error.message)
    except ConfigurationError:
        await database.close()
        raise
    return database


def create_app(settings: Settings, *, components: Components | None = None) -> Litestar:
    """The web application. Given components are used and stay open; else it opens its own at start."""
    opened: list[Components] = [] if components is None else [components]

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncGenerator[None]:
        if components is not None:
            yield
            return
        async with open_components(settings) as own:
            opened.append(own)
            warming = asyncio.create_task(warm_up(own.embedding))
            try:
                yield
            finally:
                warming.cancel()
                opened.clear()

    def answer(query: AnswerQuery, identity: Identity) -> AsyncGenerator[AnswerEvent]:
        return opened[0].engine.stream(query, identity)

    async def search(query: AnswerQuery, identity: Identity) -> tuple[Retrieval, tuple[Hit, ...]]:
        return await opened[0].engine.search(query, identity)

    async def ingest(source: DocumentInput, identity: Identity) -> Ingested:
        return await opened[0].ingest(source, identity)

    async def read_record(answer_id: UUID, identity: Identity) -> dict[str, Any]:
        return await opened[0].read_answer(answer_id, identity)

    async def authenticate(_: Mapping[str, str]) -> Identity:
        return LOCAL_ADMIN

    async def check_database() -> None:
        await opened[0].database.check()

    services = Services(
        settings=settings,
        answer=answer,
        search=search,
        ingest=ingest,
        probes={
            "database": Probe(
                check=check_database,
                required=True,
                without="Nothing can be searched, answered or uploaded until it is back.",
            )
        },
        authenticate=authenticate,
    )
    return create_litestar(services, more_routes=[answers_route(read_record)], lifespan=[lifespan])
