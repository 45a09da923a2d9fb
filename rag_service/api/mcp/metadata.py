"""Where MCP clients get a credential (OAuth 2.0 Protected Resource Metadata, RFC 9728)."""

from __future__ import annotations

from litestar import get
from litestar.datastructures import Headers
from litestar.handlers import HTTPRouteHandler
from litestar.types import Scope
from msgspec import Struct

from rag_service.api.http.bodies import AnyRequest
from rag_service.api.http.proxies import HOST, own_address
from rag_service.api.http.services import ServicesDependency
from rag_service.settings import Settings
from rag_service.store.accounts.keys import Scope as KeyScope

WELL_KNOWN = "/.well-known/oauth-protected-resource"


class ResourceMetadata(Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What this service accepts. Without authorization servers only API keys are."""

    resource: str
    resource_name: str
    bearer_methods_supported: list[str]
    scopes_supported: list[str]
    authorization_servers: list[str] = []


def metadata_route(path: str) -> HTTPRouteHandler:
    """The metadata of the resource at a path of this service."""

    @get([WELL_KNOWN, f"{WELL_KNOWN}{path}"], tags=["MCP"], summary="Read the MCP resource metadata (RFC 9728)")
    async def resource_metadata(request: AnyRequest, services: ServicesDependency) -> ResourceMetadata:
        auth = services.settings.auth
        return ResourceMetadata(
            resource=base_url(request.scope, services.settings) + path,
            resource_name="rag_service",
            bearer_methods_supported=["header"],
            scopes_supported=[f"rag:{scope}" for scope in KeyScope],
            authorization_servers=[auth.jwt_issuer] if auth.jwt_jwks_url and auth.jwt_issuer else [],
        )

    return resource_metadata


def challenge(scope: Scope, settings: Settings) -> dict[str, str]:
    """The header by which a refused client finds the metadata."""
    return {"WWW-Authenticate": f'Bearer resource_metadata="{base_url(scope, settings)}{WELL_KNOWN}"'}


def base_url(scope: Scope, settings: Settings) -> str:
    """The service's address as its callers know it."""
    if settings.sign_in.public_url is not None:
        return settings.sign_in.public_url.rstrip("/")
    host = Headers.from_scope(scope).get("host", "")
    host = host if HOST.fullmatch(host) else settings.http.host
    return f"{scope['scheme']}://{host}{own_address(scope, '')}"
