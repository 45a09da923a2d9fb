"""The parts of the service, opened together: database, models, retriever, engine, ingestion, uploads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import TransformComponent

from rag_service.advisor.advisor import Advisor
from rag_service.advisor.article import ArticleFinder
from rag_service.agents.chat import AgentChat
from rag_service.agents.models import AgentModels
from rag_service.answering.checking import TextChecker
from rag_service.answering.engine import CitedQueryEngine, Postprocessors, Recall, Recorder, build_engine
from rag_service.answering.examples import Examples
from rag_service.answering.prompt.judging import judge_prompt_revision, write_judge_prompt
from rag_service.answering.prompt.templates import Prompts, load_prompts
from rag_service.answering.quoting.quoter import Quoter
from rag_service.answering.record import AnswerRecorder, Difference, compare_records, recorded_question
from rag_service.answering.tools.toolbox import Tools
from rag_service.domain import LOCAL_ADMIN, Identity
from rag_service.errors import NotFoundError
from rag_service.fitting.background import RelevanceFitter
from rag_service.fitting.examination import JudgeExaminer
from rag_service.indices import IndexDefinition, find_index, load_index, load_indices, shipped_names
from rag_service.ingest.documents import Ingested
from rag_service.ingest.embedding_cache import CachedEmbedding, wrap_embedding
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.postponed import PostponedUploads
from rag_service.ingest.transfer.transfers import Transfers, build_transfers
from rag_service.ingest.uploads import Uploads
from rag_service.ingest.wiring import build_ingestor, current_fingerprints
from rag_service.models.embedding.embeddings import build_embedding, build_sentence_reader
from rag_service.models.embedding.guarded import close_embedding, guard_embedding, local_model
from rag_service.models.embedding.relevance import ModelRelevance
from rag_service.models.judge.judge import Judge
from rag_service.models.judge.judges import WatchedJudge, build_judge
from rag_service.models.llm.extractive import EXTRACTIVE
from rag_service.models.llm.model import ChatModel, build_chat, build_quoting_turns
from rag_service.models.plugins import build_postprocessors, require_object, require_reader
from rag_service.models.reranking.rerankers import build_reranker
from rag_service.observability.metrics import Metrics
from rag_service.readers.parse import ReaderClass
from rag_service.retrieval.keyword import KeywordRetriever
from rag_service.retrieval.knowledge_base import KnowledgeBase
from rag_service.retrieval.opening import open_search
from rag_service.retrieval.query import PassageRetriever
from rag_service.settings import Settings
from rag_service.sources.opening import open_source
from rag_service.sources.scheduled import SourceRunner
from rag_service.sources.sync import OnProgress, Sync
from rag_service.store.accounts.agents import Agent, AgentScope, read_agent, resolve_agent_scope
from rag_service.store.accounts.answers import read_answer
from rag_service.store.corpora import Corpus, default_corpus, find_or_create_corpus
from rag_service.store.database import Database
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.originals import Originals
from rag_service.store.opening import open_database
from rag_service.store.replication.replica import Replica
from rag_service.tables.asking.answers import TableAnswers
from rag_service.tasks import end_tasks

REPORTS = "reports"  # the index whose synonyms tell which figure of a report a question means, in every index


@dataclass(frozen=True, kw_only=True)
class Plugins:
    """Objects of the caller, instead of or besides what the settings and index definitions name.

    Raises ConfigurationError if one is of the wrong kind.
    """

    llm: LLM | None = None
    embedding: BaseEmbedding | None = None  # its vectors have RAG_EMBEDDING_DIMENSION numbers
    reranker: BaseNodePostprocessor | None = None  # sets scores
    judge: Judge | None = None  # of reworded sentences
    postprocessors: Sequence[BaseNodePostprocessor] = ()  # after those of the index, in order
    readers: Mapping[str, type[BaseReader]] | None = None  # by extension, such as ".log"; importable, for the sandbox
    transformations: Sequence[TransformComponent] = ()  # after those of the index, in order

    def __post_init__(self) -> None:
        for name, value, base in (
            ("llm", self.llm, LLM),
            ("embedding", self.embedding, BaseEmbedding),
            ("reranker", self.reranker, BaseNodePostprocessor),
            ("judge", self.judge, Judge),
            *(("postprocessors", value, BaseNodePostprocessor) for value in self.postprocessors),
            *(("transformations", value, TransformComponent) for value in self.transformations),
        ):
            require_object(value, base, argument=name)
        for extension, reader in (self.readers or {}).items():
            require_reader(extension, reader)

    def settings(self, settings: Settings) -> Settings:
        """The settings with the name of the caller's embedding, which marks the documents that it embeds."""
        if self.embedding is None:
            return settings
        return settings.replace({"embedding_model": self.embedding.model_name})

    def reader_classes(self) -> dict[str, ReaderClass]:
        """The readers as the sandbox loads them."""
        return {
            extension: ReaderClass(path=f"{reader.__module__}:{reader.__qualname__}")
            for extension, reader in (self.readers or {}).items()
        }


@dataclass(frozen=True, kw_only=True)
class Components:
    """The opened parts of the service."""

    settings: Settings
    metrics: Metrics
    database: Database
    replica: Replica | None  # None: searches go where everything goes
    embedding: BaseEmbedding
    chat: ChatModel
    judge: WatchedJudge | None  # None: nobody judges reworded sentences
    indices: Mapping[str, IndexDefinition]
    examiner: JudgeExaminer  # of the judge; whoever serves runs it in a task
    fitter: RelevanceFitter  # of the embedding model; whoever serves runs it in a task
    retriever: PassageRetriever
    engine: CitedQueryEngine
    checker: TextChecker
    tools: Tools
    examples: Examples
    recorder: AnswerRecorder
    ingestor: Ingestor
    advisor: Advisor
    agent_chat: AgentChat
    originals: Originals
    uploads: Uploads
    postponed: PostponedUploads
    transfers: Transfers
    reader_suffixes: frozenset[str]  # of files that readers of other packages read

    @property
    def fingerprints(self) -> dict[str, str]:
        """Index name → what a document ingested now carries."""
        return {name: self.ingestor.fingerprint(index) for name, index in self.indices.items()}

    async def default_corpus(self, identity: Identity) -> Corpus:
        """The corpus that takes documents which name no other: global for administrators, else the user's own.

        Made at first use.
        """
        async with self.database.transaction(identity) as connection:
            return await default_corpus(connection, identity, index_name=self.settings.indices.default)

    async def read_answer(self, answer_id: UUID, identity: Identity) -> dict[str, Any]:
        """The provenance record of an answer."""
        async with self.database.transaction(identity) as connection:
            return await read_answer(connection, answer_id)

    async def replay(self, answer_id: UUID, identity: Identity) -> list[Difference]:
        """Ask a recorded question again, keeping no record, and say what changed."""
        before = await self.read_answer(answer_id, identity)
        question = replace(recorded_question(before, identity), recorded=False)
        if question.agent_id is None:
            run = self.engine.begin(question)
            answer = await self.engine.answer(run)
        else:
            try:
                async with self.database.transaction(identity) as connection:
                    agent = await read_agent(connection, question.agent_id)
            except NotFoundError:
                return [Difference(what="agent", detail="it was deleted, and with it its model and instructions")]
            run, answer = await self.agent_chat.repeat(question, agent)
        return compare_records(before, self.recorder.make_record(run, answer))

    async def open_sync(
        self,
        target: str,
        identity: Identity,
        *,
        corpus_name: str | None = None,
        depth: int = 0,
        delete: bool | None = None,
        on_progress: OnProgress | None = None,
    ) -> Sync:
        """A sync of a folder or site into the default corpus, or the global one of a name, created if missing.

        `depth` is the number of links to follow from a page; `delete` and `on_progress` as for `Sync`. Raises
        InputError if the target cannot be used.
        """
        source = open_source(target, self.settings, extra_suffixes=self.reader_suffixes, depth=depth)
        corpus = await self.default_corpus(identity)
        if corpus_name not in (None, corpus.name):
            async with self.database.transaction(identity) as connection:
                corpus = await find_or_create_corpus(connection, identity, str(corpus_name), corpus.index_name)
        return Sync(
            source,
            database=self.database,
            ingestor=self.ingestor,
            corpus=corpus,
            index=find_index(self.indices, corpus.index_name),
            identity=identity,
            delete=delete,
            on_progress=on_progress,
        )

    def source_runner(self) -> SourceRunner:
        """What syncs the scheduled sources."""
        return SourceRunner(
            self.settings, self.database, self.ingestor, self.indices, extra_suffixes=self.reader_suffixes
        )

    async def ingest(self, source: DocumentInput, identity: Identity) -> Ingested:
        """Ingest into the default corpus."""
        corpus = await self.default_corpus(identity)
        return await self.ingestor.ingest(
            source, corpus=corpus, index=find_index(self.indices, corpus.index_name), identity=identity
        )


@asynccontextmanager
async def open_components(
    settings: Settings, *, plugins: Plugins | None = None, metrics: Metrics | None = None
) -> AsyncIterator[Components]:
    """Open everything that the service needs, and close it again.

    The embedded database is started and migrated. An external one may be unreachable: the service
    starts all the same, says so in /health/ready, and recovers by itself.

    Raises:
        ConfigurationError: a setting or definition is wrong.
        UnsafeRoleError: the database role could bypass row-level security.
    """
    plugins = plugins or Plugins()
    settings = plugins.settings(settings)
    prompts = load_prompts(settings.answers.prompts_path, replacement=settings.answers.template_path)
    indices = load_indices(indices_path=settings.indices.path)
    if settings.indices.default not in indices:
        load_index(settings.indices.default, indices_path=settings.indices.path)  # says which there are
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings, serving=True))
        metrics = metrics or Metrics()
        opener = _Opener(
            stack=stack, settings=settings, plugins=plugins, metrics=metrics, prompts=prompts, indices=indices
        )
        models = await opener.open_models(database)
        search = open_search(settings, database, models.embedding.inner, indices, metrics, models.fitter.relevance)
        retriever, replica = await stack.enter_async_context(search)
        yield opener.assemble(database, models, retriever, replica)


async def _resolve_scope(database: Database, agent: Agent, identity: Identity) -> AgentScope:
    async with database.transaction(identity) as connection:
        return await resolve_agent_scope(connection, agent, owner_id=identity.user_id)


@asynccontextmanager
async def open_keyword_engine(
    settings: Settings, index: IndexDefinition, knowledge: KnowledgeBase, *, plugins: Plugins, metrics: Metrics
) -> AsyncIterator[CitedQueryEngine]:
    """The engine over the JSON file of RAG_ENABLED=false, without database and vectors.

    Raises ConfigurationError if a setting or definition is wrong.
    """
    prompts = load_prompts(settings.answers.prompts_path, replacement=settings.answers.template_path)
    async with AsyncExitStack() as stack:
        opener = _Opener(
            stack=stack, settings=settings, plugins=plugins, metrics=metrics, prompts=prompts,
            indices={index.name: index},
        )  # fmt: skip
        chat = opener.open_chat()
        retriever = KeywordRetriever(knowledge, index, identity=LOCAL_ADMIN)
        judge = opener.open_judge(chat)
        examining = asyncio.create_task(JudgeExaminer(judge, None, lambda: chat.is_idle).run())
        try:
            yield opener.build_engine(retriever, chat, judge=judge)
        finally:
            await end_tasks(examining)


@dataclass(frozen=True, kw_only=True)
class _Models:
    """The opened models, and what is known of them."""

    embedding: CachedEmbedding
    fitter: RelevanceFitter
    quoter: Quoter
    chat: ChatModel
    judge: WatchedJudge | None
    examiner: JudgeExaminer


@dataclass(frozen=True, kw_only=True)
class _Opener:
    """Opens one part after the other; `stack` closes them."""

    stack: AsyncExitStack
    settings: Settings
    plugins: Plugins
    metrics: Metrics
    prompts: Prompts
    indices: Mapping[str, IndexDefinition]

    async def open_models(self, database: Database) -> _Models:
        embedding, fitter = await self.open_embedding(database)
        quoter = self.open_quoter(embedding.inner, fitter.relevance)
        chat = self.open_chat()
        judge = self.open_judge(chat)
        examiner = JudgeExaminer(judge, database, lambda: chat.is_idle)
        await examiner.load()
        return _Models(embedding=embedding, fitter=fitter, quoter=quoter, chat=chat, judge=judge, examiner=examiner)

    def assemble(
        self, database: Database, models: _Models, retriever: PassageRetriever, replica: Replica | None
    ) -> Components:
        """What answers questions and what ingests documents, over the opened database and models."""
        settings, prompts, indices, chat = self.settings, self.prompts, self.indices, models.chat
        recorder = AnswerRecorder(database, prompts, settings)
        tables = TableAnswers(database, synonyms=indices[REPORTS].synonyms if REPORTS in indices else ())
        self.metrics.watch_turns(database.turns, tables.turns)
        engine = self.build_engine(
            retriever, chat, judge=models.judge, record=recorder.record, recall=recorder.recall, tables=tables,
            quoter=models.quoter,
        )  # fmt: skip
        tools = Tools(
            search=engine.search, database=database, indices=indices, tables=tables, top_k=settings.retrieval.top_k,
            say=prompts.message,
        )  # fmt: skip
        engine.offer_tools(tools)
        agent_models = self.open_agent_models(chat)
        postponed = self.build_postponed(database)
        originals, readers = postponed.uploads.originals, self.plugins.reader_classes()
        ingestor = build_ingestor(
            settings, database, models.embedding, indices,
            originals=originals, readers=readers, transformations=self.plugins.transformations,
        )  # fmt: skip
        transfers = build_transfers(settings, ingestor, originals, indices)
        self.metrics.watch_turns(transfers.turns, transfers.receiving, *ingestor.reader.turns)
        return Components(
            settings=settings,
            reader_suffixes=frozenset(readers).union(*(index.ingest.readers for index in indices.values())),
            metrics=self.metrics,
            database=database,
            replica=replica,
            embedding=models.embedding,
            chat=chat,
            judge=models.judge,
            indices=indices,
            examiner=models.examiner,
            fitter=models.fitter,
            retriever=retriever,
            engine=engine,
            checker=TextChecker(prompts, models.judge, database),
            tools=tools,
            examples=Examples(
                engine, database, self.open_quoting(chat), shipped_names(indices.values()),
                keeps=settings.embedding.query_cache_size > 0,
            ),
            recorder=recorder,
            ingestor=ingestor,
            advisor=Advisor(
                articles=ArticleFinder(database=database, engine=engine, indices=indices, settings=settings),
                chat=chat, prompts=prompts, settings=settings,
            ),
            agent_chat=AgentChat(
                engine=engine, model_for=agent_models.model_for, resolve=partial(_resolve_scope, database),
                prompts=prompts, record=recorder.record,
            ),
            originals=originals,
            uploads=postponed.uploads,
            postponed=postponed,
            transfers=transfers,
        )  # fmt: skip

    async def open_embedding(self, database: Database) -> tuple[CachedEmbedding, RelevanceFitter]:
        """The embedding model, and what is known of its cosines."""
        settings = self.settings
        built = build_embedding(settings, embedding=self.plugins.embedding)
        embedding = wrap_embedding(built, settings, database, metrics=self.metrics)
        self.stack.push_async_callback(close_embedding, embedding)
        if (local := local_model(embedding)) is not None:
            self.metrics.watch_turns(local.threads)
        relevance = ModelRelevance(embedding.model_name, watched=settings.retrieval.fit_relevance)
        guarded = guard_embedding(embedding.inner, settings)
        fitter = RelevanceFitter(relevance, database, guarded, self.indices[settings.indices.default])
        await fitter.load()
        return embedding, fitter

    def open_quoter(self, embedding: BaseEmbedding, relevance: ModelRelevance) -> Quoter:
        """What quotes where no chat model writes. `embedding` is without the cache of passages."""
        reader = build_sentence_reader(self.settings, embedding)
        if reader is not None and reader is not local_model(embedding):
            self.stack.push_async_callback(reader.aclose)
        seconds = self.settings.servers.first_token_timeout / 2
        return Quoter(embedding, relevance, reader=reader, seconds=seconds)

    def open_chat(self) -> ChatModel:
        """The watched chat model."""
        metrics = self.metrics
        quoting = build_quoting_turns(self.settings)
        chat = build_chat(
            self.settings,
            quoting=quoting,
            llm=self.plugins.llm,
            on_call=metrics.model_call,
            samples=self.prompts.samples(),
        )
        self.stack.push_async_callback(chat.aclose)
        metrics.watch_circuit(chat.breaker.name, lambda: chat.breaker.state == "open")
        metrics.watch_waiting(lambda: chat.slots.waiting)
        metrics.watch_turns(chat.slots, quoting)
        return chat

    def open_quoting(self, chat: ChatModel) -> ChatModel:
        """What quotes instead of writing, in the same turns, also where no fallback is wanted."""
        if chat.only_quotes:
            return chat
        return build_chat(self.settings.replace({"chat_provider": EXTRACTIVE}), quoting=chat.quoting)

    def open_agent_models(self, chat: ChatModel) -> AgentModels:
        """The chat models of agents that have their own."""
        build = partial(build_chat, server=chat.server, on_call=self.metrics.model_call, quoting=chat.quoting)
        models = AgentModels(self.settings, chat, build)
        self.stack.push_async_callback(models.aclose)
        return models

    def open_judge(self, chat: ChatModel) -> WatchedJudge | None:
        """The judge of reworded sentences."""
        judge = build_judge(
            self.settings,
            chat=chat,
            write_prompt=partial(write_judge_prompt, self.prompts),
            prompt_revision=judge_prompt_revision(self.prompts),
            judge=self.plugins.judge,
            count=self.metrics.judged,
        )
        if judge is not None:
            self.stack.push_async_callback(judge.aclose)
        return judge

    def build_engine(
        self,
        retriever: PassageRetriever,
        chat: ChatModel,
        *,
        judge: WatchedJudge | None,
        record: Recorder | None = None,
        recall: Recall | None = None,
        tables: TableAnswers | None = None,
        quoter: Quoter | None = None,
    ) -> CitedQueryEngine:
        by_index = {name: build_postprocessors(index) for name, index in self.indices.items()}
        return build_engine(
            retriever,
            chat,
            build_reranker(self.settings, chat=chat, reranker=self.plugins.reranker),
            self.prompts,
            self.settings,
            postprocessors=Postprocessors(by_index=by_index, always=self.plugins.postprocessors),
            record=record,
            recall=recall,
            judge=judge,
            tables=tables,
            quoter=quoter,
        )

    def build_postponed(self, database: Database) -> PostponedUploads:
        """Uploads, and those that wait for the database."""
        settings = self.settings
        originals = Originals(settings.uploads.originals_url)
        fingerprints = current_fingerprints(settings, self.indices, transformations=self.plugins.transformations)
        uploads = Uploads(database, originals, fingerprints, default_ttl_seconds=settings.uploads.ttl_seconds)
        folder = settings.database.data_dir / "postponed"
        return PostponedUploads(
            uploads, folder, max_bytes=settings.uploads.keep_mb * 1024**2, shared=settings.auth.mode != "none"
        )
