"""The tools work as their caller, inside the scope of the request, and never outside it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from rag_service.answering.tools.toolbox import Toolbox, ToolResult
from rag_service.api.http.services import Services
from rag_service.api.mcp.tools import TOOLS
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Filters, Identity, Role
from rag_service.errors import InputError
from rag_service.store.documents.documents import DocumentInput
from tests.integration.answers.conftest import Ingest
from tests.integration.tables.test_stored_tables import tents

LEAVE = "# Leave policy\n\n## Vacation\n\nEmployees receive 25 days of vacation.\n"
LEAVE += "\n## Sick leave\n\nA certificate is due.\n"
SECRET = "# Salaries\n\nThe salary of employee Vera is 91,000 euros; vacation is paid.\n"
ADDRESS = "https://example.org/rag"  # of the service
SQL = "'; DROP TABLE rag.tables; --"


def names(found: ToolResult) -> set[str | None]:
    return {hit.chunk.document.file_name for hit in found.hits}


@pytest.fixture
async def documents(service: Components, ingest: Ingest) -> dict[str, Any]:
    return {name: await ingest(text, name) for name, text in (("leave.md", LEAVE), ("salaries.md", SECRET))}


async def test_search_finds_and_narrows_to_documents_and_dates(service: Components, documents: Any) -> None:
    box = service.tools.of(LOCAL_ADMIN, threshold=0.01)
    assert names(await box.call("search", {"query": "vacation of employees"})) == {"leave.md", "salaries.md"}
    only = await box.call("search", {"query": "vacation of employees", "documents": ["Leave.md"]})
    assert names(only) == {"leave.md"}
    assert (await box.call("search", {"query": "vacation", "after": "2999-01-01"})).hits == ()
    assert names(await box.call("search", {"query": "vacation", "after": "2001-01-01", "before": "2999-01-01"}))


async def test_read_goes_on_where_it_ended_and_begins_at_a_heading(service: Components, ingest: Ingest) -> None:
    sections = "\n\n".join(f"## Chapter {number}\n\n" + f"Sentence about number {number}. " * 60 for number in range(6))
    await ingest(f"# Book\n\n{sections}", "book.md")
    box = service.tools.of(LOCAL_ADMIN)
    text, place = "", None
    for _ in range(20):
        found = await box.call("read", {"document": "book.md", "place": place}, max_tokens=500)
        text += "".join(hit.chunk.text for hit in found.hits)
        if found.next_part is None:
            break
        place = f"part {found.next_part}"
    assert text.count("Sentence about number") == 360
    (first, *_) = (await box.call("read", {"document": "book.md", "place": "chapter 4"}, max_tokens=10)).hits
    assert "number 4" in first.chunk.text
    with pytest.raises(InputError, match=r"Headings: .*Chapter 5"):
        await box.call("read", {"document": "book.md", "place": "Chapter 17"})


async def test_compute_runs_a_plan_with_the_cells_behind_it(service: Components, ingest: Ingest) -> None:
    await ingest(tents(), "tents.xlsx")
    box = service.tools.of(LOCAL_ADMIN, language="en")
    plan = {"document": "tents.xlsx", "operation": "sum", "column": "Stock"}
    where = [{"column": "Warehouse", "comparison": "=", "values": ["Lyon", SQL]}]
    found = await box.call("compute", plan | {"filters": where})
    assert "34" in found.text
    assert "Formula: SUM(" in found.text
    assert names(found) == {"tents.xlsx"}
    with pytest.raises(InputError, match=r"no such column. Table tents.xlsx(?s:.*)Warehouse") as caught:
        await box.call("compute", plan | {"column": SQL})
    assert SQL not in caught.value.message


async def test_a_tool_speaks_the_language_of_the_question(service: Components, documents: Any) -> None:
    box = service.tools.of(LOCAL_ADMIN, language="es", threshold=1.0)
    assert (await box.call("read", {"document": "leave.md"})).text == "Este es el final."
    assert (await box.call("search", {"query": "acordeones"})).text == "Ningún pasaje es lo bastante relevante."


STOCK = "Tool,In stock,Minimum,Shelf\nDrill,4,6,A1\nSaw,9,6,\nFile,2,2,B2\nRasp,1,3,\n"


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ({"operation": "count", "filters": [("In stock", "<", ["Minimum"])]}, " is 2."),  # a column with another
        ({"operation": "count", "filters": [("Shelf", "empty", [])]}, " is 2."),
        ({"operation": "count", "filters": [("Tool", "!=", ["Saw"])]}, " is 3."),
        ({"operation": "sum", "column": "In stock", "filters": [("Shelf", "not empty", [])]}, "6"),
        (
            {"operation": "lookup", "filters": [("Tool", "=", ["Drill"])]},
            "Tool: Drill | In stock: 4 | Minimum: 6 | Shelf: A1",  # the whole row
        ),
        ({"operation": "calculate", "expression": "(9 - 6) / 6"}, "(9 - 6) / 6 = 0.5"),
    ],
)
async def test_compute_compares_columns_finds_empty_cells_and_gives_whole_rows(
    service: Components, ingest: Ingest, operation: dict[str, Any], said: str
) -> None:
    await ingest(STOCK, "tools.csv")
    filters = [dict(zip(("column", "comparison", "values"), one, strict=True)) for one in operation.get("filters", ())]
    document = {} if operation["operation"] == "calculate" else {"document": "tools.csv", "filters": filters}
    found = await service.tools.of(LOCAL_ADMIN, language="en").call("compute", operation | document)
    assert said in found.text


async def test_no_tool_leaves_the_scope_of_the_request(service: Components, documents: Any) -> None:
    allowed = documents["leave.md"].document_id
    box = service.tools.of(LOCAL_ADMIN, Filters(document_ids=(allowed,)), threshold=0.0)
    assert names(await box.call("search", {"query": "salary of Vera"})) <= {"leave.md"}
    calls = {"search": {"query": "salary", "documents": ["salaries.md"]}, "read": {"document": "salaries.md"}}
    for tool, named in calls.items():
        with pytest.raises(InputError, match="no such document within reach"):
            await box.call(tool, named)
    other = replace(box, filters=Filters(corpus_ids=(uuid4(),)))
    with pytest.raises(InputError, match="no such document within reach"):
        await other.call("read", {"document": "leave.md"})


async def test_no_tool_shows_another_users_text(service: Components, documents: Any) -> None:
    ana, ben = (Identity(user_id=uuid4(), role=Role.USER) for _ in range(2))
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        for number, who in enumerate((ana, ben)):
            await connection.execute(
                "INSERT INTO users (id, name, role) VALUES (%s, %s, 'user')", [who.user_id, f"u{number}"]
            )
    diary = DocumentInput(data=b"# Diary\n\nAna's private note on vacation.", file_name="diary.md")
    private = await service.ingest(diary, ana)
    hers, his = (service.tools.of(who, threshold=0.0) for who in (ana, ben))
    assert "private" in (await hers.call("read", {"document": "diary.md"})).hits[0].chunk.text
    for named in ("diary.md", str(private.document_id)):
        with pytest.raises(InputError, match="no such document within reach"):
            await his.call("read", {"document": named})
    assert "diary.md" not in names(await his.call("search", {"query": "private note on vacation"}))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delete", {"document": "leave.md"}),
        ("search", {}),
        ("search", {"query": ""}),
        ("search", {"query": "x" * 1_000_000}),
        ("search", {"query": "x", "identity": "admin"}),
        ("search", {"query": "x", "corpus_ids": []}),
        ("search", {"query": "x", "after": "yesterday"}),
        ("read", {"document": "http://127.0.0.1/secret"}),
        ("read", {"document": "../../etc/passwd"}),
        ("read", {"document": SQL}),
        ("read", {"document": "leave.md", "place": SQL}),
        ("compute", {"document": "leave.md", "operation": "sum", "column": "A"}),
        ("compute", {"document": "leave.md", "operation": SQL}),
        ("compute", {"plan": "SELECT 1"}),
    ],
)
async def test_wrong_calls_are_refused_without_repeating_them(
    service: Components, documents: Any, tool: str, arguments: dict[str, Any]
) -> None:
    box: Toolbox = service.tools.of(LOCAL_ADMIN)
    with pytest.raises(InputError) as caught:
        await box.call(tool, arguments)
    assert len(caught.value.message) < 1_000
    assert SQL not in caught.value.message


async def test_mcp_gives_search_and_fetch_in_the_shape_of_chatgpts_connectors(
    service: Components, documents: Any
) -> None:
    services = Services(
        settings=service.settings, answer=None, search=service.engine.search, ingest=None, probes={},  # type: ignore[arg-type]
        authenticate=None, tools=service.tools,  # type: ignore[arg-type]
    )  # fmt: skip
    text, body = await TOOLS["search"].call(services, {"query": "How many days of vacation?"}, LOCAL_ADMIN, ADDRESS)
    found = json.loads(text)
    assert body is not None and set(found) == {"results"}
    assert {frozenset(item) for item in found["results"]} == {frozenset({"id", "title", "url"})}
    text, body = await TOOLS["fetch"].call(services, {"id": found["results"][0]["id"]}, LOCAL_ADMIN, ADDRESS)
    fetched = json.loads(text)
    assert set(fetched) == {"id", "title", "text", "url", "metadata"}
    assert "25 days of vacation" in fetched["text"]
    assert fetched["url"] == found["results"][0]["url"]
    assert fetched["url"].startswith(f"{ADDRESS}/api/v1/documents/")
    assert fetched["metadata"]["place"].startswith("leave.md")
    text, body = await TOOLS["read"].call(
        services, {"document": "leave.md", "place": "Sick leave"}, LOCAL_ADMIN, ADDRESS
    )
    assert body is not None and "A certificate is due" in text
