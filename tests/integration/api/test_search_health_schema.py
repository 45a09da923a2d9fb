"""Search without a model, the state of the service, and its own description."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from rag_service.domain import Condition, ConditionGroup, Operator
from rag_service.errors import StoreError
from tests.integration.api.conftest import Serve
from tests.unit.api.samples import DOCUMENT, PLACE_BODY, QUESTION, Script, probe


def test_search_gives_passages_with_their_scores_by_name(serve: Serve) -> None:
    body = serve().post("/api/v1/query", json={"query": QUESTION, "topK": 2}).json()
    assert body.pop("latencyMs") >= 0
    assert body == {
        "language": "es",
        "passages": [
            {
                "chunkId": "chunk-1",
                "documentId": str(DOCUMENT.id),
                "corpusId": str(DOCUMENT.corpus_id),
                "title": "Production",
                "fileName": "production.xlsx",
                "source": "ERP",
                "tags": ["stock", "lyon"],
                "chunkIndex": 3,
                "score": 0.91,
                "scores": {
                    "relevance": 0.91,
                    "dense": 0.7,
                    "bm25": 8.5,
                    "coverage": 0.6,
                    "fused": 0.8,
                    "rerank": 0.95,
                },
                "text": "Lyon: 4200 unités",
                "start": 100,
                "end": 117,
                "location": PLACE_BODY,
                "place": "production.xlsx, sheet Stocks, cell C12",
                "language": None,
                "contentHash": DOCUMENT.content_hash,
                "fields": {"plant": "Lyon"},
                "metadata": {"plant": "Lyon"},
                "dated": None,
                "updatedAt": "2025-01-01T00:00:00Z",
            }
        ],
    }


def test_a_filter_reaches_the_search_as_a_tree(serve: Serve) -> None:
    script = Script()
    after = {"field": "updatedAt", "operator": ">=", "value": "2024-05-31"}
    drafts = {"not": [{"field": "tags", "operator": "any", "value": ["draft", "old"]}]}
    serve(script).post("/api/v1/query", json={"query": QUESTION, "filter": {"and": [after, drafts]}})
    assert script.queries[-1].filters.where == ConditionGroup(
        combine="and",
        parts=(
            Condition(field="updatedAt", operator=Operator.GREATER_OR_EQUAL, value="2024-05-31"),
            ConditionGroup(
                combine="not", parts=(Condition(field="tags", operator=Operator.ANY, value=("draft", "old")),)
            ),
        ),
    )


def test_search_that_finds_nothing_is_empty(serve: Serve) -> None:
    assert serve(Script(hits=())).post("/api/v1/query", json={"query": "a"}).json()["passages"] == []


def test_alive(serve: Serve) -> None:
    response = serve(Script(probes={"database": probe(required=True, error=StoreError(""))})).get("/health")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


async def never() -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("probes", "status", "summary", "states"),
    [
        ({"database": probe(required=True), "chat": probe(required=False)}, 200, "ready", ["up", "up"]),
        (
            {"database": probe(required=True), "chat": probe(required=False, error=OSError("10.0.0.3"))},
            200, "degraded", ["up", "down"],
        ),
        (
            {"database": probe(required=True, error=StoreError("10.0.0.3")), "chat": probe(required=False)},
            503, "unavailable", ["down", "up"],
        ),
        ({}, 200, "ready", []),
    ],
)  # fmt: skip
def test_ready_names_each_dependency_and_what_works_without_it(
    serve: Serve, probes: dict[str, Any], status: int, summary: str, states: list[str]
) -> None:
    response = serve(Script(probes=probes)).get("/health/ready")
    body = response.json()
    assert (response.status_code, body["status"]) == (status, summary)
    assert [dependency["state"] for dependency in body["dependencies"].values()] == states
    assert list(body["dependencies"]) == list(probes)
    assert all(dependency["without"] for dependency in body["dependencies"].values())
    assert "10.0.0.3" not in response.text


def test_dependency_that_does_not_answer_is_down(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_service.api.health._PROBE_SECONDS", 0.1)
    response = serve(Script(probes={"database": probe(required=True, check=never)})).get("/health/ready")
    assert response.status_code == 503
    assert response.json()["dependencies"]["database"]["code"] == "timeout"


def test_openapi_describes_bodies_and_problems(serve: Serve) -> None:
    schema = serve().get("/schema/openapi.json").json()
    assert set(schema["paths"]) == {
        "/api/v1/query", "/api/v1/query/answer", "/api/v1/query/answer/stream", "/api/v1/check",
        "/api/v1/check/{check_id}",
        "/api/ingest",
        "/health", "/health/ready",
    }  # fmt: skip
    answer = schema["paths"]["/api/v1/query/answer"]["post"]
    properties = answer["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert set(properties) == {
        "query", "topK", "similarityThreshold", "source", "tags", "fileName", "documentIds", "corpusIds", "fields",
        "filter", "stream", "messages", "conversationId", "keep", "replaces", "schema",
    }  # fmt: skip
    assert set(answer["responses"]) == {"200", "400", "401", "404", "409", "413", "415", "500", "503"}
    assert set(answer["responses"]["400"]["content"]) == {"application/problem+json"}
    assert "contextUsed" in schema["components"]["schemas"]["AnswerBody"]["properties"]
    assert set(schema["paths"]["/api/ingest"]["post"]["requestBody"]["content"]) == {
        "application/json", "multipart/form-data",
    }  # fmt: skip


def test_every_reference_in_the_description_resolves(serve: Serve) -> None:
    schema = serve().get("/schema/openapi.json").json()
    names = set(re.findall(r"#/components/schemas/([\w.]+)", str(schema)))
    assert names and names <= set(schema["components"]["schemas"])


def test_documentation_page_needs_nothing_from_elsewhere(serve: Serve) -> None:
    client = serve()
    page = client.get("/schema")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "/api/v1/query/answer" in page.text and "similarityThreshold" in page.text
    assert not re.search(r"<script|style=|<style|javascript:|https?://", page.text.split("<main>")[0])
    assert "<script" not in page.text and " style=" not in page.text
    links = re.findall(r"(?:href|src)=[\"']([^\"'#]+)", page.text)
    assert links == ["/schema/style.css", "/schema/openapi.json"]
    for link in links:
        assert client.get(link).status_code == 200
    assert client.get("/schema/style.css").headers["content-type"].startswith("text/css")
    anchors = set(re.findall(r"href='#([\w.]+)'", page.text))
    assert anchors and anchors <= set(re.findall(r"id='([\w.]+)'", page.text))


@pytest.mark.parametrize(("elsewhere", "here"), [("/openapi.json", "/schema/openapi.json"), ("/docs", "/schema")])
def test_the_usual_addresses_lead_to_the_description(serve: Serve, elsewhere: str, here: str) -> None:
    client = serve()
    for address in (elsewhere, f"{elsewhere}/"):
        reply = client.get(address, follow_redirects=False)
        assert (reply.status_code, reply.headers["location"]) == (307, here)
    assert client.get(here).status_code == 200
    assert serve(root_path="/docs").get("/docs/docs", follow_redirects=False).headers["location"] == "/docs/schema"
