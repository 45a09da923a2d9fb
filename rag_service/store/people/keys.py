"""API keys: 256 random bits that are shown once; the database holds their SHA-256."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import psycopg

from rag_service.domain import Role
from rag_service.errors import NotFoundError, PermissionDeniedError
from rag_service.store.paging import Page, Slice, read_page
from rag_service.store.session import Connection

KEY_PREFIX = "rag_"
_KEY = re.compile(r"rag_[A-Za-z0-9_-]{43}")
_SHOWN = 12  # characters by which people recognise a key; 48 of its 256 bits
_COLUMNS = "id, user_id, name, prefix, scopes, created_at, last_used_at, expires_at, revoked_at"


class Scope(StrEnum):
    """What a credential may be used for; never more than its user's role allows."""

    READ = "read"  # search, ask, chat, list, download
    WRITE = "write"  # upload, change and delete; give feedback
    ADMIN = "admin"  # what only administrators may


ALL_SCOPES = frozenset(Scope)


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A key as it can be listed; the key itself is known to its holder alone."""

    id: UUID
    user_id: UUID
    name: str
    prefix: str  # its first characters
    scopes: frozenset[Scope]
    created_at: datetime
    last_used_at: datetime | None  # to the minute
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class KeyHolder:
    """Whose a presented key is."""

    user_id: UUID
    role: Role
    scopes: frozenset[Scope]
    expires_at: datetime | None


def is_key(text: str) -> bool:
    """Whether a text has the form of our keys."""
    return _KEY.fullmatch(text) is not None


async def create_key(
    connection: Connection,
    *,
    user_id: UUID,
    name: str,
    scopes: Collection[Scope],
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Create a key; returns it with the secret text, which nobody can read again.

    Raises:
        PermissionDeniedError: for another user, by a non-administrator.
        NotFoundError: there is no such user.
    """
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    try:
        cursor = await connection.execute(
            f"INSERT INTO api_keys (user_id, name, key_hash, prefix, scopes, expires_at)"  # noqa: S608 - fixed text
            f" VALUES (%s, %s, %s, %s, %s, %s) RETURNING {_COLUMNS}",
            [user_id, name, _hash(secret), secret[:_SHOWN], sorted(scopes), expires_at],
        )
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("Only administrators create keys for others.") from error
    except psycopg.errors.ForeignKeyViolation as error:
        raise NotFoundError("There is no such user.") from error
    return _to_key(await cursor.fetchone()), secret


async def list_keys(connection: Connection, part: Slice, *, user_id: UUID | None = None) -> Page[ApiKey]:
    """Keys, newest first: the identity's own, for administrators all, or those of one user."""
    return await read_page(
        connection,
        f"SELECT {_COLUMNS} FROM api_keys WHERE %(user)s::uuid IS NULL OR user_id = %(user)s"  # noqa: S608 - fixed text
        " ORDER BY created_at DESC, id",
        part,
        _to_key,
        {"user": user_id},
    )


async def read_key(connection: Connection, key_id: UUID) -> ApiKey:
    """A key by id.

    Raises:
        NotFoundError: there is none, or it is another user's.
    """
    cursor = await connection.execute(f"SELECT {_COLUMNS} FROM api_keys WHERE id = %s", [key_id])  # noqa: S608 - fixed text
    return _to_key(await cursor.fetchone())


async def revoke_key(connection: Connection, key_id: UUID) -> ApiKey:
    """Revoke a key for good; again is no error.

    Raises:
        NotFoundError: as `read_key`.
    """
    cursor = await connection.execute(
        f"UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = %s RETURNING {_COLUMNS}",  # noqa: S608 - fixed text
        [key_id],
    )
    return _to_key(await cursor.fetchone())


async def identify_key(connection: Connection, secret: str) -> KeyHolder | None:
    """Whose key this is; None when it is unknown, revoked, expired or its user inactive. Needs no identity."""
    cursor = await connection.execute(
        "SELECT user_id, role, scopes, expires_at FROM rag.identify_key(%s)", [_hash(secret)]
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    return KeyHolder(
        user_id=row[0], role=Role(row[1]), scopes=frozenset(Scope(scope) for scope in row[2]), expires_at=row[3]
    )


def _hash(secret: str) -> bytes:
    # Plain SHA-256 will do: 256 random bits cannot be guessed, however fast the hash.
    return hashlib.sha256(secret.encode()).digest()


def _to_key(row: Sequence[Any] | None) -> ApiKey:
    if row is None:
        raise NotFoundError("There is no such key.")
    id, user_id, name, prefix, scopes, created_at, last_used_at, expires_at, revoked_at = row
    return ApiKey(
        id=id,
        user_id=user_id,
        name=name,
        prefix=prefix,
        scopes=frozenset(Scope(scope) for scope in scopes),
        created_at=created_at,
        last_used_at=last_used_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
    )
