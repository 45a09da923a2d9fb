"""Middleware for every request, even without a route: id, log line, metrics, security headers, origin check."""

from __future__ import annotations

import re
import time
import uuid
from urllib.parse import urlsplit

import structlog
from litestar.datastructures import Headers
from litestar.datastructures.headers import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from rag_service.api.http.problems import ForeignOriginError, send_problem
from rag_service.api.http.proxies import Front
from rag_service.errors import InputError
from rag_service.observability.logs import correlation
from rag_service.observability.metrics import Metrics
from rag_service.observability.tracing import request_span
from rag_service.settings import Settings
from rag_service.store.patience import one_patience

log = structlog.get_logger(__name__)

CORRELATION_HEADER = "X-Request-ID"
_SLASHES = re.compile("/{2,}")
_SANE_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})  # clients may send anything else
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


# What pages of allowed origins may send and read, besides what CORS always allows. Cookies are not among it.
_ALLOWED = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": (
        "Authorization, Content-Type, X-API-Key, X-Request-ID, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version"
    ),
    "Access-Control-Max-Age": "600",
}
_EXPOSED = "X-Request-ID, Retry-After, Mcp-Session-Id"


class RequestContext:
    """Wraps the whole application, because Litestar's own middleware does not see a 404."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics | None):
        self._app = app
        self._metrics = metrics
        self._front = Front(settings)
        self._hosts = _LOOPBACK | {settings.http.host} if settings.auth.mode == "none" else None
        self._origins = settings.http.origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        scope["path"] = _SLASHES.sub("/", scope["path"])  # as the router reads it
        to_root = self._front.enter(scope)
        origin = self._allowed_origin(scope)
        if origin:
            scope["headers"] = [item for item in scope["headers"] if item[0] != b"cookie"]
        headers = Headers.from_scope(scope)  # which remembers them
        given = headers.get(CORRELATION_HEADER, "")
        correlation_id = given if _SANE_ID.fullmatch(given) else uuid.uuid4().hex
        started = time.perf_counter()
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(message, scope["path"], correlation_id)
                if self._origins:
                    _add_origin(message, origin)
            await send(message)

        span = request_span(scope["method"], headers, correlation_id)
        with correlation(correlation_id), one_patience(), span as describe:
            try:
                _check_length(headers)
                self._check_origin(scope["method"], headers, allowed=bool(origin))
                if origin and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                    await _allow(send_on)
                elif to_root is not None:
                    await _redirect(scope, to_root, send_on)
                else:
                    await self._app(scope, receive, send_on)
            except InputError as error:
                await send_problem(error, scope, receive, send_on, headers={"Connection": "close"})
            except ForeignOriginError as error:
                await send_problem(error, scope, receive, send_on)
            finally:
                describe(
                    http__route=scope.get("path_template") or "",
                    http__response__status_code=status,
                    client__address=scope["client"][0] if scope["client"] else "",
                )
                seconds = time.perf_counter() - started
                write = log.debug if scope["path"].startswith("/health") and status < 400 else log.info
                path, duration_ms = scope["path"][:200], round(seconds * 1000, 1)
                write("http_request", method=scope["method"], path=path, status=status, duration_ms=duration_ms)
                if self._metrics is not None:
                    method = scope["method"] if scope["method"] in _METHODS else "other"
                    route = scope.get("path_template") or "unmatched"
                    self._metrics.request(method, route, status or 500, seconds)

    def _allowed_origin(self, scope: Scope) -> str:
        """The origin of the page that sends a request, if it is an allowed one; else ""."""
        if not self._origins:
            return ""
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"), "")
        return given if given.lower() in self._origins else ""

    def _check_origin(self, method: str, headers: Headers, *, allowed: bool) -> None:
        """Stop other sites' pages from using a service that trusts everyone who can reach it.

        A form post needs no CORS permission, and a host name that an attacker points to 127.0.0.1 makes
        their page same-origin (DNS rebinding).
        """
        host = headers.get("host", "")
        if self._hosts is not None and host and _host_name(host) not in self._hosts:
            raise ForeignOriginError("The service is not available under this host name.")
        if allowed or method in _SAFE_METHODS:
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        foreign = site not in {"same-origin", "none"} if site else origin and origin.partition("//")[2] != host
        if foreign:
            raise ForeignOriginError("The service does not accept requests from other sites.")


async def _allow(send: Send) -> None:
    """Reply to a browser that asks whether a page of an allowed origin may send a request (CORS preflight)."""
    headers = [(name.lower().encode(), value.encode()) for name, value in _ALLOWED.items()]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _redirect(scope: Scope, address: str, send: Send) -> None:
    query = scope["query_string"]
    location = address.encode() + (b"?" + query if query else b"")
    await send({"type": "http.response.start", "status": 308, "headers": [(b"location", location)]})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _add_origin(message: Message, origin: str) -> None:
    """Let a page of an allowed origin read the reply; "": of another one. Caches keep the replies apart."""
    headers = MutableScopeHeaders.from_message(message)
    headers.extend_header_value("vary", "Origin")
    if origin:
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = _EXPOSED
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"


def _check_length(headers: Headers) -> None:
    """Refuse a request that a proxy may see end elsewhere, and take the rest for another one (RFC 9112, 6.3)."""
    if "transfer-encoding" in headers and "content-length" in headers:
        raise InputError("The request has both Content-Length and Transfer-Encoding; send one of them.")


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
    if path.startswith(("/api/", "/v1/", "/auth/")):
        headers.setdefault("Cache-Control", "no-store")  # replies are private to the caller
