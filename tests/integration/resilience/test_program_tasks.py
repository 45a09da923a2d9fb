"""Tasks that chat programs set are done by the model alone, and its reason for an end reaches the client."""

from __future__ import annotations

import httpx
import psycopg
import pytest

from rag_service.store.embedded import EmbeddedServer
from tests.doubles.ollama import CHAT, OllamaDouble, failure
from tests.doubles.openai import CHAT as OPENAI_CHAT
from tests.doubles.openai import OpenAIDouble, Reply, openai_server
from tests.integration.resilience.conftest import QUESTION, Start, add_document

__all__ = ["openai_server"]

TASK = f"### Task:\nGenerate a title.\n<chat_history>\nUSER: {QUESTION}\n</chat_history>"


def complete(client: httpx.Client, model: str, content: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": content}]}
    return client.post("/v1/chat/completions", json=body)


def test_a_task_is_done_by_the_model_alone(start: Start, ollama: OllamaDouble, quick_retries: None) -> None:
    client = start()
    add_document(client)
    client.post("/api/v1/agents", json={"name": "helper", "systemPrompt": "Cite."}).raise_for_status()
    ollama.answer = "Limits of travel"
    for model in ("rag-service", "helper"):
        before = len(ollama.bodies(CHAT))
        message = complete(client, model, TASK).json()["choices"][0]["message"]
        assert (message["content"], message["citations"]) == ("Limits of travel", [])
        (body,) = ollama.bodies(CHAT)[before:]
        assert [said["content"] for said in body["messages"]] == [TASK]
    ollama.script(CHAT, *[failure(500)] * 9)
    assert complete(client, "rag-service", TASK).json()["choices"][0]["message"]["content"] == QUESTION


def test_a_task_counts_as_an_answer_and_leaves_no_record(
    start: Start, ollama: OllamaDouble, database_server: EmbeddedServer
) -> None:
    client = start(rate_limit_answers_per_minute=2)
    add_document(client)
    ollama.answer = "Limits of travel"
    assert [complete(client, "rag-service", TASK).status_code for _ in range(3)] == [200, 200, 429]
    assert 'rag_questions_total{channel="openai"' in client.get("/metrics").text
    with psycopg.connect(database_server.owner_conninfo) as owner:
        assert owner.execute("SELECT count(*) FROM rag.answers").fetchone() == (0,)


def test_a_filter_of_the_model_server_is_the_reason_of_the_end(start: Start, openai_server: OpenAIDouble) -> None:
    pytest.importorskip("llama_index.llms.openai_like", reason="the extra `openai` is not installed")
    client = start(chat_provider="openai_like", openai_url=openai_server.url)
    add_document(client)
    filtered = Reply(deltas=("The limit for travel is 300 euros a day [C1]. ",), finish_reason="content_filter")
    openai_server.script(OPENAI_CHAT, *[filtered] * 9)  # the judge's calls take some
    reply = complete(client, "rag-service", QUESTION).json()
    assert (reply["choices"][0]["finish_reason"], reply["rag"]["decision"]) == ("content_filter", "uncertain")
    answer = client.post("/api/v1/query/answer", json={"query": QUESTION}).json()
    assert (answer["incomplete"], answer["finishReason"]) == (True, "content_filter")
    response = client.post("/v1/responses", json={"model": "rag-service", "input": QUESTION}).json()
    assert response["incomplete_details"] == {"reason": "content_filter"}


def test_what_a_file_is_about_is_told_without_the_model(start: Start, ollama: OllamaDouble) -> None:
    """Also where the search is limited to that file."""
    client = start()
    add_document(client)
    (corpus,) = client.get("/api/v1/corpora").json()["items"]
    (document,) = client.get(f"/api/v1/corpora/{corpus['id']}/documents").json()["items"]
    for limit in ({}, {"documentIds": [document["id"]]}, {"fileName": "travel.md"}):
        body = {"query": "What is in travel.md?", **limit}
        answer = client.post("/api/v1/query/answer", json=body).raise_for_status().json()
        assert "Limits" in answer["answer"] or "300 euros" in answer["answer"], limit
        assert "do not mention" not in answer["answer"]
    assert ollama.bodies(CHAT) == []
