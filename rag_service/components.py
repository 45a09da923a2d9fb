"""The parts of the service, opened together: database, models, retriever, engine, ingestion, uploads."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.definitions import IndexDefinition, load_index, load_indices
from rag_service.domain import Answer, AnswerQuery, CorpusKind, Identity, Role
from rag_service.errors import ConfigurationError, NotFoundError, StoreError
from rag_service.ingest.embedding_cache import wrap_embedding
from rag_service.ingest.jobs import Uploads
from rag_service.ingest.pipeline import DocumentInput, Ingested, Ingestor
from rag_service.ingest.sandbox import parse_in_sandbox
from rag_service.ingest.wiring import build_originals, build_uploads, current_fingerprints
from rag_service.metrics import Metrics
from rag_service.models.chat.chat import ChatModel, build_chat
from rag_service.models.embedding.embeddings import build_embedding, close_embedding
from rag_service.models.extractive.extractive import ExtractiveLLM
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.query.advisor.advisor import Advisor
from rag_service.query.agents.chat import AgentChat, ChatParts
from rag_service.query.agents.engines import AgentModels
from rag_service.query.engine import AnswerEngine
from rag_service.query.prompting.prompt import load_prompts
from rag_service.query.provenance import AnswerRecorder, Difference, compare_records, read_query
from rag_service.query.retrieval.fallback import FallbackRetriever
from rag_service.query.retrieval.replicated import ReplicatedRetriever
from rag_service.query.retrieval.retriever import Retrieval, Retriever
from rag_service.settings import Settings
from rag_service.store.corpora import Corpus, create_corpus, find_corpus
from rag_service.store.documents.originals import OriginalStore
from rag_service.store.embedded import start_embedded_server
from rag_service.store.migrate import LOCAL_ADMIN_ID, migrate
from rag_service.store.people.agents import Agent, AgentScope, read_agent, resolve_agent_scope
from rag_service.store.people.answers import read_answer
from rag_service.store.replication.replica import CONNECT_SECONDS, Replica, replica_conninfo
from rag_service.store.search.turns import Turns
from rag_service.store.session import Database
from rag_service.store.warming import warm_buffers
from rag_service.text.words import terms

log = structlog.get_logger(__name__)

DEFAULT_CORPUS = "documents"
LOCAL_ADMIN = Identity(user_id=UUID(LOCAL_ADMIN_ID), role=Role.ADMIN)


@dataclass(frozen=True, kw_only=True)
class Components:
    """The opened parts of the service."""

    settings: Settings
    metrics: Metrics
    conninfo: str = field(repr=False)  # of the unprivileged role
    database: Database
    replica: Replica | None  # None: searches go where everything goes
    embedding: BaseEmbedding
    chat: ChatModel
    indices: Mapping[str, IndexDefinition]
    retriever: Retriever
    engine: AnswerEngine
    recorder: AnswerRecorder
    ingestor: Ingestor
    advisor: Advisor
    agent_chat: AgentChat
    originals: OriginalStore
    uploads: Uploads

    @property
    def fingerprints(self) -> dict[str, str]:
        """Index name → what a document ingested now carries."""
        return current_fingerprints(self.settings, self.indices)

    async def default_corpus(self, identity: Identity) -> Corpus:
        """The corpus that takes documents which name no other: global for administrators, else the user's own.

        Made at first use.
        """
        kind = CorpusKind.GLOBAL if identity.role is Role.ADMIN else CorpusKind.PERSONAL
        async with self.database.transaction(identity) as connection:
            found = await find_corpus(connection, name=DEFAULT_CORPUS, kind=kind)
            return found or await create_corpus(
                connection,
                identity,
                name=DEFAULT_CORPUS,
                kind=kind,
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
        engine, recorder, query = self.engine, self.recorder, read_query(before)
        if query.agent_id is not None:
            try:
                async with self.database.transaction(identity) as connection:
                    agent = await read_agent(connection, query.agent_id)
            except NotFoundError:
                return [Difference(what="agent", detail="it was deleted, and with it its model and instructions")]
            parts = self.agent_chat.parts_for(agent)
            engine, recorder = parts.engine, parts.recorder
            query = replace(query, instructions=agent.spec.system_prompt)

        async def keep(query: AnswerQuery, answer: Answer, retrieval: Retrieval, _: Identity) -> None:
            after.update(recorder.make_record(query, answer, retrieval))

        await engine.recording_to(keep).answer(query, identity)
        return compare_records(before, after)

    async def ingest(self, source: DocumentInput, identity: Identity) -> Ingested:
        """Ingest into the default corpus."""
        corpus = await self.default_corpus(identity)
        return await self.ingestor.ingest(
            source, corpus=corpus, index=self.indices[corpus.index_name], identity=identity
        )


@asynccontextmanager
async def open_components(settings: Settings, *, metrics: Metrics | None = None) -> AsyncIterator[Components]:
    """Open everything that the service needs, and close it again.

    The embedded database is started and migrated. An external one may be unreachable: the service
    starts all the same, says so in /health/ready, and recovers by itself.

    Raises:
        ConfigurationError: a setting or definition is wrong.
        UnsafeRoleError: the database role could bypass row-level security.
    """
    prompts = load_prompts(settings.prompts_path, replacement=settings.prompt_template_path)
    indices = load_indices(indices_path=settings.indices_path)
    if settings.index not in indices:
        load_index(settings.index, indices_path=settings.indices_path)  # says which there are
    async with AsyncExitStack() as stack:
        conninfo = await _find_database(settings)
        database = await _open_database(conninfo, settings)
        stack.push_async_callback(database.close)
        metrics = metrics or Metrics()
        embedding = wrap_embedding(build_embedding(settings), settings, database, metrics=metrics)
        stack.push_async_callback(close_embedding, embedding)
        chat = build_chat(settings, extractive=ExtractiveLLM(embedding))
        metrics.watch_circuit(chat.breaker.name, lambda: chat.breaker.state == "open")
        metrics.watch_waiting(lambda: chat.waiting)
        stack.push_async_callback(chat.aclose)
        reranker = build_reranker(settings, analyse=lambda text: terms(text, "en"), chat=chat)
        retriever, replica = await _open_search(stack, settings, database, embedding, indices, metrics)

        def make_parts(adapted: Settings, model: ChatModel) -> ChatParts:
            recorder = AnswerRecorder(database, prompts, model, adapted)
            engine = AnswerEngine(
                retriever, model, reranker, prompts, adapted, identity=LOCAL_ADMIN, record=recorder.record
            )
            return ChatParts(engine=engine, chat=model, recorder=recorder)

        def make_own(adapted: Settings) -> ChatParts:
            """Those of an agent that wants others than the service's."""
            return make_parts(adapted, build_chat(adapted, extractive=ExtractiveLLM(embedding)))

        async def resolve(agent: Agent, identity: Identity) -> AgentScope:
            async with database.transaction(identity) as connection:
                return await resolve_agent_scope(connection, agent, owner_id=identity.user_id)

        parts = make_parts(settings, chat)
        agent_models = AgentModels(settings, parts, make_own)
        stack.push_async_callback(agent_models.aclose)
        originals = build_originals(settings)
        yield Components(
            settings=settings,
            metrics=metrics,
            conninfo=conninfo,
            database=database,
            replica=replica,
            embedding=embedding,
            chat=chat,
            indices=indices,
            retriever=retriever,
            engine=parts.engine,
            recorder=parts.recorder,
            ingestor=Ingestor(
                database,
                embedding,
                lambda data, name: parse_in_sandbox(data, file_name=name),
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
                originals=originals,
            ),
            advisor=Advisor(database, retriever, chat, reranker, prompts, indices, settings),
            agent_chat=AgentChat(parts_for=agent_models.parts_for, resolve=resolve, prompts=prompts),
            originals=originals,
            uploads=build_uploads(settings, database, originals, embedding, indices),
        )


async def _open_search(
    stack: AsyncExitStack,
    settings: Settings,
    database: Database,
    embedding: BaseEmbedding,
    indices: Mapping[str, IndexDefinition],
    metrics: Metrics,
) -> tuple[Retriever, Replica | None]:
    """What searches, on the read replica too where there is one; `stack` closes the replica."""
    retrieve = FallbackRetriever if settings.lexical_fallback else Retriever

    def search_on(searched: Database, turns: Turns) -> Retriever:
        return retrieve(searched, embedding, indices, default_index=settings.index, turns=turns)

    turns = _make_turns(settings)
    retriever = search_on(database, turns)
    replica = _make_replica(database, turns, settings)
    if replica is not None:
        await replica.open()
        stack.push_async_callback(replica.close)
        metrics.watch_circuit("replica", lambda: not replica.up)
        retriever = ReplicatedRetriever(
            retriever, replica, partial(search_on, turns=_make_turns(settings)), count=metrics.replica_search
        )
    return retriever, replica


async def _find_database(settings: Settings) -> str:
    """Connection string of the unprivileged role; the embedded server is started and migrated for it."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    server = await start_embedded_server(settings.data_dir)
    await migrate(server.owner_conninfo, server.service_conninfo, dimension=settings.embedding_dimension)
    threading.Thread(target=warm_buffers, args=(server,), name="warm buffers", daemon=True).start()
    return server.service_conninfo


def _make_turns(settings: Settings) -> Turns:
    return Turns(limit=max(1, settings.database_pool_size // 2), patience=settings.database_timeout)


def _make_replica(database: Database, turns: Turns, settings: Settings) -> Replica | None:
    """The read replica of an open database, not yet open; None where there is none."""
    if settings.database_replica_url is None:
        return None
    standby = Database(
        replica_conninfo(settings.database_replica_url.get_secret_value()),
        pool_size=settings.database_pool_size,
        timeout=min(CONNECT_SECONDS, settings.database_timeout),
        idle_timeout=settings.job_stalled_seconds,
    )
    return Replica(database, standby, pause=settings.breaker_seconds, timeout=settings.database_timeout, turns=turns)


async def _open_database(conninfo: str, settings: Settings) -> Database:
    database = Database(
        conninfo,
        pool_size=settings.database_pool_size,
        timeout=settings.database_timeout,
        idle_timeout=settings.job_stalled_seconds,
    )
    await database.open()
    try:
        await database.check()
    except StoreError as error:
        log.error("database_not_ready", detail=error.message)
    except ConfigurationError:
        await database.close()
        raise
    return database
