"""A model that thinks aloud, repeats itself or is cut off, through every channel of the whole service."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.conftest import mostly_slow
from tests.doubles.ollama import CHAT, Done, OllamaDouble, Say, chat
from tests.doubles.openai import CHAT as OPENAI_CHAT
from tests.doubles.openai import OpenAIDouble, Reply, openai_server
from tests.integration.resilience.conftest import QUESTION, Start, add_document
from tests.integration.resilience.test_clients_that_leave import chat_address
from tests.integration.resilience.test_model_faults import ANSWER, STREAM, ask, events_of
from tests.unit.models.llm.test_thinking import SPELLINGS as ALL_SPELLINGS

__all__ = ["openai_server"]

GOOD = "The limit for travel is 300 euros a day [C1]."
REWORDED = "Travelling may cost at most 300 euros daily [C1]."
QUOTE = "The limit for travel is 300 euros a day"
VERDICTS = json.dumps({"verdicts": [{"id": 1, "quote": QUOTE, "supported": True}]})
FOLLOW_UP = "And each day?"
REWRITE_TOKENS = 60
THOUGHTS = "The canary asks [C1]."
SPELLINGS = {name: pattern.format(THOUGHTS, "{}") for name, pattern in ALL_SPELLINGS.items() if name != "none"}
FAST = {"think", "opened by the prompt", "gpt-oss"}
NOTICE = "The answer ends here: the language model reached its length limit, only repeated itself or was stopped by a"
NOTICE += " filter."
NOTICE_ES = "La respuesta termina aquí: el modelo de lenguaje ha llegado a su límite de longitud, solo se repetía"
NOTICE_ES += " o ha sido detenido por un filtro."


def conversation(question: str = QUESTION, *before: str, **more: Any) -> dict[str, Any]:
    said = [{"role": role, "content": text} for text in before for role in ("user", "assistant")]
    return {"messages": [*said, {"role": "user", "content": question}], **more}


def complete(client: httpx.Client, *said: str, **more: Any) -> httpx.Response:
    return client.post("/v1/chat/completions", json=conversation(*said, model="rag-service", **more))


def thinking(spelling: str) -> Callable[[dict[str, Any]], str]:
    """Answers every kind of call, after thoughts."""

    def answer(body: dict[str, Any]) -> str:
        limit = body.get("max_tokens") or body["options"]["num_predict"]
        schema = body.get("format") or body.get("response_format")
        return SPELLINGS[spelling].replace(
            "{}", VERDICTS if schema else QUESTION if limit == REWRITE_TOKENS else REWORDED
        )

    return answer


@pytest.fixture(params=["ollama", "openai_like"])
def served(
    request: pytest.FixtureRequest, start: Start, ollama: OllamaDouble, openai_server: OpenAIDouble
) -> tuple[str, httpx.Client]:
    """The kind of the model server, and a client of the service."""
    client = start(chat_provider=request.param, openai_url=openai_server.url)
    add_document(client)
    return request.param, client


@pytest.mark.parametrize("spelling", mostly_slow(SPELLINGS, fast=FAST))
def test_no_channel_shows_cites_judges_or_searches_what_a_model_thinks(
    served: tuple[str, httpx.Client], ollama: OllamaDouble, openai_server: OpenAIDouble, spelling: str
) -> None:
    _, client = served
    ollama.answer = ollama.verdicts = openai_server.answer = thinking(spelling)
    agent = chat_address(client)
    # The first call of all is streamed to a client that cannot take text back.
    streamed = complete(client, stream=True)
    assert "canary" not in streamed.text
    assert '"decision":"can_proceed"' in streamed.text
    for url in (ANSWER, STREAM):
        response = ask(client, url)
        answer = response.json() if url == ANSWER else dict(events_of(response))["final"]
        assert "canary" not in response.text
        assert (answer["answer"].strip(), answer["decision"]) == (REWORDED, "can_proceed")
        assert [(one["status"], one["method"]) for one in answer["citations"]] == [("verified", "judge")]
    for stream in (False, True):
        response = client.post(
            agent, json=conversation(FOLLOW_UP, QUESTION, stream=stream), headers={"Accept": "application/x-ndjson"}
        )
        chatted = dict(events_of(response))["final"] if stream else response.json()
        assert "canary" not in response.text
        assert (chatted["answer"].strip(), chatted["standaloneQuestion"]) == (REWORDED, QUESTION)
    completion = complete(client, FOLLOW_UP, QUESTION).json()
    assert completion["choices"][0]["message"]["content"].startswith(REWORDED)
    assert completion["choices"][0]["finish_reason"] == "stop"
    without = client.post("/api/v1/agents", json={"name": "alone"}).json()["id"]
    plain = client.post(f"/api/v1/agents/{without}/chat", json=conversation()).json()
    assert REWORDED in plain["answer"]
    assert "canary" not in plain["answer"]


def test_thoughts_that_were_streamed_are_taken_back(start: Start, ollama: OllamaDouble) -> None:
    client = start()
    add_document(client)
    thoughts = SPELLINGS["opened by the prompt"].replace("{}", GOOD)
    for taken_back in (True, False):  # from then on they are held
        ollama.script(CHAT, chat(*map(Say, thoughts.split("\n"))))
        events = events_of(ask(client, STREAM))
        deltas = [data for name, data in events if name == "delta"]
        restarts = [at for at, data in enumerate(deltas) if data.get("restart")]
        assert bool(restarts) == taken_back
        final = dict(events)["final"]
        shown = "".join(data["text"] for data in deltas[restarts[-1] if restarts else 0 :])
        assert (shown, final["decision"]) == (final["answer"], "can_proceed")
        assert final["answer"] == GOOD


def test_a_model_that_only_thinks_is_answered_with_quotes(
    served: tuple[str, httpx.Client], ollama: OllamaDouble, openai_server: OpenAIDouble
) -> None:
    _, client = served
    ollama.answer = openai_server.answer = "<think>The canary asks [C1]. I never"
    for url in (ANSWER, STREAM):
        response = ask(client, url)
        answer = response.json() if url == ANSWER else dict(events_of(response))["final"]
        assert "canary" not in response.text
        assert (answer["modelError"], answer["decision"]) == ("llm_unavailable", "uncertain")
        assert answer["citations"][0]["quote"] in answer["answer"]


@pytest.mark.parametrize("fault", ["cut", "repeats"])
def test_an_answer_that_the_model_did_not_finish_says_so_and_is_uncertain(
    served: tuple[str, httpx.Client], ollama: OllamaDouble, openai_server: OpenAIDouble, fault: str
) -> None:
    kind, client = served

    def script() -> None:
        said = (f"{GOOD} ",) if fault == "cut" else (f"{GOOD} ",) * 1000
        reason = "length" if fault == "cut" else "stop"
        if kind == "ollama":
            ollama.script(CHAT, chat(*map(Say, said), Done(done_reason=reason)))
        else:
            openai_server.script(OPENAI_CHAT, Reply(deltas=said, finish_reason=reason))

    for url in (ANSWER, STREAM):
        script()
        response = ask(client, url)
        answer = response.json() if url == ANSWER else dict(events_of(response))["final"]
        assert (answer["decision"], answer["incomplete"]) == ("uncertain", True)
        assert answer["answer"].split("\n\n") == [GOOD + " " * (fault == "cut"), NOTICE]
        assert [one["status"] for one in answer["citations"]] == ["verified"]
        assert answer["flagged"] == []
    script()
    (choice,) = complete(client).json()["choices"]
    assert choice["finish_reason"] == "length"
    script()
    assert '"finish_reason":"length"' in complete(client, stream=True).text
    script()
    whole = client.post("/v1/responses", json={"model": "rag-service", "input": QUESTION}).json()
    assert (whole["status"], whole["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    script()
    agent = client.post("/api/v1/agents", json={"name": "alone"}).json()["id"]
    chatted = client.post(f"/api/v1/agents/{agent}/chat", json=conversation()).json()
    assert chatted["answer"].endswith(f"\n\n{NOTICE}")
    assert chatted["incomplete"]


def test_the_notice_is_in_the_language_of_the_question(start: Start, ollama: OllamaDouble) -> None:
    client = start()
    add_document(client, "El límite de gastos de viaje es de 300 euros por día.", "viajes.md")
    ollama.script(
        CHAT, chat(Say("El límite de gastos de viaje es de 300 euros por día [C1]."), Done(done_reason="length"))
    )
    answer = ask(client, question="¿Cuál es el límite de gastos de viaje por día?").json()["answer"]
    assert answer.endswith(f"\n\n{NOTICE_ES}")


def test_a_rewritten_question_that_was_cut_is_not_searched(start: Start, ollama: OllamaDouble) -> None:
    client = start()
    add_document(client)
    agent = chat_address(client)
    ollama.script(CHAT, chat(Say("Okay, the canary asks about\n"), Done(done_reason="length")), chat(Say(GOOD)))
    chatted = client.post(agent, json=conversation(FOLLOW_UP, QUESTION)).json()
    assert chatted["standaloneQuestion"] == f"{QUESTION}\n{FOLLOW_UP}"
