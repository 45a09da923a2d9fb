"""Columns of months, "2024-03", and periods of months with their year."""

from __future__ import annotations

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Decision
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.unseen_questions import says

__all__ = ["ingest", "open_service", "service"]  # fixtures

SALES = """Month,Sales (€),Visitors
2024-01,12500,310
2024-02,9800,250
2024-03,15200,420
2024-04,11100,300
2025-01,13900,333
2025-02,10400,270
"""
AGUA = """Mes;Consumo (m3)
11/2025;35
12/2025;48
01/2026;62
"""
FACTURES = """Facture;Date;Client;Montant (€)
2024-01;2024-01-15;Atelier Roche;1200
2024-02;2024-02-03;Cave du Port;850
2024-03;2024-02-20;Atelier Roche;400
2024-04;2024-05-28;Hôtel Mer;2300
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What were the sales in January 2024?", "12,500"),
        ("How many visitors in total in 2024?", "1,280"),
        ("In which month were the sales highest?", "2024-03"),
        ("In which month of 2025 were the sales highest?", "2025-01"),
        ("In which month of 2024 were visitors lowest?", "2024-02"),
        ("What were the total sales between February and April 2024?", "36,100"),
        ("What is the average of sales from January to April 2024?", "12,150"),
        ("Which months had more than 400 visitors?", "2024-03"),
        ("What are the total sales per month?", "2025-02: 10,400"),  # each, though each stands in one row
        ("¿Cuál fue el consumo en diciembre de 2025?", "48"),
        ("¿En qué mes fue mayor el consumo?", "01/2026"),
        ("¿Cuál es el consumo total de noviembre a diciembre de 2025?", "83"),
        ("Quel est le montant total des factures de janvier à février 2024 ?", "2450"),
        ("Qual é o total das faturas de fevereiro a maio de 2024?", "3550"),
        ("Quel est le montant de la facture 2024-03 ?", "400"),  # its number, not its month
    ],
)
async def test_months_with_their_year(service: Components, ingest: Ingest, question: str, said: str) -> None:
    await ingest(SALES, "sales.csv")
    await ingest(AGUA, "agua.csv")
    await ingest(FACTURES, "factures.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert says(answer.text, said), answer.text
    assert answer.decision is Decision.CAN_PROCEED, answer.text


@pytest.mark.parametrize(
    "question",
    [
        "What were the total sales from November to February 2025?",  # over the turn of the year
        "What were the total sales between February and April?",  # of which year
    ],
)
async def test_a_period_without_its_years_is_not_certain(service: Components, ingest: Ingest, question: str) -> None:
    await ingest(SALES, "sales.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert answer.decision is not Decision.CAN_PROCEED, answer.text
