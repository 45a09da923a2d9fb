"""The wire shapes of users and their API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct, field

from rag_service.api.wire.schemas import Name

ScopeName = Literal["read", "write", "admin"]
RoleName = Literal["admin", "user"]


class KeyCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name
    scopes: Annotated[list[ScopeName], Meta(max_length=3)] = field(default_factory=lambda: ["read", "write"])
    user_id: Annotated[UUID | None, Meta(description="For another user; administrators only.")] = None
    expires_at: datetime | None = None


class KeyBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    user_id: UUID
    name: str
    prefix: str
    scopes: Sequence[str]
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    key: Annotated[str | None, Meta(description="The key itself: once, in the reply that creates it.")] = None


class KeyList(Struct, kw_only=True, frozen=True):
    items: Sequence[KeyBody]
    total: int


class UserCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name
    role: RoleName = "user"
    subject: Annotated[Name | None, Meta(description="`sub` of the user's bearer tokens.")] = None


class UserUpdate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is missing stays as it is."""

    role: RoleName | None = None
    active: bool | None = None


class UserBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    name: str
    role: str
    active: bool
    subject: str | None
    created_at: datetime


class MeBody(UserBody, kw_only=True, frozen=True, rename="camel"):
    scopes: Annotated[Sequence[str], Meta(description="read, write, admin: what the credential in use allows.")]


class UserList(Struct, kw_only=True, frozen=True):
    items: Sequence[UserBody]
    total: int
