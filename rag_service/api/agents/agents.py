"""Agents and the corpora assigned to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from litestar import Controller, delete, get, post, put
from msgspec import structs

from rag_service.api.agents.schemas import AgentBody, AgentList, AgentRequest
from rag_service.api.corpora.corpora import present_corpus
from rag_service.api.corpora.schemas import CorpusList
from rag_service.api.http.access import ADMINISTRATORS, Caller, CallerDependency, require_scope
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems, takes_query
from rag_service.api.http.fields import SLICE, check_texts, read_slice
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.settings import Settings
from rag_service.store.accounts.agents import (
    Agent,
    AgentSpec,
    assign_corpus,
    create_agent,
    delete_agent,
    list_agents,
    list_assigned,
    read_agent,
    unassign_corpus,
    update_agent,
)
from rag_service.store.accounts.keys import Scope
from rag_service.store.database import Connection


class AgentsController(Controller):
    """Agents answer questions, each from its own corpora."""

    path = "/api/v1/agents"
    tags = ["Agents"]

    @get(summary="List agents", operation_class=takes_query(**SLICE), responses=problems(400, 401, 403, 500))
    async def list_all(self, request: AnyRequest, caller: CallerDependency) -> AgentList:
        """Active agents by name; for administrators, all of them."""
        page = await caller.run(list_agents, read_slice(request), inactive=caller.own is None)
        return AgentList(items=[_present(agent) for agent in page.items], total=page.total)

    @post(
        summary="Create an agent",
        opt=ADMINISTRATORS,
        operation_class=accepts(AgentRequest),
        responses=problems(400, 401, 403, 500),
    )
    async def create(self, request: AnyRequest, caller: CallerDependency) -> AgentBody:
        spec = _read_spec(await read_json(request, AgentRequest), caller.tenancy.settings)
        return _present(await caller.run(create_agent, spec))

    @get("/{agent_id:uuid}", summary="Read an agent", responses=problems(401, 403, 404, 500))
    async def read(self, agent_id: UUID, caller: CallerDependency) -> AgentBody:
        agent = await caller.run(read_agent, agent_id)
        if not agent.spec.active:
            require_scope(caller.identity, Scope.ADMIN)
        return _present(agent)

    @put(
        "/{agent_id:uuid}",
        summary="Change an agent",
        opt=ADMINISTRATORS,
        operation_class=accepts(AgentRequest),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def update(self, agent_id: UUID, request: AnyRequest, caller: CallerDependency) -> AgentBody:
        """Replaces the agent: fields that are omitted get their defaults."""
        spec = _read_spec(await read_json(request, AgentRequest), caller.tenancy.settings)
        return _present(await caller.run(update_agent, agent_id, spec))

    @delete("/{agent_id:uuid}", summary="Delete an agent", opt=ADMINISTRATORS, responses=problems(401, 403, 404, 500))
    async def remove(self, agent_id: UUID, caller: CallerDependency) -> None:
        """Its corpora and conversations are kept."""
        await caller.run(delete_agent, agent_id)

    @get("/{agent_id:uuid}/corpora", summary="List an agent's corpora", responses=problems(401, 403, 404, 500))
    async def corpora(self, agent_id: UUID, caller: CallerDependency) -> CorpusList:
        """Assigned corpora that the caller can see."""
        found = await caller.run(list_assigned, agent_id)
        return CorpusList(items=[present_corpus(corpus) for corpus in found], total=len(found))

    @put(
        "/{agent_id:uuid}/corpora/{corpus_id:uuid}",
        status_code=204,
        summary="Assign a corpus",
        responses=problems(401, 403, 404, 500),
    )
    async def assign(self, agent_id: UUID, corpus_id: UUID, caller: CallerDependency) -> None:
        """Administrators assign global corpora. Owners assign personal corpora; 409 if the agent does not allow it."""
        await caller.run(_change_corpora, assign_corpus, caller, agent_id, corpus_id)

    @delete(
        "/{agent_id:uuid}/corpora/{corpus_id:uuid}",
        summary="Unassign a corpus",
        responses=problems(401, 403, 404, 500),
    )
    async def unassign(self, agent_id: UUID, corpus_id: UUID, caller: CallerDependency) -> None:
        await caller.run(_change_corpora, unassign_corpus, caller, agent_id, corpus_id)


async def _change_corpora(
    connection: Connection,
    change: Callable[[Connection, UUID, UUID], Awaitable[None]],
    caller: Caller,
    agent_id: UUID,
    corpus_id: UUID,
) -> None:
    await read_agent(connection, agent_id)
    await caller.check_writable(connection, corpus_id)
    await change(connection, agent_id, corpus_id)


def _read_spec(body: AgentRequest, settings: Settings) -> AgentSpec:
    check_texts(
        required={"name": body.name},
        optional={"description": body.description, "systemPrompt": body.system_prompt, "modelName": body.model_name},
    )
    errors = []
    providers = settings.chat.agent_providers_list
    if body.model_provider is not None and body.model_provider not in providers:
        errors.append(
            FieldError("modelProvider", f"must be one of {', '.join(providers)}, not {body.model_provider!r}")
        )
    if body.temperature is not None and not 0 <= body.temperature <= 2:
        errors.append(FieldError("temperature", "must be from 0 to 2"))
    if body.max_tokens is not None and not 16 <= body.max_tokens <= 1_000_000:
        errors.append(FieldError("maxTokens", "must be from 16 to 1000000"))
    if errors:
        raise InvalidRequestError(errors)
    fields = structs.asdict(body) | {"name": body.name.strip()}
    return AgentSpec(provider=fields.pop("model_provider"), **fields)


def _present(agent: Agent) -> AgentBody:
    return present(
        AgentBody,
        agent.spec,
        id=agent.id,
        model_provider=agent.spec.provider,
        created_at=agent.created_at,
        updated_at=agent.updated_at,
    )
