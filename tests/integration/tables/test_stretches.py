"""Months and weekdays from one to another: those between are meant too."""

from __future__ import annotations

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Decision
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.unseen_questions import says

__all__ = ["ingest", "open_service", "service"]  # fixtures

VISITES = """Mois;Visiteurs;Recette (€)
Avril;140;1920
Mai;215;2760
Juin;260;3310
Juillet;415;5480
Août;530;6990
"""
TURNOS = """Día;Turno;Horas
lunes;mañana;7
martes;mañana;6
miércoles;tarde;5
jueves;mañana;4
viernes;tarde;3
"""
BUSES = """Day,Passengers
Mon,310
Tue,290
Wed,305
Thu,280
Fri,420
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Combien de visiteurs au total de juin à août ?", "1205"),
        ("Combien de visiteurs au total entre mai et juillet ?", "890"),
        ("Quel est le total des visiteurs d'avril jusqu'en juin ?", "615"),
        ("How many visitors in total from May to July?", "890"),
        ("Total de visitantes de abril a junio en visites.csv", "615"),
        ("Quantos visitantes houve no total de maio até agosto?", "1420"),
        ("¿Cuántas horas en total de martes a jueves?", "15"),
        ("¿Cuántas horas en total entre el lunes y el miércoles?", "18"),
        ("How many passengers in total from Monday through Thursday?", "1,185"),
        ("Quantas horas no total de segunda-feira a quarta-feira?", "18"),
    ],
)
async def test_what_lies_between_is_counted(service: Components, ingest: Ingest, question: str, said: str) -> None:
    await ingest(VISITES, "visites.csv")
    await ingest(TURNOS, "turnos.csv")
    await ingest(BUSES, "buses.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert says(answer.text, said), answer.text
    assert answer.decision is Decision.CAN_PROCEED


@pytest.mark.parametrize(
    ("question", "said", "certain"),
    [
        ("Quelle est la différence de visiteurs entre juin et août ?", "270", True),  # of two months
        ("Combien de visiteurs au total de mai à décembre ?", "1420", False),  # December is missing
    ],
)
async def test_the_ends_are_looked_at(
    service: Components, ingest: Ingest, question: str, said: str, certain: bool
) -> None:
    await ingest(VISITES, "visites.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert says(answer.text, said), answer.text
    assert (answer.decision is Decision.CAN_PROCEED) is certain
