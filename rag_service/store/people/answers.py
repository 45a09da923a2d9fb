"""Provenance records of answers; each belongs to who asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rag_service.domain import Identity
from rag_service.errors import NotFoundError
from rag_service.store.session import Connection


async def store_answer(
    connection: Connection, identity: Identity, *, answer_id: UUID, record: Mapping[str, Any]
) -> None:
    """Keep the record of an answer.

    The transaction is seen by all as soon as it is committed, but its commit does not wait for the disk, which
    would take longer than all else that an answer needs of the database. A database that crashes loses the
    records of the last half second (https://www.postgresql.org/docs/current/wal-async-commit.html).
    """
    await connection.execute(
        "INSERT INTO answers (id, user_id, record)"
        " SELECT %s, %s, %s FROM set_config('synchronous_commit', 'off', true)",
        [answer_id, identity.user_id, json.dumps(record, default=str)],
    )


async def read_answer(connection: Connection, answer_id: UUID) -> dict[str, Any]:
    """The record of an answer.

    Raises:
        NotFoundError: there is none, or it is another user's.
    """
    cursor = await connection.execute("SELECT record FROM answers WHERE id = %s", [answer_id])
    row = await cursor.fetchone()
    if row is None:
        raise NotFoundError(f"There is no answer {answer_id}.")
    record: dict[str, Any] = row[0]
    return record
