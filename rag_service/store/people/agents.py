"""Agents: a way of answering (prompt, model, temperature) over the corpora assigned to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from rag_service.domain import CorpusKind
from rag_service.errors import ConflictError, NotFoundError, PermissionDeniedError
from rag_service.store.corpora import Corpus, read_corpus, select_corpora
from rag_service.store.paging import Page, Slice, read_page
from rag_service.store.session import Connection

_FIELDS = (
    "name", "description", "system_prompt", "provider", "model_name", "temperature", "max_tokens",
    "allows_personal_corpus", "active",
)  # fmt: skip
_COLUMNS = f"id, {', '.join(_FIELDS)}, created_at, updated_at"


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


@dataclass(frozen=True, kw_only=True)
class Agent:
    id: UUID
    spec: AgentSpec
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class AgentScope:
    """The corpora that an agent answers a caller from, permissions decided now."""

    global_ids: tuple[UUID, ...] = ()  # active and assigned
    personal_ids: tuple[UUID, ...] = ()  # the caller's own; empty where the agent allows none
    names: Mapping[UUID, str] = field(default_factory=dict)


async def create_agent(connection: Connection, spec: AgentSpec) -> Agent:
    """Create an agent; for administrators.

    Raises:
        ConflictError: the name is taken.
        PermissionDeniedError: the identity is no administrator.
    """
    try:
        cursor = await connection.execute(
            f"INSERT INTO agents ({', '.join(_FIELDS)})"  # noqa: S608 - fixed text
            f" VALUES ({', '.join(f'%({name})s' for name in _FIELDS)}) RETURNING {_COLUMNS}",
            _values(spec),
        )
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"An agent named {spec.name!r} exists already.", field="name") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("Only administrators create agents.") from error
    return _to_agent(await cursor.fetchone())


async def list_agents(connection: Connection, part: Slice) -> Page[Agent]:
    """Agents by name: active ones, for administrators all."""
    return await read_page(connection, f"SELECT {_COLUMNS} FROM agents ORDER BY name, id", part, _to_agent)  # noqa: S608 - fixed text


async def read_agent(connection: Connection, agent_id: UUID) -> Agent:
    """An agent by id.

    Raises:
        NotFoundError: there is none, or it is inactive and the identity no administrator.
    """
    cursor = await connection.execute(f"SELECT {_COLUMNS} FROM agents WHERE id = %s", [agent_id])  # noqa: S608 - fixed text
    return _to_agent(await cursor.fetchone())


async def update_agent(connection: Connection, agent_id: UUID, spec: AgentSpec) -> Agent:
    """Replace what an agent is; for administrators. Assignments stay, and apply as far as the agent allows.

    Raises:
        NotFoundError: as `read_agent`.
        ConflictError: the name is taken.
        PermissionDeniedError: the identity is no administrator.
    """
    await read_agent(connection, agent_id)
    try:
        cursor = await connection.execute(
            f"UPDATE agents SET {', '.join(f'{name} = %({name})s' for name in _FIELDS)}, updated_at = now()"  # noqa: S608 - fixed text
            f" WHERE id = %(id)s RETURNING {_COLUMNS}",
            {**_values(spec), "id": agent_id},
        )
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"An agent named {spec.name!r} exists already.", field="name") from error
    row = await cursor.fetchone()
    if row is None:
        raise PermissionDeniedError("Only administrators change agents.")
    return _to_agent(row)


async def delete_agent(connection: Connection, agent_id: UUID) -> None:
    """Delete an agent; its corpora and conversations stay. For administrators.

    Raises:
        NotFoundError: as `read_agent`.
        PermissionDeniedError: the identity is no administrator.
    """
    await read_agent(connection, agent_id)
    cursor = await connection.execute("DELETE FROM agents WHERE id = %s", [agent_id])
    if cursor.rowcount == 0:
        raise PermissionDeniedError("Only administrators delete agents.")


async def assign_corpus(connection: Connection, agent_id: UUID, corpus_id: UUID) -> None:
    """Assign a corpus to an agent: administrators global ones, users their own personal ones. Again is no error.

    Raises:
        NotFoundError: agent or corpus is not there for the identity.
        ConflictError: the corpus is personal and the agent allows none.
        PermissionDeniedError: a global corpus, by a non-administrator.
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
        raise PermissionDeniedError("Only administrators assign global corpora.") from error


def _takes_no_personal(agent: Agent) -> ConflictError:
    return ConflictError(f"The agent {agent.spec.name!r} takes no personal corpora.", field="corpusId")


async def unassign_corpus(connection: Connection, agent_id: UUID, corpus_id: UUID) -> None:
    """Take a corpus from an agent.

    Raises:
        NotFoundError: it is not assigned, as far as the identity can see.
        PermissionDeniedError: a global corpus, by a non-administrator.
    """
    cursor = await connection.execute(
        "SELECT FROM agent_corpora WHERE agent_id = %s AND corpus_id = %s", [agent_id, corpus_id]
    )
    if await cursor.fetchone() is None:
        raise NotFoundError("This corpus is not assigned to the agent.")
    cursor = await connection.execute(
        "DELETE FROM agent_corpora WHERE agent_id = %s AND corpus_id = %s", [agent_id, corpus_id]
    )
    if cursor.rowcount == 0:
        raise PermissionDeniedError("Only administrators take global corpora from agents.")


async def list_assigned(connection: Connection, agent_id: UUID) -> tuple[Corpus, ...]:
    """Corpora assigned to an agent, as far as the identity may see them.

    Raises:
        NotFoundError: as `read_agent`.
    """
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
        names={corpus.id: corpus.name for corpus in (*chosen, *personal)},
    )


def _values(spec: AgentSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in _FIELDS}


def _to_agent(row: Sequence[Any] | None) -> Agent:
    if row is None:
        raise NotFoundError("There is no such agent.")
    id, *fields, created_at, updated_at = row
    spec = AgentSpec(**dict(zip(_FIELDS, fields, strict=True)))
    return Agent(id=id, spec=spec, created_at=created_at, updated_at=updated_at)
