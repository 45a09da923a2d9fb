"""Rate limits per caller, shared by all replicas: requests before routing, answers before the model is called.

The headers follow draft-ietf-httpapi-ratelimit-headers-10. If the database is down, requests are not limited.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import psycopg
import structlog
from litestar import Request
from litestar.datastructures import Headers
from litestar.datastructures.headers import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, ReceiveMessage, Scope, Send

from rag_service.api.http.problems import problem_response, report
from rag_service.api.http.services import IDENTITY, Services
from rag_service.api.openai.errors import error_response
from rag_service.auth.sign_in import network_of
from rag_service.domain import Identity
from rag_service.errors import AuthenticationError, RagError, RateLimitedError, StoreError
from rag_service.settings import Settings
from rag_service.store.accounts.rate_limits import PERIOD_SECONDS, Policy, Quota, spend
from rag_service.store.database import Database
from rag_service.turns import Turns

log = structlog.get_logger(__name__)

_LIMITED = ("/api/", "/v1/", "/mcp")
_OPEN, _OPEN_BELOW = ("/", "/metrics"), ("/health", "/assets/")  # paths that wait for no turn
_MOST_SECONDS = 1.0  # that a request holds its turn
# That a request counts as one of its user's after a reply that is an error or was not taken. Of the event loop's time,
# 30 clients that send wrong bodies of 1 MB took 26 % without, and 30, 15 and 5 % with 0.1, 0.25 and 1; 40 that leave
# their questions after 0.3 s took 16 %, and 7, 3 and 1 %. With 0.25, a program still gets 16 errors a second.
_IN_VAIN_SECONDS = 0.25
_PAUSE_SECONDS = 5.0  # without limits after the database failed, so that requests do not wait for it twice

_Event = TypeVar("_Event")


class RateLimiter:
    """Counts requests and answers per caller, and refuses those over the limit."""

    def __init__(self, database: Database, settings: Settings):
        self._database = database
        self._limits: dict[Policy, int] = {
            "requests": settings.limits.requests_per_minute,
            "answers": settings.limits.answers_per_minute,
        }
        self._patience = settings.database.timeout
        self._paused_until = float("-inf")

    def limits(self, policy: Policy) -> bool:
        """Whether this policy is enforced now."""
        return self._limits[policy] > 0 and time.monotonic() >= self._paused_until

    def pause(self, why: BaseException) -> None:
        """Stop counting for a few seconds."""
        self._paused_until = time.monotonic() + _PAUSE_SECONDS
        log.warning("rate_limits_paused", seconds=_PAUSE_SECONDS, exc_info=why)

    async def spend(self, identity: Identity, policy: Policy) -> Quota | None:
        """Count one; None if the policy is not enforced."""
        if not self.limits(policy):
            return None
        user_id, limit = identity.user_id, self._limits[policy]
        try:
            async with asyncio.timeout(self._patience), self._database.transaction(identity) as connection:
                return await spend(connection, user_id=user_id, policy=policy, limit=limit)
        except (StoreError, TimeoutError, psycopg.Error) as error:
            self.pause(error)
        except AuthenticationError as error:  # the user was just deleted or deactivated; the route reports it
            log.info("rate_limit_not_counted", exc_info=error)
        return None

    async def require_answer(self, identity: Identity) -> None:
        """Count an answer; raise RateLimitedError when the quota is used up."""
        quota = await self.spend(identity, "answers")
        if quota is not None and not quota.granted:
            raise _refuse(quota)

    async def limited(self, events: AsyncGenerator[_Event], identity: Identity) -> AsyncGenerator[_Event]:
        """The events of an answer; raises RateLimitedError before the first when the quota is used up."""
        async with aclosing(events):
            await self.require_answer(identity)
            async for event in events:
                yield event


def _refuse(quota: Quota) -> RateLimitedError:
    return RateLimitedError(
        f"The limit of {quota.limit} {quota.policy} per minute has been reached.",
        retry_after=max(1, math.ceil(quota.retry_in)),
    )


class LimitedApplication:
    """ASGI middleware: lets each owner's requests in by turns, and counts those to the APIs, before routing.

    Owners are users, and the networks of requests without a valid credential, which the route refuses.
    """

    def __init__(self, app: ASGIApp, *, count_error: Callable[[str], None]):
        """`app` is limited by its `state.limiter`, if there is one; `count_error` receives the code of each refusal."""
        self._app = app
        self._count_error = count_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope["path"] in _OPEN or scope["path"].startswith(_OPEN_BELOW):
            await self._app(scope, receive, send)
            return
        try:
            identity, leave = await self._enter(scope)
        except RateLimitedError as error:
            await self._refuse(error, scope, receive, send)
            return
        status, is_served = 0, False

        async def send_on(message: Message) -> None:
            nonlocal status, is_served
            await send(message)
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                is_served = status < 400

        try:
            rest = await _unless_left(scope, receive)
            if rest is not None:
                await self._pass_on(identity, scope, rest, send_on)
        finally:
            leave()
        if identity is not None and rest is not None and not is_served:
            requests: Turns = scope["litestar_app"].state.services.turns.requests
            requests.hold(identity.user_id, seconds=_IN_VAIN_SECONDS)

    async def _enter(self, scope: Scope) -> tuple[Identity | None, Callable[[], None]]:
        """Whose request it is, if it has a valid credential, and what ends its turn. Raises RateLimitedError."""
        services: Services = scope["litestar_app"].state.services
        requests = services.turns.requests
        network = network_of(scope["client"][0] if scope["client"] else "")
        leave = await requests.enter(network, seconds=_MOST_SECONDS)
        if not scope["path"].startswith(_LIMITED):
            return None, leave
        try:
            identity = await services.authenticate(Headers.from_scope(scope))
        except RagError:
            return None, leave
        except BaseException:
            leave()
            raise
        leave()
        scope.setdefault("state", {})[IDENTITY] = identity
        return identity, await requests.enter(identity.user_id, seconds=_MOST_SECONDS)

    async def _pass_on(self, identity: Identity | None, scope: Scope, receive: Receive, send: Send) -> None:
        limiter: RateLimiter | None = scope["litestar_app"].state.get("limiter")
        quota = None if limiter is None or identity is None else await limiter.spend(identity, "requests")
        if quota is None:
            await self._app(scope, receive, send)
            return
        # q requests in w seconds; r are left, t seconds until all are.
        headers = {
            "RateLimit-Policy": f'"{quota.policy}";q={quota.limit};w={PERIOD_SECONDS}',
            "RateLimit": f'"{quota.policy}";r={quota.remaining};t={math.ceil(quota.full_in)}',
        }

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableScopeHeaders.from_message(message).update(headers)
            await send(message)

        if quota.granted:
            await self._app(scope, receive, send_on)
        else:
            await self._refuse(_refuse(quota), scope, receive, send_on)

    async def _refuse(self, error: RateLimitedError, scope: Scope, receive: Receive, send: Send) -> None:
        problem = report(error)
        self._count_error(problem.code)
        request: Request[Any, Any, Any] = Request(scope, receive, send)
        reply = error_response(problem) if scope["path"].startswith("/v1/") else problem_response(problem)
        await reply.to_asgi_response(None, request)(scope, receive, send)


async def _unless_left(scope: Scope, receive: Receive) -> Receive | None:
    """What receives the rest of a request whose turn has come; None if its client left while it waited.

    Whoever reads a body sees that by itself.
    """
    if any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"]):
        return receive
    first: ReceiveMessage | None = await receive()
    if first is not None and first["type"] == "http.disconnect":
        log.info("client_gone")
        return None

    async def receive_again() -> ReceiveMessage:
        nonlocal first
        if first is None:
            return await receive()
        message, first = first, None
        return message

    return receive_again
