"""What surrounds every request, those without a route included: id, log line, headers, origin."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any
from urllib.parse import urlsplit

import structlog
from litestar import Request
from litestar.datastructures import Headers
from litestar.datastructures.headers import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from rag_service.api.wire.problems import ForeignOriginError, problem_response, report
from rag_service.settings import Settings
from rag_service.telemetry import correlation
from rag_service.tracing import request_span

log = structlog.get_logger(__name__)

CORRELATION_HEADER = "X-Request-ID"
_SANE_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class RequestContext:
    """Wraps the whole application, routing included: Litestar's own middleware does not see a 404."""

    def __init__(self, app: ASGIApp, settings: Settings):
        """
        Args:
            app: what to wrap.
            settings: `auth` and `host` decide which host names are ours.
        """
        self._app = app
        self._hosts = _LOOPBACK | {settings.host} if settings.auth == "none" else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        await self._handle(scope, receive, send)

    async def _handle(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        headers = Headers.from_scope(scope)
        given = headers.get(CORRELATION_HEADER, "")
        correlation_id = given if _SANE_ID.fullmatch(given) else uuid.uuid4().hex
        started = time.perf_counter()
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(message, scope["path"], correlation_id)
            await send(message)

        with correlation(correlation_id), request_span(scope["method"], headers, correlation_id) as describe:
            try:
                await self._serve(scope, receive, send_on, headers)
            finally:
                describe(http__route=scope.get("path_template") or "", http__response__status_code=status)
                _log_request(scope, status, time.perf_counter() - started)

    async def _serve(self, scope: HTTPScope, receive: Receive, send: Send, headers: Headers) -> None:
        try:
            self._check_origin(scope["method"], headers)
        except ForeignOriginError as error:
            request: Request[Any, Any, Any] = Request(scope, receive, send)
            await problem_response(report(error)).to_asgi_response(None, request)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check_origin(self, method: str, headers: Headers) -> None:
        """Keep pages of other sites from using a service that trusts everyone who reaches it.

        A form post needs no CORS permission, and a host name that an attacker points at 127.0.0.1
        makes his page same-origin (DNS rebinding).
        """
        host = headers.get("host", "")
        if self._hosts is not None and host and _host_name(host) not in self._hosts:
            raise ForeignOriginError("The service does not answer under this host name.")
        if method in _SAFE_METHODS:
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        foreign = site not in {"same-origin", "none"} if site else origin and origin.partition("//")[2] != host
        if foreign:
            raise ForeignOriginError("The service takes no requests from pages of other sites.")


def _host_name(host: str) -> str | None:
    """The name in a Host header, without its port; None when it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _add_headers(message: Message, path: str, correlation_id: str) -> None:
    headers = MutableScopeHeaders.from_message(message)
    headers[CORRELATION_HEADER] = correlation_id
    for name, value in _SECURITY_HEADERS.items():
        headers.setdefault(name, value)
    if path.startswith(("/api/", "/v1/")):
        headers.setdefault("Cache-Control", "no-store")  # answers are for their asker


def _log_request(scope: HTTPScope, status: int, seconds: float) -> None:
    write = log.debug if scope["path"].startswith("/health") and status < 400 else log.info
    write(
        "http_request",
        method=scope["method"],
        path=scope["path"][:200],
        status=status,
        duration_ms=round(seconds * 1000, 1),
    )
