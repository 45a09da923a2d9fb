"""Users, for administrators, and who one is; API keys: the caller's own, for administrators everybody's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, delete, get, patch, post
from msgspec import Meta, Struct, field

from rag_service.api.http.access import ADMINISTRATORS, CallerDependency, require_scope
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems, takes_query
from rag_service.api.http.fields import SLICE, check_future, check_texts, read_slice
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.schemas import Name
from rag_service.api.http.services import READING
from rag_service.auth.authenticator import scopes_of
from rag_service.auth.sign_in import make_invitation
from rag_service.domain import Role
from rag_service.store.accounts.keys import ApiKey, Scope, create_key, list_keys, read_key, revoke_key
from rag_service.store.accounts.users import create_user, delete_user, list_users, read_user, update_user

ScopeName = Literal["read", "write", "admin"]
RoleName = Literal["admin", "user"]


class KeyCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name
    scopes: Annotated[list[ScopeName], Meta(max_length=3)] = field(default_factory=lambda: ["read", "write"])
    user_id: Annotated[UUID | None, Meta(description="Owner of the key, if not the caller; administrators only.")] = (
        None
    )
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
    key: Annotated[str | None, Meta(description="The key itself, only in the reply that creates it.")] = None


class KeyList(Struct, kw_only=True, frozen=True):
    items: Sequence[KeyBody]
    total: int


class UserCreate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: Name
    role: RoleName = "user"
    subject: Annotated[Name | None, Meta(description="`sub` of the user's bearer tokens.")] = None


class UserUpdate(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields that are omitted stay unchanged."""

    role: RoleName | None = None
    active: bool | None = None


class UserBody(Struct, kw_only=True, frozen=True, rename="camel"):
    id: UUID
    name: str
    role: str
    active: bool
    subject: str | None
    groups: Annotated[Sequence[str], Meta(description="Groups from the OpenID provider at the last sign-in.")] = ()
    created_at: datetime


class MeBody(UserBody, kw_only=True, frozen=True, rename="camel"):
    scopes: Annotated[Sequence[str], Meta(description="Scopes of the current credential: read, write, admin.")]


class InvitationBody(Struct, kw_only=True, frozen=True):
    link: Annotated[
        str, Meta(description="Opens the page, where the user chooses a password. Works once, within a week.")
    ]


class UserList(Struct, kw_only=True, frozen=True):
    items: Sequence[UserBody]
    total: int


class KeysController(Controller):
    """Keys for programs. The key itself appears only in the reply that creates it."""

    path = "/api/v1/keys"
    tags = ["Keys"]

    @get(summary="List keys", operation_class=takes_query(**SLICE), responses=problems(400, 401, 403, 500))
    async def list_all(self, request: AnyRequest, caller: CallerDependency) -> KeyList:
        """Newest first."""
        page = await caller.run(list_keys, read_slice(request), user_id=caller.own)
        return KeyList(items=[_present_key(key) for key in page.items], total=page.total)

    @post(summary="Create a key", operation_class=accepts(KeyCreate), responses=problems(400, 401, 403, 500))
    async def create(self, request: AnyRequest, caller: CallerDependency) -> KeyBody:
        """A key cannot have more rights than the credential that creates it, and ends with the key
        or bearer token that does."""
        body = await read_json(request, KeyCreate)
        check_texts(required={"name": body.name})
        if not body.scopes:
            raise InvalidRequestError([FieldError("scopes", "must name at least one of read, write, admin")])
        scopes = {Scope(name) for name in body.scopes}
        user_id = body.user_id or caller.identity.user_id
        for scope in scopes | ({Scope.ADMIN} if user_id != caller.identity.user_id else set()):
            require_scope(caller.identity, scope)
        expires_at = check_future("expiresAt", body.expires_at)
        key, secret = await caller.run(
            create_key,
            user_id=user_id,
            name=body.name.strip(),
            scopes=scopes,
            expires_at=caller.bound(expires_at),
            parent_id=caller.key_id,
        )
        return _present_key(key, secret=secret)

    @get("/{key_id:uuid}", summary="Read a key's metadata", responses=problems(401, 403, 404, 500))
    async def read(self, key_id: UUID, caller: CallerDependency) -> KeyBody:
        return _present_key(await caller.run(read_key, key_id, user_id=caller.own))

    @delete("/{key_id:uuid}", summary="Revoke a key", responses=problems(401, 403, 404, 500))
    async def revoke(self, key_id: UUID, caller: CallerDependency) -> None:
        """It stops working within RAG_AUTH_CACHE_SECONDS. This cannot be undone."""
        async with caller.transaction() as connection:
            key = await read_key(connection, key_id)
            if key.user_id != caller.identity.user_id:
                require_scope(caller.identity, Scope.ADMIN)
            await revoke_key(connection, key_id)


def _present_key(key: ApiKey, *, secret: str | None = None) -> KeyBody:
    return present(KeyBody, key, scopes=sorted(key.scopes), key=secret)


class UsersController(Controller):
    path = "/api/v1/users"
    tags = ["Users"]
    opt = ADMINISTRATORS

    @get("/me", summary="Who am I", opt=READING, responses=problems(401, 403, 500))
    async def me(self, caller: CallerDependency) -> MeBody:
        """The current user, and the scopes of the credential in use."""
        user = await caller.run(read_user, caller.identity.user_id)
        return present(MeBody, user, scopes=sorted(scopes_of(caller.identity)))

    @get(summary="List users", operation_class=takes_query(**SLICE), responses=problems(400, 401, 403, 500))
    async def list_all(self, request: AnyRequest, caller: CallerDependency) -> UserList:
        """By name."""
        return present(UserList, await caller.run(list_users, read_slice(request)))

    @post(summary="Create a user", operation_class=accepts(UserCreate), responses=problems(400, 401, 403, 500))
    async def create(self, request: AnyRequest, caller: CallerDependency) -> UserBody:
        body = await read_json(request, UserCreate)
        given = {"name": body.name} if body.subject is None else {"name": body.name, "subject": body.subject}
        check_texts(required=given)
        user = await caller.run(create_user, name=body.name.strip(), role=Role(body.role), subject=body.subject)
        return present(UserBody, user)

    @get("/{user_id:uuid}", summary="Read a user", responses=problems(401, 403, 404, 500))
    async def read(self, user_id: UUID, caller: CallerDependency) -> UserBody:
        return present(UserBody, await caller.run(read_user, user_id))

    @patch(
        "/{user_id:uuid}",
        summary="Change a user's role, or deactivate or activate a user",
        operation_class=accepts(UserUpdate),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def update(self, user_id: UUID, request: AnyRequest, caller: CallerDependency) -> UserBody:
        """A deactivated user loses access within seconds. None of their data is deleted."""
        body = await read_json(request, UserUpdate)
        role = None if body.role is None else Role(body.role)
        return present(UserBody, await caller.run(update_user, caller.identity, user_id, role=role, active=body.active))

    @post("/{user_id:uuid}/invitation", summary="Invite a user", responses=problems(401, 403, 404, 409, 500))
    async def invite(self, user_id: UUID, caller: CallerDependency) -> InvitationBody:
        """Creates a link to choose or reset a password. Earlier invitations become invalid."""
        async with caller.transaction() as connection:
            user = await read_user(connection, user_id)
            return InvitationBody(link=await make_invitation(connection, caller.tenancy.settings, user.id))

    @delete("/{user_id:uuid}", summary="Delete a user", responses=problems(401, 403, 404, 500))
    async def remove(self, user_id: UUID, caller: CallerDependency) -> None:
        """Also deletes their personal corpora, keys, conversations and feedback."""
        await caller.run(delete_user, caller.identity, user_id)
