"""Projects, conversations and their messages: seen by their owner, and by others where the owner shares them.

A transaction sees no conversation of others unless it says so (`reading_shared`); then row-level security shows those
that are shared and rest on nothing but corpora that the identity may read now.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import psycopg

from rag_service.domain import Identity, Turn
from rag_service.errors import NotFoundError, NotShareableError
from rag_service.store.database import Connection
from rag_service.store.rows import LIMIT_MAX, Page, Slice, Table, contains, fetch_all, fetch_page, fetch_value

Speaker = Literal["user", "assistant"]


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
    agent_id: UUID | None  # that it began with; None: all documents, or the agent is gone
    title: str
    pinned: bool  # stands before the others in the list
    shared: bool  # users who may read all corpora of its answers may read it
    owner: str | None  # name of the user who shares it; None: it is the identity's own
    created_at: datetime
    updated_at: datetime
    excerpt: str | None = None  # of a message, around the words of a search; None: only the title has them


@dataclass(frozen=True, kw_only=True)
class Message:
    id: UUID
    conversation_id: UUID
    role: Speaker
    content: str
    citations: Sequence[Any]  # as the API gave them
    answer_id: UUID | None  # of an assistant's message
    agent_id: UUID | None  # that was asked; None: all documents, or the agent is gone
    details: Mapping[str, Any]  # of an assistant's message: the answer's other fields, as the API gave them
    created_at: datetime


_PROJECTS = Table("projects", Project, missing="This project does not exist.")
_OWN = "user_id = rag.current_user_id()"
_CONVERSATIONS = Table(
    "conversations",
    Conversation,
    missing="This conversation does not exist.",
    # How its owner files it concerns nobody else.
    columns=f"id, CASE WHEN {_OWN} THEN project_id END AS project_id, agent_id, title, pinned AND {_OWN} AS pinned, "
    "shared_at IS NOT NULL AS shared, rag.sharer(id) AS owner, created_at, updated_at",
)
_MESSAGES = Table("messages", Message, missing="This message does not exist.")
# Where the words stand in a conversation: in an answer rather than in a question, of which the title may be a copy.
_EXCERPT = """(
    SELECT CASE WHEN start > 1 THEN '…' ELSE '' END || substr(content, start, size)
        || CASE WHEN start + size <= length(content) THEN '…' ELSE '' END
    FROM messages message, LATERAL (
        SELECT greatest(1, position(lower(%(words)s::text) IN lower(content)) - %(lead)s) AS start,
            length(%(words)s::text) + %(around)s AS size) place
    WHERE message.conversation_id = conversations.id AND content ILIKE %(like)s AND content <> conversations.title
    ORDER BY role <> 'assistant', position LIMIT 1)"""
_HISTORY = 200  # messages that an answer looks at: earlier ones are found by their words
_LEAD, _AROUND = 60, 200  # characters of an excerpt before the words, and before and after them: about two lines
# Position of the question that an answer of a conversation belongs to; NULL: there is no such answer.
_ASKED = """(
    SELECT max(question.position) FROM messages answer JOIN messages question USING (conversation_id)
    WHERE answer.conversation_id = %(conversation)s AND answer.answer_id = %(answer)s
        AND question.role = 'user' AND question.position < answer.position)"""

_PERSONAL = "An answer rests on a personal corpus, or on a file added to a question, which nobody else may read."
_UNKNOWN = "It is not known which corpora an answer rests on: its record, or a document that it used, has been deleted."


async def create_project(connection: Connection, identity: Identity, *, name: str) -> Project:
    return await _PROJECTS.insert(connection, {"user_id": identity.user_id, "name": name})


async def list_projects(connection: Connection, part: Slice) -> Page[Project]:
    """The identity's projects, newest first."""
    return await _PROJECTS.page(connection, part, "ORDER BY created_at DESC, id")


async def require_project(connection: Connection, project_id: UUID) -> None:
    """Raise NotFoundError if the identity has no such project."""
    await _PROJECTS.read(connection, project_id)


async def delete_project(connection: Connection, project_id: UUID) -> None:
    """Delete a project; its conversations stay. Raises like `require_project`."""
    await _PROJECTS.delete(connection, project_id)


async def create_conversation(
    connection: Connection, identity: Identity, *, agent_id: UUID | None, project_id: UUID | None, title: str
) -> Conversation:
    """Begin a conversation with an agent, or with all documents (None).

    Raises NotFoundError if there is no such agent or the project is another user's.
    """
    try:
        values = {"user_id": identity.user_id, "agent_id": agent_id, "project_id": project_id, "title": title}
        return await _CONVERSATIONS.insert(connection, values)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ForeignKeyViolation) as error:
        raise NotFoundError("This project or agent does not exist.") from error


async def list_conversations(
    connection: Connection, part: Slice, *, project_id: UUID | None = None, words: str | None = None
) -> Page[Conversation]:
    """The identity's conversations, pinned ones first, the latest first; of one project or all, and with `words` in
    title or messages, then with an excerpt."""
    rest = (
        f"WHERE {_OWN} AND (%(project)s::uuid IS NULL OR project_id = %(project)s) "
        "AND (%(like)s::text IS NULL OR title ILIKE %(like)s "
        "OR EXISTS (SELECT FROM messages m WHERE m.conversation_id = conversations.id AND m.content ILIKE %(like)s)) "
        "ORDER BY conversations.pinned DESC, updated_at DESC, id"
    )
    values: dict[str, Any] = {"project": project_id, "like": None}
    if words is None:
        return await _CONVERSATIONS.page(connection, part, rest, values)
    values |= {"words": words, "like": contains(words), "lead": _LEAD, "around": _AROUND}
    query = f"SELECT {_CONVERSATIONS.columns}, {_EXCERPT} AS excerpt FROM conversations {rest}"  # noqa: S608 - fixed text
    return await fetch_page(connection, Conversation, query, part, values)


async def list_shared(connection: Connection, part: Slice, *, words: str | None = None) -> Page[Conversation]:
    """Conversations of others that the identity may read, the latest first; those with `words` in the title."""
    await _see_shared(connection, "all")
    rest = (
        f"WHERE shared_at IS NOT NULL AND NOT {_OWN} AND (%(like)s::text IS NULL OR title ILIKE %(like)s) "
        "ORDER BY updated_at DESC, id"
    )
    return await _CONVERSATIONS.page(connection, part, rest, {"like": None if words is None else contains(words)})


async def read_conversation(connection: Connection, conversation_id: UUID, *, or_shared: bool = False) -> Conversation:
    """A conversation by id. Raises NotFoundError if the identity has none.

    `or_shared`: also one that another user shares, if the identity may read all corpora that its answers rest on. The
    rest of the transaction reads its messages, too.
    """
    if or_shared:
        await _see_shared(connection, str(conversation_id))
    return await _CONVERSATIONS.read(connection, conversation_id)


async def _see_shared(connection: Connection, which: str) -> None:
    """Until the transaction ends, see shared conversations of others: one by its id, with its messages, or "all"."""
    await connection.execute("SELECT set_config('rag.shared', %s, true)", [which])


async def share_conversation(connection: Connection, conversation_id: UUID) -> Conversation:
    """Let users who may read all corpora that a conversation's answers rest on read it, with what is added later.

    Raises NotFoundError like `read_conversation`, NotShareableError if nobody else could read it.
    """
    shared = await _CONVERSATIONS.update(
        connection, "shared_at = coalesce(shared_at, now()) WHERE id = %s", [conversation_id]
    )
    unshared = """SELECT corpora IS NULL FROM messages WHERE conversation_id = %s AND (corpora IS NULL OR corpora &&
        ARRAY(SELECT id FROM corpora WHERE kind = 'personal')) ORDER BY corpora IS NULL LIMIT 1"""
    is_unknown = await fetch_value(connection, unshared, [conversation_id])
    if is_unknown is not None:
        raise NotShareableError(_UNKNOWN if is_unknown else _PERSONAL)
    return shared


async def unshare_conversation(connection: Connection, conversation_id: UUID) -> None:
    """Let nobody but the owner read a conversation. Raises like `read_conversation`."""
    await _CONVERSATIONS.update(connection, "shared_at = NULL WHERE id = %s", [conversation_id])


async def lock_conversation(connection: Connection, conversation_id: UUID) -> Conversation:
    """Read a conversation of one's own and lock it until the transaction ends. Raises like `read_conversation`.

    A question and its answer then stay together, and of two answers that replace the same one, one finds it gone.
    """
    return await _CONVERSATIONS.get(connection, "WHERE id = %s FOR UPDATE", [conversation_id])


async def change_conversation(
    connection: Connection, conversation_id: UUID, *, title: str | None = None, pinned: bool | None = None
) -> Conversation:
    """Give a conversation another title, pin or unpin it; None leaves it. Raises like `read_conversation`."""
    changes = "title = coalesce(%s, title), pinned = coalesce(%s, pinned) WHERE id = %s"
    return await _CONVERSATIONS.update(connection, changes, [title, pinned, conversation_id])


async def delete_conversation(connection: Connection, conversation_id: UUID) -> None:
    """Delete a conversation with its messages. Raises like `read_conversation`."""
    await _CONVERSATIONS.delete(connection, conversation_id)


async def add_message(
    connection: Connection,
    identity: Identity,
    conversation_id: UUID,
    *,
    role: Speaker,
    content: str,
    citations: Sequence[Any] = (),
    answer_id: UUID | None = None,
    agent_id: UUID | None = None,
    details: Mapping[str, Any] | None = None,
) -> Message:
    """Append a message. Raises like `read_conversation`."""
    await read_conversation(connection, conversation_id)
    values = {
        "conversation_id": conversation_id,
        "user_id": identity.user_id,
        "role": role,
        "content": content,
        "citations": json.dumps(list(citations), default=str),
        "answer_id": answer_id,
        "agent_id": agent_id,
        "details": json.dumps(details or {}, default=str),
    }
    message = await _MESSAGES.insert(connection, values)
    await connection.execute("UPDATE conversations SET updated_at = now() WHERE id = %s", [conversation_id])
    return message


async def list_messages(connection: Connection, conversation_id: UUID, part: Slice) -> Page[Message]:
    """Messages of a conversation in order; another user's has none."""
    rest = "WHERE conversation_id = %(conversation)s ORDER BY position"
    return await _MESSAGES.page(connection, part, rest, {"conversation": conversation_id})


async def message_batches(
    connection: Connection, conversation_id: UUID, *, count: int
) -> AsyncGenerator[tuple[Message, ...]]:
    """The latest messages of a conversation, some at a time: the latest batch first, each oldest first."""
    rest = "WHERE conversation_id = %s ORDER BY position DESC LIMIT %s OFFSET %s"
    for skip in range(0, count, LIMIT_MAX):
        batch = await _MESSAGES.select(connection, rest, [conversation_id, min(LIMIT_MAX, count - skip), skip])
        if not batch:
            return
        yield batch[::-1]


async def read_history(connection: Connection, conversation_id: UUID, before: UUID | None = None) -> tuple[Turn, ...]:
    """Return what was said in a conversation, oldest first; with `before`, before the question of this answer.

    Of a long conversation its end.

    Raises NotFoundError if the identity has no such conversation or answer.
    """
    await read_conversation(connection, conversation_id)
    place = {"conversation": conversation_id, "answer": before, "count": _HISTORY}
    if before is not None:
        await _read_question(connection, place)
    query = f"""SELECT role, content FROM messages WHERE conversation_id = %(conversation)s
            AND (%(answer)s::uuid IS NULL OR position < {_ASKED}) ORDER BY position DESC LIMIT %(count)s"""  # noqa: S608 - fixed text
    return (await fetch_all(connection, Turn, query, place))[::-1]


async def delete_messages_from(connection: Connection, conversation_id: UUID, answer_id: UUID) -> str:
    """Delete the question of an answer, the answer and everything after them. Returns the question.

    Raises NotFoundError if the conversation has no such answer.
    """
    place = {"conversation": conversation_id, "answer": answer_id}
    question = await _read_question(connection, place)
    query = f"DELETE FROM messages WHERE conversation_id = %(conversation)s AND position >= {_ASKED}"  # noqa: S608 - fixed text
    await connection.execute(query, place)
    return question.content


async def _read_question(connection: Connection, place: Mapping[str, Any]) -> Message:
    return await _MESSAGES.get(connection, f"WHERE conversation_id = %(conversation)s AND position = {_ASKED}", place)
