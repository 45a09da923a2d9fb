"""Corpora: the containers that documents live in and that permissions are decided on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from rag_service.domain import CorpusKind, Identity
from rag_service.errors import ConflictError, NotFoundError, PermissionDeniedError
from rag_service.store.session import Connection

_COLUMNS = "id, name, kind, owner_id, index_name, active, ttl_seconds, created_at, updated_at"


@dataclass(frozen=True, kw_only=True)
class Corpus:
    id: UUID
    name: str
    kind: CorpusKind
    owner_id: UUID | None  # None for global corpora
    index_name: str  # the definition that rules it
    active: bool  # inactive: kept, but not searched and not written to
    ttl_seconds: int | None  # lifetime of its documents
    created_at: datetime
    updated_at: datetime


async def create_corpus(
    connection: Connection,
    identity: Identity,
    *,
    name: str,
    kind: CorpusKind,
    index_name: str,
    ttl_seconds: int | None = None,
) -> Corpus:
    """Create a corpus; a personal one belongs to the identity.

    Raises:
        ConflictError: the owner has a corpus of this name.
        PermissionDeniedError: row-level security refuses it (a global corpus by a non-admin).
    """
    owner = identity.user_id if kind is CorpusKind.PERSONAL else None
    try:
        cursor = await connection.execute(
            f"INSERT INTO corpora (name, kind, owner_id, index_name, ttl_seconds)"  # noqa: S608 - fixed text
            f" VALUES (%s, %s, %s, %s, %s) RETURNING {_COLUMNS}",
            [name, kind.value, owner, index_name, ttl_seconds],
        )
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"A corpus named {name!r} exists already.", field="name") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("Only administrators create global corpora.") from error
    return _to_corpus(await cursor.fetchone())


async def find_corpus(connection: Connection, *, name: str, kind: CorpusKind) -> Corpus | None:
    """A corpus of the identity, or a global one, by name."""
    cursor = await connection.execute(
        f"SELECT {_COLUMNS} FROM corpora WHERE name = %s AND kind = %s",  # noqa: S608 - fixed text
        [name, kind.value],
    )
    row = await cursor.fetchone()
    return None if row is None else _to_corpus(row)


async def read_corpus(connection: Connection, corpus_id: UUID) -> Corpus:
    """A corpus by id.

    Raises:
        NotFoundError: there is none, or it is another user's.
    """
    cursor = await connection.execute(
        f"SELECT {_COLUMNS} FROM corpora WHERE id = %s",  # noqa: S608 - fixed text
        [corpus_id],
    )
    row = await cursor.fetchone()
    if row is None:
        raise NotFoundError(f"There is no corpus {corpus_id}.")
    return _to_corpus(row)


def _to_corpus(row: Sequence[Any] | None) -> Corpus:
    if row is None:
        raise NotFoundError("There is no such corpus.")
    id, name, kind, owner_id, index_name, active, ttl_seconds, created_at, updated_at = row
    return Corpus(
        id=id,
        name=name,
        kind=CorpusKind(kind),
        owner_id=owner_id,
        index_name=index_name,
        active=active,
        ttl_seconds=ttl_seconds,
        created_at=created_at,
        updated_at=updated_at,
    )
