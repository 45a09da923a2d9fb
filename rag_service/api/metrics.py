"""Metrics of answers and searches, and their address for Prometheus."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from rag_service.answering.drafts.events import AnswerComplete, AnswerDelta, AnswerEvent, SourcesFound
from rag_service.api.http.bodies import AnyRequest
from rag_service.api.http.documentation import problems
from rag_service.api.http.problems import describe
from rag_service.api.http.services import Services, ServicesDependency
from rag_service.observability.metrics import CONTENT_TYPE, Channel, Metrics
from rag_service.retrieval.question import Question

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.retrieval.found import Found

Search = Callable[[Question], Coroutine[Any, Any, "Found"]]


async def metered_answer(
    events: AsyncGenerator[AnswerEvent], metrics: Metrics, *, channel: Channel
) -> AsyncGenerator[AnswerEvent]:
    """The same events, counted; closing this generator closes them."""
    started = time.perf_counter()
    asked_model = spoke = complete = False
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, SourcesFound):
                    metrics.retrieval(channel, event.sources, event.timings_ms)
                    asked_model = bool(event.sources)
                elif isinstance(event, AnswerDelta) and not spoke:
                    spoke = True
                    if asked_model:
                        metrics.first_token(time.perf_counter() - started)
                elif isinstance(event, AnswerComplete):
                    complete = True
                    metrics.answer(event.answer)
                yield event
    except (GeneratorExit, asyncio.CancelledError):
        if not complete:
            metrics.answer_left()
        raise
    except Exception as error:
        metrics.error(describe(error).code)
        raise


def metered_search(search: Search, metrics: Metrics) -> Search:
    """The same search, counted."""

    async def metered(question: Question) -> Found:
        found = await search(question)
        metrics.retrieval("search", found.passages, found.timings_ms)
        return found

    return metered


def metrics_route(metrics: Metrics) -> HTTPRouteHandler:
    @get(
        "/metrics",
        tags=["Health"],
        summary="Metrics for Prometheus",
        description="With RAG_AUTH=required, needs an administrator's credential or RAG_METRICS_TOKEN as bearer token.",
        responses=problems(401, 403),
        media_type="text/plain",
    )
    async def read_metrics(request: AnyRequest, services: ServicesDependency) -> Response[bytes]:
        await _authorise(request, services)
        return Response(metrics.render(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    return read_metrics


async def _authorise(request: AnyRequest, services: Services) -> None:
    settings = services.settings
    if settings.auth.mode == "none":
        return
    if settings.observability.metrics_token is not None:
        expected = f"Bearer {settings.observability.metrics_token.get_secret_value()}"
        given = request.headers.get("authorization", "")
        if hmac.compare_digest(given.encode(), expected.encode()):
            return
    from rag_service.api.http.access import require_scope  # loads the database driver
    from rag_service.store.accounts.keys import Scope

    identity = await services.authenticate(request.headers)
    require_scope(identity, Scope.ADMIN)
