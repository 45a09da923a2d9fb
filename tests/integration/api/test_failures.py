"""What goes wrong inside: a stable code for the caller, the cause for the log, nothing between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag_service.errors import (
    AuthenticationError,
    ConfigurationError,
    ConflictError,
    ContextOverflowError,
    EmbeddingError,
    ModelBusyError,
    ModelError,
    ModelOutputError,
    NotFoundError,
    PermissionDeniedError,
    RerankError,
    StoreError,
)
from tests.integration.api.conftest import Serve
from tests.integration.api.test_bad_input import ANSWER_URL, QUERY_URL, STREAM_URL, assert_problem
from tests.serving import wait_until
from tests.unit.api.samples import QUESTION, Script

SECRET = "postgresql://rag:hunter2@10.0.0.3/rag"
LogLines = Callable[[], list[dict[str, Any]]]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ModelError(SECRET), 500, "llm_unavailable"),
        (EmbeddingError(SECRET), 500, "embedding_unavailable"),
        (RerankError(SECRET), 500, "rerank_unavailable"),
        (ModelOutputError(SECRET), 500, "llm_output_invalid"),
        (StoreError(SECRET), 500, "store_unavailable"),
        (ContextOverflowError(SECRET), 500, "context_overflow"),
        (ConfigurationError(SECRET, field="RAG_DATABASE_URL"), 500, "invalid_configuration"),
        (RuntimeError(SECRET), 500, "internal_error"),
        (TimeoutError(), 500, "internal_error"),
        (ExceptionGroup(SECRET, [ValueError(SECRET)]), 500, "internal_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_failure_inside_shows_its_code_and_nothing_else(
    serve: Serve, log_lines: LogLines, error: Exception, status: int, code: str
) -> None:
    error.__cause__ = OSError("connection refused by 10.0.0.3")
    client = serve(Script(error=error, failing="search", events=(error,)))
    for url, request in (
        (QUERY_URL, {"query": QUESTION}),
        (ANSWER_URL, {"query": QUESTION}),
        (ANSWER_URL, {"query": QUESTION, "stream": True}),
        (STREAM_URL, {"query": QUESTION}),
    ):
        response = client.post(url, json=request)
        problem = assert_problem(response, status, code)
        assert "errors" not in problem
        assert not any(word in response.text for word in ("10.0.0.3", "hunter2", "Traceback", "RAG_DATABASE_URL"))
        logged = [line for line in log_lines() if line["action"] == "request_failed"]
        assert (logged[-1]["level"], logged[-1]["code"]) == ("error", code)
        assert logged[-1]["correlation_id"] == problem["correlationId"]
        assert "connection refused by 10.0.0.3" in logged[-1]["exception"]
        assert "hunter2" not in str(logged)
    assert len([line for line in log_lines() if line["level"] == "error"]) == 4


def test_a_refusal_for_want_of_a_place_is_one_line_of_the_log(serve: Serve, log_lines: LogLines) -> None:
    error = ModelBusyError(SECRET)
    error.__cause__ = OSError("429 from the model server")
    client = serve(Script(failing="answer", error=error, events=(error,)))
    for url in (ANSWER_URL, STREAM_URL):
        problem = assert_problem(client.post(url, json={"query": QUESTION}), 503, "llm_busy")
        assert "hunter2" not in str(problem)
        line = [line for line in log_lines() if line["action"] == "request_failed"][-1]
        assert (line["level"], line["code"]) == ("warning", "llm_busy")
        assert "429 from the model server" in line["reason"]
        assert "exception" not in line
        assert "hunter2" not in str(line)


@pytest.mark.parametrize(
    ("error", "header"),
    [(ModelBusyError(""), "5"), (ModelBusyError("", retry_after=2), "2"), (StoreError("", retry_after=9), "9"),
     (ModelError(""), None)],
)  # fmt: skip
def test_retry_after_is_sent_where_it_helps(serve: Serve, error: Exception, header: str | None) -> None:
    response = serve(Script(events=(error,))).post(ANSWER_URL, json={"query": QUESTION})
    assert response.headers.get("retry-after") == header
    assert response.json().get("retryAfter") == (int(header) if header else None)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFoundError("There is no corpus 7."), 404),
        (PermissionDeniedError("Not yours."), 403),
        (ConflictError("Exists already.", field="name"), 409),
    ],
)
def test_refusals_say_why(serve: Serve, log_lines: LogLines, error: Any, status: int) -> None:
    client = serve(Script(error=error, failing="search"))
    problem = assert_problem(client.post(QUERY_URL, json={"query": "a"}), status, error.code)
    assert problem["detail"] == error.message
    assert [entry["field"] for entry in problem.get("errors", [])] == ([error.field] if error.field else [])
    assert not [line for line in log_lines() if line["level"] == "error"]


@pytest.mark.parametrize("url", [QUERY_URL, ANSWER_URL, STREAM_URL, "/api/ingest"])
def test_authentication_comes_before_everything(serve: Serve, url: str) -> None:
    script = Script(error=AuthenticationError("This key is not known."), failing="authenticate")
    response = serve(script).post(url, content=b"not even JSON")
    assert_problem(response, 401, "not_authenticated")
    assert response.headers["www-authenticate"] == "Bearer"
    assert script.queries == []


@pytest.mark.parametrize(("given", "kept"), [("abc-123", True), ("a b", False), ("x" * 65, False), ("é", False)])
def test_sane_request_ids_are_kept_and_others_replaced(serve: Serve, given: str, kept: bool) -> None:
    response = serve().post(ANSWER_URL, json={}, headers=[(b"X-Request-ID", given.encode())])
    assert (response.headers["x-request-id"] == given) is kept
    assert len(response.headers["x-request-id"]) >= 7
    assert response.json()["correlationId"] == response.headers["x-request-id"]


@pytest.mark.parametrize("url", [QUERY_URL, ANSWER_URL, STREAM_URL])
def test_no_question_and_no_document_text_in_the_log(serve: Serve, log_lines: LogLines, url: str) -> None:
    client = serve()
    requests: list[tuple[str, dict[str, Any], dict[str, str]]] = [
        (url, {"query": QUESTION}, {"X-Request-ID": "trace-1", "Authorization": "Bearer s3cret"}),
        (url, {"query": QUESTION, "topK": 99}, {}),
        (f"{url}?q={QUESTION}", {"query": QUESTION}, {}),
    ]
    for count, (address, body, headers) in enumerate(requests, start=1):
        client.post(address, json=body, headers=headers)
        # A request is logged after its last byte is out: the next one could overtake it.
        wait_until(lambda count=count: [line["action"] for line in log_lines()].count("http_request") == count)
    lines = log_lines()
    assert not any(word in str(lines) for word in ("unidades", "unités", "s3cret"))
    served = [line for line in lines if line["action"] == "http_request"]
    assert [(line["method"], line["path"], line["status"], line["level"]) for line in served] == [
        ("POST", url, 200, "info"), ("POST", url, 400, "info"), ("POST", url, 200, "info"),
    ]  # fmt: skip
    assert served[0]["correlation_id"] == "trace-1"
    assert served[0]["duration_ms"] > 0
    rejected = [line for line in lines if line["action"] == "request_rejected"]
    assert [(line["code"], line["fields"]) for line in rejected] == [("invalid_input", ["topK"])]


def test_every_reply_carries_the_security_headers(serve: Serve) -> None:
    client = serve(Script(events=(ModelError(""),)))
    replies = [
        client.get("/health"),
        client.get("/nothing"),
        client.get("/schema"),
        client.post(ANSWER_URL, json={"query": "a"}),
        client.post(ANSWER_URL, json={}),
        client.get("/health", headers={"Host": "evil.example"}),
        serve().post(STREAM_URL, json={"query": "a"}),
    ]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["x-frame-options"] == "DENY"
    assert replies[3].headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},  # DNS rebinding
        {"Host": "localhost@evil.example"},
        {"Host": "[::1"},
        {"Origin": "http://[::1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_sites_are_refused(serve: Serve, headers: dict[str, str]) -> None:
    script = Script()
    response = serve(script).post(ANSWER_URL, json={"query": "a"}, headers=headers)
    assert_problem(response, 403, "foreign_origin")
    assert script.queries == []


def test_its_own_page_and_programs_are_served(serve: Serve) -> None:
    client = serve()
    own = f"{client.base_url.scheme}://{client.base_url.host}:{client.base_url.port}"
    for headers in ({"Origin": own}, {"Sec-Fetch-Site": "same-origin", "Origin": own}, {"Host": "localhost:8000"}, {}):
        assert client.post(ANSWER_URL, json={"query": "a"}, headers=headers).status_code == 200


def test_any_host_name_is_served_where_keys_are_required(serve: Serve) -> None:
    client = serve(auth="required")
    assert client.post(ANSWER_URL, json={"query": "a"}, headers={"Host": "rag.example"}).status_code == 200
