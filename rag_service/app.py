"""The web application: its routes, and the parts of the service that the lifespan opens for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from functools import partial
from uuid import UUID

import structlog
from litestar import Litestar
from litestar.types import ControllerRouterHandler
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import TransformComponent

from rag_service.advisor.schema import AdvisorResponse, Inquiry, RequiredData, ResponseRequest
from rag_service.agents.chat import ChatOutcome, ChatQuery
from rag_service.answering.checking import CheckedSentences, GivenPassage
from rag_service.answering.drafts.events import AnswerEvent
from rag_service.answering.engine import CitedQueryEngine
from rag_service.answering.record import Difference
from rag_service.api.advisor.routes import AdvisorServices, advisor_router
from rag_service.api.application import create_litestar
from rag_service.api.http.access import TenancyServices, require_scope
from rag_service.api.http.check_jobs import CheckJobs
from rag_service.api.http.services import Probe, Services, make_turns
from rag_service.api.limits import LimitedApplication, RateLimiter
from rag_service.api.mcp.server import mcp_installed, mcp_routes
from rag_service.api.metrics import metered_answer, metered_search, metrics_route
from rag_service.api.openai.routes import list_agent_models, openai_routes
from rag_service.api.openai.vector_stores import stores_router
from rag_service.api.sign_in import sign_in_routes
from rag_service.api.tenancy import tenancy_router
from rag_service.auth.authenticator import choose_authentication, local_administrator
from rag_service.auth.sign_in import SignIn
from rag_service.components import Components, Plugins, open_components, open_keyword_engine
from rag_service.domain import Identity, Role
from rag_service.errors import ConfigurationError, ReadOnlyKnowledgeError
from rag_service.indices import load_index, shipped_names
from rag_service.ingest.documents import Ingested
from rag_service.ingest.reingest import Reingestion, warn_of_stale
from rag_service.ingest.wiring import build_worker
from rag_service.machine import cores
from rag_service.models.embedding.guarded import breaker_of, warm_up
from rag_service.models.judge.judge import Judge
from rag_service.models.servers.clients import build_probes
from rag_service.observability.metrics import Channel, Metrics
from rag_service.retrieval.found import Found
from rag_service.retrieval.knowledge_base import load_knowledge_base
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.store.accounts.keys import Scope
from rag_service.store.documents.documents import DocumentInput, read_text_part
from rag_service.tasks import end_tasks
from rag_service.turns import use_fair_threads
from rag_service.web.pages import web_routes

log = structlog.get_logger(__name__)

_WAITING_THREADS = 4  # besides one for each processor: files and object stores keep them waiting
_EMBEDDED_GRACE = 2.0  # seconds for jobs to end; the streams had theirs before, and jobs lose little

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def create_app(
    settings: Settings,
    *,
    components: Components | None = None,
    llm: LLM | None = None,
    embedding: BaseEmbedding | None = None,
    reranker: BaseNodePostprocessor | None = None,
    judge: Judge | None = None,
    postprocessors: Sequence[BaseNodePostprocessor] = (),
    readers: Mapping[str, type[BaseReader]] | None = None,
    transformations: Sequence[TransformComponent] = (),
) -> Litestar:
    """The web application. Objects that are given take the place of what the settings name.

    Raises ConfigurationError if a setting is wrong, or the file of RAG_KNOWLEDGE_BASE_PATH.

    Args:
        components: used and left open; None: it opens its own at start, and closes them.
        llm, embedding, reranker, judge, postprocessors, readers, transformations: as in `Plugins`.
    """
    metrics = components.metrics if components is not None else Metrics()
    plugins = Plugins(
        llm=llm,
        embedding=embedding,
        reranker=reranker,
        judge=judge,
        postprocessors=postprocessors,
        readers=readers,
        transformations=transformations,
    )
    routes: list[ControllerRouterHandler] = [metrics_route(metrics)]
    lifespan: list[Lifespan] = []
    if settings.retrieval.enabled:
        routes += [
            tenancy_router(settings),
            *sign_in_routes(settings),
            advisor_router(),
            *openai_routes(),
            stores_router(settings),
            *web_routes(settings),
        ]
        lifespan.append(lambda app: _with_components(app, settings, components, plugins, metrics))
        if mcp_installed():
            routes += mcp_routes(settings)
    else:
        _check_keyword_mode(settings, plugins)
        index = load_index(settings.indices.default, indices_path=settings.indices.path)
        knowledge = load_knowledge_base(settings.retrieval.knowledge_base_path)
        opened = partial(open_keyword_engine, settings, index, knowledge, plugins=plugins, metrics=metrics)
        lifespan.append(lambda app: _with_keyword_engine(app, settings, opened(), metrics))
    return create_litestar(
        settings,
        more_routes=routes,
        lifespan=lifespan,
        surround=lambda app: LimitedApplication(app, count_error=metrics.error),
        metrics=metrics,
    )


def _check_keyword_mode(settings: Settings, plugins: Plugins) -> None:
    """RAG_ENABLED=false has no database, and thus no users, counts, vectors or uploads."""
    if settings.auth.mode != "none":
        raise ConfigurationError(
            "RAG_ENABLED=false knows no users: set RAG_AUTH to `none`, or turn RAG_ENABLED on.", field="RAG_AUTH"
        )
    if settings.limits.requests_per_minute or settings.limits.answers_per_minute:
        raise ConfigurationError(
            "RAG_ENABLED=false counts nothing: unset RAG_RATE_LIMIT_*, or turn RAG_ENABLED on.",
            field="RAG_RATE_LIMIT_PER_MINUTE",
        )
    if plugins.embedding is not None or plugins.readers or plugins.transformations:
        raise ConfigurationError(
            "RAG_ENABLED=false searches a JSON file by keywords: it cannot use `embedding`, `readers` or"
            " `transformations`. Leave them out, or turn RAG_ENABLED on.",
            field="RAG_ENABLED",
        )


@asynccontextmanager
async def _with_keyword_engine(
    app: Litestar, settings: Settings, opened: AbstractAsyncContextManager[CitedQueryEngine], metrics: Metrics
) -> AsyncGenerator[None]:
    async with opened as engine:

        def answer(question: Question, channel: Channel) -> AsyncGenerator[AnswerEvent]:
            return metered_answer(engine.stream(question), metrics, channel=channel)

        async def ingest(source: DocumentInput, identity: Identity) -> Ingested:
            raise ReadOnlyKnowledgeError("The knowledge base is a file; documents cannot be uploaded to it.")

        app.state.services = Services(
            settings=settings,
            answer=answer,
            search=metered_search(engine.search, metrics),
            ingest=ingest,
            probes={},
            authenticate=local_administrator,
        )
        yield


@asynccontextmanager
async def _with_components(
    app: Litestar, settings: Settings, given: Components | None, plugins: Plugins, metrics: Metrics
) -> AsyncGenerator[None]:
    """Open components unless they were given; put what the routes use into the state, and work on uploads."""
    opened = open_components(settings, plugins=plugins, metrics=metrics) if given is None else nullcontext(given)
    async with opened as parts:
        limiter = RateLimiter(parts.database, settings)
        app.state.limiter = limiter
        app.state.sign_in = SignIn(parts.database, settings)
        app.state.services = _services(settings, parts, limiter)
        app.state.tenancy = _tenancy_services(settings, parts, limiter)
        app.state.advisor = _advisor_services(settings, parts, limiter)
        app.state.texts = partial(_read_text, parts)
        app.state.list_models = list_agent_models
        checks = app.state.checks = CheckJobs()
        turns = app.state.services.turns
        parts.metrics.watch_turns(
            turns.requests, turns.searches, turns.ingests, turns.checks, turns.embeddings, turns.originals,
            app.state.sign_in.turns, use_fair_threads(limit=cores() + _WAITING_THREADS),
        )  # fmt: skip
        app.state.embed = parts.embedding.aget_text_embedding_batch
        async with aclosing(checks), _background_tasks(settings, parts, app.state.sign_in):
            yield


@asynccontextmanager
async def _background_tasks(settings: Settings, parts: Components, sign_in: SignIn) -> AsyncGenerator[None]:
    """Load the models and work on uploads beside the requests."""
    parts.chat.start()
    tasks = [
        asyncio.create_task(parts.metrics.watch_loop()),
        asyncio.create_task(warm_up(parts.embedding)),
        asyncio.create_task(parts.examiner.run()),  # loads the judge first
        asyncio.create_task(parts.fitter.run()),
        asyncio.create_task(parts.postponed.run()),
        asyncio.create_task(sign_in.warm_up()),
        asyncio.create_task(warn_of_stale(Reingestion(parts.database, parts.fingerprints))),
    ]
    if settings.worker.embedded:  # else `rag-service worker` processes do it
        worker = build_worker(
            settings,
            parts.database,
            parts.originals,
            parts.ingestor,
            parts.indices,
            grace_seconds=_EMBEDDED_GRACE,
        )
        parts.metrics.watch_turns(worker.job.turns)
        tasks += [asyncio.create_task(worker.run()), asyncio.create_task(parts.source_runner().run())]
    try:
        yield
    finally:
        await end_tasks(*tasks)


def _services(settings: Settings, parts: Components, limiter: RateLimiter) -> Services:
    def answer(question: Question, channel: Channel) -> AsyncGenerator[AnswerEvent]:
        return metered_answer(
            limiter.limited(parts.engine.stream(question), question.identity), parts.metrics, channel=channel
        )

    async def ingest(source: DocumentInput, identity: Identity) -> Ingested:
        if identity.role is Role.ADMIN:  # whose default corpus is a global one
            require_scope(identity, Scope.ADMIN)
        async with turns.ingests.take(identity.user_id):
            return await parts.ingest(source, identity)

    def check(
        text: str,
        passages: Sequence[GivenPassage | str],
        identity: Identity,
        *,
        question: str = "",
        language: str | None = None,
    ) -> AsyncGenerator[CheckedSentences]:
        checked = parts.checker.check(text, passages, identity, question=question, language=language)
        if parts.judge is None:
            return checked
        return limiter.limited(checked, identity)  # the model's time is limited as for answers

    turns = make_turns(connections=settings.http.connections, shared=settings.auth.mode != "none")

    async def search(question: Question) -> Found:
        async with turns.searches.take(question.identity.user_id):
            return await parts.engine.search(question)

    return Services(
        settings=settings,
        turns=turns,
        answer=answer,
        search=metered_search(search, parts.metrics),
        ingest=ingest,
        check=check,
        probes=_probes(settings, parts),
        relevance=parts.fitter.report,
        judge=parts.examiner.report,
        tools=parts.tools,
        authenticate=choose_authentication(settings, parts.database),
    )


def _tenancy_services(settings: Settings, parts: Components, limiter: RateLimiter) -> TenancyServices:
    def chat(query: ChatQuery, identity: Identity) -> tuple[ChatOutcome, AsyncGenerator[AnswerEvent]]:
        outcome, events = parts.agent_chat.stream(query, identity)
        return outcome, metered_answer(limiter.limited(events, identity), parts.metrics, channel="chat")

    async def replay(answer_id: UUID, identity: Identity) -> Sequence[Difference]:
        await limiter.require_answer(identity)
        return await parts.replay(answer_id, identity)

    return TenancyServices(
        settings=settings,
        transaction=parts.database.transaction,
        uploads=parts.uploads,
        postponed=parts.postponed,
        originals=parts.originals,
        transfers=parts.transfers,
        fingerprints=parts.fingerprints,
        chat=chat,
        replay=replay,
        examples=parts.examples.find,
        shipped=shipped_names(parts.indices.values()),
        count_feedback=parts.metrics.feedback,
    )


def _advisor_services(settings: Settings, parts: Components, limiter: RateLimiter) -> AdvisorServices:
    async def required_data(inquiry: Inquiry, identity: Identity) -> RequiredData:
        await limiter.require_answer(identity)
        async with parts.advisor.chat.turn(identity.user_id):
            return await parts.advisor.required_data(inquiry, identity)

    async def generate_response(request: ResponseRequest, identity: Identity) -> AdvisorResponse:
        await limiter.require_answer(identity)
        async with parts.advisor.chat.turn(identity.user_id):
            return await parts.advisor.generate_response(request, identity)

    return AdvisorServices(settings=settings, required_data=required_data, generate_response=generate_response)


async def _read_text(
    parts: Components, document_id: UUID, start: int, end: int, identity: Identity
) -> tuple[str, int] | None:
    async with parts.database.transaction(identity) as connection:
        return await read_text_part(connection, document_id, start, end)


def _probes(settings: Settings, parts: Components) -> dict[str, Probe]:
    """How /health/ready checks the database, its replica and the model servers."""
    nothing_works = "Searches, answers and uploads do not work until it is back."
    probes = {"database": Probe(check=parts.database.check, required=True, without=nothing_works)}
    if parts.replica is not None:
        replica = parts.replica

        async def check_replica() -> str | None:
            lag = await replica.report()
            return None if lag is None else str(lag)

        without = "Everything works: searches go to the primary."
        probes["replica"] = Probe(check=check_replica, required=False, without=without, missed=False)
    own = parts.chat.server
    servers = build_probes(
        settings,
        chat=parts.chat.breaker,
        embedding=breaker_of(parts.embedding),
        own_server=None if own is None else own.check,
    )
    if "chat" in servers:
        quoting = "consist of quotes" if settings.answers.extractive_fallback else "fail with `llm_unavailable`"
        without = f"Searching works; answers {quoting} until it is back."
        probes["chat"] = Probe(check=servers["chat"].check, required=False, without=without)
    if "embedding" in servers:
        by_words = settings.retrieval.lexical_fallback and settings.retrieval.hybrid
        fallback = "Searches and answers use keywords only; uploads wait and are retried."
        probes["embedding"] = Probe(
            check=servers["embedding"].check, required=not by_words, without=fallback if by_words else nothing_works
        )
    return probes
