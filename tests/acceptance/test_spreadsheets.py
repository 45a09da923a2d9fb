"""Questions over a workbook and a CSV file: the right value, in the right cell, as it stands in the file."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from openpyxl import Workbook

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, CitationStatus
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service

__all__ = ["ingest", "open_service", "service"]  # fixtures

STOCKS = [
    ("Product", "Warehouse", "Stock", "Safety stock", "Unit price"),
    ("Hex bolt M8", "Lyon", 120, 150, 0.35),
    ("Hex bolt M10", "Lille", 480, 300, 0.42),
    ("Ball valve DN25", "Lyon", 36, 20, 18.9),
    ("Gasket kit", "Sevilla", 75, 90, 4.25),
    ("Pressure gauge", "Sevilla", 14, 10, 31.5),
    ("Conveyor belt", "Lille", 3, 4, 612.0),
]
ORDERS = [
    ("order", "customer", "product", "quantity", "due date"),
    ("PO-1001", "Talleres Ruiz", "Hex bolt M8", "2000", "2026-03-14"),
    ("PO-1002", "Fonderie Martin", "Ball valve DN25", "12", "2026-03-20"),
    ("PO-1003", "Harbor Pumps", "Pressure gauge", "8", "2026-04-02"),
    ("PO-1004", "Talleres Ruiz", "Gasket kit", "60", "2026-04-11"),
]


@dataclass(frozen=True)
class Asked:
    question: str
    value: str  # as it stands in the file
    cell: str  # where it stands


QUESTIONS = [
    Asked("What is the stock of Hex bolt M8?", "120", "C2"),
    Asked("What is the stock of Hex bolt M10 in production.xlsx?", "480", "C3"),
    Asked("¿Cuál es el stock de Ball valve DN25?", "36", "C4"),
    Asked("Quel est le stock de Gasket kit ?", "75", "C5"),
    Asked("How many Pressure gauge are in stock?", "14", "C6"),
    Asked("What is the safety stock of Conveyor belt?", "4", "D7"),
    Asked("What is the safety stock of Gasket kit?", "90", "D5"),
    Asked("What is the unit price of Ball valve DN25?", "18.9", "E4"),
    Asked("unit price of Pressure gauge", "31.5", "E6"),
    Asked("In which warehouse is the Conveyor belt?", "Lille", "B7"),
    Asked("Which warehouse holds Gasket kit?", "Sevilla", "B5"),
    Asked("What is the unit price of Hex bolt M10?", "0.42", "E3"),
    Asked("Who is the customer of order PO-1002?", "Fonderie Martin", "B3"),
    Asked("What quantity does order PO-1001 ask for?", "2000", "D2"),
    Asked("When is PO-1003 due?", "2026-04-02", "E4"),
    Asked("What is the due date of order PO-1004?", "2026-04-11", "E5"),
    Asked("¿Qué cliente hizo el pedido PO-1003?", "Harbor Pumps", "B4"),
    Asked("Quelle quantité pour la commande PO-1004 ?", "60", "D5"),
    Asked("Which product is in order PO-1002 of orders.csv?", "Ball valve DN25", "C3"),
    Asked("What is the due date of PO-1001?", "2026-03-14", "E2"),
]


def workbook() -> bytes:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Stocks"
    for row in STOCKS:
        sheet.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def table() -> bytes:
    written = io.StringIO()
    csv.writer(written, delimiter=";").writerows(ORDERS)
    return written.getvalue().encode()


async def answers(service: Components, asked: Asked) -> bool:
    """Whether a verified citation quotes the value and its place covers the value's cell."""
    answer = await service.engine.answer(RagQuery(asked.question, identity=LOCAL_ADMIN, threshold=0.0))
    return any(
        citation.status is CitationStatus.VERIFIED
        and citation.quote is not None
        and asked.value in citation.quote
        and citation.location is not None
        and (citation.location.row == int(asked.cell[1:]) or citation.location.cell == asked.cell)
        for citation in answer.citations[:1]
    )


async def test_values_are_found_in_their_cells(service: Components, ingest: Ingest) -> None:
    await ingest(workbook(), "production.xlsx")
    await ingest(table(), "orders.csv")
    wrong = [asked.question for asked in QUESTIONS if not await answers(service, asked)]
    assert len(wrong) <= len(QUESTIONS) - 18, wrong


async def test_the_sheet_is_named_in_the_citation(service: Components, ingest: Ingest) -> None:
    await ingest(workbook(), "production.xlsx")
    answer = await service.engine.answer(RagQuery(QUESTIONS[0].question, identity=LOCAL_ADMIN, threshold=0.0))
    location = answer.citations[0].location
    assert location is not None
    assert location.sheet == "Stocks"
