"""RAG_ENABLED=false through the public interface: the same contracts, no database, no vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rag_service.app import create_app
from rag_service.errors import ConfigurationError, DefinitionError
from rag_service.settings import Settings
from tests.serving import serving
from tests.unit.retrieval.test_keyword import ENTRIES


@pytest.fixture
def knowledge(tmp_path: Path) -> Path:
    file = tmp_path / "knowledge.json"
    file.write_text(json.dumps({"documents": ENTRIES}), encoding="utf-8")
    return file


@pytest.fixture
def client(knowledge: Path) -> Iterator[httpx.Client]:
    settings = Settings(enabled=False, knowledge_base_path=knowledge)
    with serving(create_app(settings)) as client:
        yield client


def test_an_answer_has_the_same_contract(client: httpx.Client) -> None:
    response = client.post("/api/v1/query/answer", json={"query": "How many days of vacation do employees receive?"})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    assert "25 days" in body["answer"]
    [citation] = body["citations"]
    assert citation["status"] == "verified"
    assert ENTRIES[0]["text"][citation["start"] : citation["end"]] == citation["quote"]
    assert body["sources"][0]["title"] == "Leave policy"
    assert body["decision"] == "can_proceed"


def test_a_stream_has_the_same_events(client: httpx.Client) -> None:
    response = client.post(
        "/api/v1/query/answer/stream",
        json={"query": "What is the limit for travel?"},
        headers={"Accept": "application/x-ndjson"},
    )
    names = [json.loads(line)["event"] for line in response.text.splitlines()]
    assert (names[0], names[-2:]) == ("sources", ["final", "done"])
    assert {"delta", "citation"} <= set(names)


def test_a_search_names_the_parts_of_its_scores(client: httpx.Client) -> None:
    [passage, *_] = client.post("/api/v1/query", json={"query": "limit for travel a day"}).json()["passages"]
    assert passage["title"] == "Travel policy"
    assert passage["scores"]["dense"] is None
    assert passage["scores"]["bm25"] > 0


def test_nothing_relevant_is_said_without_sources(client: httpx.Client) -> None:
    body = client.post("/api/v1/query/answer", json={"query": "Who painted the chapel ceiling?"}).json()
    assert (body["decision"], body["sources"]) == ("out_of_scope", [])


def test_there_is_nothing_to_upload_to(client: httpx.Client) -> None:
    response = client.post("/api/ingest", json={"text": "A text."})
    assert (response.status_code, response.json()["code"]) == (403, "knowledge_base_read_only")


def test_it_keeps_no_conversation_and_says_so(client: httpx.Client) -> None:
    response = client.post("/api/v1/query/answer", json={"query": "What is the limit for travel?", "keep": True})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == "keep"


def test_it_is_ready_without_any_dependency_and_counts(client: httpx.Client) -> None:
    assert client.get("/health/ready").json() == {"status": "ready", "dependencies": {}}
    client.post("/api/v1/query/answer", json={"query": "What is the limit for travel?"})
    assert 'rag_questions_total{channel="answer",relevant="true"} 1.0' in client.get("/metrics").text


def test_a_wrong_file_or_setting_is_refused_at_start(knowledge: Path) -> None:
    with pytest.raises(DefinitionError, match="RAG_KNOWLEDGE_BASE_PATH"):
        create_app(Settings(enabled=False))
    with pytest.raises(ConfigurationError, match="RAG_AUTH"):
        create_app(Settings(enabled=False, knowledge_base_path=knowledge, auth="required", jwt_secret="x" * 32))
