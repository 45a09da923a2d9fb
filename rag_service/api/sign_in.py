"""Signing browsers in and out; a session stands in a cookie. From `state.sign_in`, a `SignIn`."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import structlog
from litestar import Response, Router, delete, get, post
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import SkipValidation
from msgspec import Meta, Struct

from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.fields import check_texts
from rag_service.api.http.proxies import own_address
from rag_service.api.http.schemas import Name
from rag_service.api.http.services import from_state
from rag_service.auth.passwords import MAX_CHARS, MIN_CHARS
from rag_service.auth.sessions import CookieNames, cookie_names, derive, find_session
from rag_service.auth.sign_in import SignIn
from rag_service.errors import AuthenticationError, PermissionDeniedError, RagError, StoreError
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

_SECRET = re.compile(r"[\w-]{43}", re.ASCII)
_SIGN_IN_SECONDS = 600  # that a person may take at the provider
_OUTCOMES = ((AuthenticationError, "refused"), (PermissionDeniedError, "not_permitted"), (StoreError, "unavailable"))

SignInDependency = NamedDependency[SkipValidation[SignIn]]
Reply = Response[None]


class PasswordSignIn(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    name: Name
    password: Annotated[str, Meta(max_length=MAX_CHARS)]


class AcceptedInvitation(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    invitation: Annotated[
        str, Meta(max_length=MAX_CHARS, description="The part of the link between `#invitation=` and `&`.")
    ]
    password: Annotated[str, Meta(min_length=MIN_CHARS, max_length=MAX_CHARS)]


@dataclass(frozen=True)
class _Cookies:
    """The cookies of a browser that signs in."""

    settings: Settings

    @cached_property
    def names(self) -> CookieNames:
        return cookie_names(self.settings)

    def make(self, name: str, value: str, seconds: int, *, samesite: Literal["lax", "strict"] = "lax") -> Cookie:
        """One that scripts cannot read, unless it is the token."""
        secure, hidden = self.settings.sign_in.is_secure, name != self.names.token
        path = self.settings.sign_in.path or "/"  # other services of this host are not to see it
        return Cookie(name, value=value, max_age=seconds, path=path, secure=secure, httponly=hidden, samesite=samesite)

    def of_session(self, session: str | None) -> list[Cookie]:
        """Those that begin a session, or end it (None)."""
        seconds = 0 if session is None else self.settings.sign_in.hours * 3600
        token = "" if session is None else derive(session, "csrf")
        return [
            self.make(self.names.session, session or "", seconds, samesite="strict"),
            self.make(self.names.token, token, seconds, samesite="strict"),
        ]

    async def begin(self, request: AnyRequest, sign_in: SignIn, session: str) -> list[Cookie]:
        """Those of a new session, which takes the place of the browser's last one."""
        if before := request.cookies.get(self.names.session):
            await sign_in.end(before)
        return self.of_session(session)


def sign_in_routes(settings: Settings) -> list[Router]:
    """The routes of the one way to sign in that the settings choose; none where users have keys alone."""
    if not settings.sign_in.way:
        return []
    cookies = _Cookies(settings)
    ways = _password_routes(cookies) if settings.sign_in.way == "password" else _provider_routes(cookies)
    routes = [*ways, _sign_out_route(cookies)]
    return [Router("/", route_handlers=routes, dependencies={"sign_in": from_state("sign_in")})]


def _provider_routes(cookies: _Cookies) -> list[HTTPRouteHandler]:
    @get("/auth/login", include_in_schema=False)
    async def go_to_provider(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        given = request.cookies.get(cookies.names.sign_in, "")  # of another tab: both may come back
        secret = given if _SECRET.fullmatch(given) else secrets.token_urlsafe(32)
        try:
            address = await sign_in.provider.address(secret)
        except RagError as error:
            return _leave(own_address(request.scope, _failed(error)))
        return _leave(address, [cookies.make(cookies.names.sign_in, secret, _SIGN_IN_SECONDS)])

    @get("/auth/callback", include_in_schema=False)
    async def come_back(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        made, address = [cookies.make(cookies.names.sign_in, "", 0)], "/"
        secret = request.cookies.get(cookies.names.sign_in, "")
        try:
            session = await sign_in.with_provider(secret, dict(request.query_params))
            made += await cookies.begin(request, sign_in, session)
        except RagError as error:
            address = _failed(error)
        return _leave(own_address(request.scope, address), made)

    return [go_to_provider, come_back]


def _password_routes(cookies: _Cookies) -> list[HTTPRouteHandler]:
    @post(
        "/api/v1/session",
        tags=["Session"],
        summary="Sign in with name and password",
        operation_class=accepts(PasswordSignIn),
        responses=problems(400, 401, 500),
        status_code=204,
    )
    async def sign_in_with_password(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        """The session is in a cookie. Requests under it repeat the cookie `rag_csrf` in the header X-CSRF-Token."""
        body = await read_json(request, PasswordSignIn)
        check_texts(required={"name": body.name, "password": body.password})
        session = await sign_in.with_password(body.name.strip(), body.password, client=_client_of(request))
        return Response(None, status_code=204, cookies=await cookies.begin(request, sign_in, session))

    @post(
        "/api/v1/session/invitation",
        tags=["Session"],
        summary="Choose a password with an invitation, and sign in",
        operation_class=accepts(AcceptedInvitation),
        responses=problems(400, 401, 500),
        status_code=204,
    )
    async def accept_invitation(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        """An invitation is good once. All sessions of the user end."""
        body = await read_json(request, AcceptedInvitation)
        check_texts(required={"invitation": body.invitation, "password": body.password})
        session = await sign_in.with_invitation(body.invitation, body.password, client=_client_of(request))
        return Response(None, status_code=204, cookies=await cookies.begin(request, sign_in, session))

    return [sign_in_with_password, accept_invitation]


def _sign_out_route(cookies: _Cookies) -> HTTPRouteHandler:
    @delete("/api/v1/session", tags=["Session"], summary="Sign out", responses=problems(401, 500), status_code=204)
    async def sign_out(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        """The session ends within RAG_AUTH_CACHE_SECONDS, its cookies at once."""
        if session := find_session(request.headers, cookies.names):
            await sign_in.end(session)
        return Response(None, status_code=204, cookies=cookies.of_session(None))

    return sign_out


def _client_of(request: AnyRequest) -> str:
    """The address that a request is from, of a trusted proxy's client if there is one; empty where there is none."""
    return request.client.host if request.client else ""


def _leave(address: str, cookies: list[Cookie] | None = None) -> Reply:
    return Response(None, status_code=303, headers={"Location": address}, cookies=cookies or [])


def _failed(error: RagError) -> str:
    """The page that says why; nothing about whether there is such a user."""
    log.warning("sign_in_failed", code=error.code, reason=error.message)
    outcome = next((outcome for kind, outcome in _OUTCOMES if isinstance(error, kind)), "unavailable")
    return f"/?sign_in={outcome}"
