"""Tables of PDF and Word files are computed as those of sheets are, with the page as their place."""

from __future__ import annotations

import io

import docx
import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Decision, Location, ProofMethod
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.reports import STAFF, report

__all__ = ["ingest", "open_service", "service"]  # fixtures


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What is the total number of employees?", "is 585 over 2 rows"),
        ("Which port has the most vessels?", "Aberdeen"),
        ("How many employees are there in Bergen?", "275"),
    ],
)
async def test_a_table_of_a_pdf_is_computed(service: Components, ingest: Ingest, question: str, says: str) -> None:
    await ingest(report(["Northwind Ferries"], list(STAFF)), "people.pdf")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert says in answer.text
    assert answer.citations[0].method is ProofMethod.COMPUTED
    assert answer.citations[0].location == Location(page=2)
    assert answer.decision is Decision.CAN_PROCEED


async def test_a_table_of_word_is_computed(service: Components, ingest: Ingest) -> None:
    document = docx.Document()
    document.add_paragraph("Berths of the harbour")
    table = document.add_table(4, 3)
    for at, texts in enumerate(
        [("Berth", "Length (m)", "Fee"), ("A", "12", "30 €"), ("B", "9", "22 €"), ("C", "15", "41 €")]
    ):
        for column, text in enumerate(texts):
            table.cell(at, column).text = text
    buffer = io.BytesIO()
    document.save(buffer)
    await ingest(buffer.getvalue(), "berths.docx")
    answer = await service.engine.answer(RagQuery("Which berth is the longest?", identity=LOCAL_ADMIN))
    assert "C" in answer.text
    assert answer.citations[0].location == Location(cell="B4", row=4)


async def test_a_table_of_markdown_is_computed(service: Components, ingest: Ingest) -> None:
    rows = "| *Oak* | 12 | 80,00 € |\n| Elm \\| Ash | 8 | |\n| Fir | 20 | 95,50 € |"
    await ingest(f"# Rooms\n\n| Room | **Seats** | Price |\n|:--|--:|--|\n{rows}\n\nBook early.\n", "rooms.md")
    answer = await service.engine.answer(RagQuery("What is the total number of seats?", identity=LOCAL_ADMIN))
    assert answer.citations[0].formula == "SUM(B2:B4) = 40"
    assert answer.citations[0].location == Location(headings=(), cell="B2:B4", row=2)
    assert answer.decision is Decision.CAN_PROCEED
