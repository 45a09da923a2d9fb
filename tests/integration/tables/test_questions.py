"""Questions over teams' sheets: right values with their cells, and nothing certain where the sheets do not say."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, Decision, ProofMethod, Turn
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.free_questions import FREE, free_files
from tests.integration.tables.questions import DEVELOPMENT, HELD_OUT, SECOND, TRICKY, Asked
from tests.integration.tables.sheets import files

__all__ = ["ingest", "open_service", "service"]  # fixtures

FREE_RIGHT = 0.25  # of the freely put ones; a chat model answers the others: test_proposals.py
MIN_RIGHT = 0.85  # of the questions that the sheets answer
MAX_FALSE = 0.02  # of all questions: a wrong value given as certain


def is_certain(answer: Answer) -> bool:
    computed = any(citation.method is ProofMethod.COMPUTED for citation in answer.citations)
    return computed and answer.decision is Decision.CAN_PROCEED


def is_right(asked: Asked, answer: Answer) -> bool:
    if asked.value is None or not is_certain(answer):
        return False
    location = answer.citations[0].location
    placed = asked.cells is None or (location is not None and location.cell == asked.cells)
    return placed and any(value in answer.text for value in asked.value.split("|"))


@pytest.mark.parametrize(
    ("name", "questions"),
    [("development", DEVELOPMENT), ("held out", HELD_OUT), ("tricky", TRICKY), ("second", SECOND), ("free", FREE)],
)
async def test_questions_are_computed_right(
    service: Components, ingest: Ingest, capsys: pytest.CaptureFixture[str], name: str, questions: Sequence[Asked]
) -> None:
    for file_name, data in (free_files() if name == "free" else files()).items():
        await ingest(data, file_name)
    right, false, missed = 0, [], []
    for asked in questions:
        answer = await service.engine.answer(RagQuery(asked.question, identity=LOCAL_ADMIN))
        if is_right(asked, answer):
            right += 1
        elif is_certain(answer):
            false.append((asked.question, answer.text))
        elif asked.value is not None:
            missed.append((asked.question, answer.text[:160]))
    answerable = sum(asked.value is not None for asked in questions)
    with capsys.disabled():
        sys.stdout.write(f"\n{name}: right {right}/{answerable}, false {len(false)}/{len(questions)}\n")
        sys.stdout.writelines(f"  {question} → {text}\n" for question, text in (*false, *missed))
    assert right >= (FREE_RIGHT if name == "free" else MIN_RIGHT) * answerable, missed
    assert len(false) <= MAX_FALSE * len(questions), false


async def test_a_follow_up_is_not_computed_together_with_the_question_before(
    service: Components, ingest: Ingest
) -> None:
    await ingest(files()["tents.xlsx"], "tents.xlsx")
    before = "What is the total stock of tents in Lyon?"
    assert is_certain(await service.engine.answer(RagQuery(before, identity=LOCAL_ADMIN)))
    for first in (before, "total stock of tents in Lyon"):
        turns = (Turn(role="user", content=first), Turn(role="assistant", content="34 [C1]."))
        found = await service.engine.answer(RagQuery("And in Lille?", identity=LOCAL_ADMIN, turns=turns))
        assert not any(citation.method is ProofMethod.COMPUTED for citation in found.citations), found.text


GASTOS = """Empleado;Departamento;Categoría;Importe
Elena Ríos;Ventas;Hotel;312,40 €
Marcos Gil;Ingeniería;Hotel;188,00 €
Iván Pardo;Compras;Tren;58,25 €
"""
PRODUCTION = """month,site,kwh_produced
2024-01,Alder,18200
2024-01,Birch,11950
2024-02,Alder,22400
2024-02,Birch,14100
"""


LOANS = """Code;Borrower;Team;Returned;Pieces left
A-1;Oak Lane School;Sports;2024-05-16;3
B-2;Rotary Club;Culture;;0
C-3;Club of Judo;Sports;2024-06-24;12
D-4;Helen Strand;Culture;;7
"""


@pytest.mark.parametrize(
    ("question", "said", "certain"),
    [
        ("Which loans have no returned date?", "B-2, Rotary Club [C1]; D-4, Helen Strand", True),
        ("Which borrowers have not returned?", "B-2: Rotary Club [C1]; D-4: Helen Strand", True),
        ("Which borrower has pieces left 0?", "B-2: Rotary Club", True),
        ("How many borrowers of Culture are followed?", "is 2", False),  # "followed" is not understood
        ("How many calories has Helen Strand?", "", False),  # rows are no calories
        ("Which loans have not come back?", "", False),  # quoted rows show no absence
    ],
)
async def test_absence_numbers_and_words_that_are_not_understood(
    service: Components, ingest: Ingest, question: str, said: str, certain: bool
) -> None:
    await ingest(LOANS.encode(), "loans.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert said in answer.text
    assert (answer.decision is Decision.CAN_PROCEED) is certain, answer.text


@pytest.mark.parametrize(
    ("question", "said", "unsaid"),
    [
        ("Which model do we have the most of?", "40: Duna 2", ""),
        ("¿De qué modelo tenemos más?", "40: Duna 2", ""),
        ("Which model is the largest?", "", "40: Duna 2"),  # not the one with most pieces
        ("¿Cuánto se ha gastado en hotel?", "Elena Ríos: 312,40 €", ""),
        ("Which month had the highest production at Alder?", "22400: 2024-02", "number of rows"),
    ],
)
async def test_what_is_counted_and_how_much_is_told(
    service: Components, ingest: Ingest, question: str, said: str, unsaid: str
) -> None:
    await ingest(files()["tents.xlsx"], "tents.xlsx")
    await ingest(GASTOS.encode(), "gastos.csv")
    await ingest(PRODUCTION.encode(), "production.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert said in answer.text
    assert is_certain(answer) is bool(said), answer.text
    assert not unsaid or unsaid not in answer.text


STOCK = """Code,Product,Category,Net price GBP,Stock
HC-101,Citrus floor cleaner,Cleaning,14.9,120
HC-102,Pine floor cleaner,Cleaning,12.5,86
PT-201,Toilet roll 2-ply,Paper,19.5,80
PT-202,Toilet roll 3-ply,Paper,23.1,42
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the total stock of all paper products?", "122"),
        ("What is the average net price of the cleaning products?", "13.7"),
        ("How many products are in the paper category?", "2"),
    ],
)
async def test_the_noun_for_rows_that_codes_name_is_understood(
    service: Components, ingest: Ingest, question: str, said: str
) -> None:
    await ingest(STOCK.encode(), "stock.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert f" {said} " in answer.text and is_certain(answer), answer.text


FACTURES = """Facture;Date;Fournisseur;Objet;Statut;Payée le
F25-001;2025-01-14;Imprimerie Salvan;Affiches;payée;2025-02-20
F25-003;2025-02-11;Traiteur Les Halles;Cocktail d'ouverture;payée;2025-03-10
"""


@pytest.mark.parametrize(
    ("question", "said", "certain"),
    [
        ("Quand la facture F25-003 a-t-elle été payée ?", "2025-03-10", True),
        ("Quand a-t-on réglé le cocktail d'ouverture ?", "", False),  # which of the two dates
        ("Quelle est la date de la facture F25-001 ?", "2025-01-14", True),
    ],
)
async def test_one_of_several_dates_is_certain_by_its_name_only(
    service: Components, ingest: Ingest, question: str, said: str, certain: bool
) -> None:
    await ingest(FACTURES.encode(), "factures.csv")
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert said in answer.text and is_certain(answer) is certain, answer.text
