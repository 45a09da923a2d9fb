"""Every error as application/problem+json (RFC 9457): one table, one shape, one log line.

What the caller did wrong is said in detail. What failed inside is named by its code alone; the
cause goes to the log, under the correlation id that the body carries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException
from msgspec import Struct, field

from rag_service.errors import (
    AuthenticationError,
    ClusterError,
    ConflictError,
    DocumentError,
    EmbeddingError,
    InputError,
    ModelBusyError,
    ModelError,
    ModelOutputError,
    NotFoundError,
    PermissionDeniedError,
    RagError,
    RateLimitedError,
    RerankError,
    StoreError,
    TooLargeError,
    UnsupportedMediaError,
)
from rag_service.telemetry import current_correlation_id

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
CLIENT_GONE = 499  # nginx's number for a client that left before the reply; nobody reads it but the access log
_DEFAULT_RETRY_AFTER = 5  # seconds; for a busy model that names no time


class FieldError(Struct, frozen=True):
    """What is wrong with one field of a request."""

    field: str  # its name on the wire
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
    errors: list[FieldError] = field(default_factory=list)
    retry_after: int | None = None  # seconds


class InvalidRequestError(InputError):
    """Fields of a request are missing, unknown, of the wrong type or out of bounds."""

    def __init__(self, errors: Sequence[FieldError]):
        super().__init__("; ".join(f"{error.field} {error.message}" for error in errors), field=errors[0].field)
        self.errors = list(errors)


class StreamingDisabledError(InputError):
    code = "streaming_disabled"
    help = "Send the request to /api/v1/query/answer without `stream`, or have RAG_STREAM_ENABLED turned on."


class ContentTypeError(InputError):
    code = "unsupported_media_type"
    help = "Send the body in the content type that the message names, and say so in the Content-Type header."


class RequestTooLargeError(InputError):
    code = "too_large"
    help = "Send less at once; for uploads, RAG_UPLOAD_MAX_MB sets the limit."


class RequestTimeoutError(InputError):
    code = "request_timeout"
    help = "Send the request again; if the network is slow, send less at once."


class ForeignOriginError(PermissionDeniedError):
    """A page of another site sent the request through the user's browser."""

    code = "foreign_origin"
    help = "Call the service from its own page or from a program, under its own host name."


class ClientGoneError(Exception):
    """The client closed the connection; there is nobody to answer."""


@dataclass(frozen=True)
class _Row:
    status: int
    title: str
    detail: str | None = None  # None: the error's own message, which was written for the caller


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
    UnsupportedMediaError: _Row(415, "Unsupported media type"),
    ContentTypeError: _Row(415, "Unsupported media type"),
    RateLimitedError: _Row(429, "Too many requests"),
    ModelBusyError: _Row(503, "Language model busy", "The language model is at its limit of requests."),
    EmbeddingError: _Row(500, "Embedding model unavailable", "The embedding model could not be used."),
    RerankError: _Row(500, "Reranker unavailable", "The reranker could not be used."),
    ModelOutputError: _Row(500, "Unusable model output", "The language model's output could not be used."),
    ModelError: _Row(500, "Language model unavailable", "The language model could not answer."),
    ClusterError: _Row(500, "Cluster unavailable", "The cluster could not be used."),
    StoreError: _Row(500, "Database unavailable", "The database could not be used."),
    RagError: _Row(500, "Internal error", "The service could not handle the request."),
}
# Errors that Litestar raises itself: (code, title, detail, help).
_HTTP: Mapping[int, tuple[str, str, str, str]] = {
    404: (
        "not_found",
        "Not found",
        "There is nothing at this address.",
        "The addresses are listed at /schema; ids in them are UUIDs.",
    ),
    405: ("method_not_allowed", "Method not allowed", "This address does not take this method.", "See /schema."),
    413: (RequestTooLargeError.code, "Too large", "The request body is too large.", RequestTooLargeError.help),
}


def describe(error: Exception) -> Problem:
    """The problem that an error is to its reader. Pure; nothing of an unknown error shows."""
    correlation_id = current_correlation_id()
    if isinstance(error, HTTPException) and error.status_code < 500:
        fallback = (InputError.code, "Invalid request", "The request cannot be understood.", InputError.help)
        code, title, detail, help_text = _HTTP.get(error.status_code, fallback)
        return _problem(error.status_code, title, detail, code, help_text, correlation_id)
    if not isinstance(error, RagError):
        row = _TABLE[RagError]
        return _problem(row.status, row.title, row.detail or "", RagError.code, RagError.help, correlation_id)
    row = next(_TABLE[kind] for kind in type(error).__mro__ if kind in _TABLE)
    retry_after = error.retry_after
    if retry_after is None and row.status == 503:
        retry_after = _DEFAULT_RETRY_AFTER
    detail = error.message if row.detail is None else row.detail
    return _problem(
        row.status, row.title, detail, error.code, error.help, correlation_id, _field_errors(error, row), retry_after
    )


def _problem(
    status: int,
    title: str,
    detail: str,
    code: str,
    help_text: str,
    correlation_id: str | None,
    errors: Sequence[FieldError] = (),
    retry_after: int | None = None,
) -> Problem:
    return Problem(
        type=f"urn:rag-service:problem:{code}",
        title=title,
        status=status,
        detail=detail,
        code=code,
        help=help_text,
        correlation_id=correlation_id,
        errors=list(errors),
        retry_after=retry_after,
    )


def _field_errors(error: RagError, row: _Row) -> list[FieldError]:
    if isinstance(error, InvalidRequestError):
        return error.errors
    if error.field is None or row.status >= 500:  # a setting's name is an internal
        return []
    return [FieldError(error.field, error.message)]


def report(error: Exception) -> Problem:
    """Describe an error and log it: failures of ours as ERROR with their cause, the caller's as INFO."""
    problem = describe(error)
    if problem.status >= 500:
        log.error("request_failed", code=problem.code, correlation_id=problem.correlation_id, exc_info=error)
    else:
        fields = [error.field for error in problem.errors]
        log.info("request_rejected", code=problem.code, status=problem.status, fields=fields)
    return problem


def problem_response(problem: Problem, *, headers: Mapping[str, str] | None = None) -> Response[Problem]:
    """The reply that carries a problem."""
    extra = dict(headers or {})
    if problem.retry_after is not None:
        extra["Retry-After"] = str(problem.retry_after)
    if problem.status == 401:
        extra["WWW-Authenticate"] = "Bearer"
    if problem.status == 408:
        extra["Connection"] = "close"  # what may still come of the request must not be taken for the next one
    return Response(problem, status_code=problem.status, media_type=MEDIA_TYPE, headers=extra)


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """Litestar exception handler for everything."""
    headers = {}
    if isinstance(error, HTTPException) and "allow" in (error.headers or {}):
        headers["Allow"] = (error.headers or {})["allow"]
    return problem_response(report(error), headers=headers)


def handle_client_gone(request: Request[Any, Any, Any], error: ClientGoneError) -> Response[None]:
    """Litestar exception handler for a client that has left: nobody reads this reply."""
    log.info("client_gone")
    return Response(None, status_code=CLIENT_GONE)
