"""Puts a meter around answers, searches and requests, without their knowing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from rag_service.api.wire.problems import ClientGoneError, describe
from rag_service.domain import AnswerQuery, Hit, Identity
from rag_service.metrics import Door, Metrics
from rag_service.query.events import AnswerComplete, AnswerDelta, AnswerEvent, SourcesFound
from rag_service.text.tokens import count_tokens

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.query.retrieval.retriever import Retrieval

Search = Callable[[AnswerQuery, Identity], "Awaitable[tuple[Retrieval, tuple[Hit, ...]]]"]

UNMATCHED = "unmatched"  # route of a request to an address that does not exist
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})  # others are free text


async def metered_answer(
    events: AsyncGenerator[AnswerEvent], metrics: Metrics, *, door: Door = "answer"
) -> AsyncGenerator[AnswerEvent]:
    """The same events; closing this closes them."""
    started = time.perf_counter()
    asked_model = spoke = complete = False
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, SourcesFound):
                    metrics.retrieval(door, event.sources, event.timings_ms)
                    asked_model = bool(event.sources)
                elif isinstance(event, AnswerDelta) and not spoke:
                    spoke = True
                    if asked_model:
                        metrics.first_token(time.perf_counter() - started)
                elif isinstance(event, AnswerComplete):
                    complete = True
                    shown = event.answer.shown
                    metrics.answer(event.answer, context_tokens=sum(count_tokens(hit.chunk.text) for hit in shown))
                yield event
    except (GeneratorExit, asyncio.CancelledError):
        if not complete:
            metrics.answer_left()
        raise
    except Exception as error:
        metrics.error(describe(error).code)
        raise


def metered_search(search: Search, metrics: Metrics) -> Search:
    """The same search; its errors are counted where all errors of requests are."""

    async def metered(query: AnswerQuery, identity: Identity) -> tuple[Retrieval, tuple[Hit, ...]]:
        retrieval, hits = await search(query, identity)
        metrics.retrieval("search", hits, retrieval.timings_ms)
        return retrieval, hits

    return metered


class RequestMeter:
    """ASGI middleware around the whole application: counts and times every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        status = 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        started = time.perf_counter()
        try:
            await self._app(scope, receive, note)
        finally:
            route = scope.get("path_template") or UNMATCHED
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.request(method, route, status, time.perf_counter() - started)


def meter_application(application: Litestar, metrics: Metrics) -> None:
    """Count all requests of a built application, and the errors that its handlers raise."""

    async def count_error(error: Exception, _: Scope) -> None:
        if not isinstance(error, ClientGoneError):
            metrics.error(describe(error).code)

    application.after_exception.append(count_error)
    application.asgi_handler = RequestMeter(application.asgi_handler, metrics)
