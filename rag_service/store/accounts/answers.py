"""Records of answers, and the feedback on them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from rag_service.domain import Identity
from rag_service.errors import NotFoundError
from rag_service.store.database import Connection
from rag_service.store.rows import Page, Slice, change_one, fetch_one, fetch_page, fetch_value


async def store_answer(
    connection: Connection, identity: Identity, *, answer_id: UUID, record: Mapping[str, Any]
) -> None:
    """Keep the record of an answer.

    It is on the disk when the transaction ends: an answer that was given can be looked up after any crash
    (docs/decisions/067-durable-records.md). An agent that answers without documents, because they do not answer,
    replaces the record of that try.
    """
    await connection.execute(
        "INSERT INTO answers (id, user_id, record) VALUES (%s, %s, %s)"
        " ON CONFLICT (id) DO UPDATE SET record = excluded.record",
        [answer_id, identity.user_id, json.dumps(record, default=str)],
    )


async def read_answer(connection: Connection, answer_id: UUID) -> dict[str, Any]:
    """The record of an answer. Raises NotFoundError if there is none or it is another user's."""
    query = "SELECT record FROM answers WHERE id = %s"
    record: dict[str, Any] | None = await fetch_value(connection, query, [answer_id])
    if record is None:
        raise NotFoundError(f"There is no answer {answer_id}.")
    return record


async def read_cited(connection: Connection, texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return what one's own answers with these texts cite: text → passage → hash of its document's content.

    Answers of others cite nothing. A text that was given several times has the passages of the newest answer.
    """
    by_hash = {hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(): text for text in texts}
    cursor = await connection.execute(
        """SELECT DISTINCT ON (hash) hash, cited
           FROM (SELECT md5(record ->> 'answer') AS hash, record -> 'citations' AS cited, created_at FROM answers
                 WHERE user_id = (SELECT rag.current_user_id()) AND md5(record ->> 'answer') = ANY(%s)) AS said
           ORDER BY hash, created_at DESC""",
        [list(by_hash)],
    )
    return {
        by_hash[text_hash]: {one["chunkId"]: one["contentHash"] for one in cited if one.get("chunkId")}
        for text_hash, cited in await cursor.fetchall()
    }


_COLUMNS = "answer_id, user_id, citation, thumbs, comment, question, answer, quote, created_at, updated_at"


class Thumbs(StrEnum):
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, kw_only=True)
class Feedback:
    answer_id: UUID
    user_id: UUID
    citation: int | None  # place among the answer's citations, from 0; None: on the whole answer
    thumbs: Thumbs
    comment: str
    question: str  # as asked; copied, so that a review needs no look into the user's answers
    answer: str
    quote: str  # of the citation
    created_at: datetime
    updated_at: datetime


async def give_feedback(
    connection: Connection,
    identity: Identity,
    answer_id: UUID,
    *,
    thumbs: Thumbs,
    comment: str = "",
    citation: int | None = None,
) -> Feedback:
    """Give feedback on one's own answer, or on one of its citations; a second time replaces the first.

    Raises NotFoundError if the identity has no such answer, or the answer no such citation.
    """
    return await fetch_one(
        connection,
        Feedback,
        f"""INSERT INTO feedback (answer_id, user_id, citation, thumbs, comment, question, answer, quote)
            SELECT a.id, %(user)s, %(citation)s, %(thumbs)s, %(comment)s, coalesce(a.record ->> 'question', ''),
                   coalesce(a.record ->> 'answer', a.record ->> 'text', ''),
                   coalesce(a.record -> 'citations' -> %(citation)s::int ->> 'quote', '')
            FROM answers a WHERE a.id = %(answer)s
              AND (%(citation)s::int IS NULL OR a.record -> 'citations' -> %(citation)s::int IS NOT NULL)
            ON CONFLICT (answer_id, user_id, citation) DO UPDATE
                SET thumbs = excluded.thumbs, comment = excluded.comment, updated_at = now()
            RETURNING {_COLUMNS}""",  # noqa: S608 - fixed text
        {
            "user": identity.user_id,
            "thumbs": thumbs.value,
            "comment": comment,
            "answer": answer_id,
            "citation": citation,
        },
        missing="This answer or citation does not exist.",
    )


async def withdraw_feedback(
    connection: Connection, identity: Identity, answer_id: UUID, *, citation: int | None = None
) -> None:
    """Take one's feedback back. Raises NotFoundError if there is none."""
    statement = "DELETE FROM feedback WHERE answer_id = %s AND user_id = %s AND citation IS NOT DISTINCT FROM %s"
    missing = "There is no feedback on this answer."
    await change_one(connection, statement, [answer_id, identity.user_id, citation], missing=missing)


async def list_feedback(
    connection: Connection, part: Slice, *, thumbs: Thumbs | None = None, user_id: UUID | None = None
) -> Page[Feedback]:
    """Feedback, latest first: the identity's own, for administrators all, or that of one user."""
    return await fetch_page(
        connection,
        Feedback,
        f"SELECT {_COLUMNS} FROM feedback WHERE (%(thumbs)s::text IS NULL OR thumbs = %(thumbs)s)"  # noqa: S608 - fixed text
        " AND (%(user)s::uuid IS NULL OR user_id = %(user)s) ORDER BY updated_at DESC, answer_id, citation",
        part,
        {"thumbs": None if thumbs is None else thumbs.value, "user": user_id},
    )
