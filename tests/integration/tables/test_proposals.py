"""Operations proposed by a chat model: right ones are computed, wrong ones are never certain, none becomes SQL."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from evals.sets.measure import is_said
from evals.sets.questions import read_set
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Decision
from rag_service.retrieval.query import RagQuery
from rag_service.store.embedded import EmbeddedServer
from rag_service.tables.asking.answers import TableAnswers
from tests.doubles.ollama import OllamaDouble, ollama
from tests.integration.answers.conftest import Ingest, OpenService, ingest, open_service
from tests.integration.tables.conftest import is_computed
from tests.integration.tables.test_stored_tables import ask, counts, tents
from tests.statements import WatchedDatabase

__all__ = ["ingest", "ollama", "open_service"]  # fixtures

FREE, TEAM = read_set("free_questions"), read_set("team_sheets")
MIN_RIGHT = 0.97  # of the questions that the files answer, by a model that writes the right operation
NO_ANSWER = "I do not know."
SQL = "'; DROP TABLE rag.tables; --"
Body = dict[str, Any]


@pytest.fixture
async def service(open_service: OpenService, ollama: OllamaDouble) -> AsyncIterator[Components]:
    async with open_service(
        chat_provider="ollama", model_name="llama3.2", ollama_url=ollama.url, fit_relevance=False
    ) as components:
        yield components


def is_proposal(body: Body) -> bool:
    return "filters" in (body.get("format") or {}).get("properties", {})


def right_operations() -> Callable[[Body], str]:
    """What a model that understands writes, its columns by the names that the message gives them."""
    questions = {one.text: one for one in FREE.questions}

    def write(body: Body) -> str:
        asked = json.loads(body["messages"][1]["content"])
        question = questions[asked["question"]]
        if question.operation is None:
            return json.dumps({"operation": "none", "table": 1})
        table = next(one for one in asked["tables"] if one["document"] in question.documents)
        names = {column["name"]: column["column"] for column in table["columns"]}
        filters = [
            {"column": names[column], "comparison": comparison, "values": values}
            for column, comparison, values in question.operation.get("filters", ())
        ]
        named = {key: names[question.operation[key]] for key in ("column", "group") if key in question.operation}
        return json.dumps({**question.operation, **named, "filters": filters, "table": table["table"]})

    return write


def wrong_operations() -> Callable[[Body], str]:
    """Other columns of the right kind, SQL, and nonsense, in turn."""
    turns = itertools.count()

    def write(body: Body) -> str:
        turn = next(turns)
        columns = body["format"]["properties"]["column"]["anyOf"][0]["enum"]
        column = columns[turn % len(columns)]
        operation = ("sum", "count", "maximum", "lookup", "mean", "distinct")[turn % 6]
        example = json.loads(body["messages"][1]["content"])["tables"][0]["columns"][0]
        kept = [{"column": example["column"], "comparison": "=", "values": example["examples"][:1]}]
        return (
            json.dumps({"operation": operation, "table": 1, "column": column, "filters": kept * (turn % 2)}),
            json.dumps({"operation": operation, "table": 1, "column": SQL, "filters": []}),
            json.dumps({"operation": SQL, "table": 1}),
            json.dumps({"operation": "count", "table": 1, "filters": [kept[0] | {"values": [SQL]}]}),
            "SELECT sum(stock) FROM tables",
        )[turn % 5 if turn % 2 else 0]

    return write


async def test_a_right_operation_is_computed_and_uncertain(
    service: Components, ingest: Ingest, ollama: OllamaDouble
) -> None:
    await ingest(FREE.read_file("volunteers.csv"), "volunteers.csv")
    write = right_operations()
    ollama.answer = lambda body: write(body) if is_proposal(body) else NO_ANSWER
    answer = await ask(service, "Who has been with us the longest?")
    assert "2015-06-11: Old Bill" in answer.text
    assert is_computed(answer)
    assert answer.decision is Decision.UNCERTAIN


@pytest.mark.slow
async def test_right_operations_answer_freely_put_questions(
    service: Components, ingest: Ingest, ollama: OllamaDouble
) -> None:
    for name in FREE.file_names:
        await ingest(FREE.read_file(name), name)
    write = right_operations()
    ollama.answer = lambda body: write(body) if is_proposal(body) else NO_ANSWER
    missed, false = [], []
    for asked in FREE.questions:
        answer = await ask(service, asked.text)
        right = is_computed(answer) and is_said(asked, answer.text)
        if asked.answers and not right:
            missed.append((asked.text, answer.text))
        if is_computed(answer) and not right and answer.decision is Decision.CAN_PROCEED:
            false.append((asked.text, answer.text))
    assert len(missed) <= (1 - MIN_RIGHT) * sum(bool(asked.answers) for asked in FREE.questions), missed
    assert not false


@pytest.mark.parametrize("names", [["tents.xlsx"], pytest.param(TEAM.file_names, marks=pytest.mark.slow, id="all")])
async def test_wrong_operations_are_never_certain_and_never_become_sql(
    service: Components, ingest: Ingest, ollama: OllamaDouble, database_server: EmbeddedServer, names: list[str]
) -> None:
    for name in names:
        await ingest(TEAM.read_file(name), name)
    stored = counts(database_server)
    write = wrong_operations()
    ollama.answer = lambda body: write(body) if is_proposal(body) else NO_ANSWER
    questions = [asked for asked in TEAM.questions if not asked.answers and set(asked.documents) <= set(names)]
    for asked in questions:
        answer = await ask(service, asked.text)
        certain = is_computed(answer) and answer.decision is Decision.CAN_PROCEED
        assert not certain, (asked.text, answer.text)
    assert sum(map(is_proposal, ollama.bodies("/api/chat"))) > len(questions) / 2  # else nothing was tried
    assert counts(database_server) == stored


async def test_a_proposal_runs_no_other_statements_than_the_grammar(service: Components, ingest: Ingest) -> None:
    await ingest(tents(), "tents.xlsx")
    hits = await service.engine.search(RagQuery("tents", identity=LOCAL_ADMIN))
    replies = iter([json.dumps({"operation": "sum", "table": 1, "column": "1A"}), SUM_WHERE])

    async def model(messages: Any, schema: Any) -> str:
        return next(replies)

    watched = WatchedDatabase(service.database)
    question = "How much of it would the Lyon people still hold?"
    found = await TableAnswers(watched).compute(question, hits, language="en", identity=LOCAL_ADMIN, ask=model)
    assert found is not None
    assert found.computed.warning
    assert next(replies, None) is None  # the first could not be done, and was repaired
    sentences = [part for sentence in found.computed.sentences for part in sentence if isinstance(part, str)]
    assert any("is 34" in part for part in sentences)
    assert not any(SQL in one.query or "Lyon" in one.query for one in watched.seen)


SUM_WHERE = json.dumps(
    {
        "operation": "sum",
        "table": 1,
        "column": "1E",
        "filters": [{"column": "1F", "comparison": "=", "values": ["Lyon", SQL]}],
    }
)
