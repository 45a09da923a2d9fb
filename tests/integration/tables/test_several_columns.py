"""Questions over several columns of a row: months added up, the best month, two columns compared."""

from __future__ import annotations

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Decision, ProofMethod
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.sheets import Rows, workbook
from tests.integration.tables.unseen_questions import says

__all__ = ["ingest", "open_service", "service"]  # fixtures

LOANS: Rows = [
    ("Category", "Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    ("Garden", 12, 20, 95, 162, 190, 171),
    ("Craft", 64, 70, 66, 52, 48, 41),
]
FEES: Rows = [
    ("Type", "Fee 2023 (£)", "Fee 2024 (£)", "Members"),
    ("Standard", 30, 34, 287),
    ("Household", 48, 52.5, 96),
]
STOCK: Rows = [
    ("Tool", "In stock", "Minimum", "Deposit (£)"),
    ("Grinder", 3, 4, 20),
    ("Sander", 2, 2, 25),
    ("Trimmer", 5, 3, 25),
    ("Level", 0, 1, 40),
]
PRODUCCION = """Queso;Enero;Febrero;Marzo;Abril
Curado de oveja;610;700;980;1240
Azul de cueva;300;310;325;330
"""
TRANSPORTE = """Destino;Coste 2024 (€);Coste 2025 (€)
Pau;95;97
Lisboa;192;214
"""
COMPTES = """Poste;Budget (€);Réalisé (€)
Loyer;7200;7200
Énergie;2100;2486
Dons;2500;1735
"""
VENDAS = """Loja;Janeiro;Fevereiro;Março
Baixa;410;305;520
Ribeira;287;301;
"""


@pytest.fixture
async def sheets(service: Components, ingest: Ingest) -> Components:
    await ingest(workbook({"Loans by month": LOANS}), "loans.xlsx")
    await ingest(workbook({"Fees": FEES}), "fees.xlsx")
    await ingest(workbook({"Stock": STOCK}), "stock.xlsx")
    await ingest(PRODUCCION, "produccion.csv")
    await ingest(TRANSPORTE, "transporte.csv")
    await ingest(COMPTES, "comptes.csv")
    await ingest(VENDAS, "vendas.csv")
    return service


@pytest.mark.parametrize(
    ("question", "said", "certain"),
    [
        ("How many garden loans were there in total from February to April?", "277", True),
        ("What is the total of Craft loans between January and March?", "200", True),
        ("¿Cuál es el total de curado de oveja de enero a marzo?", "2290", True),
        ("Total des loans de Garden de janvier à mars", "127", True),
        ("Qual é o total de vendas da Baixa de janeiro a março?", "1235", True),
        ("In which month were garden loans the highest?", "190 & May", True),
        ("¿En qué mes hubo menos azul de cueva?", "300 & Enero", True),
        ("Em que mês a Baixa teve mais vendas?", "520 & Março", True),
        ("What is the difference between the 2023 and 2024 fee for Standard?", "£4", True),
        ("What is the gap between the 2023 and 2024 fee for Household?", "£4.50", True),
        ("¿Cuánto ha subido el coste de Lisboa de 2024 a 2025?", "22 €", True),
        ("Quel est l'écart entre le budget et le réalisé des dons ?", "765 €", True),
        ("¿Qué destino tiene la mayor diferencia entre 2024 y 2025?", "22 € & Lisboa", True),
        ("Which tools are below the minimum stock?", "Grinder (3 / 4) & Level (0 / 1)", True),
        ("What is the difference in Garden loans between January and March?", "83", True),
        ("¿Para qué destinos el coste de 2025 es superior al coste de 2024?", "Pau & Lisboa", True),
        ("¿Qué destinos tienen el coste de 2024 por encima del coste de 2025?", "Coste 2024 > Coste 2025", True),
        ("How many tools have a stock above the minimum?", "1", True),
        ("Pour quels postes le réalisé est-il au-dessus du budget ?", "Énergie (2100 € / 2486 €)|Énergie", True),
    ],
)
async def test_columns_of_a_row_are_computed(sheets: Components, question: str, said: str, certain: bool) -> None:
    answer = await sheets.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert says(answer.text, said), answer.text
    assert all(citation.method is ProofMethod.COMPUTED for citation in answer.citations)
    assert (answer.decision is Decision.CAN_PROCEED) is certain


@pytest.mark.parametrize(
    "question",
    [
        "How many power loans were there in total from February to April?",  # no such category
        "How many garden loans were there in total from May to August?",  # July and August are missing
        "Qual é o total de vendas da Ribeira de janeiro a março?",  # March is empty
        "What is the difference between the 2023 and 2024 members for Standard?",  # one column of members
        "What is the difference between the 2022 and 2024 fee for Standard?",
        "Which tools are below the minimum deposit?",
        "Which tool is furthest below the minimum stock?",
        "Which tools are not below the minimum stock?",
        "What is the total of loans from January to March by category?",
        "What are the two months with the most Garden loans?",
        "In which month was the average of Garden loans the highest?",
        "¿Cuál fue el total de transporte de 2024?",  # the file is called so, and its costs have years
        "Which destination rose most from 2024 to 2025?",
    ],
)
async def test_what_the_columns_do_not_hold_is_not_certain(sheets: Components, question: str) -> None:
    answer = await sheets.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert answer.decision is not Decision.CAN_PROCEED, answer.text
