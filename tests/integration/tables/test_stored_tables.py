"""Tables are stored, seen, replaced and deleted with their document, and computed under the caller's identity."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from rag_service.answering.events import AnswerComplete, AnswerDelta, CitationChecked, SourcesFound
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, CitationStatus, Decision, Identity, ProofMethod, Role
from rag_service.retrieval.query import RagQuery
from rag_service.store.accounts.users import create_user
from rag_service.store.documents.documents import DocumentInput, delete_document, read_text
from rag_service.store.embedded import EmbeddedServer
from rag_service.tables.asking.answers import TableAnswers
from rag_service.tables.asking.execute import STATEMENT_MS
from rag_service.tables.storage import find_examples, find_tables, find_values
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.sheets import TENTS, workbook
from tests.statements import WatchedDatabase, find_seq_scans

__all__ = ["ingest", "open_service", "service"]  # fixtures

QUESTION = "What is the total stock of tents?"
CSV = "Tent;Stock;Colour\nAlpina;4;red\nDuna;5;blue\nBorealis;6;red\n"


async def ask(service: Components, question: str, identity: Identity = LOCAL_ADMIN, **options: Any) -> Answer:
    return await service.engine.answer(RagQuery(question, identity=identity, **options))


def computed(answer: Answer) -> bool:
    return any(citation.method is ProofMethod.COMPUTED for citation in answer.citations)


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
    await ingest(workbook({"Tents": TENTS}), "tents.xlsx")
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
    await ingest(workbook({"Tents": TENTS}), "tents.xlsx")
    events = [event async for event in service.engine.stream(RagQuery(QUESTION, identity=LOCAL_ADMIN))]
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
    assert computed(own)
    assert "15" in own.text
    other = await ask(service, QUESTION, ben)
    assert not computed(other)
    assert "15" not in other.text
    # Even a passage of another's document in hand gives nothing.
    tables = TableAnswers(service.database)
    assert await tables.compute(QUESTION, own.sources, language="en", identity=ana) is not None
    assert await tables.compute(QUESTION, own.sources, language="en", identity=ben) is None
    told: list[Any] = []

    async def model(messages: Any, schema: Any) -> str:
        told.append((messages, schema))
        return '{"operation": "count", "table": 1}'

    free = "Whose tents would be worth most altogether?"
    assert await tables.compute(free, own.sources, language="en", identity=ben, ask=model) is None
    assert told == []
    assert await tables.compute(free, own.sources, language="en", identity=ana, ask=model) is not None
    assert len(told) == 1
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
    assert not computed(await ask(service, QUESTION))


@pytest.mark.parametrize(
    "value",
    ["'; DROP TABLE rag.tables; --", "%(table)s", "{rows}", "red' OR '1'='1", "$1", "\\'; SELECT 1"],
)
async def test_text_of_documents_and_questions_never_becomes_sql(
    service: Components, ingest: Ingest, database_server: EmbeddedServer, value: str
) -> None:
    rows = [("Tent", f"Stock {value}", "Colour"), ("Alpina", 4, value), ("Duna", 5, "blue"), (value, 6, "red")]
    await ingest(workbook({"Tents": rows}), "tents.xlsx")
    for question in (f"What is the total stock of {value}?", f"How many tents are {value}?", f"stock {value} > 3?"):
        await ask(service, question)
    assert counts(database_server) == (1, 3)
    assert "15" in (await ask(service, QUESTION)).text


async def test_without_cells_among_the_passages_the_database_is_not_asked(service: Components, ingest: Ingest) -> None:
    await ingest("# Tents\n\nThe total stock of tents is told in the sheet.", "note.md")
    watched = WatchedDatabase(service.database)
    hits = await service.engine.search(RagQuery(QUESTION, identity=LOCAL_ADMIN))
    assert hits
    assert await TableAnswers(watched).compute(QUESTION, hits, language="en", identity=LOCAL_ADMIN) is None
    assert watched.seen == []


async def test_no_statement_reads_all_tables_and_all_have_a_time_limit(service: Components, ingest: Ingest) -> None:
    await ingest(CSV, "tents.csv")
    watched = WatchedDatabase(service.database)
    hits = await service.engine.search(RagQuery(QUESTION, identity=LOCAL_ADMIN))
    assert await TableAnswers(watched).compute(QUESTION, hits, language="en", identity=LOCAL_ADMIN) is not None
    limits = [one for one in watched.seen if "statement_timeout" in one.query]
    assert limits[0].query == f"SET LOCAL statement_timeout = {STATEMENT_MS}"
    assert watched.seen.index(limits[0]) == 0
    statements = [one for one in watched.seen if one not in limits]
    assert len(statements) == 5  # tables, values, the operation, the place of its cells, the quote
    assert await find_seq_scans(service.database, LOCAL_ADMIN, statements) == []


async def test_a_threshold_of_the_request_cuts_tables_as_well(service: Components, ingest: Ingest) -> None:
    await ingest(CSV, "tents.csv")
    assert not computed(await ask(service, QUESTION, threshold=1.0))


async def test_figures_that_are_none_are_left_out_and_told(service: Components, ingest: Ingest) -> None:
    rows = [("Tent", "Stock"), ("Alpina", 4), ("Duna", "#DIV/0!"), ("Borealis", 6), ("Everest", 7), ("Camper", 8)]
    await ingest(workbook({"Tents": rows}), "tents.xlsx")
    answer = await ask(service, QUESTION)
    assert answer.text == ("The total of “Stock” is 25 over 4 rows [C1].\nLeft out, without a figure in “Stock”: B3.")
    assert answer.citations[0].formula == "SUM(B2,B4:B6) = 25"


async def test_mixed_currencies_are_told_and_not_summed(service: Components, ingest: Ingest) -> None:
    await ingest("Tent;Colour;Price\nAlpina;red;12 €\nDuna;blue;$15\nBorealis;red;9 €\n", "tents.csv")
    answer = await ask(service, "What is the total price of the tents?")
    assert "mixes currencies ($, €)" in answer.text
    assert answer.decision is not Decision.CAN_PROCEED


async def test_two_columns_that_fit_are_both_told(service: Components, ingest: Ingest) -> None:
    await ingest("Service;Budget 2024;Budget 2025\nSales;10;20\nHR;5;6\n", "budget.csv")
    answer = await ask(service, "What is the total budget?")
    assert "The total of “Budget 2024” is 15" in answer.text
    assert "The total of “Budget 2025” is 26" in answer.text
    assert answer.decision is Decision.UNCERTAIN


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


HOLIDAYS = "Name;Site;Vacation days\nAna;Lugo;12\nBea;Lugo;9\nCarla;Vigo;14\n"
ORDERS = "Supplier;Amount;Currency\nAcme;100;EUR\nBorg;250;USD\nCole;80;EUR\nTotal;430;\n"


@pytest.mark.parametrize(
    ("question", "said", "certain"),
    [
        ("How many vacation days do employees get?", "", False),  # a rule tells, not the sum
        ("How many vacation days in total?", "is 35", True),
        ("What is the salary of Ana?", "", False),  # there is no such column
        ("What is the total amount?", "mixes currencies ($, €)", False),
        ("What is the total amount in EUR?", "180", True),
        ("How many suppliers are there?", "3", True),  # the total is none of them
    ],
)
async def test_what_rows_do_not_prove_is_not_certain(
    service: Components, ingest: Ingest, question: str, said: str, certain: bool
) -> None:
    await ingest("Every employee gets 25 vacation days a year.", "rules.md")
    await ingest(HOLIDAYS, "holidays.csv")
    await ingest(ORDERS, "orders.csv")
    answer = await ask(service, question)
    assert said in answer.text
    assert (answer.decision is Decision.CAN_PROCEED) is certain, answer.text


@pytest.mark.slow
async def test_a_file_with_too_many_rows_for_its_text_is_computed_whole(
    service: Components, database_server: EmbeddedServer
) -> None:
    rows = 80_000  # of three cells: more than the text of a document may have
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
    assert answer.text == f"The total of “Stock” is {total:,} over 80,000 rows [C1]."
    (citation,) = answer.citations
    assert (citation.formula, citation.start is None) == (f"SUM(B2:B80001) = {total:,}", False)
    answer = await ask(service, "What is the stock of Tent 79998?", ana)
    assert (answer.text, answer.decision) == ("“Stock” of Tent 79998: 70 [C1].", Decision.CAN_PROCEED)
    (citation,) = answer.citations
    assert citation.location is not None
    assert (citation.location.cell, citation.location.row) == ("B80000", 80_000)
    assert (citation.quote, citation.start, citation.end) == ("Tent: Tent 79998 | Stock: 70", None, None)
    assert citation.chunk_id is None
    record = await service.read_answer(answer.id, ana)
    assert record["citations"][0]["quote"] == citation.quote
    answer = await ask(service, "What colour is TENT-79997?", ana)
    assert "do not mention" not in answer.text
    assert "blue" not in answer.text
    answer = await ask(service, "How many tents have a stock of 96 and are red?", ana)
    assert f"{sum(number % 97 == 96 and number % 3 > 0 for number in range(rows))}" in answer.text
    assert not computed(await ask(service, QUESTION, ben))
    assert counts(database_server)[1] == rows
    async with service.database.transaction(ana) as connection:
        await delete_document(connection, done.document_id)
    assert counts(database_server) == (0, 0)
