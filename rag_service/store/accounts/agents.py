"""Agents: a way of answering (prompt, model, temperature) over the corpora assigned to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import datetime
from uuid import UUID

import psycopg

from rag_service.domain import CorpusKind
from rag_service.errors import ConflictError, NotFoundError, PermissionDeniedError
from rag_service.store.corpora import Corpus, read_corpus, select_corpora
from rag_service.store.database import Connection
from rag_service.store.rows import Page, Slice, Table, fetch_value


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """What an agent is. None: as the settings say."""

    name: str  # unique
    description: str = ""
    system_prompt: str = ""  # added to the prompt's rules, never instead of them
    provider: str | None = None
    model_name: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    allows_personal_corpus: bool = False
    active: bool = True  # inactive: nobody but administrators sees it, and nothing is readable through it


_FIELDS = tuple(field.name for field in fields(AgentSpec))
_SPEC = ", ".join(f"'{name}', {name}" for name in _FIELDS)


@dataclass(frozen=True, kw_only=True)
class Agent:
    id: UUID
    spec: AgentSpec
    created_at: datetime
    updated_at: datetime


_AGENTS = Table(
    "agents",
    Agent,
    columns=f"id, jsonb_build_object({_SPEC}) AS spec, created_at, updated_at",
    missing="This agent does not exist.",
)


@dataclass(frozen=True, kw_only=True)
class AgentScope:
    """The corpora that an agent answers a caller from, permissions decided now."""

    global_ids: tuple[UUID, ...] = ()  # active and assigned
    personal_ids: tuple[UUID, ...] = ()  # the caller's own; empty where the agent allows none


async def create_agent(connection: Connection, spec: AgentSpec) -> Agent:
    """Create an agent; for administrators.

    Raises ConflictError if the name is taken, PermissionDeniedError if the identity is not an administrator.
    """
    try:
        return await _AGENTS.insert(connection, asdict(spec))
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"An agent named {spec.name!r} already exists.", field="name") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("Only administrators can create agents.") from error


async def list_agents(connection: Connection, part: Slice, *, inactive: bool = True) -> Page[Agent]:
    """Agents by name: active ones, for administrators all unless they ask for no `inactive` ones."""
    return await _AGENTS.page(
        connection, part, "WHERE active OR %(inactive)s ORDER BY name, id", {"inactive": inactive}
    )


async def read_agent(connection: Connection, agent_id: UUID) -> Agent:
    """An agent by id.

    Raises NotFoundError if there is none, or it is inactive and the identity is not an administrator.
    """
    return await _AGENTS.read(connection, agent_id)


async def update_agent(connection: Connection, agent_id: UUID, spec: AgentSpec) -> Agent:
    """Replace what an agent is; for administrators. Assignments stay, and apply as far as the agent allows.

    Raises like `create_agent` and `read_agent`.
    """
    await read_agent(connection, agent_id)
    changes = ", ".join(f"{name} = %({name})s" for name in _FIELDS) + ", updated_at = now() WHERE id = %(id)s"
    try:
        return await _AGENTS.update(connection, changes, {**asdict(spec), "id": agent_id})
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"An agent named {spec.name!r} already exists.", field="name") from error
    except NotFoundError as error:
        raise PermissionDeniedError("Only administrators can change agents.") from error


async def delete_agent(connection: Connection, agent_id: UUID) -> None:
    """Delete an agent; its corpora and conversations stay. For administrators.

    Raises NotFoundError like `read_agent`, PermissionDeniedError if the identity is not an administrator.
    """
    await read_agent(connection, agent_id)
    cursor = await connection.execute("DELETE FROM agents WHERE id = %s", [agent_id])
    if cursor.rowcount == 0:
        raise PermissionDeniedError("Only administrators can delete agents.")


async def assign_corpus(connection: Connection, agent_id: UUID, corpus_id: UUID) -> None:
    """Assign a corpus to an agent: administrators global ones, users their own personal ones. Again is no error.

    Raises NotFoundError if the identity cannot see the agent or corpus, ConflictError if the corpus is personal and the
    agent allows none, PermissionDeniedError if a user assigns a global corpus.
    """
    agent = await read_agent(connection, agent_id)
    corpus = await read_corpus(connection, corpus_id)
    if corpus.kind is CorpusKind.PERSONAL and not agent.spec.allows_personal_corpus:
        raise _takes_no_personal(agent)
    try:
        await connection.execute(
            "INSERT INTO agent_corpora (agent_id, corpus_id) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [agent_id, corpus_id],
        )
    except psycopg.errors.CheckViolation as error:
        raise _takes_no_personal(agent) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("Only administrators can assign global corpora.") from error


def _takes_no_personal(agent: Agent) -> ConflictError:
    return ConflictError(f"The agent {agent.spec.name!r} does not accept personal corpora.", field="corpusId")


async def unassign_corpus(connection: Connection, agent_id: UUID, corpus_id: UUID) -> None:
    """Take a corpus from an agent.

    Raises NotFoundError if it is not assigned, PermissionDeniedError if a user unassigns a global corpus.
    """
    where = "agent_corpora WHERE agent_id = %s AND corpus_id = %s"
    if not await fetch_value(connection, f"SELECT true FROM {where}", [agent_id, corpus_id]):  # noqa: S608 - fixed text
        raise NotFoundError("This corpus is not assigned to the agent.")
    cursor = await connection.execute(f"DELETE FROM {where}", [agent_id, corpus_id])  # noqa: S608 - fixed text
    if cursor.rowcount == 0:
        raise PermissionDeniedError("Only administrators can unassign global corpora.")


async def list_assigned(connection: Connection, agent_id: UUID) -> tuple[Corpus, ...]:
    """Corpora assigned to an agent, as far as the identity may see them. Raises like `read_agent`."""
    await read_agent(connection, agent_id)
    return await select_corpora(
        connection, "id IN (SELECT corpus_id FROM agent_corpora WHERE agent_id = %(agent)s)", {"agent": agent_id}
    )


async def resolve_agent_scope(connection: Connection, agent: Agent, *, owner_id: UUID) -> AgentScope:
    """What an agent answers a caller from, decided at the time of the question.

    Global corpora: those assigned and active. Personal ones, only where the agent allows them now: the
    caller's own that are assigned to this agent, or all of the caller's own when none is assigned.
    """
    assigned = [corpus for corpus in await list_assigned(connection, agent.id) if corpus.active]
    chosen = [corpus for corpus in assigned if corpus.kind is CorpusKind.GLOBAL]
    personal: list[Corpus] = []
    if agent.spec.allows_personal_corpus:
        personal = [corpus for corpus in assigned if corpus.owner_id == owner_id] or list(
            await select_corpora(connection, "owner_id = %(owner)s AND active", {"owner": owner_id})
        )
    return AgentScope(
        global_ids=tuple(corpus.id for corpus in chosen),
        personal_ids=tuple(corpus.id for corpus in personal),
    )
