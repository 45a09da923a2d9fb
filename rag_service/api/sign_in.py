"""Signing browsers in and out; a session stands in a cookie. From `state.sign_in`, a `SignIn`."""

from __future__ import annotations

import re
import secrets
from typing import Annotated, Any

import structlog
from litestar import Response, delete, get, post
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import SkipValidation
from msgspec import Meta, Struct

from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.fields import check_texts
from rag_service.api.http.schemas import Name
from rag_service.api.http.services import from_state
from rag_service.auth.passwords import MAX_CHARS, MIN_CHARS
from rag_service.auth.sessions import cookie_names, derive, find_session
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
    invitation: Annotated[str, Meta(max_length=MAX_CHARS, description="The part of the link after `#invitation=`.")]
    password: Annotated[str, Meta(min_length=MIN_CHARS, max_length=MAX_CHARS)]


def sign_in_routes(settings: Settings) -> list[HTTPRouteHandler]:
    """The routes of the one way to sign in that the settings choose; none where users have keys alone."""
    if not settings.sign_in.way:
        return []
    names, secure = cookie_names(settings), settings.sign_in.is_secure
    session_seconds = settings.sign_in.hours * 3600

    def cookie(name: str, value: str, seconds: int, **options: Any) -> Cookie:
        return Cookie(name, value=value, max_age=seconds, secure=secure, **{"httponly": True, **options})

    def session_cookies(session: str | None) -> list[Cookie]:
        """Those that begin a session, or end it (None)."""
        seconds = 0 if session is None else session_seconds
        token = "" if session is None else derive(session, "csrf")
        return [
            cookie(names.session, session or "", seconds, samesite="strict"),
            cookie(names.token, token, seconds, samesite="strict", httponly=False),
        ]

    async def begin(request: AnyRequest, sign_in: SignIn, session: str) -> list[Cookie]:
        """The cookies of a new session, which takes the place of the browser's last one."""
        if before := request.cookies.get(names.session):
            await sign_in.end(before)
        return session_cookies(session)

    def leave(outcome: str, address: str = "/", cookies: list[Cookie] | None = None) -> Reply:
        headers = {"Location": address if outcome == "done" else f"/?sign_in={outcome}"}
        return Response(None, status_code=303, headers=headers, cookies=cookies or [])

    @get("/auth/login", include_in_schema=False, dependencies={"sign_in": from_state("sign_in")})
    async def go_to_provider(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        given = request.cookies.get(names.sign_in, "")  # of another tab: both may come back
        secret = given if _SECRET.fullmatch(given) else secrets.token_urlsafe(32)
        try:
            address = await sign_in.provider.address(secret)
        except RagError as error:
            return leave(_outcome(error))
        return leave("done", address, [cookie(names.sign_in, secret, _SIGN_IN_SECONDS, samesite="lax")])

    @get("/auth/callback", include_in_schema=False, dependencies={"sign_in": from_state("sign_in")})
    async def come_back(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        cookies = [cookie(names.sign_in, "", 0, samesite="lax")]
        try:
            session = await sign_in.with_provider(request.cookies.get(names.sign_in, ""), dict(request.query_params))
            cookies += await begin(request, sign_in, session)
        except RagError as error:
            return leave(_outcome(error), cookies=cookies)
        return leave("done", cookies=cookies)

    @post(
        "/api/v1/session",
        tags=["Session"],
        summary="Sign in with name and password",
        operation_class=accepts(PasswordSignIn),
        responses=problems(400, 401, 500),
        dependencies={"sign_in": from_state("sign_in")},
        status_code=204,
    )
    async def sign_in_with_password(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        """The session is in a cookie. Requests under it repeat the cookie `rag_csrf` in the header X-CSRF-Token."""
        body = await read_json(request, PasswordSignIn)
        check_texts(required={"name": body.name, "password": body.password})
        session = await sign_in.with_password(body.name.strip(), body.password)
        return Response(None, status_code=204, cookies=await begin(request, sign_in, session))

    @post(
        "/api/v1/session/invitation",
        tags=["Session"],
        summary="Choose a password with an invitation, and sign in",
        operation_class=accepts(AcceptedInvitation),
        responses=problems(400, 401, 500),
        dependencies={"sign_in": from_state("sign_in")},
        status_code=204,
    )
    async def accept_invitation(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        """An invitation is good once. All sessions of the user end."""
        body = await read_json(request, AcceptedInvitation)
        check_texts(required={"invitation": body.invitation, "password": body.password})
        session = await sign_in.with_invitation(body.invitation, body.password)
        return Response(None, status_code=204, cookies=await begin(request, sign_in, session))

    @delete(
        "/api/v1/session",
        tags=["Session"],
        summary="Sign out",
        responses=problems(401, 500),
        dependencies={"sign_in": from_state("sign_in")},
        status_code=204,
    )
    async def sign_out(request: AnyRequest, sign_in: SignInDependency) -> Reply:
        """The session ends within RAG_AUTH_CACHE_SECONDS, its cookies at once."""
        if session := find_session(request.headers, names):
            await sign_in.end(session)
        return Response(None, status_code=204, cookies=session_cookies(None))

    if settings.sign_in.way == "password":
        return [sign_in_with_password, accept_invitation, sign_out]
    return [go_to_provider, come_back, sign_out]


def _outcome(error: RagError) -> str:
    """What the page may say: nothing about whether there is such a user."""
    log.warning("sign_in_failed", code=error.code, reason=error.message)
    return next((outcome for kind, outcome in _OUTCOMES if isinstance(error, kind)), "unavailable")
