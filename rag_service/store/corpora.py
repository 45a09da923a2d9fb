"""Corpora: the containers that documents live in and that permissions are decided on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from rag_service.domain import CorpusKind, Identity
from rag_service.errors import ConflictError, InputError, NotFoundError, PermissionDeniedError
from rag_service.store.documents.chunks import lock_corpora
from rag_service.store.paging import Page, Slice, read_page
from rag_service.store.session import Connection

_COLUMNS = "id, name, kind, owner_id, index_name, active, ttl_seconds, created_at, updated_at"
MAX_TTL_SECONDS = 2**31 - 1


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
        InputError: the lifetime is not positive.
        PermissionDeniedError: row-level security refuses it (a global corpus by a non-admin).
    """
    check_ttl(ttl_seconds)
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


async def list_corpora(connection: Connection, part: Slice, *, kind: CorpusKind | None = None) -> Page[Corpus]:
    """Corpora that the identity may see, by name."""
    return await read_page(
        connection,
        f"SELECT {_COLUMNS} FROM corpora WHERE %(kind)s::text IS NULL OR kind = %(kind)s ORDER BY name, id",  # noqa: S608 - fixed text
        part,
        _to_corpus,
        {"kind": None if kind is None else kind.value},
    )


async def select_corpora(connection: Connection, condition: str, parameters: Mapping[str, Any]) -> tuple[Corpus, ...]:
    """Corpora under a condition (fixed text with named parameters), by name."""
    cursor = await connection.execute(
        f"SELECT {_COLUMNS} FROM corpora WHERE {condition} ORDER BY name, id",  # noqa: S608 - fixed text
        parameters,
    )
    return tuple(_to_corpus(row) for row in await cursor.fetchall())


async def update_corpus(
    connection: Connection,
    corpus_id: UUID,
    *,
    name: str | None = None,
    active: bool | None = None,
    ttl_seconds: int | None = None,
    keep_for_ever: bool = False,
) -> Corpus:
    """Rename, activate or deactivate a corpus, or change the lifetime of documents stored from now on.

    Args:
        connection: as who.
        corpus_id: which.
        name: None keeps it; likewise the next two.
        active: inactive corpora are neither searched nor written to.
        ttl_seconds: lifetime of new documents.
        keep_for_ever: takes the lifetime away.

    Raises:
        NotFoundError: there is none, or it is another user's.
        ConflictError: the owner has another corpus of this name.
        InputError: the lifetime is not positive.
        PermissionDeniedError: it is global and the identity no administrator.
    """
    check_ttl(ttl_seconds)
    await read_corpus(connection, corpus_id)
    try:
        cursor = await connection.execute(
            f"""UPDATE corpora SET name = coalesce(%s, name), active = coalesce(%s, active), updated_at = now(),
                       ttl_seconds = CASE WHEN %s THEN NULL ELSE coalesce(%s, ttl_seconds) END
                WHERE id = %s RETURNING {_COLUMNS}""",  # noqa: S608 - fixed text
            [name, active, keep_for_ever, ttl_seconds, corpus_id],
        )
    except psycopg.errors.UniqueViolation as error:
        raise ConflictError(f"A corpus named {name!r} exists already.", field="name") from error
    row = await cursor.fetchone()
    if row is None:
        raise PermissionDeniedError("Only administrators change global corpora.")
    return _to_corpus(row)


async def delete_corpus(connection: Connection, corpus_id: UUID) -> None:
    """Delete a corpus with all its documents, their originals and what waits to be indexed.

    Raises:
        NotFoundError: there is none, or it is another user's.
        PermissionDeniedError: it is global and the identity no administrator.
    """
    await read_corpus(connection, corpus_id)
    await lock_corpora(connection, {str(corpus_id)})
    cursor = await connection.execute("DELETE FROM corpora WHERE id = %s", [corpus_id])
    if cursor.rowcount == 0:
        raise PermissionDeniedError("Only administrators delete global corpora.")


async def require_writable(connection: Connection, corpus_id: UUID) -> Corpus:
    """A corpus that the identity may add documents to; it stays so until the transaction ends.

    Raises:
        NotFoundError: there is none, or it is another user's.
        PermissionDeniedError: it is read-only for the identity.
        ConflictError: it is deactivated.
    """
    await read_corpus(connection, corpus_id)
    cursor = await connection.execute(
        f"SELECT {_COLUMNS} FROM corpora c WHERE id = %s AND rag.may_write(c) FOR SHARE",  # noqa: S608 - fixed text
        [corpus_id],
    )
    row = await cursor.fetchone()
    if row is None:
        raise PermissionDeniedError("This corpus is read-only for you.")
    corpus = _to_corpus(row)
    if not corpus.active:
        raise ConflictError(f"The corpus {corpus.name!r} is deactivated; activate it to change its documents.")
    return corpus


def check_ttl(seconds: int | None) -> None:
    """Refuse a lifetime that is over before it begins, or beyond what the column holds.

    Raises:
        InputError: not from 1 second to 68 years.
    """
    if seconds is not None and not 1 <= seconds <= MAX_TTL_SECONDS:
        raise InputError(f"The lifetime must be from 1 to {MAX_TTL_SECONDS} seconds.", field="ttlSeconds")


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
