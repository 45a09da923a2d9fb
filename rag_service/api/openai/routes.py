"""The OpenAI-compatible API: requirement F4.

Programs written for that API talk to the documents by changing their base URL to `…/v1`. The
citations, which it has no place for, stand in fields of our own (`openai_schemas`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from litestar import HttpMethod, Response, Router, get, post, route
from litestar.enums import MediaType
from litestar.types import ControllerRouterHandler

from rag_service.api.openai.errors import (
    UnknownAddressError,
    UnknownModelError,
    error_response,
    errors,
    handle_openai_error,
)
from rag_service.api.openai.fields import Conversation, read_conversation
from rag_service.api.openai.schemas import ChatCompletion, ChatCompletionRequest, ModelBody, ModelList
from rag_service.api.openai.stream import ChunkEncoder, present_completion
from rag_service.api.services import IdentityDependency, Services, ServicesDependency
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts
from rag_service.api.wire.events import collect, wire_events
from rag_service.api.wire.problems import ClientGoneError, Problem, StreamingDisabledError, handle_client_gone
from rag_service.api.wire.schemas import AnswerBody
from rag_service.api.wire.streaming import EventStreamResponse, unless_gone
from rag_service.domain import Identity
from rag_service.query.events import AnswerEvent

DEFAULT_MODEL = "rag-service"
_CREATED = 1_735_689_600  # of the default model: 2025-01-01, when this API began

Answer = Callable[[Conversation, Identity], AsyncIterator[AnswerEvent]]  # an async generator function


@dataclass(frozen=True, kw_only=True)
class KnowledgeModel:
    """Something that answers, under an id of its own: the default, or an agent."""

    id: str  # what requests name as `model`
    answer: Answer
    created: int = _CREATED  # Unix time in seconds
    owned_by: str = "rag-service"


ListModels = Callable[[Identity], Awaitable[Sequence[KnowledgeModel]]]


def openai_routes(services: Services, *, list_models: ListModels | None = None) -> list[ControllerRouterHandler]:
    """Everything below /v1, with errors in that API's shape.

    Args:
        services: what answers as the model `rag-service`.
        list_models: further models, such as agents, that an identity may use; it is asked at each request.
    """

    def answer(conversation: Conversation, identity: Identity) -> AsyncIterator[AnswerEvent]:
        return services.answer(conversation.as_one_question(), identity)

    async def all_models(identity: Identity) -> dict[str, KnowledgeModel]:
        more = [] if list_models is None else await list_models(identity)
        return {model.id: model for model in (KnowledgeModel(id=DEFAULT_MODEL, answer=answer), *more)}

    async def find_model(model_id: str, identity: Identity) -> KnowledgeModel:
        found = (await all_models(identity)).get(model_id)
        if found is None:
            raise UnknownModelError(model_id)
        return found

    @post(
        "/chat/completions",
        status_code=200,
        media_type=MediaType.JSON,
        summary="Answer a conversation (OpenAI-compatible)",
        description="The last message is the question. With `stream: true`, `chat.completion.chunk` events end with "
        "`[DONE]`. Citations stand in `choices[0].message.citations`; in a stream, in the last chunk.",
        operation_class=accepts(ChatCompletionRequest),
        opt={"scope": "read"},  # it stores nothing of the caller's, though it is a POST
        responses=errors(400, 401, 404, 413, 415, 500, 503),
    )
    async def chat_completions(
        request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
    ) -> Response[ChatCompletion]:
        body = await read_json(request, ChatCompletionRequest)
        conversation = read_conversation(body, services.settings)
        model = await find_model(body.model, identity)
        if body.stream:
            return _stream(body, conversation, model, identity, services)
        outcome = await unless_gone(request.receive, collect(wire_events(model.answer(conversation, identity))))
        return _plain(outcome, body.model)

    @get("/models", summary="Models that can be asked (OpenAI-compatible)", responses=errors(401, 500))
    async def models(identity: IdentityDependency) -> ModelList:
        return ModelList(data=[_present_model(model) for model in (await all_models(identity)).values()])

    @get("/models/{model_id:path}", summary="One model (OpenAI-compatible)", responses=errors(401, 404, 500))
    async def model(model_id: str, identity: IdentityDependency) -> ModelBody:
        return _present_model(await find_model(model_id.removeprefix("/"), identity))

    return [
        Router(
            "/v1",
            route_handlers=[chat_completions, models, model, _other_address, _other_method],
            tags=["OpenAI"],
            exception_handlers={Exception: handle_openai_error, ClientGoneError: handle_client_gone},
        )
    ]


def _plain(outcome: AnswerBody | Problem, model: str) -> Response[Any]:
    if isinstance(outcome, Problem):
        return error_response(outcome)
    return Response(present_completion(outcome, model=model))


def _stream(
    body: ChatCompletionRequest,
    conversation: Conversation,
    model: KnowledgeModel,
    identity: Identity,
    services: Services,
) -> Response[Any]:
    if not services.settings.stream_enabled:
        raise StreamingDisabledError("Streamed answers are turned off here.", field="stream")
    options = body.stream_options
    usage = options is not None and options.include_usage
    return EventStreamResponse(
        wire_events(model.answer(conversation, identity)),
        encoder=ChunkEncoder(key=uuid4(), model=body.model, include_usage=usage),
        heartbeat_seconds=services.settings.heartbeat_seconds,
        refuse=error_response,
    )


def _present_model(model: KnowledgeModel) -> ModelBody:
    return ModelBody(id=model.id, created=model.created, owned_by=model.owned_by)


_NOT_SERVED = [HttpMethod.GET, HttpMethod.PUT, HttpMethod.PATCH, HttpMethod.DELETE]


@route("/{address:path}", http_method=[*_NOT_SERVED, HttpMethod.POST], include_in_schema=False)
async def _other_address(request: AnyRequest) -> None:
    """What that API has and we do not: embeddings, files, and so on."""
    raise UnknownAddressError(request.method, request.scope["path"])


@route("/chat/completions", http_method=_NOT_SERVED, include_in_schema=False)
async def _other_method(request: AnyRequest) -> None:
    """Stored completions: answers are kept under /api/v1/answers."""
    raise UnknownAddressError(request.method, request.scope["path"])
