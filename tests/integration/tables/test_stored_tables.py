"""Tables are stored, seen, replaced and deleted with their document, and computed under the caller's identity."""

from __future__ import annotations

import json
from types import CodeType
from typing import Any
from uuid import UUID

import psycopg
import pytest

from evals.sets.files import make_workbook
from evals.trace import find_functions, traced
from rag_service.answering.drafts.events import AnswerComplete, AnswerDelta, CitationChecked, SourcesFound
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, CitationStatus, Decision, Identity, ProofMethod, Role
from rag_service.readers.common import builder
from rag_service.retrieval.question import Question
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.accounts.users import create_user
from rag_service.store.documents.documents import DocumentInput, delete_document, read_text
from rag_service.store.embedded import EmbeddedServer
from rag_service.tables import encoding
from rag_service.tables.asking.answers import STATEMENT_MS, TableAnswers
from rag_service.tables.storage import find_examples, find_tables, find_values
from tests.conftest import FakeEmbedding
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.conftest import files_of, is_computed
from tests.integration.tenancy.web import client_of, real_application
from tests.statements import WatchedDatabase, find_seq_scans

__all__ = ["ingest", "open_service", "service"]  # fixtures

QUESTION = "What is the total stock of tents?"
CSV = "Tent;Stock;Colour\nAlpina;4;red\nDuna;5;blue\nBorealis;6;red\n"


def tents() -> bytes:
    return files_of("team_sheets", "tents.xlsx")["tents.xlsx"]


async def ask(service: Components, question: str, identity: Identity = LOCAL_ADMIN, **options: Any) -> Answer:
    return await service.engine.answer(Question(question, identity=identity, **options))


async def new_user(service: Components, name: str) -> Identity:
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        user = await create_user(connection, name=name, role=Role.USER)
    return Identity(user_id=user.id)


def counts(server: EmbeddedServer) -> tuple[int, int]:
    with psycopg.connect(server.owner_conninfo, autocommit=True) as owner:
        row = owner.execute(
            "SELECT (SELECT count(*) FROM rag.tables), (SELECT count(*) FROM rag.table_rows)"
        ).fetchone()
    assert row is not None
    return row


async def test_the_answer_names_operation_cells_and_formula(service: Components, ingest: Ingest) -> None:
    await ingest(tents(), "tents.xlsx")
    answer = await ask(service, QUESTION)
    assert answer.text == "The total of “Stock” is 107 over 7 rows [C1]."
    (citation,) = answer.citations
    assert (citation.status, citation.method) == (CitationStatus.VERIFIED, ProofMethod.COMPUTED)
    assert citation.formula == "SUM(E2:E8) = 107"
    assert citation.location is not None
    assert (citation.location.sheet, citation.location.cell, citation.location.row) == ("Tents", "E2:E8", 2)
    assert (citation.sentence_start, citation.sentence_end) == (0, len(answer.text))
    assert citation.chunk_id in {hit.chunk.id for hit in answer.shown}
    assert answer.decision is Decision.CAN_PROCEED
    assert (answer.tokens.prompt, answer.tokens.completion) == (0, 0)
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        text = await read_text(connection, citation.document_id or UUID(int=0))
    assert text is not None
    assert citation.quote == text[citation.start : citation.end]


@pytest.mark.parametrize("long", ["9" * 40, "7" * 400, "0." + "0" * 400 + "1"])
async def test_a_number_too_long_to_compute_with_is_left_out(service: Components, ingest: Ingest, long: str) -> None:
    rows = "".join(f"{name};{stock}\n" for name, stock in (("Alpina", 4), ("Duna", 5), ("Lupo", 6), ("Rio", 9)))
    await ingest(f"Tent;Stock\n{rows}Nube;{long}\n", "tents.csv")
    for question, value in (("What is the average stock?", "6"), ("What is the median stock?", "5.5")):
        answer = await ask(service, question)
        assert f"is {value} over 4 rows" in answer.text
        assert answer.text.endswith("Left out, without a figure in “Stock”: B6.")


async def test_the_stream_and_the_record_hold_the_same_answer(service: Components, ingest: Ingest) -> None:
    await ingest(tents(), "tents.xlsx")
    events = [event async for event in service.engine.stream(Question(QUESTION, identity=LOCAL_ADMIN))]
    kinds = [type(event) for event in events]
    assert kinds == [SourcesFound, AnswerDelta, CitationChecked, AnswerComplete]
    complete = events[-1]
    assert isinstance(complete, AnswerComplete)
    record = await service.read_answer(complete.answer.id, LOCAL_ADMIN)
    assert record["answer"] == complete.answer.text
    assert record["citations"][0]["method"] == "computed"
    assert record["citations"][0]["formula"] == "SUM(E2:E8) = 107"
    assert await service.replay(complete.answer.id, LOCAL_ADMIN) == []


async def test_another_user_s_tables_are_never_used(service: Components) -> None:
    ana, ben = await new_user(service, "ana"), await new_user(service, "ben")
    await service.ingest(DocumentInput(data=CSV.encode(), file_name="tents.csv"), ana)
    own = await ask(service, QUESTION, ana)
    assert is_computed(own)
    assert "15" in own.text
    other = await ask(service, QUESTION, ben)
    assert not is_computed(other)
    assert "15" not in other.text
    # Even a passage of another's document in hand gives nothing.
    tables = TableAnswers(service.database)
    assert await tables.compute(QUESTION, own.sources, language="en", identity=ana) is not None
    assert await tables.compute(QUESTION, own.sources, language="en", identity=ben) is None
    async with service.database.transaction(ana) as connection:
        (table,) = await find_tables(connection, [own.sources[0].chunk.document.id])
        assert await find_values(connection, [table.id], ["red"], whole=["red"]) != {}
    async with service.database.transaction(ben) as connection:
        assert await find_tables(connection, [own.sources[0].chunk.document.id]) == []
        assert await find_values(connection, [table.id], ["red"], whole=["red"]) == {}
        assert await find_examples(connection, [table.id]) == {}
        cursor = await connection.execute("SELECT (SELECT count(*) FROM tables), (SELECT count(*) FROM table_rows)")
        assert await cursor.fetchone() == (0, 0)


async def test_another_user_cannot_write_into_a_table(service: Components) -> None:
    ana, ben = await new_user(service, "ana"), await new_user(service, "ben")
    await service.ingest(DocumentInput(data=CSV.encode(), file_name="tents.csv"), ana)
    async with service.database.transaction(ana) as connection:
        cursor = await connection.execute("SELECT id, corpus_id FROM tables")
        row = await cursor.fetchone()
    assert row is not None
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with service.database.transaction(ben) as connection:
            await connection.execute(
                "INSERT INTO table_rows (table_id, number, corpus_id, is_data, is_heading, cells)"
                " VALUES (%s, 99, %s, true, false, '[]')",
                list(row),
            )


async def test_tables_are_replaced_and_deleted_with_their_document(
    service: Components, ingest: Ingest, database_server: EmbeddedServer
) -> None:
    first = await ingest(CSV, "tents.csv")
    assert counts(database_server) == (1, 3)
    await ingest(CSV + "Everest;7;green\n", "tents.csv")
    assert counts(database_server) == (1, 4)
    assert "22" in (await ask(service, QUESTION)).text
    await ingest("Tents are sold out.", "tents.csv")
    assert counts(database_server) == (0, 0)
    await ingest(CSV, "tents.csv")
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        assert await delete_document(connection, first.document_id)
    assert counts(database_server) == (0, 0)


async def test_an_expired_document_is_not_computed_with(
    service: Components, ingest: Ingest, database_server: EmbeddedServer
) -> None:
    document = await ingest(CSV, "tents.csv")
    before = await ask(service, QUESTION)
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as owner:
        owner.execute("UPDATE rag.documents SET expires_at = now() - interval '1 second'")
    assert (
        await TableAnswers(service.database).compute(QUESTION, before.sources, language="en", identity=LOCAL_ADMIN)
        is None
    )
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        assert await find_tables(connection, [document.document_id]) == []
    assert not is_computed(await ask(service, QUESTION))


async def test_text_of_documents_and_questions_never_becomes_sql(
    service: Components, ingest: Ingest, database_server: EmbeddedServer
) -> None:
    for value in ("'; DROP TABLE rag.tables; --", "%(table)s", "{rows}", "red' OR '1'='1", "$1", "\\'; SELECT 1"):
        rows = [("Tent", f"Stock {value}", "Colour"), ("Alpina", 4, value), ("Duna", 5, "blue"), (value, 6, "red")]
        await ingest(make_workbook({"Tents": rows}), "tents.xlsx")
        for question in (f"What is the total stock of {value}?", f"How many tents are {value}?", f"stock {value} > 3?"):
            await ask(service, question)
        assert counts(database_server) == (1, 3)
        assert "15" in (await ask(service, QUESTION)).text


async def test_without_cells_among_the_passages_the_database_is_not_asked(service: Components, ingest: Ingest) -> None:
    await ingest("# Tents\n\nThe total stock of tents is told in the sheet.", "note.md")
    watched = WatchedDatabase(service.database)
    hits = (await service.engine.search(Question(QUESTION, identity=LOCAL_ADMIN))).passages
    assert hits
    assert await TableAnswers(watched).compute(QUESTION, hits, language="en", identity=LOCAL_ADMIN) is None
    assert watched.seen == []


async def test_no_statement_reads_all_tables_and_all_have_a_time_limit(service: Components, ingest: Ingest) -> None:
    await ingest(CSV, "tents.csv")
    watched = WatchedDatabase(service.database)
    hits = (await service.engine.search(Question(QUESTION, identity=LOCAL_ADMIN))).passages
    assert await TableAnswers(watched).compute(QUESTION, hits, language="en", identity=LOCAL_ADMIN) is not None
    limits = [one for one in watched.seen if "statement_timeout" in one.query]
    assert limits[0].query == f"SET LOCAL statement_timeout = {STATEMENT_MS}"
    assert watched.seen.index(limits[0]) == 0
    statements = [one for one in watched.seen if one not in limits]
    assert len(statements) == 5  # tables, values, the operation, the place of its cells, the quote
    assert await find_seq_scans(service.database, LOCAL_ADMIN, statements) == []


async def test_a_question_that_shares_no_cell_is_looked_at_once(service: Components, ingest: Ingest) -> None:
    """What asks for no operation is read on only if a table may hold one of its words."""
    await ingest(CSV, "tents.csv")
    hits = (await service.engine.search(Question(QUESTION, identity=LOCAL_ADMIN))).passages
    count = []
    for question in ("Where is the tent dried?", "Which tent is red?"):
        watched = WatchedDatabase(service.database)
        await TableAnswers(watched).compute(question, hits, language="en", identity=LOCAL_ADMIN)
        assert await find_seq_scans(service.database, LOCAL_ADMIN, watched.seen[1:]) == []
        count.append(len(watched.seen))
    assert count[0] == 2 < count[1]  # the time limit, and whether a cell is shared


@pytest.mark.parametrize(
    ("file", "question"),
    [("tents.csv", "Where is the tent dried?"), ("note.md", QUESTION)],
    ids=["no cell is shared", "no table is found"],
)
async def test_a_question_that_no_table_answers_runs_one_module_of_tables(
    service: Components, ingest: Ingest, file: str, question: str
) -> None:
    await ingest({"tents.csv": CSV, "note.md": "The total stock of tents is told in the sheet."}[file], file)
    seen: set[CodeType] = set()
    with traced(seen):
        await ask(service, question)
    assert [name for name in find_functions(seen) if name.startswith("tables/")] == ["tables/asking/answers.py"]


@pytest.mark.slow
async def test_a_large_table_is_computed_in_time(service: Components, ingest: Ingest) -> None:
    lines = [f"Tent {number};{number % 97};{'red' if number % 3 else 'blue'}" for number in range(20_000)]
    await ingest("Tent;Stock;Colour\n" + "\n".join(lines), "tents.csv")
    answer = await ask(service, QUESTION)
    assert answer.citations[0].formula == f"SUM(B2:B20001) = {sum(number % 97 for number in range(20_000)):,}"
    assert len(answer.citations[0].quote or "") <= 1_000
    assert answer.latency_ms < STATEMENT_MS
    assert "is 13333 [C1]" in (await ask(service, "How many rows are red?")).text.replace(",", "")
    assert (await ask(service, "What is the stock of Tent 777?")).text == "“Stock” of Tent 777: 1 [C1]."


@pytest.mark.parametrize("rows", [1_200, pytest.param(80_000, marks=pytest.mark.slow)])  # of three cells
async def test_a_file_with_too_many_rows_for_its_text_is_computed_whole(
    service: Components, database_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    if rows < 10_000:  # the limits are as much lower
        monkeypatch.setattr(builder, "MAX_SPANS", 4_500)
        monkeypatch.setattr(encoding, "_MAX_TEXTS", 1_000)
    ana, ben = await new_user(service, "ana"), await new_user(service, "ben")
    lines = "".join(f"Tent {number};{number % 97};{'red' if number % 3 else 'blue'}\n" for number in range(rows))
    source = DocumentInput(data=f"Tent;Stock;Colour\n{lines}".encode(), file_name="tents.csv")
    done = await service.ingest(source, ana)
    assert done.warnings == (
        "Only the first 1,000 rows can be found by their words, because the file has too many rows. "
        "Calculations and look-ups use all rows.",
    )
    answer = await ask(service, QUESTION, ana)
    total = sum(number % 97 for number in range(rows))
    assert answer.text == f"The total of “Stock” is {total:,} over {rows:,} rows [C1]."
    (citation,) = answer.citations
    assert (citation.formula, citation.start is None) == (f"SUM(B2:B{rows + 1}) = {total:,}", False)
    answer = await ask(service, f"What is the stock of Tent {rows - 2}?", ana)
    assert (answer.text, answer.decision) == (
        f"“Stock” of Tent {rows - 2}: {(rows - 2) % 97} [C1].",
        Decision.CAN_PROCEED,
    )
    (citation,) = answer.citations
    assert citation.location is not None
    assert (citation.location.cell, citation.location.row) == (f"B{rows}", rows)
    assert (citation.quote, citation.start, citation.end) == (
        f"Tent: Tent {rows - 2} | Stock: {(rows - 2) % 97}",
        None,
        None,
    )
    assert citation.chunk_id is None
    record = await service.read_answer(answer.id, ana)
    assert record["citations"][0]["quote"] == citation.quote
    answer = await ask(service, f"What colour is TENT-{rows - 3}?", ana)
    assert "do not mention" not in answer.text
    assert ("blue" if (rows - 3) % 3 else "red") not in answer.text
    answer = await ask(service, "How many tents have a stock of 96 and are red?", ana)
    assert f"{sum(number % 97 == 96 and number % 3 > 0 for number in range(rows))}" in answer.text
    assert not is_computed(await ask(service, QUESTION, ben))
    assert counts(database_server)[1] == rows
    async with service.database.transaction(ana) as connection:
        await delete_document(connection, done.document_id)
    assert counts(database_server) == (0, 0)


async def test_rest_gives_method_formula_and_place(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding
) -> None:
    async with real_application(database_server, fake_embedding) as (application, components):
        async with components.database.transaction(LOCAL_ADMIN) as connection:
            _, key = await create_key(connection, user_id=LOCAL_ADMIN.user_id, name="k", scopes=ALL_SCOPES)
        await components.ingest(DocumentInput(data=tents(), file_name="tents.xlsx"), LOCAL_ADMIN)
        body = {"query": "What is the total stock of tents?"}
        async with client_of(application, key) as client:
            answer = (await client.post("/api/v1/query/answer", json=body)).json()
            streamed = await client.post("/api/v1/query/answer/stream", json=body)
    citation = answer["citations"][0]
    assert answer["decision"] == "can_proceed"
    assert (citation["status"], citation["method"]) == ("verified", "computed")
    assert citation["formula"] == "SUM(E2:E8) = 107"
    assert citation["place"] == "tents.xlsx, sheet Tents, cells E2:E8"
    assert json.dumps("SUM(E2:E8) = 107") in streamed.text
