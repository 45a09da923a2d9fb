"""The web application, wired together: routes of every layer over the opened components."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from litestar import Litestar

from rag_service.api.advisor.routes import advisor_router
from rag_service.api.advisor.services import AdvisorServices
from rag_service.api.answers import answers_route
from rag_service.api.application import create_litestar
from rag_service.api.mcp.server import mcp_installed, mcp_mount
from rag_service.api.metrics import metrics_route
from rag_service.api.openai.agents import agents_as_models
from rag_service.api.openai.routes import openai_routes
from rag_service.api.services import Probe, Services
from rag_service.api.tenancy.routes import tenancy_router
from rag_service.api.tenancy.services import AgentMemory, TenancyServices, require_scope
from rag_service.api.wire.limits import LimitedApplication, RateLimiter
from rag_service.api.wire.metering import meter_application, metered_answer, metered_search
from rag_service.components import LOCAL_ADMIN, Components, open_components
from rag_service.domain import AnswerQuery, Hit, Identity, Role
from rag_service.identity import Authenticator
from rag_service.ingest.pipeline import DocumentInput, Ingested
from rag_service.ingest.reingest import Reingestion, warn_of_stale
from rag_service.ingest.wiring import build_worker
from rag_service.keyword_app import create_keyword_app
from rag_service.metrics import Door, Metrics
from rag_service.models.embedding.embeddings import warm_up
from rag_service.models.embedding.guarded import breaker_of
from rag_service.models.servers.probes import ServerProbe, build_probes
from rag_service.query.advisor.schema import AdvisorResponse, Inquiry, RequiredData, ResponseRequest
from rag_service.query.agents.chat import ChatOutcome, ChatQuery
from rag_service.query.events import AnswerEvent
from rag_service.query.retrieval.retriever import Retrieval
from rag_service.settings import Settings
from rag_service.store.documents.documents import read_text
from rag_service.store.people.keys import Scope
from rag_service.web.pages import web_routes
from rag_service.web.texts import WebServices

_EMBEDDED_GRACE = 2.0  # seconds for jobs to end; the streams had theirs before, and jobs lose little

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]

__all__ = ["LOCAL_ADMIN", "Components", "create_app", "open_components"]


def create_app(settings: Settings, *, components: Components | None = None) -> Litestar:
    """The web application. Given components are used and stay open; else it opens its own at start."""
    if not settings.enabled:
        return create_keyword_app(settings, identity=LOCAL_ADMIN)
    metrics = components.metrics if components is not None else Metrics()
    backend = _Backend(settings, components, metrics)
    services = Services(
        settings=settings,
        answer=backend.answer_at("answer"),
        search=metered_search(backend.search, metrics),
        ingest=backend.ingest,
        probes={
            "database": Probe(
                check=backend.check_database,
                required=True,
                without="Nothing can be searched, answered or uploaded until it is back.",
            ),
            **_replica_probe(settings, backend),
            **_model_probes(settings, backend),
        },
        authenticate=backend.authenticate,
    )
    routes = [
        answers_route(backend.read_answer),
        metrics_route(metrics),
        advisor_router(
            AdvisorServices(
                settings=settings,
                required_data=lambda inquiry, identity: backend.required_data(inquiry, identity),
                generate_response=lambda request, identity: backend.generate_response(request, identity),
            )
        ),
        # A function, not the bound method: Litestar copies dependencies, and a copied backend never starts.
        tenancy_router(settings, lambda: backend.tenancy()),
        *openai_routes(
            replace(services, answer=backend.answer_at("openai")),
            list_models=agents_as_models(lambda: backend.tenancy()),
        ),
        *web_routes(WebServices(read_text=backend.read_text), settings=settings),
    ]
    lifespan: list[Lifespan] = [backend.lifespan]
    if mcp_installed():
        asked = replace(services, answer=backend.answer_at("mcp"))
        mount = mcp_mount(asked, permit=lambda identity: require_scope(identity, Scope.READ))
        routes.append(mount.route)
        lifespan.append(mount.lifespan)
    application = create_litestar(
        services,
        more_routes=routes,
        lifespan=lifespan,
        surround=lambda app: LimitedApplication(app, backend.limiter, services.authenticate, count_error=metrics.error),
    )
    meter_application(application, metrics)
    return application


def _replica_probe(settings: Settings, backend: _Backend) -> dict[str, Probe]:
    if settings.database_replica_url is None:
        return {}
    without = "Nothing is missing: searches go to the primary."
    return {"replica": Probe(check=backend.check_replica, required=False, without=without, missed=False)}


def _model_probes(settings: Settings, backend: _Backend) -> dict[str, Probe]:
    """How /health/ready asks for the model servers; what runs in this process is not asked for."""

    def ask(name: str) -> Callable[[], Awaitable[None]]:
        async def check() -> None:
            await backend.probes()[name].check()

        return check

    found = {}
    if settings.chat_provider != "extractive":
        found["chat"] = Probe(
            check=ask("chat"),
            required=False,
            without="Searching works; answers fail with `llm_unavailable` until it is back.",
        )
    if settings.embedding_provider != "local":
        by_words = settings.lexical_fallback and settings.hybrid
        found["embedding"] = Probe(
            check=ask("embedding"),
            required=not by_words,
            without="Searches and answers go by words alone; uploads wait and are tried again."
            if by_words
            else "Nothing can be searched, answered or uploaded until it is back.",
        )
    return found


class _Backend:
    """What the routes call, over components that are open while the application runs."""

    def __init__(self, settings: Settings, components: Components | None, metrics: Metrics):
        self._settings = settings
        self._metrics = metrics
        self._probes: dict[str, ServerProbe] = {}
        self._given = components
        self._opened = components
        self._authenticator: Authenticator | None = None
        self._agents = AgentMemory()  # outlives the requests, whose services are made anew
        self.limiter = RateLimiter(lambda: self._components.database, settings)

    @property
    def _components(self) -> Components:
        if self._opened is None:
            raise RuntimeError("the application has not started")
        return self._opened

    @asynccontextmanager
    async def lifespan(self, _: Litestar) -> AsyncGenerator[None]:
        """Open components unless they were given; load the model and work on uploads beside the requests."""
        if self._given is not None:
            async with self._beside(self._given):
                yield
            return
        async with open_components(self._settings, metrics=self._metrics) as own:
            self._opened = own
            async with self._beside(own):
                yield
            self._opened = None

    @asynccontextmanager
    async def _beside(self, components: Components) -> AsyncGenerator[None]:
        tasks = [
            asyncio.create_task(warm_up(components.embedding)),
            asyncio.create_task(warn_of_stale(Reingestion(components.database, components.fingerprints))),
        ]
        if self._settings.worker_embedded:
            # One process does it all; with RAG_WORKER_EMBEDDED off, `rag-service worker` processes do.
            worker = build_worker(
                self._settings,
                components.conninfo,
                components.database,
                components.originals,
                components.embedding,
                components.indices,
                grace_seconds=_EMBEDDED_GRACE,
            )
            tasks.append(asyncio.create_task(worker.run()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks, return_exceptions=True)

    def answer_at(self, door: Door) -> Callable[[AnswerQuery, Identity], AsyncGenerator[AnswerEvent]]:
        """What answers questions that come in by a door."""

        def answer(query: AnswerQuery, identity: Identity) -> AsyncGenerator[AnswerEvent]:
            return self._guard(self._components.engine.stream(query, identity), identity, door)

        return answer

    def chat(self, query: ChatQuery, identity: Identity) -> tuple[ChatOutcome, AsyncGenerator[AnswerEvent]]:
        outcome, events = self._components.agent_chat.stream(query, identity)
        return outcome, self._guard(events, identity, "chat")

    def _guard(
        self, events: AsyncGenerator[AnswerEvent], identity: Identity, door: Door
    ) -> AsyncGenerator[AnswerEvent]:
        return metered_answer(self.limiter.limited(events, identity), self._metrics, door=door)

    async def search(self, query: AnswerQuery, identity: Identity) -> tuple[Retrieval, tuple[Hit, ...]]:
        return await self._components.engine.search(query, identity)

    async def ingest(self, source: DocumentInput, identity: Identity) -> Ingested:
        if identity.role is Role.ADMIN:  # whose default corpus is a global one
            require_scope(identity, Scope.ADMIN)
        return await self._components.ingest(source, identity)

    async def required_data(self, inquiry: Inquiry, identity: Identity) -> RequiredData:
        await self.limiter.require(identity, "answers")
        return await self._components.advisor.required_data(inquiry, identity)

    async def generate_response(self, request: ResponseRequest, identity: Identity) -> AdvisorResponse:
        await self.limiter.require(identity, "answers")
        return await self._components.advisor.generate_response(request, identity)

    async def read_answer(self, answer_id: UUID, identity: Identity) -> dict[str, Any]:
        return await self._components.read_answer(answer_id, identity)

    async def read_text(self, document_id: UUID, identity: Identity) -> str | None:
        async with self._components.database.transaction(identity) as connection:
            return await read_text(connection, document_id)

    async def authenticate(self, headers: Mapping[str, str]) -> Identity:
        if self._settings.auth == "none":
            return LOCAL_ADMIN
        if self._authenticator is None:
            self._authenticator = Authenticator(self._components.database, self._settings)
        return await self._authenticator.authenticate(headers)

    def probes(self) -> Mapping[str, ServerProbe]:
        """Of the model servers; kept, because each remembers its last outcome for a moment."""
        if not self._probes:
            components = self._components
            self._probes = build_probes(
                self._settings, chat=components.chat.breaker, embedding=breaker_of(components.embedding)
            )
        return self._probes

    async def check_database(self) -> None:
        await self._components.database.check()

    async def check_replica(self) -> str | None:
        replica = self._components.replica
        if replica is None:
            return None
        lag = await replica.report()
        return None if lag is None else str(lag)

    def tenancy(self) -> TenancyServices:
        components = self._components
        return TenancyServices(
            settings=self._settings,
            transaction=components.database.transaction,
            uploads=components.uploads,
            originals=components.originals,
            fingerprints=components.fingerprints,
            chat=self.chat,
            count_feedback=self._metrics.feedback,
            agents=self._agents,
        )
