"""Agents and the corpora assigned to them: requirement C3."""

from __future__ import annotations

from uuid import UUID

from litestar import Controller, delete, get, post, put

from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.corpora import present_corpus
from rag_service.api.tenancy.fields import check_texts, present_page, read_slice
from rag_service.api.tenancy.schemas_agents import AgentBody, AgentList, AgentRequest
from rag_service.api.tenancy.schemas_corpora import CorpusList
from rag_service.api.tenancy.services import ADMINISTRATORS, TenancyDependency, check_corpus_scope
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.problems import FieldError, InvalidRequestError
from rag_service.store.corpora import read_corpus
from rag_service.store.people.agents import (
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


class AgentsController(Controller):
    """Ways of answering, each over its own corpora."""

    path = "/api/v1/agents"
    tags = ["Agents"]  # noqa: RUF012 - Litestar's way

    @get(summary="List agents", responses=problems(400, 401, 403, 500))
    async def list_all(
        self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> AgentList:
        """Active ones, for administrators all, by name. Query: `offset`, `limit`."""
        part = read_slice(request)
        async with tenancy.transaction(identity) as connection:
            page = await list_agents(connection, part)
        return AgentList(**present_page(page, _present))

    @post(
        summary="Create an agent",
        opt=ADMINISTRATORS,
        operation_class=accepts(AgentRequest),
        responses=problems(400, 401, 403, 500),
    )
    async def create(self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency) -> AgentBody:
        spec = _read_spec(await read_json(request, AgentRequest))
        async with tenancy.transaction(identity) as connection:
            return _present(await create_agent(connection, spec))

    @get("/{agent_id:uuid}", summary="Read an agent", responses=problems(401, 403, 404, 500))
    async def read(self, agent_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> AgentBody:
        async with tenancy.transaction(identity) as connection:
            return _present(await read_agent(connection, agent_id))

    @put(
        "/{agent_id:uuid}",
        summary="Change an agent",
        opt=ADMINISTRATORS,
        operation_class=accepts(AgentRequest),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def update(
        self, agent_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> AgentBody:
        """As a whole: fields that are missing get their defaults."""
        spec = _read_spec(await read_json(request, AgentRequest))
        async with tenancy.transaction(identity) as connection:
            return _present(await update_agent(connection, agent_id, spec))

    @delete("/{agent_id:uuid}", summary="Delete an agent", opt=ADMINISTRATORS, responses=problems(401, 403, 404, 500))
    async def remove(self, agent_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> None:
        """Its corpora and conversations stay."""
        async with tenancy.transaction(identity) as connection:
            await delete_agent(connection, agent_id)

    @get("/{agent_id:uuid}/corpora", summary="List an agent's corpora", responses=problems(401, 403, 404, 500))
    async def corpora(self, agent_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> CorpusList:
        """Those assigned, as far as the caller may see them."""
        async with tenancy.transaction(identity) as connection:
            found = await list_assigned(connection, agent_id)
        return CorpusList(items=[present_corpus(corpus) for corpus in found], total=len(found))

    @put(
        "/{agent_id:uuid}/corpora/{corpus_id:uuid}",
        status_code=204,
        summary="Assign a corpus",
        responses=problems(401, 403, 404, 500),
    )
    async def assign(
        self, agent_id: UUID, corpus_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> None:
        """Global ones: administrators. Personal ones: their owner, where the agent allows it; else a conflict."""
        async with tenancy.transaction(identity) as connection:
            await read_agent(connection, agent_id)
            check_corpus_scope(identity, await read_corpus(connection, corpus_id))
            await assign_corpus(connection, agent_id, corpus_id)

    @delete(
        "/{agent_id:uuid}/corpora/{corpus_id:uuid}",
        summary="Take a corpus from an agent",
        responses=problems(401, 403, 404, 500),
    )
    async def unassign(
        self, agent_id: UUID, corpus_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> None:
        async with tenancy.transaction(identity) as connection:
            await read_agent(connection, agent_id)
            check_corpus_scope(identity, await read_corpus(connection, corpus_id))
            await unassign_corpus(connection, agent_id, corpus_id)


def _read_spec(body: AgentRequest) -> AgentSpec:
    check_texts(
        required={"name": body.name},
        optional={"description": body.description, "systemPrompt": body.system_prompt, "modelName": body.model_name},
    )
    errors = []
    if body.temperature is not None and not 0 <= body.temperature <= 2:
        errors.append(FieldError("temperature", "must be from 0 to 2"))
    if body.max_tokens is not None and not 16 <= body.max_tokens <= 1_000_000:
        errors.append(FieldError("maxTokens", "must be from 16 to 1000000"))
    if errors:
        raise InvalidRequestError(errors)
    return AgentSpec(
        name=body.name.strip(),
        description=body.description,
        system_prompt=body.system_prompt,
        provider=body.model_provider,
        model_name=body.model_name,
        temperature=body.temperature,
        max_tokens=body.max_tokens,
        allows_personal_corpus=body.allows_personal_corpus,
        active=body.active,
    )


def _present(agent: Agent) -> AgentBody:
    spec = agent.spec
    return AgentBody(
        id=agent.id,
        name=spec.name,
        description=spec.description,
        system_prompt=spec.system_prompt,
        model_provider=spec.provider,
        model_name=spec.model_name,
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
        allows_personal_corpus=spec.allows_personal_corpus,
        active=spec.active,
        created_at=agent.created_at,
        updated_at=agent.updated_at,
    )
