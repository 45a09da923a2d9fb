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
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from rag_service.api.http.problems import problem_response, report
from rag_service.api.openai.errors import error_response
from rag_service.domain import Identity
from rag_service.errors import AuthenticationError, RagError, RateLimitedError, StoreError
from rag_service.settings import Settings
from rag_service.store.accounts.rate_limits import PERIOD_SECONDS, Policy, Quota, spend
from rag_service.store.database import Database

log = structlog.get_logger(__name__)

_LIMITED = ("/api/", "/v1/", "/mcp")
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
    """ASGI middleware: counts every request to the APIs before routing.

    Requests without a valid credential are not counted; the route refuses them.
    """

    def __init__(self, app: ASGIApp, *, count_error: Callable[[str], None]):
        """`app` is limited by its `state.limiter`, if there is one; `count_error` receives the code of each refusal."""
        self._app = app
        self._count_error = count_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        quota = await self._spend(scope)
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
            return
        problem = report(_refuse(quota))
        self._count_error(problem.code)
        request: Request[Any, Any, Any] = Request(scope, receive, send_on)
        reply = error_response(problem) if scope["path"].startswith("/v1/") else problem_response(problem)
        await reply.to_asgi_response(None, request)(scope, receive, send_on)

    async def _spend(self, scope: Scope) -> Quota | None:
        if scope["type"] != ScopeType.HTTP or not scope["path"].startswith(_LIMITED):
            return None
        state = scope["litestar_app"].state
        limiter: RateLimiter | None = state.get("limiter")
        if limiter is None or not limiter.limits("requests"):
            return None
        try:
            identity = await state.services.authenticate(Headers.from_scope(scope))
        except StoreError as error:
            limiter.pause(error)
            return None
        except RagError:
            return None
        return await limiter.spend(identity, "requests")
