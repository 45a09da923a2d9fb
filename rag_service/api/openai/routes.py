"""The OpenAI-compatible API.

Programs written for that API use the documents once their base URL is `…/v1`. Citations are in fields of our own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from litestar import HttpMethod, Response, Router, get, post, route
from litestar.enums import MediaType
from litestar.types import ControllerRouterHandler
from msgspec import Struct

from rag_service.answering.drafts.events import AnswerEvent
from rag_service.api.http.access import TenancyServices
from rag_service.api.http.bodies import AnyRequest, convert, read_json
from rag_service.api.http.documentation import accepts
from rag_service.api.http.events import Encoder, WireEvent, collect, wire_events
from rag_service.api.http.problems import (
    ClientGoneError,
    FieldError,
    InvalidRequestError,
    Problem,
    handle_client_gone,
)
from rag_service.api.http.schemas import AnswerBody
from rag_service.api.http.services import READING, IdentityDependency, Services, ServicesDependency
from rag_service.api.http.streaming import EventStreamResponse, check_streaming, unless_gone
from rag_service.api.openai.embeddings import EmbeddingList, EmbeddingRequest, present_embeddings, read_texts
from rag_service.api.openai.errors import (
    UnknownAddressError,
    UnknownModelError,
    UnknownResponseError,
    error_response,
    errors,
    handle_openai_error,
)
from rag_service.api.openai.fields import Conversation, find_ignored, read_conversation, without_open_lengths
from rag_service.api.openai.responses import (
    ResponseBody,
    ResponseEncoder,
    ResponseRequest,
    answer_id_of,
    present_response,
)
from rag_service.api.openai.schemas import ChatCompletion, ChatCompletionRequest, ModelBody, ModelList
from rag_service.api.openai.stream import ChunkEncoder, CompletionForm
from rag_service.domain import Identity, Turn
from rag_service.errors import NotFoundError
from rag_service.store.accounts.agents import Agent, list_agents
from rag_service.store.accounts.answers import read_answer
from rag_service.store.rows import LIMIT_MAX, Slice

DEFAULT_MODEL = "rag-service"
_CREATED = 1_735_689_600  # of the default model: 2025-01-01, when this API began
_KEPT_TURNS = 10  # of a conversation that a response goes on from, as of stored ones

Answer = Callable[[Conversation, Identity], AsyncGenerator[AnswerEvent]]  # an async generator function


@dataclass(frozen=True, kw_only=True)
class KnowledgeModel:
    """Something that answers, under an id of its own: the default, or an agent."""

    id: str  # what requests name as `model`
    answer: Answer
    created: int = _CREATED  # Unix time in seconds
    owned_by: str = "rag-service"


Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]  # `app.state.embed`: texts → vectors
ListModels = Callable[[AnyRequest, Identity], Awaitable[Sequence[KnowledgeModel]]]  # `app.state.list_models`


def openai_routes() -> list[ControllerRouterHandler]:
    """Everything below /v1, with errors in that API's shape.

    `app.state.list_models` gives further models, such as agents, that an identity may use; it is called for each
    request.
    """
    return [
        Router(
            "/v1",
            route_handlers=[chat_completions, responses, embeddings, models, model, _other_address, _other_method],
            tags=["OpenAI"],
            exception_handlers={Exception: handle_openai_error, ClientGoneError: handle_client_gone},
        )
    ]


@post(
    "/chat/completions",
    status_code=200,
    media_type=MediaType.JSON,
    summary="Answer a conversation (OpenAI-compatible)",
    description="The last message is the question. With `stream: true`, `chat.completion.chunk` events end with "
    "`[DONE]`. Citations are in `choices[0].message.citations`; in a stream, in the last chunk.",
    operation_class=accepts(ChatCompletionRequest),
    opt=READING,
    responses=errors(400, 401, 404, 413, 415, 500, 503),
)
async def chat_completions(
    request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
) -> Response[ChatCompletion]:
    fields = without_open_lengths(await read_json(request, dict))
    body = convert(fields, ChatCompletionRequest)
    events, form = await _ask(request, body, find_ignored(fields, ChatCompletionRequest), services, identity)
    usage = body.stream_options is not None and body.stream_options.include_usage
    encoder = ChunkEncoder(form, include_usage=usage) if body.stream else None
    return await _reply(request, services, events, encoder, form.completion)


@post(
    "/responses",
    status_code=200,
    media_type=MediaType.JSON,
    summary="Answer a question (OpenAI-compatible)",
    description="The Responses API: `input` is a question or a conversation. With `stream: true`, sends events from "
    "`response.created` to `response.completed`. Citations are `file_citation` annotations, and `citations`.",
    operation_class=accepts(ResponseRequest),
    opt=READING,
    responses=errors(400, 401, 404, 413, 415, 500, 503),
)
async def responses(
    request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
) -> Response[ResponseBody]:
    fields = without_open_lengths(await read_json(request, dict))
    given = convert(fields, ResponseRequest)
    body = given.as_chat(await _read_previous(request, given.previous_response_id, identity))
    ignored, is_kept = find_ignored(fields, ResponseRequest), given.store is not False
    events, form = await _ask(request, body, ignored, services, identity, is_kept=is_kept)
    encoder = ResponseEncoder(form) if body.stream else None
    present = partial(present_response, form=form, created=int(time.time()))
    return await _reply(request, services, events, encoder, present)


@post(
    "/embeddings",
    status_code=200,
    summary="Embed texts (OpenAI-compatible)",
    operation_class=accepts(EmbeddingRequest),
    opt=READING,
    responses=errors(400, 401, 404, 413, 415, 500, 503),
)
async def embeddings(request: AnyRequest, services: ServicesDependency, identity: IdentityDependency) -> EmbeddingList:
    services.turns.embeddings.require_room(identity.user_id)
    body = await read_json(request, EmbeddingRequest)
    texts = read_texts(body, services.settings.embedding)
    embed: Embed = request.app.state.embed
    async with services.turns.embeddings.take(identity.user_id):
        return await asyncio.to_thread(present_embeddings, body, texts, await embed(texts))


@get("/models", summary="List models (OpenAI-compatible)", responses=errors(401, 500))
async def models(request: AnyRequest, services: ServicesDependency, identity: IdentityDependency) -> ModelList:
    found = (await _all_models(request, identity)).values()
    return ModelList(data=[*map(_present_model, found), _present_embedder(services)])


@get("/models/{model_id:path}", summary="Read a model (OpenAI-compatible)", responses=errors(401, 404, 500))
async def model(
    request: AnyRequest, model_id: str, services: ServicesDependency, identity: IdentityDependency
) -> ModelBody:
    name = model_id.removeprefix("/")
    found = (await _all_models(request, identity)).get(name)
    if found is not None:
        return _present_model(found)
    if name != services.settings.embedding.model:
        raise UnknownModelError(name)
    return _present_embedder(services)


async def _all_models(request: AnyRequest, identity: Identity) -> dict[str, KnowledgeModel]:
    services: Services = request.app.state.services
    list_models: ListModels = request.app.state.list_models

    def answer(conversation: Conversation, identity: Identity) -> AsyncGenerator[AnswerEvent]:
        return services.answer(conversation.as_one_question(), "openai")

    default = KnowledgeModel(id=DEFAULT_MODEL, answer=answer)
    return {model.id: model for model in (default, *await list_models(request, identity))}


async def _find_model(request: AnyRequest, model_id: str, identity: Identity) -> KnowledgeModel:
    found = (await _all_models(request, identity)).get(model_id)
    if found is None:
        raise UnknownModelError(model_id)
    return found


async def _read_previous(request: AnyRequest, given: str | None, identity: Identity) -> tuple[Turn, ...]:
    """What was said up to a response. Raises UnknownResponseError where the caller has none of this id."""
    if given is None:
        return ()
    answer_id = answer_id_of(given)
    if answer_id is None:
        raise UnknownResponseError(given)
    from rag_service.answering.record import read_said  # loads LlamaIndex

    services: TenancyServices = request.app.state.tenancy
    try:
        async with services.transaction(identity, limited=True) as connection:
            said = read_said(await read_answer(connection, answer_id))
    except NotFoundError:
        said = ()
    if not said:
        raise UnknownResponseError(given)
    return said


async def _ask(
    request: AnyRequest,
    body: ChatCompletionRequest,
    ignored: tuple[str, ...],
    services: Services,
    identity: Identity,
    *,
    is_kept: bool = False,
) -> tuple[AsyncGenerator[WireEvent, None], CompletionForm]:
    """The events of the answer by the model that a request names, and the form of the reply.

    `is_kept`: a later request may go on from it by its id.
    """
    conversation = read_conversation(body, ignored, services.settings, identity)
    question = conversation.question
    if is_kept:
        said = (*conversation.turns, Turn(role="user", content=question.text))[-_KEPT_TURNS:]
        conversation = replace(conversation, question=replace(question, said=said))
    events = (await _find_model(request, body.model, identity)).answer(conversation, identity)
    form = CompletionForm(
        model=body.model,
        key=question.answer_id,
        ignored=conversation.ignored,
        with_sources=services.settings.http.openai_sources,
        asked=conversation.asked,
        as_json=question.schema is not None,
        file_search=question.text if any(tool.get("type") == "file_search" for tool in body.tools or ()) else None,
    )
    return wire_events(events), form


async def _reply(
    request: AnyRequest,
    services: Services,
    events: AsyncGenerator[WireEvent, None],
    encoder: Encoder | None,
    present: Callable[[AnswerBody], Struct],
) -> Response[Any]:
    """A stream written by the encoder; without one the whole answer."""
    if encoder is not None:
        check_streaming(services.settings)
        return EventStreamResponse(
            events,
            encoder=encoder,
            heartbeat_seconds=services.settings.http.heartbeat_seconds,
            refuse=error_response,
        )
    outcome = await unless_gone(request.receive, collect(events))
    return error_response(outcome) if isinstance(outcome, Problem) else Response(present(outcome))


async def list_agent_models(request: AnyRequest, identity: Identity) -> Sequence[KnowledgeModel]:
    """The active agents, as models of their names. Nothing is stored: the client keeps its own conversations."""
    services: TenancyServices = request.app.state.tenancy
    async with services.transaction(identity, limited=True) as connection:
        page = await list_agents(connection, Slice(limit=LIMIT_MAX))
    return [_as_model(agent, services) for agent in page.items if agent.spec.active]


def _as_model(agent: Agent, services: TenancyServices) -> KnowledgeModel:
    def answer(conversation: Conversation, identity: Identity) -> AsyncGenerator[AnswerEvent]:
        from rag_service.agents.chat import ChatQuery  # loads LlamaIndex

        question = conversation.question
        if question.schema is not None:
            advice = "must be 'text': agents answer in text. The model `rag-service` answers with JSON"
            raise InvalidRequestError([FieldError("response_format.type", advice)])
        if question.filters.corpus_ids or question.filters.where is not None:
            raise InvalidRequestError(
                [FieldError("tools", "must name no stores or filters: an agent has its own corpora")]
            )
        _, events = services.chat(
            ChatQuery(
                agent=agent,
                turns=conversation.turns,
                question=question.text,
                top_k=question.top_k,
                threshold=question.threshold,
                instructions=conversation.instructions,
                retractable=question.retractable,
                answer_id=question.answer_id,
                said=question.said,
                task=question.task,
            ),
            identity,
        )
        return events

    # An agent cannot take the place of the model that stands for all documents.
    name = agent.spec.name if agent.spec.name != DEFAULT_MODEL else str(agent.id)
    return KnowledgeModel(id=name, answer=answer, created=int(agent.created_at.timestamp()))


def _present_model(model: KnowledgeModel) -> ModelBody:
    return ModelBody(id=model.id, created=model.created, owned_by=model.owned_by)


def _present_embedder(services: Services) -> ModelBody:
    return ModelBody(id=services.settings.embedding.model, created=_CREATED, owned_by="rag-service")


_NOT_SERVED = [HttpMethod.GET, HttpMethod.PUT, HttpMethod.PATCH, HttpMethod.DELETE]


@route("/{address:path}", http_method=[*_NOT_SERVED, HttpMethod.POST], include_in_schema=False)
async def _other_address(request: AnyRequest) -> None:
    """What that API has and we do not: images, batches, and so on."""
    raise UnknownAddressError(request.method, request.scope["path"])


@route(["/chat/completions", "/embeddings", "/responses"], http_method=_NOT_SERVED, include_in_schema=False)
async def _other_method(request: AnyRequest) -> None:
    """Stored completions: answers are kept under /api/v1/answers."""
    raise UnknownAddressError(request.method, request.scope["path"])
