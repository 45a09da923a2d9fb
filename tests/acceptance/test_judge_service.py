"""The judge in the running service: what it says of reworded sentences, in plain replies and streams."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest

from rag_service.app import create_app
from rag_service.cli.checks import check_live
from rag_service.domain import LOCAL_ADMIN
from rag_service.retrieval.question import Question
from rag_service.store.documents.documents import DocumentInput
from tests.acceptance.test_ollama_service import client, read_events, service, steady
from tests.conftest import mostly_slow
from tests.doubles.ollama import Done, Hang, OllamaDouble, Say, chat, failure, ollama
from tests.integration.answers.conftest import ingest, open_service
from tests.serving import serving_here

__all__ = ["client", "ingest", "ollama", "open_service", "service"]  # fixtures

QUESTION: dict[str, Any] = {"query": "How many days of vacation do employees receive?", "similarityThreshold": 0.1}
REWORDED = "Each calendar year, employees get 25 days of vacation. [C1]"
WRONG = "Each calendar year, employees get 35 days of vacation. [C1]"
QUOTE = "Employees receive 25 days of vacation per calendar year"


def verdict(*, supported: bool = True, quote: str = QUOTE) -> str:
    return json.dumps({"verdicts": [{"id": 1, "quote": quote, "supported": supported}]})


async def ask(client: httpx.AsyncClient, ollama: OllamaDouble, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plain reply and the final event of a stream."""
    ollama.script("/api/chat", chat(Say(text), Done()), chat(Say(text), Done()))
    plain = (await client.post("/api/v1/query/answer", json=QUESTION)).json()
    events = await read_events(client, QUESTION)
    assert [data["status"] for name, data in events if name == "citation"] == [c["status"] for c in plain["citations"]]
    return plain, dict(events)["final"]


async def test_a_reworded_sentence_is_verified_by_the_judge_who_is_named(
    client: httpx.AsyncClient, ollama: OllamaDouble
) -> None:
    ollama.verdicts = lambda body: verdict()
    plain, final = await ask(client, ollama, REWORDED)
    (citation,) = plain["citations"]
    assert (citation["status"], citation["method"], citation["judge"]) == ("verified", "judge", "llama3.2")
    assert steady(plain) == steady(final)
    request = ollama.judge_requests[0].body
    assert "employees get 25 days" in request["messages"][-1]["content"]
    assert QUOTE in request["messages"][-1]["content"]


async def test_the_text_comes_before_the_judge_is_asked(client: httpx.AsyncClient, ollama: OllamaDouble) -> None:
    ollama.verdicts = lambda body: verdict()
    ollama.script("/api/chat", chat(Say(REWORDED), Done()))
    names = [name for name, _ in await read_events(client, QUESTION) if name != "heartbeat"]
    assert names.index("citation") > max(at for at, name in enumerate(names) if name == "delta")


@pytest.mark.parametrize(
    "said",
    [
        verdict(supported=False, quote=""),
        verdict(quote="All staff receive 25 days off"),  # not in the passage
        '{"verdicts": []}',
        "Both look fine to me.",
        '{"verdicts": [{"id": 1, "quote": "25 days", "supported": true}, {"id": 1, "quote": "", "supported": false}]}',
    ],
)
async def test_without_a_valid_verdict_the_sentence_stays_unchecked_and_the_answer_is_kept(
    client: httpx.AsyncClient, ollama: OllamaDouble, said: str
) -> None:
    ollama.verdicts = lambda body: said
    plain, final = await ask(client, ollama, REWORDED)
    (citation,) = plain["citations"]
    assert (citation["status"], citation["method"], citation["judge"]) == ("unchecked", None, None)
    assert plain["answer"] == REWORDED
    assert plain["decision"] == "uncertain"
    assert steady(plain) == steady(final)


async def test_words_against_a_sentence_contradict_it(client: httpx.AsyncClient, ollama: OllamaDouble) -> None:
    ollama.verdicts = lambda body: verdict(supported=False)
    plain, final = await ask(client, ollama, WRONG)
    (citation,) = plain["citations"]
    assert (citation["status"], citation["method"]) == ("contradicted", None)
    assert QUOTE in citation["reason"]
    assert citation["against"] == {"title": "leave", "quote": QUOTE}
    assert plain["decision"] == "uncertain"
    assert steady(plain) == steady(final)


@pytest.mark.parametrize(
    ("word", "decision"),
    mostly_slow(
        [("yes", "can_proceed"), ("partly", "uncertain"), ("other", "uncertain"), ("perhaps", "can_proceed")],
        fast=[("yes", "can_proceed"), ("partly", "uncertain")],
    ),
)
@pytest.mark.parametrize("text", [f"{QUOTE}. [C1]", REWORDED], ids=["quote", "reworded"])
async def test_an_answer_that_does_not_answer_the_question_is_uncertain(
    client: httpx.AsyncClient, ollama: OllamaDouble, text: str, word: str, decision: str
) -> None:
    ollama.verdicts = lambda body: json.dumps({**json.loads(verdict()), "answers": word})
    plain, final = await ask(client, ollama, text)
    known = word if word != "perhaps" else None
    assert [citation["status"] for citation in plain["citations"]] == ["verified"]
    assert (plain["decision"], plain["answersQuestion"]) == (decision, known)
    assert steady(plain) == steady(final)
    assert len(ollama.judge_requests) == 2  # one for each answer, the plain one and the streamed one
    assert QUESTION["query"] in ollama.judge_requests[0].body["messages"][-1]["content"]
    record = (await client.get(f"/api/v1/answers/{plain['answerId']}")).json()
    assert record["answersQuestion"] == known


async def test_a_judge_that_says_yes_to_lies_is_not_used_and_everybody_is_told(
    open_service: Any, ollama: OllamaDouble
) -> None:
    def yes(body: dict[str, Any]) -> str:
        _, _, passage = body["messages"][-1]["content"].partition("[C1]\n")[2].partition("\n\n")
        claims = [{"id": n, "quote": " ".join(passage.split()[:12]), "supported": True} for n in (1, 2, 3, 4)]
        return json.dumps({"verdicts": claims, "answers": "yes"})

    ollama.verdicts = yes
    settings = {"chat_provider": "ollama", "model_name": "yes-man", "ollama_url": ollama.url}
    async with (
        open_service(**settings) as components,
        serving_here(create_app(components.settings, components=components)) as client,
    ):
        await components.ingest(DocumentInput(data=f"{QUOTE}.".encode(), file_name="leave.md"), LOCAL_ADMIN)
        async with asyncio.timeout(60):
            while (await client.get("/health/ready")).json()["judge"]["state"] == "waiting":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        told = (await client.get("/health/ready")).json()["judge"]
        assert (told["name"], told["state"]) == ("yes-man", "failed")
        assert "it let 57 of 57 wrong ones through and refused 0 of 61 right ones" in told["detail"]
        examined = len(ollama.judge_requests)
        ollama.verdicts = lambda body: verdict()
        plain, _ = await ask(client, ollama, REWORDED)
        assert [citation["status"] for citation in plain["citations"]] == ["unchecked"]
        assert len(ollama.judge_requests) == examined
        ollama.installed.add("yes-man:latest")
        result = {one.name: one for one in await check_live(components.settings)}["judge"]
        assert not result.ok
        assert "yes-man. Not used, sentences in the model's own words stay unchecked" in result.detail


@pytest.mark.parametrize("reply", [chat(Hang()), failure(500), failure(503)], ids=["hangs", "fails", "is busy"])
async def test_a_judge_that_hangs_or_fails_costs_its_time_limit_and_not_the_answer(
    open_service: Any, ollama: OllamaDouble, reply: Any
) -> None:
    settings = {"chat_provider": "ollama", "model_name": "llama3.2", "ollama_url": ollama.url, "judge_timeout": 0.5}
    async with open_service(**settings) as components:
        await components.ingest(DocumentInput(data=f"{QUOTE}.".encode(), file_name="leave.md"), LOCAL_ADMIN)
        ollama.verdicts = reply
        ollama.script("/api/chat", chat(Say(REWORDED), Done()))
        began = time.monotonic()
        answer = await components.engine.answer(Question(QUESTION["query"], identity=LOCAL_ADMIN, threshold=0.1))
        assert time.monotonic() - began < 40  # a model has a minute
        assert [citation.status.value for citation in answer.citations] == ["unchecked"]
        assert answer.text == REWORDED
        assert 'rag_judged_claims_total{verdict="none"} 1.0' in components.metrics.render().decode()


async def test_without_a_judge_reworded_sentences_stay_unchecked(open_service: Any, ollama: OllamaDouble) -> None:
    settings = {"chat_provider": "ollama", "model_name": "llama3.2", "ollama_url": ollama.url, "judge": "none"}
    async with open_service(**settings) as components:
        await components.ingest(DocumentInput(data=f"{QUOTE}.".encode(), file_name="leave.md"), LOCAL_ADMIN)
        ollama.script("/api/chat", chat(Say(REWORDED), Done()))
        answer = await components.engine.answer(Question(QUESTION["query"], identity=LOCAL_ADMIN, threshold=0.1))
        assert [citation.status.value for citation in answer.citations] == ["unchecked"]
        assert ollama.judge_requests == []
