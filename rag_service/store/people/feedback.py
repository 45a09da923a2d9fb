"""Feedback on answers: thumbs and a comment. Giving it shows question and answer to the administrators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from rag_service.domain import Identity
from rag_service.errors import NotFoundError
from rag_service.store.paging import Page, Slice, read_page
from rag_service.store.session import Connection

_COLUMNS = "answer_id, user_id, thumbs, comment, question, answer, created_at, updated_at"


class Thumbs(StrEnum):
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, kw_only=True)
class Feedback:
    answer_id: UUID
    user_id: UUID
    thumbs: Thumbs
    comment: str
    question: str  # as asked; copied, so that a review needs no look into the user's answers
    answer: str
    created_at: datetime
    updated_at: datetime


async def give_feedback(
    connection: Connection, identity: Identity, answer_id: UUID, *, thumbs: Thumbs, comment: str = ""
) -> Feedback:
    """Give feedback on one's own answer; a second time replaces the first.

    Raises:
        NotFoundError: there is no such answer, or it is another user's.
    """
    cursor = await connection.execute(
        f"""INSERT INTO feedback (answer_id, user_id, thumbs, comment, question, answer)
            SELECT a.id, %(user)s, %(thumbs)s, %(comment)s, coalesce(a.record ->> 'question', ''),
                   coalesce(a.record ->> 'answer', a.record ->> 'text', '')
            FROM answers a WHERE a.id = %(answer)s
            ON CONFLICT (answer_id, user_id) DO UPDATE
                SET thumbs = excluded.thumbs, comment = excluded.comment, updated_at = now()
            RETURNING {_COLUMNS}""",  # noqa: S608 - fixed text
        {"user": identity.user_id, "thumbs": thumbs.value, "comment": comment, "answer": answer_id},
    )
    row = await cursor.fetchone()
    if row is None:
        raise NotFoundError("There is no such answer.")
    return _to_feedback(row)


async def withdraw_feedback(connection: Connection, identity: Identity, answer_id: UUID) -> None:
    """Take one's feedback back.

    Raises:
        NotFoundError: there is none.
    """
    cursor = await connection.execute(
        "DELETE FROM feedback WHERE answer_id = %s AND user_id = %s", [answer_id, identity.user_id]
    )
    if cursor.rowcount == 0:
        raise NotFoundError("There is no feedback on this answer.")


async def list_feedback(connection: Connection, part: Slice, *, thumbs: Thumbs | None = None) -> Page[Feedback]:
    """Feedback, latest first: the identity's own, for administrators all."""
    return await read_page(
        connection,
        f"SELECT {_COLUMNS} FROM feedback WHERE %(thumbs)s::text IS NULL OR thumbs = %(thumbs)s"  # noqa: S608 - fixed text
        " ORDER BY updated_at DESC, answer_id",
        part,
        _to_feedback,
        {"thumbs": None if thumbs is None else thumbs.value},
    )


def _to_feedback(row: Sequence[Any]) -> Feedback:
    answer_id, user_id, thumbs, comment, question, answer, created_at, updated_at = row
    return Feedback(
        answer_id=answer_id, user_id=user_id, thumbs=Thumbs(thumbs), comment=comment, question=question,
        answer=answer, created_at=created_at, updated_at=updated_at,
    )  # fmt: skip
