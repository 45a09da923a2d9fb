"""Agent chat: requirements C4 and C10."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import structlog
from litestar import Controller, Response, post
from litestar.enums import MediaType
from msgspec import structs

from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.schemas_agents import ChatBody, ChatRequest
from rag_service.api.tenancy.services import REQUIRED_SCOPE, TenancyDependency, TenancyServices
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.events import WireEvent, collect, wire_events
from rag_service.api.wire.presenters import find_nul, is_blank
from rag_service.api.wire.problems import (
    FieldError,
    InvalidRequestError,
    Problem,
    StreamingDisabledError,
    problem_response,
)
from rag_service.api.wire.schemas import AnswerBody
from rag_service.api.wire.streaming import EventStreamResponse, choose_encoder, unless_gone
from rag_service.domain import Identity
from rag_service.errors import NotFoundError, StoreError
from rag_service.settings import Settings
from rag_service.store.people.agents import Agent, read_agent
from rag_service.store.people.conversations import (
    Message,
    add_message,
    create_conversation,
    last_messages,
    read_conversation,
    require_project,
)
from rag_service.store.people.keys import Scope

if TYPE_CHECKING:  # these load LlamaIndex
    from rag_service.query.agents.chat import ChatOutcome, ChatQuery

log = structlog.get_logger(__name__)

_TITLE = 80  # characters of the first question
_KEPT_TURNS = 5  # read from a stored conversation


class ChatController(Controller):
    """Conversations with an agent."""

    path = "/api/v1/agents/{agent_id:uuid}/chat"
    tags = ["Agents"]  # noqa: RUF012 - Litestar's way

    @post(
        status_code=200,
        media_type=MediaType.JSON,
        summary="Chat with an agent",
        description="Answers the last message from the agent's corpora and, where it allows them, the caller's own. "
        "Without relevant passages, or with the store down, it says so and `ragUsed` is false. `stream: true` gives "
        "the events of an answer; `final` carries the fields of a chat.",
        operation_class=accepts(ChatRequest),
        opt={REQUIRED_SCOPE: Scope.READ},
        responses=problems(400, 401, 403, 404, 500, 503),
    )
    async def chat(
        self, agent_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> Response[Any]:
        body = await read_json(request, ChatRequest)
        _check(body, tenancy.settings)
        query = await _prepare(tenancy, identity, agent_id, body)
        events = _chat_events(tenancy, identity, query, body)
        if not body.stream:
            outcome = await unless_gone(request.receive, collect(events))
            return problem_response(outcome) if isinstance(outcome, Problem) else Response(outcome)
        return EventStreamResponse(
            events, encoder=choose_encoder(request), heartbeat_seconds=tenancy.settings.heartbeat_seconds
        )


def _check(body: ChatRequest, settings: Settings) -> None:
    errors: list[FieldError] = []
    last = body.messages[-1] if body.messages else None
    if last is None or last.role != "user" or is_blank(last.content):
        errors.append(FieldError("messages", "must end with a question of the user"))
    elif len(last.content) > settings.query_max_chars:
        errors.append(
            FieldError("messages", f"must end with a question of at most {settings.query_max_chars} characters")
        )
    if body.top_k is not None and not 1 <= body.top_k <= settings.topk_max:
        errors.append(FieldError("topK", f"must be from 1 to {settings.topk_max}"))
    if body.similarity_threshold is not None and not 0 <= body.similarity_threshold <= 1:
        errors.append(FieldError("similarityThreshold", "must be from 0 to 1"))
    errors += find_nul({"messages": [message.content for message in body.messages]})
    if errors:
        raise InvalidRequestError(errors)
    if body.stream and not settings.stream_enabled:
        raise StreamingDisabledError("Streamed answers are turned off here.", field="stream")


async def _prepare(tenancy: TenancyServices, identity: Identity, agent_id: UUID, body: ChatRequest) -> ChatQuery:
    """Agent, history and question; objects that are not the caller's are not found."""
    from rag_service.query.agents.chat import ChatQuery
    from rag_service.query.agents.history import Turn

    history = tuple(Turn(role=message.role, content=message.content) for message in body.messages[:-1])
    try:
        agent, stored = await _read_context(tenancy, identity, agent_id, body)
        tenancy.agents.keep(identity, agent)
        history = history or tuple(Turn(role=message.role, content=message.content) for message in stored)
    except StoreError:
        remembered = tenancy.agents.recall(identity, agent_id)
        if remembered is None:
            raise
        agent = remembered
    return ChatQuery(
        agent=agent,
        history=history,
        question=body.messages[-1].content.strip(),
        top_k=tenancy.settings.topk_default if body.top_k is None else body.top_k,
        threshold=body.similarity_threshold,
    )


async def _read_context(
    tenancy: TenancyServices, identity: Identity, agent_id: UUID, body: ChatRequest
) -> tuple[Agent, tuple[Message, ...]]:
    """The agent, and the last messages of the conversation that is named."""
    async with tenancy.transaction(identity) as connection:
        agent = await read_agent(connection, agent_id)
        if not agent.spec.active:
            raise NotFoundError("There is no such agent.")
        if body.project_id is not None:
            await require_project(connection, body.project_id)
        if body.conversation_id is None:
            return agent, ()
        await read_conversation(connection, body.conversation_id)
        return agent, await last_messages(connection, body.conversation_id, count=_KEPT_TURNS)


async def _chat_events(
    tenancy: TenancyServices, identity: Identity, query: ChatQuery, body: ChatRequest
) -> AsyncGenerator[WireEvent, None]:
    """The events of an answer; the final one is stored first and carries a chat's fields."""
    outcome, events = tenancy.chat(query, identity)
    wire = wire_events(events)
    async with aclosing(wire):
        async for event in wire:
            if not isinstance(event.data, AnswerBody):
                yield event
                continue
            conversation_id = await _keep(tenancy, identity, query, body, outcome, event.data)
            chat = ChatBody(
                **structs.asdict(event.data),
                rag_used=outcome.rag_used,
                context_use=outcome.context.value,
                standalone_question=outcome.question,
                conversation_id=conversation_id,
            )
            yield WireEvent("final", chat)


async def _keep(
    tenancy: TenancyServices,
    identity: Identity,
    query: ChatQuery,
    body: ChatRequest,
    outcome: ChatOutcome,
    answer: AnswerBody,
) -> UUID | None:
    """Store question and answer; None when the database is down: the answer is worth more than its record."""
    try:
        async with tenancy.transaction(identity) as connection:
            conversation_id = body.conversation_id
            if conversation_id is None:
                created = await create_conversation(
                    connection, identity, agent_id=query.agent.id, project_id=body.project_id,
                    title=query.question[:_TITLE],
                )  # fmt: skip
                conversation_id = created.id
            if not outcome.rag_used:  # the engine recorded the others; feedback needs a record, too
                await _record(connection, identity, answer, query)
            await add_message(connection, identity, conversation_id, role="user", content=query.question)
            await add_message(
                connection, identity, conversation_id, role="assistant", content=answer.answer,
                citations=msgspec.to_builtins(answer.citations), answer_id=answer.answer_id,
            )  # fmt: skip
    except (StoreError, NotFoundError) as error:  # also: the conversation or agent was deleted meanwhile
        log.warning("conversation_not_stored", exc_info=error)
        return None
    return conversation_id


async def _record(connection: Any, identity: Identity, answer: AnswerBody, query: ChatQuery) -> None:
    record = {
        "answerId": str(answer.answer_id),
        "question": query.question,
        "language": answer.language,
        "answer": answer.answer,
        "agentId": str(query.agent.id),
        "ragUsed": False,
    }
    await connection.execute(
        "INSERT INTO answers (id, user_id, record) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        [answer.answer_id, identity.user_id, msgspec.json.encode(record).decode()],
    )
