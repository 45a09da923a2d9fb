"""Search and answers: requirements A1, A2 and A3."""

from __future__ import annotations

import time
from typing import Any

from litestar import Controller, Response, post
from litestar.enums import MediaType

from rag_service.api.services import READING, IdentityDependency, Services, ServicesDependency
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.events import collect, wire_events
from rag_service.api.wire.presenters import present_passage, read_query
from rag_service.api.wire.problems import Problem, StreamingDisabledError, problem_response
from rag_service.api.wire.schemas import AnswerBody, AnswerRequest, SearchBody, SearchRequest
from rag_service.api.wire.streaming import EventStreamResponse, choose_encoder, unless_gone
from rag_service.domain import AnswerQuery, Identity

_STREAM = (
    "Events: `sources`, many `delta`, `citation` as each is checked, one `final` with the complete answer, `done`; "
    "`error` with a problem instead of `final` when it fails midway. Server-sent events, or NDJSON lines "
    '`{"event": …, "data": …}` for `Accept: application/x-ndjson`. Comments (`heartbeat` lines) keep it alive.'
)


class QueryController(Controller):
    """Questions to the documents."""

    path = "/api/v1/query"
    tags = ["Query"]  # noqa: RUF012 - Litestar's way
    opt = READING  # questions are posted, but change nothing

    @post(
        status_code=200,
        summary="Search without a language model",
        operation_class=accepts(SearchRequest),
        responses=problems(400, 401, 404, 413, 415, 500),
    )
    async def search(
        self, request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
    ) -> SearchBody:
        """Passages above the threshold, best first."""
        query = read_query(await read_json(request, SearchRequest), services.settings)
        started = time.perf_counter()
        retrieval, hits = await unless_gone(request.receive, _search(services, query, identity))
        return SearchBody(
            passages=[present_passage(hit) for hit in hits],
            language=retrieval.plan.language,
            latency_ms=round((time.perf_counter() - started) * 1000, 1),
        )

    @post(
        "/answer",
        status_code=200,
        media_type=MediaType.JSON,
        summary="Answer with verified citations",
        description=f"One JSON body, or with `stream: true` a stream. {_STREAM}",
        operation_class=accepts(AnswerRequest),
        responses=problems(400, 401, 404, 413, 415, 500, 503),
    )
    async def answer(
        self, request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
    ) -> Response[AnswerBody]:
        body = await read_json(request, AnswerRequest)
        if body.stream:
            return _stream(request, body, services, identity)
        query = read_query(body, services.settings)
        outcome = await unless_gone(request.receive, collect(wire_events(services.answer(query, identity))))
        return _plain(outcome)

    @post(
        "/answer/stream",
        status_code=200,
        media_type=MediaType.JSON,
        summary="Answer as a stream of events",
        description=_STREAM,
        operation_class=accepts(AnswerRequest),
        responses=problems(400, 401, 404, 413, 415, 500, 503),
    )
    async def answer_stream(
        self, request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
    ) -> Response[AnswerBody]:
        return _stream(request, await read_json(request, AnswerRequest), services, identity)


async def _search(services: Services, query: AnswerQuery, identity: Identity) -> Any:
    return await services.search(query, identity)


def _plain(outcome: AnswerBody | Problem) -> Response[Any]:
    return problem_response(outcome) if isinstance(outcome, Problem) else Response(outcome)


def _stream(request: AnyRequest, body: AnswerRequest, services: Services, identity: Identity) -> Response[Any]:
    query = read_query(body, services.settings)
    if not services.settings.stream_enabled:
        raise StreamingDisabledError("Streamed answers are turned off here.", field="stream")
    return EventStreamResponse(
        wire_events(services.answer(query, identity)),
        encoder=choose_encoder(request),
        heartbeat_seconds=services.settings.heartbeat_seconds,
    )
