"""Users: who may come in, and what they may do beyond their own corpora."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from rag_service.domain import Identity, Role
from rag_service.errors import ConflictError, NotFoundError, PermissionDeniedError
from rag_service.store.paging import Page, Slice, read_page
from rag_service.store.session import Connection

_COLUMNS = "id, name, role, active, subject, created_at"


@dataclass(frozen=True, kw_only=True)
class User:
    id: UUID
    name: str  # unique
    role: Role
    active: bool  # inactive: keys and tokens are refused, nothing is visible, nothing is lost
    subject: str | None  # `sub` of the user's tokens; None: only keys, or own tokens that name the id
    created_at: datetime


async def create_user(connection: Connection, *, name: str, role: Role, subject: str | None = None) -> User:
    """Create a user; for administrators.

    Raises:
        ConflictError: the name or the subject is taken.
        PermissionDeniedError: the identity is no administrator.
    """
    try:
        cursor = await connection.execute(
            f"INSERT INTO users (name, role, subject) VALUES (%s, %s, %s) RETURNING {_COLUMNS}",  # noqa: S608 - fixed text
            [name, role.value, subject],
        )
    except psycopg.errors.UniqueViolation as error:
        field = "subject" if error.diag.constraint_name == "users_subject_key" else "name"
        raise ConflictError(f"There is a user with this {field} already.", field=field) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("Only administrators create users.") from error
    return _to_user(await cursor.fetchone())


async def list_users(connection: Connection, part: Slice) -> Page[User]:
    """Users by name: all for administrators, else the identity's own."""
    return await read_page(connection, f"SELECT {_COLUMNS} FROM users ORDER BY name, id", part, _to_user)  # noqa: S608 - fixed text


async def read_user(connection: Connection, user_id: UUID) -> User:
    """A user by id.

    Raises:
        NotFoundError: there is none, or the identity may not see it.
    """
    cursor = await connection.execute(f"SELECT {_COLUMNS} FROM users WHERE id = %s", [user_id])  # noqa: S608 - fixed text
    return _to_user(await cursor.fetchone())


async def find_user(connection: Connection, name: str) -> User:
    """A user by name.

    Raises:
        NotFoundError: as `read_user`.
    """
    cursor = await connection.execute(f"SELECT {_COLUMNS} FROM users WHERE name = %s", [name])  # noqa: S608 - fixed text
    return _to_user(await cursor.fetchone())


async def update_user(
    connection: Connection, identity: Identity, user_id: UUID, *, role: Role | None = None, active: bool | None = None
) -> User:
    """Change role or state; for administrators.

    Raises:
        NotFoundError: as `read_user`.
        ConflictError: an administrator would lock himself out.
    """
    if user_id == identity.user_id and (role is Role.USER or active is False):
        raise ConflictError("Administrators cannot demote or deactivate themselves; let another one do it.")
    cursor = await connection.execute(
        f"UPDATE users SET role = coalesce(%s, role), active = coalesce(%s, active) WHERE id = %s RETURNING {_COLUMNS}",  # noqa: S608 - fixed text
        [None if role is None else role.value, active, user_id],
    )
    return _to_user(await cursor.fetchone())


async def delete_user(connection: Connection, identity: Identity, user_id: UUID) -> None:
    """Delete a user with personal corpora, keys, conversations and all that hangs on them; for administrators.

    Raises:
        NotFoundError: as `read_user`.
        ConflictError: an administrator would delete himself.
    """
    if user_id == identity.user_id:
        raise ConflictError("Administrators cannot delete themselves; let another one do it.")
    cursor = await connection.execute("DELETE FROM users WHERE id = %s", [user_id])
    if cursor.rowcount == 0:
        raise NotFoundError("There is no such user.")


def _to_user(row: Sequence[Any] | None) -> User:
    if row is None:
        raise NotFoundError("There is no such user.")
    id, name, role, active, subject, created_at = row
    return User(id=id, name=name, role=Role(role), active=active, subject=subject, created_at=created_at)
