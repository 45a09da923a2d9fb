"""Chat with an agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from litestar import Controller, Response, post
from litestar.enums import MediaType

from rag_service.api.agents.history import keep_answers
from rag_service.api.agents.schemas import ChatBody, ChatRequest
from rag_service.api.http.access import Caller, CallerDependency, require_scope
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.events import WireEvent, present_events, wired
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.queries import find_range_errors, find_replace_errors, find_unstorable, is_blank
from rag_service.api.http.schemas import AnswerBody, MessageRequest
from rag_service.api.http.services import READING
from rag_service.api.http.streaming import reply_with_answer
from rag_service.domain import Turn
from rag_service.errors import NotFoundError, StoreError
from rag_service.settings import Settings
from rag_service.store.accounts.agents import Agent, read_agent
from rag_service.store.accounts.conversations import read_history, require_project
from rag_service.store.accounts.keys import Scope
from rag_service.store.database import Connection

if TYPE_CHECKING:  # these load LlamaIndex
    from rag_service.agents.chat import ChatQuery


class ChatController(Controller):
    """Conversations with an agent."""

    path = "/api/v1/agents/{agent_id:uuid}/chat"
    tags = ["Agents"]

    @post(
        status_code=200,
        media_type=MediaType.JSON,
        summary="Chat with an agent",
        description="Answers the last message from the agent's corpora and, if the agent allows it, the caller's own. "
        "Without relevant passages, or if the database is down, the answer says so and `ragUsed` is false. With "
        "`stream: true`, the reply is a stream of answer events whose `final` has the fields of a chat.",
        operation_class=accepts(ChatRequest),
        opt=READING,
        responses=problems(400, 401, 403, 404, 500, 503),
    )
    async def chat(self, agent_id: UUID, request: AnyRequest, caller: CallerDependency) -> Response[Any]:
        body = await read_json(request, ChatRequest)
        settings = caller.tenancy.settings
        _check(body, settings)
        if body.conversation_id is not None:  # which it changes
            require_scope(caller.identity, Scope.WRITE)
        query = await _prepare(caller, agent_id, body)
        return await reply_with_answer(_chat_events(caller, query, body), request, settings, stream=body.stream)


def _check(body: ChatRequest, settings: Settings) -> None:
    errors: list[FieldError] = []
    last = body.messages[-1] if body.messages else None
    if last is None or last.role != "user" or is_blank(last.content):
        errors.append(FieldError("messages", "must end with a user message"))
    elif len(last.content) > settings.limits.query_max_chars:
        errors.append(
            FieldError(
                "messages", f"must end with a user message of at most {settings.limits.query_max_chars} characters"
            )
        )
    errors += find_range_errors(body.top_k, body.similarity_threshold, settings)
    errors += find_unstorable({"messages": [message.content for message in body.messages]})
    errors += find_replace_errors(body.replaces, body.conversation_id)
    if errors:
        raise InvalidRequestError(errors)


async def _prepare(caller: Caller, agent_id: UUID, body: ChatRequest) -> ChatQuery:
    """Agent, history and question; objects that are not the caller's are not found."""
    from rag_service.agents.chat import ChatQuery

    said: Sequence[MessageRequest | Turn] = body.messages[:-1]
    memory = caller.tenancy.agents
    try:
        agent, stored = await caller.run(_read_context, agent_id, body)
        memory.keep(caller.identity, agent)
        said = said or stored
    except StoreError:
        remembered = memory.recall(caller.identity, agent_id)
        if remembered is None:
            raise
        agent = remembered
    return ChatQuery(
        agent=agent,
        turns=tuple(Turn(role=message.role, content=message.content) for message in said),
        question=body.messages[-1].content.strip(),
        top_k=caller.tenancy.settings.retrieval.top_k if body.top_k is None else body.top_k,
        threshold=body.similarity_threshold,
    )


async def _read_context(connection: Connection, agent_id: UUID, body: ChatRequest) -> tuple[Agent, tuple[Turn, ...]]:
    """The agent, and what was said in the conversation that is named."""
    agent = await read_agent(connection, agent_id)
    if not agent.spec.active:
        raise NotFoundError("This agent does not exist.")
    if body.project_id is not None:
        await require_project(connection, body.project_id)
    if body.conversation_id is None:
        return agent, ()
    return agent, await read_history(connection, body.conversation_id, body.replaces)


def _chat_events(caller: Caller, query: ChatQuery, body: ChatRequest) -> AsyncGenerator[WireEvent, None]:
    """The events of an answer; the final one is stored first and carries a chat's fields."""
    outcome, events = caller.tenancy.chat(query, caller.identity)

    def present_chat(answer: AnswerBody) -> ChatBody:
        return present(
            ChatBody,
            answer,
            rag_used=outcome.rag_used,
            context_use=outcome.context,
            standalone_question=outcome.question,
            conversation_id=None,
        )

    kept = keep_answers(
        present_events(events),
        caller,
        query.question,
        body.conversation_id,
        replaces=body.replaces,
        present_kept=present_chat,
        agent_id=query.agent.id,
        project_id=body.project_id,
    )
    return wired(kept)
