"""Questions as people put them: what was spent, hours worked, bounds in words, the dearest by a column's whole name."""

from __future__ import annotations

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Decision
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.test_unseen_sheets import is_computed

__all__ = ["ingest", "open_service", "service"]

VISITS = """N°,Date,Garage,Vehicle,Hours (h),Cost (€),Next visit
201,2026-01-08,North,Bus,3.5,420,2026-10-30
202,2026-01-15,South,Van,2,185.50,2027-01-15
203,2026-02-02,North,Van,6,1240,2026-12-05
204,2026-03-10,East,Bus,1,96,2027-03-10
"""
ORDERS = """Order,Customer,Kind,Kilos,Price per kilo (€),Seller
P-1,Coffee House Bern,Mild,24,14.20,Ann
P-2,Hotel Lido,Strong,60,11.20,Ben
P-3,Coffee House Bern,Rare,4,46.00,Ann
P-4,Old Mill,Mild,15,14.90,Ben
"""
FINDINGS = """N.º;Tipo;Área;Prazo (dias)
1;Menor;Compras;30
2;Maior;Armazém;60
3;Observação;Compras;90
4;Maior;Qualidade;15
5;Menor;Qualidade;20
6;Menor;Armazém;45
"""

STOPS = "Paragem;Distância (km)\nMoinho;12,5\nEscola;3,1\nPorto;20,4\n"
OPENING = """Dia;Turno;Visitantes
Quarta;Manhã;120
Quinta;Manhã;340
Quinta;Tarde;90
"""
FILES = {
    "visits.csv": VISITS,
    "orders.csv": ORDERS,
    "findings.csv": FINDINGS,
    "stops.csv": STOPS,
    "arrets.csv": "Arrêt;Distance (km)\nMoulin;12,5\nPort;20,4\n",
    "opening.csv": OPENING,
    "pool.csv": "Weekday,Visitors\nMonday,80\nFriday,210\n",
}


@pytest.mark.parametrize(
    ("file", "question", "said", "certain"),
    [
        ("visits.csv", "What did we spend on the vans?", "1,425.50 €", False),
        ("visits.csv", "How many hours did we work in North?", "9.5 h", False),
        ("visits.csv", "Which vehicles have their next visit before the end of 2026?", "203", True),
        ("visits.csv", "Which visit was the most expensive?", "1,240 €: 203, ", True),  # named by its number
        ("orders.csv", "How many kilos did Ben sell?", "75", True),
        ("orders.csv", "What is the dearest per kilo?", "46.00 €: P-3", True),
        ("orders.csv", "What is the cheapest coffee?", "", False),  # "Coffee" is no customer
        ("findings.csv", "Quantas constatações são do tipo Maior?", " é 2 ", False),  # a value, no maximum
        ("findings.csv", "Quantas constatações são do tipo menor?", " é 3 ", False),
        ("findings.csv", "Quantas constatações são Maior?", " é 2 ", False),
        ("stops.csv", "Qual é a paragem mais distante?", "20,4 km: Porto", True),
        ("stops.csv", "Que paragem fica mais longe?", "20,4 km: Porto", False),
        ("arrets.csv", "Quel arrêt est le plus éloigné ?", "20,4 km : Port", True),
        ("stops.csv", "Which stop is the most distant?", "20.4 km: Porto", True),
        ("opening.csv", "Quantos visitantes vieram na quinta-feira de manhã?", "340", False),
        ("pool.csv", "Which weekday is the busiest?", "210: Friday", True),
        ("findings.csv", "Qual é o maior prazo?", "90", True),
    ],
)
async def test_everyday_questions_are_computed(
    service: Components, ingest: Ingest, file: str, question: str, said: str, certain: bool
) -> None:
    await ingest(FILES[file].encode(), file)
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert not said or is_computed(answer)
    assert said in answer.text
    assert (answer.decision is Decision.CAN_PROCEED) is certain


async def test_the_price_of_one_thing_is_no_total(service: Components, ingest: Ingest) -> None:
    prices = b"Treatment,Cat,Dog\nNeutering,85,150\nVaccine,35,40\nBlood test,60,70\n"
    await ingest(prices, "treatments.csv")
    answer = await service.engine.answer(RagQuery("How much does it cost to shave a cat?", identity=LOCAL_ADMIN))
    assert "180" not in answer.text
    assert answer.decision is not Decision.CAN_PROCEED
