"""API keys: one's own, for administrators everybody's. Requirement C1."""

from __future__ import annotations

from uuid import UUID

from litestar import Controller, delete, get, post

from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.fields import check_future, check_texts, present, present_page, read_slice
from rag_service.api.tenancy.schemas_people import KeyBody, KeyCreate, KeyList
from rag_service.api.tenancy.services import TenancyDependency, require_scope
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.problems import FieldError, InvalidRequestError
from rag_service.store.people.keys import ApiKey, Scope, create_key, list_keys, read_key, revoke_key


class KeysController(Controller):
    """Keys for programs. The key itself is in the reply that creates it, and nowhere else."""

    path = "/api/v1/keys"
    tags = ["Keys"]  # noqa: RUF012 - Litestar's way

    @get(summary="List keys", responses=problems(400, 401, 403, 500))
    async def list_all(self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency) -> KeyList:
        """Newest first. Query: `offset`, `limit`."""
        part = read_slice(request)
        async with tenancy.transaction(identity) as connection:
            page = await list_keys(connection, part)
        return KeyList(**present_page(page, _present))

    @post(summary="Create a key", operation_class=accepts(KeyCreate), responses=problems(400, 401, 403, 500))
    async def create(self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency) -> KeyBody:
        """No key gives more than the credential that creates it."""
        body = await read_json(request, KeyCreate)
        check_texts(required={"name": body.name})
        if not body.scopes:
            raise InvalidRequestError([FieldError("scopes", "must name at least one of read, write, admin")])
        scopes = {Scope(name) for name in body.scopes}
        user_id = body.user_id or identity.user_id
        for scope in scopes | ({Scope.ADMIN} if user_id != identity.user_id else set()):
            require_scope(identity, scope)
        expires_at = check_future("expiresAt", body.expires_at)
        async with tenancy.transaction(identity) as connection:
            key, secret = await create_key(
                connection, user_id=user_id, name=body.name.strip(), scopes=scopes, expires_at=expires_at
            )
        return _present(key, secret=secret)

    @get("/{key_id:uuid}", summary="Read a key's description", responses=problems(401, 403, 404, 500))
    async def read(self, key_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> KeyBody:
        async with tenancy.transaction(identity) as connection:
            return _present(await read_key(connection, key_id))

    @delete("/{key_id:uuid}", summary="Revoke a key", responses=problems(401, 403, 404, 500))
    async def revoke(self, key_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> None:
        """It stops working within RAG_AUTH_CACHE_SECONDS, for good."""
        async with tenancy.transaction(identity) as connection:
            key = await read_key(connection, key_id)
            if key.user_id != identity.user_id:
                require_scope(identity, Scope.ADMIN)
            await revoke_key(connection, key_id)


def _present(key: ApiKey, *, secret: str | None = None) -> KeyBody:
    return present(KeyBody, key, scopes=sorted(key.scopes), key=secret)
