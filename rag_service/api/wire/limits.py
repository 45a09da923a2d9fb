"""Rate limits per caller, the same for all replicas: requests at the door, answers where a model is asked.

The headers are those of draft-ietf-httpapi-ratelimit-headers-10. Where the database cannot be asked,
requests go on: a limit must never be what fails.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

import psycopg
import structlog
from litestar import Request
from litestar.datastructures import Headers
from litestar.datastructures.headers import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from rag_service.api.openai.errors import error_response
from rag_service.api.wire.problems import problem_response, report
from rag_service.domain import Identity
from rag_service.errors import RagError, RateLimitedError, StoreError
from rag_service.identity import Principal
from rag_service.settings import Settings
from rag_service.store.people.rate_limits import PERIOD_SECONDS, Policy, Quota, spend
from rag_service.store.session import Database

log = structlog.get_logger(__name__)

_LIMITED = ("/api/", "/v1/", "/mcp")
_PAUSE_SECONDS = 5.0  # without limits after the database failed, lest every request waits for it twice

_Event = TypeVar("_Event")


class RateLimiter:
    """Counts what callers do, and refuses what is too much."""

    def __init__(self, database: Callable[[], Database], settings: Settings):
        """
        Args:
            database: where it is counted; asked for at each request, because it opens after this is made.
            settings: `rate_limit_*` and the time to wait for the database.
        """
        self._database = database
        self._limits: dict[Policy, int] = {
            "requests": settings.rate_limit_per_minute,
            "answers": settings.rate_limit_answers_per_minute,
        }
        self._patience = settings.database_timeout
        self._paused_until = float("-inf")

    def limits(self, policy: Policy) -> bool:
        """Whether there is anything to count now."""
        return self._limits[policy] > 0 and time.monotonic() >= self._paused_until

    def pause(self, why: BaseException) -> None:
        """Do without for a moment."""
        self._paused_until = time.monotonic() + _PAUSE_SECONDS
        log.warning("rate_limits_paused", seconds=_PAUSE_SECONDS, exc_info=why)

    async def spend(self, identity: Identity, policy: Policy) -> Quota | None:
        """Count one; None where nothing is counted."""
        if not self.limits(policy):
            return None
        credential = identity.credential if isinstance(identity, Principal) else b""
        try:
            async with asyncio.timeout(self._patience), self._database().transaction(identity) as connection:
                return await spend(
                    connection,
                    user_id=identity.user_id,
                    credential=credential,
                    policy=policy,
                    limit=self._limits[policy],
                )
        except (StoreError, TimeoutError) as error:
            self.pause(error)
        except psycopg.Error as error:  # the user was deleted or deactivated a moment ago: the request will tell
            log.info("rate_limit_not_counted", exc_info=error)
        return None

    async def require(self, identity: Identity, policy: Policy) -> None:
        """Count one, and refuse it when the quota is used up.

        Raises:
            RateLimitedError: says when to try again.
        """
        quota = await self.spend(identity, policy)
        if quota is not None and not quota.granted:
            raise refuse(quota)

    async def limited(
        self, events: AsyncGenerator[_Event], identity: Identity, policy: Policy = "answers"
    ) -> AsyncGenerator[_Event]:
        """The same events, refused before the first when the quota is used up."""
        async with aclosing(events):
            await self.require(identity, policy)
            async for event in events:
                yield event


def refuse(quota: Quota) -> RateLimitedError:
    """The error that a used-up quota is."""
    return RateLimitedError(
        f"The limit of {quota.limit} {quota.policy} a minute is used up.", retry_after=max(1, math.ceil(quota.retry_in))
    )


def quota_headers(quota: Quota) -> dict[str, str]:
    """`RateLimit-Policy` and `RateLimit`: q requests in w seconds; r are left, t seconds until all are."""
    return {
        "RateLimit-Policy": f'"{quota.policy}";q={quota.limit};w={PERIOD_SECONDS}',
        "RateLimit": f'"{quota.policy}";r={quota.remaining};t={math.ceil(quota.full_in)}',
    }


class LimitedApplication:
    """ASGI middleware: counts every request to the APIs, before it is routed.

    Who has no valid credential is not counted but refused by the route, in its own way.
    """

    def __init__(
        self,
        app: ASGIApp,
        limiter: RateLimiter,
        authenticate: Callable[[Mapping[str, str]], Awaitable[Identity]],
        *,
        count_error: Callable[[str], None],
    ):
        """
        Args:
            app: what to limit.
            limiter: who counts.
            authenticate: headers of a request → who asks.
            count_error: told the code of each refusal.
        """
        self._app = app
        self._limiter = limiter
        self._authenticate = authenticate
        self._count_error = count_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        quota = await self._spend(scope)
        if quota is None:
            await self._app(scope, receive, send)
            return
        headers = quota_headers(quota)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableScopeHeaders.from_message(message).update(headers)
            await send(message)

        if quota.granted:
            await self._app(scope, receive, send_on)
            return
        problem = report(refuse(quota))
        self._count_error(problem.code)
        request: Request[Any, Any, Any] = Request(scope, receive, send_on)
        reply = error_response(problem) if scope["path"].startswith("/v1/") else problem_response(problem)
        await reply.to_asgi_response(None, request)(scope, receive, send_on)

    async def _spend(self, scope: Scope) -> Quota | None:
        if scope["type"] != ScopeType.HTTP or not self._limiter.limits("requests"):
            return None
        if not scope["path"].startswith(_LIMITED):
            return None
        try:
            identity = await self._authenticate(Headers.from_scope(scope))
        except StoreError as error:
            self._limiter.pause(error)
            return None
        except RagError:
            return None
        return await self._limiter.spend(identity, "requests")
