"""Questions, answers and feedback are counted for every channel."""

from __future__ import annotations

import httpx

from tests.doubles.ollama import OllamaDouble
from tests.integration.resilience.conftest import QUESTION, Start, add_document
from tests.integration.resilience.test_clients_that_leave import chat_address
from tests.unit.test_metrics import samples


def counted(client: httpx.Client) -> dict[str, float]:
    return samples(client.get("/metrics").text)


def test_every_channel_counts(start: Start, ollama: OllamaDouble) -> None:
    ollama.answer = "The limit for travel is 300 euros a day [C1]."
    client = start()
    add_document(client)
    messages = {"messages": [{"role": "user", "content": QUESTION}]}
    client.post("/api/v1/query", json={"query": QUESTION})
    answer = client.post("/api/v1/query/answer", json={"query": QUESTION}).json()
    assert client.post(chat_address(client), json=messages).status_code == 200
    assert client.post("/v1/chat/completions", json={**messages, "model": "rag-service"}).status_code == 200
    found = counted(client)
    for channel in ("search", "answer", "chat", "openai"):
        assert found[f"rag_questions_total{{channel={channel},relevant=true}}"] == 1
    assert found["rag_answers_total{decision=can_proceed,rag_used=true}"] == 3
    assert found["rag_citations_total{status=verified}"] == 3

    address = f"/api/v1/answers/{answer['answerId']}/feedback"
    assert client.put(address, json={"thumbs": "down"}).status_code == 200
    assert counted(client)["rag_feedback_total{thumbs=down}"] == 1


def test_a_chat_without_context_counts_as_a_miss(start: Start, ollama: OllamaDouble) -> None:
    ollama.answer = "Hello."
    client = start()
    agent = client.post("/api/v1/agents", json={"name": "helper"}).json()
    body = {"messages": [{"role": "user", "content": QUESTION}]}
    assert client.post(f"/api/v1/agents/{agent['id']}/chat", json=body).json()["ragUsed"] is False
    found = counted(client)
    assert found["rag_questions_total{channel=chat,relevant=false}"] == 1
    assert found["rag_answers_total{decision=uncertain,rag_used=false}"] == 1
    assert found["rag_retrieval_seconds_count"] == 0  # nothing was searched
