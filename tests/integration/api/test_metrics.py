"""/metrics on a real socket: who may read it, and that requests, answers and errors are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from rag_service.api.metrics import metered_answer, metrics_route
from rag_service.domain import Identity, Role
from rag_service.errors import AuthenticationError, ModelError, StoreError
from rag_service.observability.metrics import Metrics
from rag_service.settings import Settings
from tests.integration.api.test_bad_input import ANSWER_URL, QUERY_URL, STREAM_URL, assert_problem
from tests.serving import serving, wait_until
from tests.unit.api.samples import ADMIN, EVENTS, QUESTION, Script, application_over
from tests.unit.test_metrics import values

Start = Callable[..., tuple[httpx.Client, Metrics]]


@contextmanager
def running(script: Script, settings: Settings) -> Iterator[tuple[httpx.Client, Metrics]]:
    metrics = Metrics()
    services = script.services(settings)
    object.__setattr__(
        services, "answer", lambda query, channel: metered_answer(script.answer(query), metrics, channel=channel)
    )
    application = application_over(services, more_routes=[metrics_route(metrics)], metrics=metrics)
    with serving(application) as client:
        yield client, metrics


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda script=None, **settings: stack.enter_context(running(script or Script(), Settings(**settings)))


def test_it_is_plain_text_and_open_on_a_local_service(start: Start) -> None:
    client, _ = start()
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE rag_requests_total counter" in response.text


class Keys(Script):
    """A service that knows two keys."""

    async def authenticate(self, headers: Any) -> Identity:
        match headers.get("authorization"):
            case "Bearer admin-key":
                return ADMIN
            case "Bearer user-key":
                return Identity(user_id=ADMIN.user_id, role=Role.USER)
        raise AuthenticationError("A key or token is needed.")


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("Bearer scrape-tokem", 401),
        ("Bearer user-key", 403),
        ("Bearer scrape-token", 200),
        ("Bearer admin-key", 200),
    ],
)
def test_where_keys_are_required_it_is_for_admins_and_the_scraper(
    start: Start, authorization: str | None, status: int
) -> None:
    client, _ = start(Keys(), auth="required", metrics_token="scrape-token")
    response = client.get("/metrics", headers={"Authorization": authorization} if authorization else {})
    assert response.status_code == status


def test_without_a_token_set_no_token_opens_it(start: Start) -> None:
    client, _ = start(Keys(), auth="required")
    for value in ("Bearer", "Bearer None", ""):
        assert client.get("/metrics", headers={"Authorization": value}).status_code == 401


def test_requests_are_counted_by_template_and_status(start: Start) -> None:
    client, metrics = start(Script(error=StoreError("gone"), failing="search"))
    client.post(QUERY_URL, json={"query": "a"})
    client.post(ANSWER_URL, json={"query": "a"})
    client.post(ANSWER_URL, json={"query": " "})
    client.get("/nothing/here/4711")
    client.request("BREW", "/health")
    wait_until(lambda: len([name for name in values(metrics) if name.startswith("rag_requests_total")]) == 5)
    found = values(metrics)
    assert found["rag_requests_total{method=POST,route=/api/v1/query,status=500}"] == 1
    assert found["rag_requests_total{method=POST,route=/api/v1/query/answer,status=200}"] == 1
    assert found["rag_requests_total{method=POST,route=/api/v1/query/answer,status=400}"] == 1
    assert found["rag_requests_total{method=GET,route=unmatched,status=404}"] == 1
    assert found["rag_request_seconds_count{route=/api/v1/query/answer}"] == 2
    assert not [name for name in found if "4711" in name or "BREW" in name]
    assert found["rag_errors_total{code=store_unavailable}"] == 1
    assert found["rag_errors_total{code=invalid_input}"] == 1
    assert found["rag_errors_total{code=not_found}"] == 1


@pytest.mark.parametrize("url", [ANSWER_URL, STREAM_URL])
def test_an_answer_that_fails_is_counted_once(start: Start, url: str) -> None:
    client, metrics = start(Script(events=(ModelError("down"),)))
    assert_problem(client.post(url, json={"query": QUESTION}), 500, "llm_unavailable")
    wait_until(lambda: "rag_errors_total{code=llm_unavailable}" in values(metrics))
    assert values(metrics)["rag_errors_total{code=llm_unavailable}"] == 1


def test_an_answer_is_counted_with_its_parts(start: Start) -> None:
    client, metrics = start()
    client.post(ANSWER_URL, json={"query": QUESTION})
    client.post(STREAM_URL, json={"query": QUESTION})
    found = values(metrics)
    assert found["rag_answers_total{decision=can_proceed,rag_used=true}"] == 2
    assert found["rag_first_token_seconds_count"] == 2
    assert found["rag_citations_total{status=verified}"] == 2
    assert found["rag_questions_total{channel=answer,relevant=true}"] == 2
    assert "Lyon" not in client.get("/metrics").text


def test_a_reader_who_leaves_is_counted_and_the_engine_closed(start: Start) -> None:
    script = Script(events=EVENTS[:3], endless=True)
    client, metrics = start(script)
    with client.stream("POST", STREAM_URL, json={"query": QUESTION}) as response:
        next(response.iter_lines())
    wait_until(lambda: values(metrics)["rag_answers_left_total"] and script.closed)
    assert (values(metrics)["rag_answers_left_total"], script.closed) == (1, 1)
