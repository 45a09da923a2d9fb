"""Every way a model server fails, through the whole service."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.conftest import mostly_slow
from tests.doubles.ollama import (
    CHAT,
    EMBED,
    Break,
    Done,
    ErrorLine,
    Hang,
    OllamaDouble,
    Raw,
    Reply,
    Reset,
    Say,
    Think,
    Wait,
    chat,
    embed,
    failure,
    refused,
)
from tests.integration.resilience.conftest import QUESTION, Start, add_document
from tests.integration.resilience.test_clients_that_leave import UNHURRIED, chat_address
from tests.serving import leave_when, wait_until

ANSWER, STREAM, SEARCH = "/api/v1/query/answer", "/api/v1/query/answer/stream", "/api/v1/query"
pytestmark = pytest.mark.usefixtures("quick_retries")
GOOD = "The limit for travel is 300 euros a day [C1]."


IMPATIENT = {"first_token_timeout": 1.5, "token_timeout": 1.0}


@pytest.fixture
def client(start: Start, ollama: OllamaDouble, request: pytest.FixtureRequest) -> httpx.Client:
    """Where the test has a fault in which the model hangs, the service soon gives it up."""
    fault = getattr(request.node, "callspec", None) and request.node.callspec.params.get("fault")
    ollama.answer = GOOD
    client = start(**IMPATIENT if fault in HANGING else {})
    add_document(client)
    return client


def ask(client: httpx.Client, url: str = ANSWER, question: str = QUESTION) -> httpx.Response:
    return client.post(url, json={"query": question}, headers={"Accept": "application/x-ndjson, application/json"})


def events_of(response: httpx.Response) -> list[tuple[str, Any]]:
    lines = [json.loads(line) for line in response.text.splitlines()]
    return [(line["event"], line.get("data")) for line in lines]


def assert_works_again(client: httpx.Client) -> None:
    response = ask(client)
    assert response.status_code == 200, response.text
    assert response.json()["citations"][0]["status"] == "verified"


BEFORE_FIRST_TOKEN = {
    "refuses the connection": ([refused()] * 3, 500, "llm_unavailable"),
    "answers 500": ([failure(500)], 500, "llm_unavailable"),
    "does not have the model": ([failure(404)], 500, "llm_unavailable"),
    "hangs before the first token": ([chat(Hang())], 500, "llm_unavailable"),
    "thinks and never speaks": ([chat(Think("hm"), Hang())], 500, "llm_unavailable"),
    "sends an error line at once": ([chat(ErrorLine("out of memory"))], 500, "llm_unavailable"),
    "sends garbage": ([chat(Raw(b"<html>\n"), Hang())], 500, "llm_unavailable"),
    "ends without a word": ([Reply(steps=())], 500, "llm_unavailable"),
    "sends only white space": ([chat(Say("\n \n"))], 500, "llm_unavailable"),
    "is busy three times": ([failure(429, retry_after="0")] * 3, 503, "llm_busy"),
    "is overloaded three times": ([failure(503)] * 3, 503, "llm_busy"),
    "is busy for longer than we wait": ([failure(429, retry_after="120")], 503, "llm_busy"),
}
MIDWAY = {
    "hangs after the first token": [Say("The limit"), Hang()],
    "resets the connection": [Say("The limit"), Reset()],
    "breaks the body off": [Say("The limit"), Break()],
    "sends an error line": [Say("The limit"), ErrorLine("runner died")],
    "sends half a line": [Say("The limit"), Raw(b'{"message": {"con'), Break()],
}
HANGING = {
    *(name for name, (replies, _, _) in BEFORE_FIRST_TOKEN.items() if any(Hang() in reply.steps for reply in replies)),
    *(name for name, steps in MIDWAY.items() if Hang() in steps),
}
NOTICE = "The language model could not answer; these are quotes from the documents."


def assert_quotes(answer: dict[str, Any], code: str, *, before: str = "") -> None:
    """The passages that were found, as quotes, in place of what the model did not say."""
    assert answer["answer"].startswith(f"{before}{NOTICE}\n\n")
    assert (answer["decision"], answer["modelError"], answer["model"]) == ("uncertain", code, "extractive")
    assert [citation["status"] for citation in answer["citations"]] == ["verified"]
    assert answer["citations"][0]["quote"] in answer["answer"]
    assert answer["sources"]


@pytest.mark.parametrize(
    "fault", mostly_slow(BEFORE_FIRST_TOKEN, fast=["refuses the connection", "sends garbage", "is busy three times"])
)
@pytest.mark.parametrize("url", [ANSWER, STREAM])
def test_a_model_that(client: httpx.Client, ollama: OllamaDouble, url: str, fault: str) -> None:
    replies, _, code = BEFORE_FIRST_TOKEN[fault]
    ollama.script(CHAT, *replies)
    response = ask(client, url)
    assert response.status_code == 200
    answer = response.json() if url == ANSWER else dict(events_of(response))["final"]
    assert_quotes(answer, code)
    if url == STREAM:
        events = events_of(response)
        assert [name for name, _ in events if name != "delta"] == ["sources", "citation", "final", "done"]
        assert "".join(data["text"] for name, data in events if name == "delta") == answer["answer"]
    assert "ollama" not in response.text.lower()
    assert 'rag_degraded_total{part="model"} 1.0' in client.get("/metrics").text
    assert client.get(f"/api/v1/answers/{answer['answerId']}").json()["modelError"] == code
    assert_works_again(client)


@pytest.mark.parametrize("fault", MIDWAY)
def test_a_model_that_dies_midway_is_followed_by_quotes(client: httpx.Client, ollama: OllamaDouble, fault: str) -> None:
    ollama.script(CHAT, chat(*MIDWAY[fault]))
    events = events_of(ask(client, STREAM))
    assert_quotes(dict(events)["final"], "llm_unavailable", before="The limit\n\n")
    assert events[-1][0] == "done"
    assert len(ollama.bodies(CHAT)) == 1  # what a reader has seen is not asked for again
    assert_works_again(client)


def test_every_channel_quotes_while_the_model_fails(client: httpx.Client, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, *[failure(500)] * 3)
    messages = [{"role": "user", "content": QUESTION}]
    chatted = client.post(chat_address(client), json={"messages": messages}).json()
    assert_quotes(chatted, "llm_unavailable")
    assert chatted["ragUsed"]
    completion = client.post("/v1/chat/completions", json={"model": "rag-service", "messages": messages}).json()
    assert completion["choices"][0]["message"]["content"].startswith(NOTICE)
    assert completion["rag"]["modelError"] == "llm_unavailable"
    assert completion["rag"]["decision"] == "uncertain"
    add_document(client, "El límite de gastos de viaje es de 300 euros por día.", "viajes.md")
    spanish = ask(client, question="¿Cuál es el límite de gastos de viaje por día?").json()
    assert spanish["answer"].startswith("El modelo de lenguaje no ha podido responder;")


def test_quotes_instead_of_errors_can_be_turned_off(start: Start, ollama: OllamaDouble) -> None:
    ollama.answer = GOOD
    client = start(extractive_fallback=False, breaker_failures=0)
    add_document(client)
    for fault in ("refuses the connection", "answers 500", "is busy for longer than we wait"):
        replies, status, code = BEFORE_FIRST_TOKEN[fault]
        ollama.script(CHAT, *replies, *replies)
        plain, stream = ask(client), events_of(ask(client, STREAM))
        problem = plain.json()
        assert (plain.status_code, problem["code"]) == (status, code)
        assert ("retry-after" in plain.headers) == (not fault.startswith("answers"))
        assert "ollama" not in plain.text.lower()
        assert problem["correlationId"] == plain.headers["x-request-id"]
        assert [name for name, _ in stream] == ["sources", "error"]  # the sources go out before the model is asked
        assert (stream[-1][1]["status"], stream[-1][1]["code"]) == (status, code)
    ollama.script(CHAT, chat(*MIDWAY["sends an error line"]))
    events = events_of(ask(client, STREAM))
    assert (events[0][0], events[-1][0], events[-1][1]["code"]) == ("sources", "error", "llm_unavailable")
    assert "final" not in dict(events)
    assert_works_again(client)


def test_a_busy_model_is_tried_again_and_nobody_notices(client: httpx.Client, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, failure(429, retry_after="0"), refused())
    assert_works_again(client)
    assert len(ollama.bodies(CHAT)) >= 2


def test_a_truncated_prompt_is_logged_and_the_answer_still_checked(
    client: httpx.Client, ollama: OllamaDouble, logged: Any
) -> None:
    ollama.script(CHAT, chat(Say(GOOD), Done(prompt_eval_count=5)))
    assert ask(client).status_code == 200
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    [line] = [line for line in lines if line["action"] == "prompt_truncated"]
    assert (line["level"], line["counted"]) == ("error", 5)


@pytest.mark.parametrize("text", ["a\0b", "....", "[C[C[C", "1" * 100_000])
def test_nonsense_is_an_uncertain_answer(client: httpx.Client, ollama: OllamaDouble, text: str) -> None:
    for url in (ANSWER, STREAM):
        ollama.script(CHAT, chat(Say(text)))
        response = ask(client, url)
        answer = response.json() if url == ANSWER else dict(events_of(response))["final"]
        assert (response.status_code, answer["decision"]) == (200, "uncertain")
        assert client.get(f"/api/v1/answers/{answer['answerId']}").json()["answer"] == answer["answer"]
        assert len(answer["answer"]) < 20_000
    assert_works_again(client)


def test_slow_drip_is_a_good_answer(client: httpx.Client, ollama: OllamaDouble) -> None:
    steps = [step for word in GOOD.split() for step in (Wait(0.05), Say(word + " "))]
    ollama.script(CHAT, chat(*steps))
    assert ask(client).json()["citations"][0]["status"] == "verified"


# -- a client that leaves


@pytest.mark.parametrize("stage", ["before the first token", "between tokens"])
@pytest.mark.parametrize("url", [ANSWER, STREAM])
def test_a_client_that_leaves_frees_the_model_at_once(start: Start, ollama: OllamaDouble, url: str, stage: str) -> None:
    ollama.answer = GOOD
    client = start(model_concurrency=1, model_queue=0, **UNHURRIED)
    add_document(client)
    ollama.script(CHAT, chat(*([Say("The limit")] if stage == "between tokens" else []), Hang()))
    leave_when(lambda: ollama.open_streams == 1, client, url, QUESTION)
    wait_until(lambda: ollama.open_streams == 0)  # no limit of a model has passed
    # The model's connection closes a moment before the slot is given back.
    wait_until(lambda: ask(client).status_code == 200)
    assert_works_again(client)


# -- the embedding service

DOWN = {
    "refuses": [refused()] * 6,
    "answers 500": [failure(500)] * 6,
    "is busy": [failure(429, retry_after="0")] * 6,
    "returns too few vectors": [embed(count=0)] * 2,
}


@pytest.mark.parametrize("fault", DOWN)
def test_without_embeddings_words_alone_are_searched(client: httpx.Client, ollama: OllamaDouble, fault: str) -> None:
    ollama.script(EMBED, *DOWN[fault])
    [passage] = client.post(SEARCH, json={"query": QUESTION}).json()["passages"]
    assert passage["scores"]["dense"] is None
    assert passage["scores"]["bm25"] > 0
    assert 'rag_degraded_total{part="dense"} 1.0' in client.get("/metrics").text


def test_answers_go_on_without_embeddings(client: httpx.Client, ollama: OllamaDouble) -> None:
    ollama.script(EMBED, *[failure(500)] * 3)
    assert_works_again(client)


def test_quotes_go_on_while_embeddings_hang(start: Start, ollama: OllamaDouble) -> None:
    client = start(chat_provider="extractive", **IMPATIENT)
    add_document(client)
    ollama.script(EMBED, *[Reply(delay=30)] * 4)
    assert_works_again(client)


def test_the_fallback_can_be_turned_off(start: Start, ollama: OllamaDouble) -> None:
    client = start(lexical_fallback=False)
    add_document(client)
    ollama.script(EMBED, *[failure(500)] * 3)
    response = client.post(SEARCH, json={"query": QUESTION})
    assert (response.status_code, response.json()["code"]) == (500, "embedding_unavailable")


def test_a_document_is_not_half_stored_when_embeddings_fail(client: httpx.Client, ollama: OllamaDouble) -> None:
    ollama.script(EMBED, *[failure(500)] * 6)  # for the document, and for the text that every model embeds
    response = client.post("/api/ingest", json={"text": "The gate opens at six.", "fileName": "gate.txt"})
    assert (response.status_code, response.json()["code"]) == (500, "embedding_unavailable")
    assert client.post(SEARCH, json={"query": "gate opens"}).json()["passages"] == []
    add_document(client, "The gate opens at six.", "gate.txt")


def test_a_wrong_dimension_never_reaches_the_store(client: httpx.Client, ollama: OllamaDouble) -> None:
    ollama.script(EMBED, embed(dimension=768))
    response = client.post("/api/ingest", json={"text": "The gate opens at six.", "fileName": "gate.txt"})
    assert (response.status_code, response.json()["code"]) == (500, "invalid_configuration")
    assert "RAG_" not in response.json()["detail"]


# -- breaker and readiness


@pytest.mark.slow
def test_a_dead_model_is_left_alone_and_found_again(start: Start, ollama: OllamaDouble) -> None:
    ollama.answer = GOOD
    client = start(breaker_failures=2, breaker_seconds=15.0, first_token_timeout=4.0)
    add_document(client)
    ollama.script(CHAT, *[chat(Hang())] * 2)
    for _ in range(2):
        assert ask(client).json()["modelError"] == "llm_unavailable"
    response = ask(client)
    assert_quotes(response.json(), "llm_unavailable")
    assert len(ollama.bodies(CHAT)) == 2  # it was not asked, so no timeout was waited for
    ready = client.get("/health/ready")
    assert ready.status_code == 200
    assert ready.json()["status"] == "degraded"
    assert ready.json()["dependencies"]["chat"]["code"] == "circuit_open"
    assert 'rag_circuit_open{provider="chat model"} 1.0' in client.get("/metrics").text
    wait_until(lambda: ask(client).json()["modelError"] is None)
    assert client.get("/health/ready").json()["status"] == "ready"


def test_it_starts_without_its_model_server(start: Start, ollama: OllamaDouble) -> None:
    ollama.stop()
    client = start()
    ready = client.get("/health/ready")
    assert ready.status_code == 200
    dependencies = ready.json()["dependencies"]
    assert {name: (entry["state"], entry["code"]) for name, entry in dependencies.items() if name != "database"} == {
        "chat": ("down", "llm_unavailable"),
        "embedding": ("down", "embedding_unavailable"),
    }
    assert ready.json()["status"] == "degraded"
    ollama.__init__()  # type: ignore[misc]  # so that the fixture has something to stop
    ollama.start()
