"""Errors in the shape of the OpenAI API: `{"error": {message, type, param, code}}`.

See https://platform.openai.com/docs/guides/error-codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Request, Response
from litestar.openapi import ResponseSpec

from rag_service.api.http.problems import Problem, allowed_methods, problem_response, report
from rag_service.api.openai.schemas import ErrorBody, ErrorDetail
from rag_service.errors import InputError, NotFoundError

_TYPES: Mapping[int, str] = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES: Mapping[str, str] = {"not_authenticated": "invalid_api_key"}  # ours → the name that clients look for
_MEANING = {
    400: "The request is invalid or asks for something unsupported; `param` names the field.",
    401: "No valid key or token.",
    403: "The key lacks the scope, or only administrators may do it.",
    404: "It does not exist, or is another user's.",
    409: "It cannot be done as things are; the message says why.",
    413: "Too large.",
    415: "Wrong content type.",
    500: "A model or the database failed; `code` says which.",
    503: "Busy; `Retry-After` says when to try again.",
}


class UnknownModelError(NotFoundError):
    """No model of this id, or none that the caller may use."""

    code = "model_not_found"
    help = "GET /v1/models lists the ids."

    def __init__(self, model_id: str):
        super().__init__(
            f"The model {model_id[:100]!r} does not exist, or you do not have access to it.", field="model"
        )


class UnknownResponseError(InputError):
    """A response to go on from that the caller does not have."""

    code = "previous_response_not_found"
    help = "It may be another user's, or was made with `store: false`. Send the earlier messages in `input`."

    def __init__(self, response_id: str):
        super().__init__(f"Previous response with id {response_id[:100]!r} not found.", field="previous_response_id")


class UnknownAddressError(NotFoundError):
    """A part of that API which this service does not have."""

    code = "unknown_url"
    help = (
        "Supported: POST /v1/chat/completions, /v1/responses and /v1/embeddings, GET /v1/models and /v1/models/{id}, "
        "/v1/files and /v1/vector_stores."
    )

    def __init__(self, method: str, path: str):
        super().__init__(f"{method} {path[:100]} is not supported.")


def errors(*statuses: int) -> dict[int, ResponseSpec]:
    """The error replies of a route, for its description."""
    return {
        status: ResponseSpec(ErrorBody, generate_examples=False, description=_MEANING[status]) for status in statuses
    }


def present_error(problem: Problem) -> ErrorBody:
    """A problem as an OpenAI error. The message includes the help, because clients show nothing else."""
    server_side = "server_error" if problem.status >= 500 else "invalid_request_error"
    return ErrorBody(
        error=ErrorDetail(
            message=problem.explanation,
            type=_TYPES.get(problem.status, server_side),
            param=problem.errors[0].field if problem.errors else None,
            code=_CODES.get(problem.code, problem.code),
        )
    )


def error_response(problem: Problem, *, headers: Mapping[str, str] | None = None) -> Response[ErrorBody]:
    """The reply that carries an error. The clients try again by themselves, as `Retry-After` says."""
    return problem_response(problem, headers=headers, body=present_error(problem), media_type="application/json")


def handle_openai_error(request: Request[Any, Any, Any], error: Exception) -> Response[ErrorBody]:
    """Litestar exception handler for everything below /v1."""
    return error_response(report(error), headers=allowed_methods(error))
