"""Operations proposed by a chat model: right ones are computed, wrong ones are never certain, none becomes SQL."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Decision
from rag_service.retrieval.query import RagQuery
from rag_service.store.embedded import EmbeddedServer
from rag_service.tables.asking.answers import TableAnswers
from rag_service.tables.asking.proposals import ProposalError, read_proposal
from rag_service.tables.storage import find_tables
from tests.doubles.ollama import OllamaDouble, ollama
from tests.integration.answers.conftest import Ingest, OpenService, ingest, open_service
from tests.integration.tables.free_questions import FREE, OPERATIONS, free_files
from tests.integration.tables.questions import TRICKY, Asked
from tests.integration.tables.sheets import files
from tests.integration.tables.test_stored_tables import ask, computed, counts
from tests.statements import WatchedDatabase

__all__ = ["ingest", "ollama", "open_service"]  # fixtures

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


def right_operation(body: Body) -> str:
    """What a model that understands writes, its columns by the names that the message gives them."""
    asked = json.loads(body["messages"][1]["content"])
    wanted = OPERATIONS.get(asked["question"])
    if wanted is None:
        return json.dumps({"operation": "none", "table": 1})
    document, operation = wanted
    table = next(one for one in asked["tables"] if one["document"] == document)
    names = {column["name"]: column["column"] for column in table["columns"]}
    filters = [
        {"column": names[column], "comparison": comparison, "values": values}
        for column, comparison, values in operation.get("filters", ())
    ]
    named = {key: names[operation[key]] for key in ("column", "group") if key in operation}
    return json.dumps(operation | named | {"filters": filters, "table": table["table"]})


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


def is_right(asked: Asked, text: str) -> bool:
    return asked.value is not None and any(value in text for value in asked.value.split("|"))


async def test_right_operations_answer_freely_put_questions(
    service: Components, ingest: Ingest, ollama: OllamaDouble
) -> None:
    for file_name, data in free_files().items():
        await ingest(data, file_name)
    ollama.answer = lambda body: right_operation(body) if is_proposal(body) else NO_ANSWER
    missed, false = [], []
    for asked in FREE:
        answer = await ask(service, asked.question)
        right = computed(answer) and is_right(asked, answer.text)
        if not right and asked.value is not None:
            missed.append((asked.question, answer.text))
        if computed(answer) and not right and answer.decision is Decision.CAN_PROCEED:
            false.append((asked.question, answer.text))
    assert len(missed) <= (1 - MIN_RIGHT) * sum(asked.value is not None for asked in FREE), missed
    assert not false


async def test_wrong_operations_are_never_certain_and_never_become_sql(
    service: Components, ingest: Ingest, ollama: OllamaDouble, database_server: EmbeddedServer
) -> None:
    for file_name, data in files().items():
        await ingest(data, file_name)
    stored = counts(database_server)
    write = wrong_operations()
    ollama.answer = lambda body: write(body) if is_proposal(body) else NO_ANSWER
    for asked in TRICKY:
        answer = await ask(service, asked.question)
        certain = computed(answer) and answer.decision is Decision.CAN_PROCEED
        assert not certain or is_right(asked, answer.text), (asked.question, answer.text)
    assert sum(map(is_proposal, ollama.bodies("/api/chat"))) > len(TRICKY) / 2  # else nothing was tried
    assert counts(database_server) == stored


async def test_a_proposal_runs_no_other_statements_than_the_grammar(service: Components, ingest: Ingest) -> None:
    await ingest(files()["tents.xlsx"], "tents.xlsx")
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


@pytest.mark.parametrize(
    "reply",
    [
        SQL,
        "[]",
        '{"operation": "sum", "table": 2, "column": "1E"}',
        '{"operation": "sum", "table": 1, "column": "1Z"}',
        '{"operation": "sum", "table": 1, "column": "E); DROP TABLE tables"}',
        '{"operation": "drop", "table": 1}',
        '{"operation": "mean", "table": 1, "column": "1A"}',
        '{"operation": "difference", "table": 1, "column": "1E"}',
        '{"operation": "lookup", "table": 1, "column": "1E"}',
        '{"operation": "count", "table": 1, "filters": [{"column": "1C", "comparison": ">", "values": ["NaN"]}]}',
        '{"operation": "count", "table": 1, "filters": [{"column": "1C", "comparison": ">", "values": ["1 OR 1=1"]}]}',
        '{"operation": "count", "table": 1, "filters": [{"column": "1A", "comparison": ">", "values": ["x"]}]}',
        '{"operation": "count", "table": 1, "where": "1=1"}',
    ],
)
async def test_what_cannot_be_done_is_refused(service: Components, ingest: Ingest, reply: str) -> None:
    document = (await ingest(files()["tents.xlsx"], "tents.xlsx")).document_id
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        tables = await find_tables(connection, [document])
    with pytest.raises(ProposalError):
        read_proposal(reply, tables)
