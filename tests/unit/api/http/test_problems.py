"""The table of errors: every class has its status, and failures of ours say nothing of their own."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from litestar.exceptions import HTTPException

from rag_service import errors
from rag_service.api.http import problems
from rag_service.api.http.problems import FieldError, InvalidRequestError, Problem, describe, problem_response
from rag_service.errors import RagError
from rag_service.observability.logs import correlation


def all_errors(kind: type[RagError] = RagError) -> Iterator[type[RagError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from all_errors(child)


OURS = sorted(
    {kind for kind in all_errors() if kind.__module__ in {errors.__name__, problems.__name__}} - {InvalidRequestError},
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", OURS)
def test_every_error_is_a_problem(kind: type[RagError]) -> None:
    problem = describe(kind("why", field="topK"))
    assert problem.code == kind.code
    assert problem.help == kind.help
    if problem.status >= 500:
        assert "why" not in problem.detail and problem.errors == []
    else:
        assert problem.detail == "why"
        assert problem.errors == [FieldError("topK", "why")]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.InputError, 400),
        (errors.DocumentError, 400),
        (errors.AuthenticationError, 401),
        (errors.PermissionDeniedError, 403),
        (errors.NotFoundError, 404),
        (errors.ConflictError, 409),
        (errors.TooLargeError, 413),
        (errors.UnsupportedMediaError, 415),
        (errors.ModelError, 500),
        (errors.StoreError, 500),
        (errors.UnsafeRoleError, 500),
        (errors.ModelBusyError, 503),
    ],
)
def test_status_of_an_error(kind: type[RagError], status: int) -> None:
    assert describe(kind("")).status == status


def test_unknown_errors_are_internal() -> None:
    problem = describe(KeyError("secret"))
    assert (problem.status, problem.code) == (500, "internal_error")
    assert "secret" not in msgspec.json.encode(problem).decode()


@pytest.mark.parametrize(("status", "code"), [(404, "not_found"), (400, "invalid_input"), (418, "invalid_input")])
def test_errors_of_the_framework_are_problems(status: int, code: str) -> None:
    problem = describe(HTTPException(detail="internals", status_code=status))
    assert (problem.status, problem.code) == (status, code)
    assert "internals" not in problem.detail


def test_server_errors_of_the_framework_are_internal() -> None:
    assert describe(HTTPException(detail="x", status_code=503)).code == "internal_error"


def test_problem_on_the_wire() -> None:
    with correlation("abc"):
        problem = describe(InvalidRequestError([FieldError("topK", "must be from 1 to 10")]))
    assert msgspec.json.decode(msgspec.json.encode(problem)) == {
        "type": "urn:rag-service:problem:invalid_input",
        "title": "Invalid request",
        "status": 400,
        "detail": "topK must be from 1 to 10",
        "code": "invalid_input",
        "help": errors.InputError.help,
        "correlationId": "abc",
        "errors": [{"field": "topK", "message": "must be from 1 to 10"}],
    }


def test_retry_after_stands_in_body_and_header() -> None:
    response = problem_response(describe(errors.StoreError("", retry_after=5)))
    assert response.headers["Retry-After"] == "5"
    assert isinstance(response.content, Problem) and response.content.retry_after == 5
    assert response.media_type == "application/problem+json"
