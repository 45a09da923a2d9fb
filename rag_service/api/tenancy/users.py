"""Users, for administrators; and who one is."""

from __future__ import annotations

from uuid import UUID

from litestar import Controller, delete, get, patch, post

from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.fields import check_texts, present, present_page, read_slice
from rag_service.api.tenancy.schemas_people import MeBody, UserBody, UserCreate, UserList, UserUpdate
from rag_service.api.tenancy.services import ADMINISTRATORS, TenancyDependency
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.domain import Role
from rag_service.identity import scopes_of
from rag_service.store.people.users import User, create_user, delete_user, list_users, read_user, update_user


class UsersController(Controller):
    """Who may come in."""

    path = "/api/v1/users"
    tags = ["Users"]  # noqa: RUF012 - Litestar's way

    @get("/me", summary="Who am I", responses=problems(401, 403, 500))
    async def me(self, tenancy: TenancyDependency, identity: IdentityDependency) -> MeBody:
        """The user, and what the key or token in use may do."""
        async with tenancy.transaction(identity) as connection:
            user = await read_user(connection, identity.user_id)
        return present(MeBody, user, role=user.role.value, scopes=sorted(scopes_of(identity)))

    @get(summary="List users", opt=ADMINISTRATORS, responses=problems(400, 401, 403, 500))
    async def list_all(self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency) -> UserList:
        """By name. Query: `offset`, `limit`."""
        part = read_slice(request)
        async with tenancy.transaction(identity) as connection:
            page = await list_users(connection, part)
        return UserList(**present_page(page, _present))

    @post(
        summary="Create a user",
        opt=ADMINISTRATORS,
        operation_class=accepts(UserCreate),
        responses=problems(400, 401, 403, 500),
    )
    async def create(self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency) -> UserBody:
        body = await read_json(request, UserCreate)
        given = {"name": body.name} if body.subject is None else {"name": body.name, "subject": body.subject}
        check_texts(required=given)
        async with tenancy.transaction(identity) as connection:
            user = await create_user(connection, name=body.name.strip(), role=Role(body.role), subject=body.subject)
        return _present(user)

    @get("/{user_id:uuid}", summary="Read a user", opt=ADMINISTRATORS, responses=problems(401, 403, 404, 500))
    async def read(self, user_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> UserBody:
        async with tenancy.transaction(identity) as connection:
            return _present(await read_user(connection, user_id))

    @patch(
        "/{user_id:uuid}",
        summary="Change a user's role, deactivate or activate",
        opt=ADMINISTRATORS,
        operation_class=accepts(UserUpdate),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def update(
        self, user_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> UserBody:
        """A deactivated user is refused within seconds; nothing of theirs is deleted."""
        body = await read_json(request, UserUpdate)
        role = None if body.role is None else Role(body.role)
        async with tenancy.transaction(identity) as connection:
            return _present(await update_user(connection, identity, user_id, role=role, active=body.active))

    @delete("/{user_id:uuid}", summary="Delete a user", opt=ADMINISTRATORS, responses=problems(401, 403, 404, 500))
    async def remove(self, user_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> None:
        """With personal corpora, keys, conversations and feedback."""
        async with tenancy.transaction(identity) as connection:
            await delete_user(connection, identity, user_id)


def _present(user: User) -> UserBody:
    return present(UserBody, user, role=user.role.value)
