"""How often an answer calls the chat model, and where that is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from evals.sets.questions import read_set
from rag_service.agents.chat import ChatQuery
from rag_service.answering.drafts.events import AnswerComplete
from rag_service.api.http.presenters import present_answer
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, Turn
from rag_service.retrieval.question import Question
from rag_service.store.accounts.agents import AgentSpec, assign_corpus, create_agent
from rag_service.store.documents.documents import DocumentInput
from tests.doubles.ollama import CHAT, OllamaDouble, Say, chat, failure, ollama
from tests.doubles.openai import CHAT as OPENAI_CHAT
from tests.doubles.openai import OpenAIDouble, openai_server
from tests.integration.answers.conftest import OpenService

__all__ = ["ollama", "openai_server"]  # fixtures

ROOT = Path(__file__).parents[3]
INDICES = {"samples": "general", "procedures_es": "procedures_es", "retirement": "retirement"}
WRITES = [["answer"], ["answer", "judge"]]
ASKED = "How many days of vacation do employees receive?"
TURNS = (Turn(role="user", content=ASKED), Turn(role="assistant", content="25 days."))
LEAVE = "# Leave policy\n\nEmployees receive 25 days of vacation per calendar year. Unused days expire on 31 March."


def questions_of(name: str) -> tuple[list[str], list[tuple[str, bytes]]]:
    """(questions, files) of an example set."""
    if name not in INDICES:
        asked = read_set("free_questions")
        if name == "a table":
            return ["Who has been with us the longest?"], [("volunteers.csv", asked.read_file("volunteers.csv"))]
        return [one.text for one in asked.questions], [(file, asked.read_file(file)) for file in asked.file_names]
    lines = (ROOT / "evals" / f"{name}.jsonl").read_text("utf-8").splitlines()
    folder = ROOT / "indices" / INDICES[name] / "documents"
    files = [(file.name, file.read_bytes()) for file in sorted(folder.iterdir()) if file.is_file()]
    return [json.loads(line)["question"] for line in lines], files


async def add(service: Components, files: Sequence[tuple[str, bytes]]) -> None:
    for name, data in files:
        await service.ingest(DocumentInput(data=data, file_name=name), LOCAL_ADMIN)


def purposes(answer: Answer) -> list[str]:
    return [call.purpose.value for call in answer.calls]


@pytest.fixture
def with_ollama(open_service: OpenService, ollama: OllamaDouble) -> OpenService:
    return lambda **settings: open_service(chat_provider="ollama", ollama_url=ollama.url, **settings)


SETS = ["a table", *(pytest.param(name, marks=pytest.mark.slow) for name in (*INDICES, "free_questions"))]


@pytest.mark.parametrize("provider", ["ollama", "openai_like"])
@pytest.mark.parametrize("name", SETS)
async def test_no_model_is_called_before_the_one_that_writes(
    open_service: OpenService, ollama: OllamaDouble, openai_server: OpenAIDouble, name: str, provider: str
) -> None:
    questions, files = questions_of(name)
    urls = {"ollama_url": ollama.url, "openai_url": openai_server.url}
    async with open_service(chat_provider=provider, judge="none", **urls) as service:
        await add(service, files)
        written = 0
        for question in questions:
            before = len(ollama.bodies(CHAT)) + len(openai_server.bodies(OPENAI_CHAT))
            answer = await service.engine.answer(Question(question, identity=LOCAL_ADMIN, threshold=0.01))
            made = len(ollama.bodies(CHAT)) + len(openai_server.bodies(OPENAI_CHAT)) - before
            assert purposes(answer) == ["answer"] * made, question
            assert made <= 1, question
            written += made
    assert written  # else the set would show nothing


async def test_a_follow_up_takes_one_call_more_which_is_short_and_sees_no_passage(
    with_ollama: OpenService, ollama: OllamaDouble
) -> None:
    async with with_ollama() as service:
        await add(service, [("leave.md", LEAVE.encode())])
        ollama.script(CHAT, chat(Say("When do unused days of vacation expire?")))
        query = Question("And when do they expire?", identity=LOCAL_ADMIN, turns=TURNS)
        answer = await service.engine.answer(query)
    assert purposes(answer)[:2] == ["rewrite", "answer"]
    assert purposes(answer)[1:] in WRITES
    rewriting, _ = ollama.bodies(CHAT)
    assert rewriting["options"]["num_predict"] <= 60
    assert "31 March" not in json.dumps(rewriting["messages"])


async def test_an_agents_follow_up_counts_its_rewriting(with_ollama: OpenService, ollama: OllamaDouble) -> None:
    async with with_ollama() as service:
        await add(service, [("leave.md", LEAVE.encode())])
        corpus = await service.default_corpus(LOCAL_ADMIN)
        async with service.database.transaction(LOCAL_ADMIN) as connection:
            agent = await create_agent(connection, AgentSpec(name="leave", system_prompt="Answer."))
            await assign_corpus(connection, agent.id, corpus.id)
        query = ChatQuery(agent=agent, turns=TURNS, question="And when do they expire?", top_k=5)
        _, events = service.agent_chat.stream(query, LOCAL_ADMIN)
        (answer,) = [event.answer async for event in events if isinstance(event, AnswerComplete)]
    assert len(answer.calls) == len(ollama.bodies(CHAT)) + len(ollama.judge_requests)
    assert purposes(answer)[:2] == ["rewrite", "answer"]


async def test_the_calls_are_in_the_reply_the_record_and_the_metrics(
    with_ollama: OpenService, ollama: OllamaDouble
) -> None:
    ollama.answer = "Each year staff get 25 vacation days [C1]."  # reworded: the judge is asked
    async with with_ollama() as service:
        await add(service, [("leave.md", LEAVE.encode())])
        answer = await service.engine.answer(Question(ASKED, identity=LOCAL_ADMIN))
        record = await service.read_answer(answer.id, LOCAL_ADMIN)
        metrics = service.metrics.render().decode()
    assert purposes(answer) == ["answer", "judge"]
    assert len(ollama.judge_requests) == 1
    timings = present_answer(answer).timings
    assert [call.purpose for call in timings.model_calls] == ["answer", "judge"]
    assert all(0 < (call.first_token_ms or 0) <= call.total_ms for call in timings.model_calls)
    assert timings.retrieval_ms > 0
    assert [call["purpose"] for call in record["modelCalls"]] == ["answer", "judge"]
    for purpose in ("answer", "judge"):
        assert f'rag_model_call_seconds_count{{purpose="{purpose}"}} 1.0' in metrics


async def test_a_call_that_fails_is_counted_and_quoting_is_none(with_ollama: OpenService, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, failure(500))
    async with with_ollama() as service:
        await add(service, [("leave.md", LEAVE.encode())])
        answer = await service.engine.answer(Question(ASKED, identity=LOCAL_ADMIN))
    assert answer.model_error is not None
    assert purposes(answer) == ["answer"]
    assert answer.calls[0].first_token_ms is None
