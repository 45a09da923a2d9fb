"""Sessions of browsers, whom a provider signs in, and passwords of local accounts. None of it needs an identity."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from rag_service.domain import Role
from rag_service.store.accounts.keys import hash_secret
from rag_service.store.database import Connection
from rag_service.store.rows import fetch_value, find_one


@dataclass(frozen=True, kw_only=True)
class SessionHolder:
    user_id: UUID
    role: Role
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class Account:
    """A local account that somebody wants to sign in to."""

    user_id: UUID | None  # None: there is no active user of this name
    hash: str | None  # None: no password was chosen yet


async def open_session(connection: Connection, user_id: UUID, *, lifetime: timedelta) -> str:
    """Begin a session; returns its token, which is good only while the user is active."""
    token = secrets.token_urlsafe(32)
    await connection.execute("SELECT rag.open_session(%s, %s, %s)", [hash_secret(token), user_id, lifetime])
    return token


async def identify_session(connection: Connection, token: str, *, idle: timedelta) -> SessionHolder | None:
    """Whose session this is; None when it has ended or its user is inactive."""
    query = "SELECT user_id, role, ends_at FROM rag.identify_session(%s, %s)"
    return await find_one(connection, SessionHolder, query, [hash_secret(token), idle])


async def close_session(connection: Connection, token: str) -> None:
    """End a session; one that has ended is no error."""
    await connection.execute("SELECT rag.close_session(%s)", [hash_secret(token)])


async def admit_subject(
    connection: Connection, subject: str, *, name: str, role: Role | None, groups: Sequence[str]
) -> UUID | None:
    """The user of a provider's subject, created at the first sign-in; None where the user is inactive.

    `role`: None leaves it as it is, for a new user `user`. `groups` replace those of the last sign-in.
    """
    query = "SELECT id FROM rag.admit_subject(%s, %s, %s, %s)"
    user_id: UUID | None = await fetch_value(connection, query, [subject, name, role and role.value, list(groups)])
    return user_id


async def refuse_subject(connection: Connection, subject: str, *, role: Role | None, groups: Sequence[str]) -> None:
    """End the sessions of a provider's subject, if it has a user, and give it role and groups as `admit_subject`."""
    query = "SELECT rag.refuse_subject(%s, %s, %s)"
    await connection.execute(query, [subject, role and role.value, list(groups)])


async def invite_user(connection: Connection, user_id: UUID, *, lifetime: timedelta) -> str:
    """A token with which a user chooses a password, once; for administrators. An earlier one is void."""
    token = secrets.token_urlsafe(32)
    await connection.execute(
        "INSERT INTO passwords (user_id, invitation, invited_until) VALUES (%s, %s, now() + %s)"
        " ON CONFLICT (user_id) DO UPDATE SET invitation = excluded.invitation, invited_until = excluded.invited_until",
        [user_id, hash_secret(token), lifetime],
    )
    return token


async def is_invited(connection: Connection, token: str) -> bool:
    """Whether an invitation can be accepted."""
    return bool(await fetch_value(connection, "SELECT rag.is_invited(%s)", [hash_secret(token)]))


async def accept_invitation(connection: Connection, token: str, password_hash: str) -> UUID | None:
    """Set the password of an invitation's user and end the user's sessions; None where it is unknown, used or late."""
    query = "SELECT user_id FROM rag.accept_invitation(%s, %s)"
    user_id: UUID | None = await fetch_value(connection, query, [hash_secret(token), password_hash])
    return user_id


async def read_account(connection: Connection, name: str, *, attempts: int) -> Account | None:
    """The account of a name; None when the name's attempts of this minute are used up. Takes one of them."""
    return await find_one(connection, Account, "SELECT user_id, hash FROM rag.read_password(%s, %s)", [name, attempts])
