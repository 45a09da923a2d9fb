"""Users: who may come in, and what they may do beyond their own corpora."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import psycopg

from rag_service.domain import Identity, Role
from rag_service.errors import ConflictError, NotFoundError, PermissionDeniedError, UnknownUserError
from rag_service.store.database import Connection
from rag_service.store.rows import Page, Slice, Table


@dataclass(frozen=True, kw_only=True)
class User:
    id: UUID
    name: str  # unique
    role: Role
    active: bool  # inactive: keys and tokens are refused, nothing is visible, nothing is lost
    subject: str | None  # `sub` of the user's tokens; None: only keys, or own tokens that name the id
    groups: tuple[str, ...] = ()  # as the OpenID provider named them at the last sign-in
    created_at: datetime


_USERS = Table("users", User, missing="This user does not exist.")


async def create_user(connection: Connection, *, name: str, role: Role, subject: str | None = None) -> User:
    """Create a user; for administrators.

    Raises ConflictError if name or subject is taken, PermissionDeniedError if the identity is not an administrator.
    """
    try:
        return await _USERS.insert(connection, {"name": name, "role": role.value, "subject": subject})
    except psycopg.errors.UniqueViolation as error:
        field = "subject" if error.diag.constraint_name == "users_subject_key" else "name"
        raise ConflictError(f"A user with this {field} already exists.", field=field) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionDeniedError("Only administrators can create users.") from error


async def list_users(connection: Connection, part: Slice) -> Page[User]:
    """Users by name: all for administrators, else the identity's own."""
    return await _USERS.page(connection, part, "ORDER BY name, id")


async def read_user(connection: Connection, user_id: UUID) -> User:
    """A user by id. Raises NotFoundError if there is none that the identity may see."""
    return await _USERS.read(connection, user_id)


async def find_user(connection: Connection, name_or_id: str) -> User:
    """A user by name, or by the id as text, for the command line. Raises NotFoundError."""
    try:
        return await _USERS.get(connection, "WHERE %s IN (name, id::text) ORDER BY name = %s", [name_or_id, name_or_id])
    except NotFoundError:
        raise UnknownUserError(f"There is no user {name_or_id!r}.") from None


async def update_user(
    connection: Connection, identity: Identity, user_id: UUID, *, role: Role | None = None, active: bool | None = None
) -> User:
    """Change role or state; for administrators.

    Raises NotFoundError like `read_user`, ConflictError if administrators would lock themselves out.
    """
    if user_id == identity.user_id and (role is Role.USER or active is False):
        raise ConflictError("Administrators cannot demote or deactivate themselves. Ask another administrator.")
    changes = "role = coalesce(%s, role), active = coalesce(%s, active) WHERE id = %s"
    return await _USERS.update(connection, changes, [None if role is None else role.value, active, user_id])


async def delete_user(connection: Connection, identity: Identity, user_id: UUID) -> None:
    """Delete a user with personal corpora, keys, conversations and all that hangs on them; for administrators.

    Raises NotFoundError like `read_user`, ConflictError if administrators would delete themselves.
    """
    if user_id == identity.user_id:
        raise ConflictError("Administrators cannot delete themselves. Ask another administrator.")
    await _USERS.delete(connection, user_id)
