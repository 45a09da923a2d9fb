"""Every error as application/problem+json (RFC 9457).

Client errors are described in detail. Server errors show only a code; the cause is logged under the
correlation id of the reply.

Litestar is imported where a reply is made: commands that only read a question start without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct

from rag_service.errors import (
    ArchiveTooLargeError,
    AuthenticationError,
    ClusterError,
    ConflictError,
    DocumentError,
    EmbeddingError,
    InputError,
    ModelBusyError,
    ModelError,
    ModelOutputError,
    NoSpaceError,
    NotFoundError,
    PermissionDeniedError,
    RagError,
    RateLimitedError,
    RerankError,
    SearchTimeoutError,
    SourceError,
    StoreError,
    TooLargeError,
    UnsupportedMediaError,
)
from rag_service.observability.logs import current_correlation_id

if TYPE_CHECKING:
    from litestar import Request, Response
    from litestar.types import Receive, Scope, Send

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
CLIENT_GONE = 499  # as in nginx: the client disconnected before the reply; seen only in the access log
_DEFAULT_RETRY_AFTER = 5  # seconds


class FieldError(Struct, frozen=True):
    """What is wrong with one field of a request."""

    field: str  # its name in the API
    message: str  # continues the field's name: "must not be empty"


class Problem(Struct, kw_only=True, frozen=True, rename="camel", omit_defaults=True):
    """The body of every error reply (RFC 9457), and the data of an `error` event."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    help: str
    correlation_id: str | None
    errors: list[FieldError] = []
    retry_after: int | None = None  # seconds

    @property
    def explanation(self) -> str:
        """What is wrong and what helps, for clients that show a single text."""
        end = "" if self.detail.endswith((".", "?")) else "."
        return f"{self.detail}{end} {self.help}"


class InvalidRequestError(InputError):
    """Fields of a request are missing, unknown, of the wrong type or out of bounds."""

    def __init__(self, errors: Sequence[FieldError]):
        super().__init__("; ".join(f"{error.field} {error.message}" for error in errors), field=errors[0].field)
        self.errors = list(errors)


class StreamingDisabledError(InputError):
    code = "streaming_disabled"
    help = "Send the request to /api/v1/query/answer without `stream`, or ask for RAG_STREAM_ENABLED to be turned on."


class ContentTypeError(InputError):
    code = "unsupported_media_type"
    help = "Send the body in the content type named in the message, and set the Content-Type header to it."


class RequestTooLargeError(InputError):
    code = "too_large"
    help = "Send a smaller request. For uploads, RAG_UPLOAD_MAX_MB sets the limit."


class RequestTimeoutError(InputError):
    code = "request_timeout"
    help = "Send the request again. If the network is slow, send a smaller request."


class ForeignOriginError(PermissionDeniedError):
    """A page of another site sent the request through the user's browser."""

    code = "foreign_origin"
    help = "Call the service from its own page or from a program, using its own host name."


class ClientGoneError(Exception):
    """The client closed the connection."""


@dataclass(frozen=True)
class _Row:
    status: int
    title: str
    detail: str | None = None  # None: the error's own message


_TABLE: Mapping[type[RagError], _Row] = {
    InputError: _Row(400, "Invalid request"),
    DocumentError: _Row(400, "Unreadable document"),
    AuthenticationError: _Row(401, "Not authenticated"),
    PermissionDeniedError: _Row(403, "Not permitted"),
    NotFoundError: _Row(404, "Not found"),
    ConflictError: _Row(409, "Conflict"),
    TooLargeError: _Row(413, "Too large"),
    RequestTimeoutError: _Row(408, "Request timeout"),
    RequestTooLargeError: _Row(413, "Too large"),
    ArchiveTooLargeError: _Row(413, "Too large"),
    UnsupportedMediaError: _Row(415, "Unsupported media type"),
    ContentTypeError: _Row(415, "Unsupported media type"),
    RateLimitedError: _Row(429, "Too many requests"),
    ModelBusyError: _Row(503, "Language model busy", "The language model is at its request limit."),
    EmbeddingError: _Row(500, "Embedding model unavailable", "The embedding model could not be used."),
    RerankError: _Row(500, "Reranker unavailable", "The reranker could not be used."),
    ModelOutputError: _Row(500, "Unusable model output", "The language model's output could not be used."),
    ModelError: _Row(500, "Language model unavailable", "The language model could not answer."),
    ClusterError: _Row(500, "Cluster unavailable", "The cluster could not be used."),
    SourceError: _Row(502, "Source unavailable", "The source of the documents could not be read."),
    SearchTimeoutError: _Row(500, "Search stopped", "The search took too long and was stopped."),
    NoSpaceError: _Row(507, "No space left", "A disk of the service is full. Nothing was stored."),
    StoreError: _Row(500, "Database unavailable", "The database could not be used."),
    RagError: _Row(500, "Internal error", "The service could not handle the request."),
}
# Errors that Litestar raises itself: (code, title, detail, help).
_HTTP: Mapping[int, tuple[str, str, str, str]] = {
    404: (
        "not_found",
        "Not found",
        "There is nothing at this address.",
        "/schema lists all addresses; ids in them are UUIDs.",
    ),
    405: ("method_not_allowed", "Method not allowed", "This address does not support this method.", "See /schema."),
    413: (RequestTooLargeError.code, "Too large", "The request body is too large.", RequestTooLargeError.help),
}


def describe(error: Exception) -> Problem:
    """The problem that a caller sees. Says nothing about unknown errors."""
    from litestar.exceptions import HTTPException

    errors: list[FieldError] = []
    retry_after = None
    if isinstance(error, HTTPException) and error.status_code < 500:
        status = error.status_code
        fallback = (InputError.code, "Invalid request", "The request is malformed.", InputError.help)
        code, title, detail, help_text = _HTTP.get(status, fallback)
    else:
        known = error if isinstance(error, RagError) else NoSpaceError.of(error) or RagError("")
        row = next(_TABLE[kind] for kind in type(known).__mro__ if kind in _TABLE)
        status, title, code, help_text = row.status, row.title, known.code, known.help
        detail = known.message if row.detail is None else row.detail
        errors = _field_errors(known, row)
        retry_after = known.retry_after
        if retry_after is None and status == 503:
            retry_after = _DEFAULT_RETRY_AFTER
    return Problem(
        type=f"urn:rag-service:problem:{code}",
        title=title,
        status=status,
        detail=detail,
        code=code,
        help=help_text,
        correlation_id=current_correlation_id(),
        errors=errors,
        retry_after=retry_after,
    )


def _field_errors(error: RagError, row: _Row) -> list[FieldError]:
    if isinstance(error, InvalidRequestError):
        return error.errors
    if error.field is None or row.status >= 500:  # a setting's name is an internal
        return []
    return [FieldError(error.field, error.message)]


def report(error: Exception) -> Problem:
    """Describe an error and log it: server errors as ERROR with their cause, client errors as INFO.

    503 is a refusal under load, which is expected: a warning.
    """
    problem = describe(error)
    if problem.status >= 500:
        write = log.warning if problem.status == 503 else log.error
        write("request_failed", code=problem.code, correlation_id=problem.correlation_id, exc_info=error)
    else:
        fields = [error.field for error in problem.errors]
        log.info("request_rejected", code=problem.code, status=problem.status, fields=fields)
    return problem


def problem_response(
    problem: Problem,
    *,
    headers: Mapping[str, str] | None = None,
    body: Struct | None = None,
    media_type: str = MEDIA_TYPE,
) -> Response[Any]:
    """The reply that carries a problem, or `body` in its place."""
    from litestar import Response

    extra = dict(headers or {})
    if problem.status == 401:
        extra.setdefault("WWW-Authenticate", "Bearer")
    if problem.retry_after is not None:
        extra["Retry-After"] = str(problem.retry_after)
    if problem.status == 408:
        extra["Connection"] = "close"  # the rest of this request must not be read as the next one
    return Response(body or problem, status_code=problem.status, media_type=media_type, headers=extra)


async def send_problem(
    error: Exception, scope: Scope, receive: Receive, send: Send, *, headers: Mapping[str, str] | None = None
) -> None:
    """Report an error to a client of an ASGI application."""
    from litestar import Request

    request: Request[Any, Any, Any] = Request(scope, receive, send)
    response = problem_response(report(error), headers=headers)
    await response.to_asgi_response(None, request)(scope, receive, send)


def allowed_methods(error: Exception) -> dict[str, str]:
    """The header `Allow` that belongs to an error of Litestar's routing."""
    from litestar.exceptions import HTTPException

    given = error.headers if isinstance(error, HTTPException) else None
    return {"Allow": given["allow"]} if given and "allow" in given else {}


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """Litestar exception handler for everything."""
    return problem_response(report(error), headers=allowed_methods(error))


def handle_client_gone(request: Request[Any, Any, Any], error: ClientGoneError) -> Response[None]:
    """Litestar exception handler for a client that has disconnected."""
    from litestar import Response

    log.info("client_gone")
    return Response(None, status_code=CLIENT_GONE)
