"""Projects, conversations and their messages: seen by their owner alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import psycopg

from rag_service.domain import Identity
from rag_service.errors import NotFoundError
from rag_service.store.paging import Page, Slice, read_page
from rag_service.store.session import Connection

Speaker = Literal["user", "assistant"]

_PROJECT = "id, name, created_at"
_CONVERSATION = "id, project_id, agent_id, title, created_at, updated_at"
_MESSAGE = "id, conversation_id, role, content, citations, answer_id, created_at"


@dataclass(frozen=True, kw_only=True)
class Project:
    """A folder of conversations."""

    id: UUID
    name: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Conversation:
    id: UUID
    project_id: UUID | None
    agent_id: UUID | None  # None: the agent is gone
    title: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class Message:
    id: UUID
    conversation_id: UUID
    role: Speaker
    content: str
    citations: Sequence[Any]  # as they went over the wire
    answer_id: UUID | None  # of an assistant's message
    created_at: datetime


async def create_project(connection: Connection, identity: Identity, *, name: str) -> Project:
    cursor = await connection.execute(
        f"INSERT INTO projects (user_id, name) VALUES (%s, %s) RETURNING {_PROJECT}",  # noqa: S608 - fixed text
        [identity.user_id, name],
    )
    return _to_project(await cursor.fetchone())


async def list_projects(connection: Connection, part: Slice) -> Page[Project]:
    """The identity's projects, newest first."""
    return await read_page(
        connection,
        f"SELECT {_PROJECT} FROM projects ORDER BY created_at DESC, id",  # noqa: S608 - fixed text
        part,
        _to_project,
    )


async def require_project(connection: Connection, project_id: UUID) -> None:
    """Make sure that a project is there.

    Raises:
        NotFoundError: there is none, or it is another user's.
    """
    cursor = await connection.execute("SELECT 1 FROM projects WHERE id = %s", [project_id])
    if await cursor.fetchone() is None:
        raise NotFoundError("There is no such project.")


async def delete_project(connection: Connection, project_id: UUID) -> None:
    """Delete a project; its conversations stay.

    Raises:
        NotFoundError: there is none, or it is another user's.
    """
    cursor = await connection.execute("DELETE FROM projects WHERE id = %s", [project_id])
    if cursor.rowcount == 0:
        raise NotFoundError("There is no such project.")


async def create_conversation(
    connection: Connection, identity: Identity, *, agent_id: UUID, project_id: UUID | None, title: str
) -> Conversation:
    """Begin a conversation with an agent.

    Raises:
        NotFoundError: there is no such agent, or the project is another user's.
    """
    try:
        cursor = await connection.execute(
            f"INSERT INTO conversations (user_id, agent_id, project_id, title)"  # noqa: S608 - fixed text
            f" VALUES (%s, %s, %s, %s) RETURNING {_CONVERSATION}",
            [identity.user_id, agent_id, project_id, title],
        )
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ForeignKeyViolation) as error:
        raise NotFoundError("There is no such project or agent.") from error
    return _to_conversation(await cursor.fetchone())


async def list_conversations(
    connection: Connection, part: Slice, *, project_id: UUID | None = None
) -> Page[Conversation]:
    """The identity's conversations, latest first; of one project or all."""
    return await read_page(
        connection,
        f"SELECT {_CONVERSATION} FROM conversations"  # noqa: S608 - fixed text
        " WHERE %(project)s::uuid IS NULL OR project_id = %(project)s ORDER BY updated_at DESC, id",
        part,
        _to_conversation,
        {"project": project_id},
    )


async def read_conversation(connection: Connection, conversation_id: UUID) -> Conversation:
    """A conversation by id.

    Raises:
        NotFoundError: there is none, or it is another user's.
    """
    cursor = await connection.execute(
        f"SELECT {_CONVERSATION} FROM conversations WHERE id = %s",  # noqa: S608 - fixed text
        [conversation_id],
    )
    return _to_conversation(await cursor.fetchone())


async def delete_conversation(connection: Connection, conversation_id: UUID) -> None:
    """Delete a conversation with its messages.

    Raises:
        NotFoundError: as `read_conversation`.
    """
    cursor = await connection.execute("DELETE FROM conversations WHERE id = %s", [conversation_id])
    if cursor.rowcount == 0:
        raise NotFoundError("There is no such conversation.")


async def add_message(
    connection: Connection,
    identity: Identity,
    conversation_id: UUID,
    *,
    role: Speaker,
    content: str,
    citations: Sequence[Any] = (),
    answer_id: UUID | None = None,
) -> Message:
    """Append a message.

    Raises:
        NotFoundError: the conversation is not there, or another user's.
    """
    await read_conversation(connection, conversation_id)
    cursor = await connection.execute(
        f"INSERT INTO messages (conversation_id, user_id, role, content, citations, answer_id)"  # noqa: S608 - fixed text
        f" VALUES (%s, %s, %s, %s, %s, %s) RETURNING {_MESSAGE}",
        [conversation_id, identity.user_id, role, content, json.dumps(list(citations), default=str), answer_id],
    )
    message = _to_message(await cursor.fetchone())
    await connection.execute("UPDATE conversations SET updated_at = now() WHERE id = %s", [conversation_id])
    return message


async def list_messages(connection: Connection, conversation_id: UUID, part: Slice) -> Page[Message]:
    """Messages of a conversation in order; another user's has none."""
    return await read_page(
        connection,
        f"SELECT {_MESSAGE} FROM messages WHERE conversation_id = %(conversation)s ORDER BY position",  # noqa: S608 - fixed text
        part,
        _to_message,
        {"conversation": conversation_id},
    )


async def last_messages(connection: Connection, conversation_id: UUID, *, count: int) -> tuple[Message, ...]:
    """The latest messages of a conversation, oldest first."""
    cursor = await connection.execute(
        f"SELECT {_MESSAGE} FROM messages WHERE conversation_id = %s ORDER BY position DESC LIMIT %s",  # noqa: S608 - fixed text
        [conversation_id, count],
    )
    return tuple(reversed([_to_message(row) for row in await cursor.fetchall()]))


def _to_project(row: Sequence[Any] | None) -> Project:
    if row is None:
        raise NotFoundError("There is no such project.")
    return Project(id=row[0], name=row[1], created_at=row[2])


def _to_conversation(row: Sequence[Any] | None) -> Conversation:
    if row is None:
        raise NotFoundError("There is no such conversation.")
    id, project_id, agent_id, title, created_at, updated_at = row
    return Conversation(
        id=id, project_id=project_id, agent_id=agent_id, title=title, created_at=created_at, updated_at=updated_at
    )


def _to_message(row: Sequence[Any] | None) -> Message:
    if row is None:
        raise NotFoundError("There is no such message.")
    id, conversation_id, role, content, citations, answer_id, created_at = row
    return Message(
        id=id, conversation_id=conversation_id, role=role, content=content, citations=citations,
        answer_id=answer_id, created_at=created_at,
    )  # fmt: skip
