"""Agents as models of the OpenAI-compatible API (requirement F4): asked like any other, as who asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from rag_service.api.openai.fields import Conversation
from rag_service.api.openai.routes import DEFAULT_MODEL, KnowledgeModel, ListModels
from rag_service.api.tenancy.services import TenancyServices
from rag_service.domain import Identity
from rag_service.query.events import AnswerEvent
from rag_service.store.paging import LIMIT_MAX, Slice
from rag_service.store.people.agents import Agent, list_agents


def agents_as_models(tenancy: Callable[[], TenancyServices]) -> ListModels:
    """Lists the active agents by name, as models of that id.

    Nothing is stored as a conversation: the client keeps its own. What an agent answers from is decided for
    who asks, as in its chat.
    """

    async def list_models(identity: Identity) -> Sequence[KnowledgeModel]:
        services = tenancy()
        async with services.transaction(identity) as connection:
            page = await list_agents(connection, Slice(limit=LIMIT_MAX))
        return [_as_model(agent, services) for agent in page.items if agent.spec.active]

    return list_models


def _as_model(agent: Agent, services: TenancyServices) -> KnowledgeModel:
    def answer(conversation: Conversation, identity: Identity) -> AsyncIterator[AnswerEvent]:
        from rag_service.query.agents.chat import ChatQuery  # loads LlamaIndex

        question = conversation.query
        _, events = services.chat(
            ChatQuery(
                agent=agent,
                history=conversation.history,
                question=question.question,
                top_k=question.top_k,
                threshold=question.threshold,
            ),
            identity,
        )
        return events

    # An agent cannot take the place of the model that stands for all documents.
    name = agent.spec.name if agent.spec.name != DEFAULT_MODEL else str(agent.id)
    return KnowledgeModel(id=name, answer=answer, created=int(agent.created_at.timestamp()))
