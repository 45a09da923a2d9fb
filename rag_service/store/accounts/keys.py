"""API keys: 256 random bits that are shown once; the database holds their SHA-256."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import psycopg

from rag_service.domain import Role
from rag_service.errors import NotFoundError, PermissionDeniedError
from rag_service.store.database import Connection
from rag_service.store.rows import Page, Slice, Table, fetch_value, find_one

KEY_PREFIX = "rag_"
_KEY = re.compile(r"rag_[A-Za-z0-9_-]{43}")
_SHOWN = 12  # characters by which a user recognises a key; 48 of its 256 bits


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

    id: UUID  # of the key
    user_id: UUID
    role: Role
    scopes: frozenset[Scope]
    expires_at: datetime | None


_KEYS = Table("api_keys", ApiKey, missing="This key does not exist.")


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
    parent_id: UUID | None = None,
) -> tuple[ApiKey, str]:
    """Create a key; returns it with the secret text, which nobody can read again.

    `parent_id`: the key that creates it; the new one ends with it. Raises PermissionDeniedError if a user creates one
    for somebody else, or the parent is revoked or has fewer scopes, NotFoundError if there is no such user.
    """
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    try:
        values = {
            "user_id": user_id,
            "name": name,
            "scopes": sorted(scopes),
            "expires_at": expires_at,
            "parent_id": parent_id,
        }
        key = await _KEYS.insert(connection, values | {"key_hash": hash_secret(secret), "prefix": secret[:_SHOWN]})
    except psycopg.errors.InsufficientPrivilege as error:
        if parent_id is not None:
            raise PermissionDeniedError("This key cannot create such a key.") from error
        raise PermissionDeniedError("Only administrators can create keys for other users.") from error
    except psycopg.errors.ForeignKeyViolation as error:
        raise NotFoundError("This user does not exist.") from error
    return key, secret


async def list_keys(connection: Connection, part: Slice, *, user_id: UUID | None = None) -> Page[ApiKey]:
    """Keys, newest first: the identity's own, for administrators all, or those of one user."""
    rest = "WHERE %(user)s::uuid IS NULL OR user_id = %(user)s ORDER BY created_at DESC, id"
    return await _KEYS.page(connection, part, rest, {"user": user_id})


async def read_key(connection: Connection, key_id: UUID, *, user_id: UUID | None = None) -> ApiKey:
    """A key by id, for `user_id` only of that user. Raises NotFoundError if there is none or it is another user's."""
    rest = "WHERE id = %(id)s AND (%(user)s::uuid IS NULL OR user_id = %(user)s)"
    return await _KEYS.get(connection, rest, {"id": key_id, "user": user_id})


async def revoke_key(connection: Connection, key_id: UUID) -> ApiKey:
    """Revoke a key for good; again is no error. Raises like `read_key`."""
    return await _KEYS.update(connection, "revoked_at = coalesce(revoked_at, now()) WHERE id = %s", [key_id])


async def identify_key(connection: Connection, secret: str) -> KeyHolder | None:
    """Whose key this is; None when it is unknown, revoked, expired or its user inactive. Needs no identity."""
    query = "SELECT id, user_id, role, scopes, expires_at FROM rag.identify_key(%s)"
    return await find_one(connection, KeyHolder, query, [hash_secret(secret)])


async def is_key_good(connection: Connection, key_hash: bytes) -> bool:
    """Whether a key that was identified before still would be."""
    return bool(await fetch_value(connection, "SELECT EXISTS (SELECT FROM rag.identify_key(%s))", [key_hash]))


def hash_secret(secret: str) -> bytes:
    """SHA-256 of 256 random bits."""
    # Plain SHA-256 will do: 256 random bits cannot be guessed, however fast the hash.
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
