"""Search and answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from litestar import Controller, Response, post
from litestar.enums import MediaType

from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.events import WireEvent, present_events, wire_events, wired
from rag_service.api.http.languages import read_languages
from rag_service.api.http.presenters import present_search
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.queries import read_question, read_turns
from rag_service.api.http.schemas import AnswerBody, AnswerRequest, SearchBody, SearchRequest
from rag_service.api.http.services import READING, IdentityDependency, Services, ServicesDependency
from rag_service.api.http.streaming import reply_with_answer, unless_gone
from rag_service.domain import Identity
from rag_service.retrieval.question import Question

_STREAM = (
    "Events: `sources`, several `delta`, a `citation` for each one checked, a `final` with the complete answer, and "
    "`done`. If the answer fails midway, `error` with a problem replaces `final`. The format is server-sent events, or "
    'NDJSON lines `{"event": …, "data": …}` with `Accept: application/x-ndjson`. Comments (in NDJSON, `heartbeat` '
    "lines) keep the connection alive."
)


class QueryController(Controller):
    """Questions to the documents."""

    path = "/api/v1/query"
    tags = ["Query"]
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
        """Passages down to the last one above the threshold, best first."""
        question = read_question(await read_json(request, SearchRequest), services.settings, identity)
        return await unless_gone(request.receive, present_search(services.search, question))

    @post(
        "/answer",
        status_code=200,
        media_type=MediaType.JSON,
        summary="Answer with verified citations",
        description=f"A JSON body or, with `stream: true`, a stream. {_STREAM}",
        operation_class=accepts(AnswerRequest),
        responses=problems(400, 401, 404, 409, 413, 415, 500, 503),
    )
    async def answer(
        self, request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
    ) -> Response[AnswerBody]:
        body = await read_json(request, AnswerRequest)
        return await _reply(body, request, services, identity, stream=body.stream)

    @post(
        "/answer/stream",
        status_code=200,
        media_type=MediaType.JSON,
        summary="Answer as an event stream",
        description=_STREAM,
        operation_class=accepts(AnswerRequest, streams=True),
        responses=problems(400, 401, 404, 409, 413, 415, 500, 503),
    )
    async def answer_stream(
        self, request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
    ) -> Response[AnswerBody]:
        return await _reply(await read_json(request, AnswerRequest), request, services, identity, stream=True)


async def _reply(
    body: AnswerRequest, request: AnyRequest, services: Services, identity: Identity, *, stream: bool
) -> Response[Any]:
    question = read_question(body, services.settings, identity)
    question = replace(question, turns=read_turns(body), languages=read_languages(request))
    if body.keep or body.conversation_id is not None:
        events = await _answer_and_keep(question, body, request, services, identity)
    else:
        events = wire_events(services.answer(question, "answer"))
    return await reply_with_answer(events, request, services.settings, stream=stream)


async def _answer_and_keep(
    question: Question, body: AnswerRequest, request: AnyRequest, services: Services, identity: Identity
) -> AsyncGenerator[WireEvent, None]:
    """The events of an answer that is kept as a turn of a conversation, which the question may go on with.

    Raises InvalidRequestError where nothing can be stored, and NotFoundError.
    """
    if "tenancy" not in request.app.state:
        name = "keep" if body.keep else "conversationId"
        raise InvalidRequestError([FieldError(name, "is not available: with RAG_ENABLED=false, nothing is stored")])
    from rag_service.api.agents.history import keep_answers  # loads the database's packages
    from rag_service.api.http.access import make_caller, require_scope
    from rag_service.store.accounts.conversations import read_history
    from rag_service.store.accounts.keys import Scope

    require_scope(identity, Scope.WRITE)
    caller = make_caller(request, identity)
    if body.conversation_id is not None:
        said = await caller.run(read_history, body.conversation_id, body.replaces)
        question = replace(question, turns=question.turns or said)
    events = present_events(services.answer(question, "answer"))
    return wired(keep_answers(events, caller, body.query.strip(), body.conversation_id, replaces=body.replaces))
