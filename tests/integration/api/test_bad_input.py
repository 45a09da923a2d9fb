"""What callers get wrong: each a problem that names the field, before any stream starts."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.integration.api.conftest import Serve, Shared
from tests.unit.api.samples import QUESTION

QUERY_URL, ANSWER_URL, STREAM_URL = "/api/v1/query", "/api/v1/query/answer", "/api/v1/query/answer/stream"
URLS = [QUERY_URL, ANSWER_URL, STREAM_URL]

# (request, field that the problem names, what its message says)
BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no query": ({}, "query", "is required"),
    "empty query": ({"query": ""}, "query", "must not be empty"),
    "blank query": ({"query": " \t\n\u00a0\u2003"}, "query", "must not be empty"),
    "invisible query": ({"query": "\u200b\ufeff\u0007"}, "query", "must not be empty"),
    "query of 50,000 characters": ({"query": "a" * 50_000}, "query", "at most 4000 characters, but has 50000"),
    "query with NUL": ({"query": "a\0b"}, "query", "NUL"),
    "query is a number": ({"query": 1}, "query", "must be text, not a whole number"),
    "query is null": ({"query": None}, "query", "must be text, not null"),
    "query is a list": ({"query": ["a"]}, "query", "must be text, not a list"),
    "topK 0": ({"query": "a", "topK": 0}, "topK", "from 1 to 50"),
    "topK -1": ({"query": "a", "topK": -1}, "topK", "from 1 to 50"),
    "topK 51": ({"query": "a", "topK": 51}, "topK", "from 1 to 50"),
    "topK of 400 digits": ({"query": "a", "topK": 10**400}, "topK", "from 1 to 50"),
    "topK text": ({"query": "a", "topK": "x"}, "topK", "must be a whole number or null, not text"),
    "topK digits as text": ({"query": "a", "topK": "5"}, "topK", "must be a whole number or null, not text"),
    "topK fraction": ({"query": "a", "topK": 2.5}, "topK", "must be a whole number"),
    "topK true": ({"query": "a", "topK": True}, "topK", "must be a whole number"),
    "threshold 1.5": ({"query": "a", "similarityThreshold": 1.5}, "similarityThreshold", "from 0 to 1"),
    "threshold -0.1": ({"query": "a", "similarityThreshold": -0.1}, "similarityThreshold", "from 0 to 1"),
    "threshold NaN as text": ({"query": "a", "similarityThreshold": "NaN"}, "similarityThreshold", "must be a number"),
    "source is a list": ({"query": "a", "source": []}, "source", "must be text"),
    "source too long": ({"query": "a", "source": "x" * 1001}, "source", "at most 1000 characters"),
    "file name with NUL": ({"query": "a", "fileName": "../a\0.txt"}, "fileName", "NUL"),
    "tags is text": ({"query": "a", "tags": "x"}, "tags", "must be a list, not text"),
    "too many tags": ({"query": "a", "tags": ["x"] * 51}, "tags", "at most 50 items"),
    "tag too long": ({"query": "a", "tags": ["x", "y" * 1001]}, "tags", "item 2 must have at most 1000 characters"),
    "tag with NUL": ({"query": "a", "tags": ["\0"]}, "tags", "NUL"),
    "document id no UUID": ({"query": "a", "documentIds": ["1"]}, "documentIds", "item 1 must be a UUID"),
    "document id a number": ({"query": "a", "documentIds": [1]}, "documentIds", "item 1 must be a UUID, not"),
    "too many documents": (
        {"query": "a", "documentIds": [str(uuid4()) for _ in range(1001)]}, "documentIds", "at most 1000 items",
    ),
    "too many corpora": (
        {"query": "a", "corpusIds": [str(uuid4()) for _ in range(1001)]}, "corpusIds", "at most 1000 items",
    ),
    "field value is a number": ({"query": "a", "fields": {"a": 1}}, "fields", "must be text"),
    "field with NUL": ({"query": "a", "fields": {"a\0": "1"}}, "fields", "NUL"),
    "filter is text": ({"query": "a", "filter": "x"}, "filter", "must be an object"),
    "filter without a field": ({"query": "a", "filter": {"value": 1}}, "filter.field", "the name of a field"),
    "filter of two groups": ({"query": "a", "filter": {"and": [], "or": []}}, "filter.and", "not part of a condition"),
    "filter of an unknown operator": (
        {"query": "a", "filter": {"or": [{"field": "year", "operator": "~", "value": 1}]}},
        "filter.or[0].operator", "must be one of ==, !=",
    ),
    "filter with a range of words": (
        {"query": "a", "filter": {"not": [{"field": "year", "operator": ">", "value": "soon"}]}},
        "filter.not[0].value", "must be a number or an ISO date",
    ),
    "filter with NUL": ({"query": "a", "filter": {"field": "year", "value": "\0"}}, "filter.value", "be stored"),
    "filter with an object": (
        {"query": "a", "filter": {"field": "year", "value": {}}}, "filter.value", "must be a string",
    ),
    "filter too deep": (
        {"query": "a", "filter": {"and": [{"and": [{"and": [{"and": [{"and": [{"and": []}]}]}]}]}]}},
        "filter.and[0].and[0].and[0].and[0].and[0]", "at most 5 levels deep",
    ),
    "filter of too many conditions": (
        {"query": "a", "filter": {"or": [{"field": "year", "value": 1}] * 51}}, "filter", "at most 50 conditions",
    ),
    "filter of too many values": (
        {"query": "a", "filter": {"or": [{"field": "year", "operator": "in", "value": [*range(501)]}] * 2}}, "filter",
        "at most 1,000 values together",
    ),
    "too many fields": ({"query": "a", "fields": {str(i): "" for i in range(51)}}, "fields", "at most 50 items"),
    "unknown field": ({"query": "a", "unknown": 1}, "unknown", "this request; its fields are query, "),
    "misspelt field": ({"query": "a", "topk": 1}, "topk", "did you mean topK?"),
    "snake case": ({"query": "a", "top_k": 1}, "top_k", "did you mean topK?"),
}  # fmt: skip


def assert_problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["type"] == f"urn:rag-service:problem:{code}"
    assert problem["title"] and problem["detail"] and problem["help"]
    assert problem["correlationId"] == response.headers["x-request-id"]
    return problem


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(("request_body", "field", "message"), list(BAD.values()), ids=list(BAD))
def test_bad_field_is_named_before_the_engine_is_asked(
    shared: Shared, url: str, request_body: dict[str, Any], field: str, message: str
) -> None:
    asked = len(shared.script.queries)
    problem = assert_problem(shared.client.post(url, json=request_body), 400, "invalid_input")
    assert [error["field"] for error in problem["errors"]] == [field]
    assert message in problem["errors"][0]["message"]
    assert field in problem["detail"]
    assert len(shared.script.queries) == asked


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream: true"])
def test_several_faults_are_told_at_once_in_both_modes(serve: Serve, stream: bool) -> None:
    request = {"query": "", "topK": 99, "similarityThreshold": 7, "stream": stream}
    problem = assert_problem(serve().post(ANSWER_URL, json=request), 400, "invalid_input")
    assert [error["field"] for error in problem["errors"]] == ["query", "topK", "similarityThreshold"]


@pytest.mark.parametrize(("url", "value"), [(ANSWER_URL, 1), (ANSWER_URL, "true"), (STREAM_URL, None)])
def test_stream_must_be_a_boolean(serve: Serve, url: str, value: Any) -> None:
    problem = assert_problem(serve().post(url, json={"query": "a", "stream": value}), 400, "invalid_input")
    assert problem["errors"][0]["field"] == "stream"


def test_search_knows_no_stream(serve: Serve) -> None:
    problem = assert_problem(serve().post(QUERY_URL, json={"query": "a", "stream": True}), 400, "invalid_input")
    assert problem["errors"][0]["field"] == "stream"


RAW: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "body"),
    "half an object": (b'{"query": "a"', "body"),
    "trailing text": (b'{"query": "a"} x', "body"),
    "a list": (b"[]", "body"),
    "null": (b"null", "body"),
    "text": (b"hello", "body"),
    "bytes that are no UTF-8": (b'{"query": "\xff\xfe"}', "body"),
    "UTF-16": ('{"query": "a"}'.encode("utf-16"), "body"),
    "half a surrogate pair": (b'{"query": "\\ud800"}', "body"),
    "NaN": (b'{"query": "a", "similarityThreshold": NaN}', "similarityThreshold"),
    "minus infinity": (b'{"query": "a", "similarityThreshold": -Infinity}', "similarityThreshold"),
    "a number beyond every float": (b'{"query": "a", "similarityThreshold": 1e999}', "similarityThreshold"),
    "5,000 digits": (b'{"query": "a", "topK": ' + b"1" * 5000 + b"}", "topK"),
    "100,000 open brackets": (b'{"query": "a", "tags": ' + b"[" * 100_000, "tags"),
    "100,000 open braces": (b'{"query":' + b'{"a":' * 100_000, "query"),
    "a field name of 100,000 characters": (b'{"' + b"x" * 100_000 + b'": 1}', "x" * 80),
}


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(("raw", "field"), list(RAW.values()), ids=list(RAW))
def test_body_that_is_no_request_is_refused(shared: Shared, url: str, raw: bytes, field: str) -> None:
    response = shared.client.post(url, content=raw, headers={"Content-Type": "application/json"})
    problem = assert_problem(response, 400, "invalid_input")
    assert problem["errors"][0]["field"] == field
    assert len(response.content) < 2000


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_wrong_content_type_is_415(serve: Serve, content_type: str | None) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    response = serve().post(ANSWER_URL, content=b'{"query": "a"}', headers=headers)
    problem = assert_problem(response, 415, "unsupported_media_type")
    assert "application/json" in problem["detail"]


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/a+json"])
def test_json_by_other_names_is_taken(serve: Serve, content_type: str) -> None:
    response = serve().post(ANSWER_URL, content=b'{"query": "a"}', headers={"Content-Type": content_type})
    assert response.status_code == 200


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
def test_body_beyond_the_limit_is_413_even_for_a_client_that_sends_all_before_it_reads(
    shared: Shared, announced: bool
) -> None:
    body = b'{"query": "' + b"a" * 5_000_000 + b'"}'
    pieces = (body[at : at + 65_536] for at in range(0, len(body), 65_536))
    url = shared.client.base_url
    with contextlib.closing(http.client.HTTPConnection(url.host, url.port, timeout=60)) as connection:
        # httpx reads on when it cannot write any more; this client gives up
        connection.request("POST", ANSWER_URL, body if announced else pieces, {"Content-Type": "application/json"})
        response = connection.getresponse()
        problem = json.loads(response.read())
    assert (response.status, problem["code"]) == (413, "too_large")
    assert "1000000 bytes" in problem["detail"]


def test_client_that_asks_first_is_told_before_it_sends(serve: Serve) -> None:
    client = serve()
    with socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=60) as connection:
        connection.sendall(
            b"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 5000000\r\nExpect: 100-continue\r\n\r\n"
        )
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413")


def test_a_request_with_two_lengths_is_refused_and_the_connection_closed(serve: Serve) -> None:
    client = serve()
    with socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=60) as connection:
        connection.sendall(
            b"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        replies = b""
        while part := connection.recv(65_536):  # until it is closed
            replies += part
    assert replies.startswith(b"HTTP/1.1 400") and replies.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("path", ["/", "/api/v1/nothing", "/schema/nothing", "/schema/a.json", "/%00", "/ñ"])
def test_unknown_route_is_a_problem(shared: Shared, path: str) -> None:
    assert_problem(shared.client.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", ANSWER_URL, "POST"), ("DELETE", QUERY_URL, "POST"), ("POST", "/health", "GET"), ("PUT", "/schema", "GET")],
)
def test_wrong_method_is_a_problem_that_names_the_right_one(serve: Serve, method: str, path: str, allowed: str) -> None:
    response = serve().request(method, path)
    assert_problem(response, 405, "method_not_allowed")
    assert allowed in response.headers["allow"]


def test_good_request_after_bad_ones(serve: Serve) -> None:
    client = serve()
    for request, _, _ in BAD.values():
        client.post(ANSWER_URL, json=request)
    assert client.post(ANSWER_URL, json={"query": QUESTION}).status_code == 200
