"""Freely put questions over files that no rule was made for: how many are computed right, and none wrong as certain.

The figures are those of the tests' embedding, which finds passages by shared words; docs/decisions/047 has those of the
packaged model.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, Decision, ProofMethod
from rag_service.retrieval.query import RagQuery
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables import kept_questions
from tests.integration.tables.kept_sheets import kept_files
from tests.integration.tables.questions import Asked
from tests.integration.tables.unseen_questions import HALF_A, HALF_B, says
from tests.integration.tables.unseen_sheets import unseen_files

__all__ = ["ingest", "open_service", "service"]  # fixtures

MAX_FALSE = 0.02  # of all questions: a wrong value given as certain


def is_computed(answer: Answer) -> bool:
    return any(citation.method is ProofMethod.COMPUTED for citation in answer.citations)


@pytest.mark.parametrize(
    ("name", "files", "questions", "right"),
    [
        ("half A", unseen_files(), HALF_A, 46),
        ("half B", unseen_files(), HALF_B, 44),
        ("kept, half A", kept_files(), kept_questions.HALF_A, 20),
        ("kept, half B", kept_files(), kept_questions.HALF_B, 17),
    ],
)
async def test_unseen_sheets_are_computed(
    service: Components,
    ingest: Ingest,
    capsys: pytest.CaptureFixture[str],
    name: str,
    files: Mapping[str, bytes],
    questions: Sequence[Asked],
    right: int,
) -> None:
    for file_name, data in files.items():
        await ingest(data, file_name)
    computed, wrong, false = 0, 0, []
    for asked in questions:
        answer = await service.engine.answer(RagQuery(asked.question, identity=LOCAL_ADMIN, recorded=False))
        is_right = asked.value is not None and says(answer.text, asked.value)
        computed += is_right and is_computed(answer)
        wrong += not is_right and is_computed(answer)
        if answer.decision is Decision.CAN_PROCEED and not is_right:
            false.append((asked.question, answer.text))
    answerable = sum(asked.value is not None for asked in questions)
    with capsys.disabled():
        sys.stdout.write(f"\nunseen {name}: right {computed}/{answerable}, wrong {wrong}, false {len(false)}\n")
    assert computed >= right
    assert len(false) <= MAX_FALSE * len(questions), false
    assert not any(asked.value is None for asked in questions if asked.question in dict(false)), false


@pytest.mark.parametrize(
    ("question", "said", "certain"),
    [
        ("¿Cuántas colmenas hay en Las Eras?", "es 2", True),  # both words of the name are stop words
        ("¿Qué altura media tienen los árboles de la Plaza Mayor?", "8,5 m", True),  # no maximum
        ("¿Qué árboles miden más de 12 metros?", "Tilia cordata", True),  # the unit tells the column
        ("¿Qué colmena dio más miel en 2024?", "C-04", False),  # "dio" is not understood
        ("How many seats do we have?", "165", False),  # nobody asked for a total
        ("Which was the first café to open?", "Quayside", True),  # the earliest date
        ("Which sites have more than 50 seats?", "Arboretum", False),  # "sites" are the rows
        ("¿Cuál es el árbol más alto?", "Platanus", True),
    ],
)
async def test_names_units_and_verbs(
    service: Components, ingest: Ingest, question: str, said: str, certain: bool
) -> None:
    for file_name in ("colmenas.csv", "arbolado.xlsx", "cafes.csv"):
        await ingest(unseen_files()[file_name], file_name)
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert is_computed(answer)
    assert said in answer.text
    assert (answer.decision is Decision.CAN_PROCEED) is certain


async def test_a_rule_is_not_replaced_by_the_sum_of_a_column(service: Components, ingest: Ingest) -> None:
    await ingest("# Holidays\n\nEvery employee has 25 vacation days per year.\n", "holidays.md")
    await ingest(b"Trip,Vacation days\nRome,4\nOslo,7\n", "trips.csv")
    answer = await service.engine.answer(RagQuery("How many vacation days do I have per year?", identity=LOCAL_ADMIN))
    assert not is_computed(answer), answer.text
    answer = await service.engine.answer(RagQuery("How many vacation days do I have?", identity=LOCAL_ADMIN))
    assert answer.decision is not Decision.CAN_PROCEED or not is_computed(answer), answer.text


async def test_a_rule_is_not_replaced_by_a_table_further_down_on_its_page(service: Components, ingest: Ingest) -> None:
    others = "\n\n".join(
        f"La oficina de la casa {number} abre pronto y cierra tarde en invierno." for number in range(60)
    )
    rows = "| Días cotizados | Días de prestación |\n|---|---|\n| De 360 a 539 | 120 |\n| De 540 a 719 | 180 |\n"
    rule = "Para tener derecho al desempleo hay que haber trabajado un mínimo de 360 días en seis años."
    begin, end = f"# Ayudas\n\n## Derecho al desempleo\n\n{rule}", f"## Duración del desempleo\n\n{rows}"
    await ingest(f"{begin}\n\n## Oficinas\n\n{others}\n\n{end}", "ayudas.md")
    question = "¿Cuántos días tengo que haber trabajado para tener derecho al desempleo?"
    answer = await service.engine.answer(RagQuery(question, identity=LOCAL_ADMIN))
    assert not is_computed(answer), answer.text
    assert rule in answer.text
