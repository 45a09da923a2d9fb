"""Two files, or two columns, are compared row by row; what cannot be joined with certainty is not."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from rag_service import components
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, Decision, Identity, ProofMethod, Role
from rag_service.retrieval.query import RagQuery
from rag_service.store.accounts.users import create_user
from rag_service.store.documents.documents import DocumentInput
from rag_service.tables.asking import answers
from tests.integration.answers.conftest import Ingest, OpenService, ingest, open_service, service
from tests.integration.tables.sheets import workbook

__all__ = ["ingest", "open_service", "service"]  # fixtures

PRODUCTION = [
    ("Produit", "Atelier", "Stock"),
    ("Boulon M8", "A", 120),
    ("Vanne DN25", "B", 36),
    ("Pompe P200", "B", 7),
    ("Joint plat", "A", 450),
]
INVENTAIRE = """Article;Quantité;Date
boulon m8;118;2026-03-01
Vanne DN25;36;2026-03-01
Pompe P200;9;2026-03-01
Filtre;64;2026-03-01
"""
STORES = [("Store", "2022", "2023"), ("Lyon", 100, 140), ("Madrid", 80, 75), ("Porto", 60, 60)]


async def ask(service: Components, question: str, identity: Identity = LOCAL_ADMIN) -> Answer:
    return await service.engine.answer(RagQuery(question, identity=identity))


def is_computed(answer: Answer) -> bool:
    return any(citation.method is ProofMethod.COMPUTED for citation in answer.citations)


@pytest.fixture
async def files(service: Components, ingest: Ingest) -> Components:
    await ingest(workbook({"Production": PRODUCTION}), "production.xlsx")
    await ingest(INVENTAIRE, "inventaire.csv")
    await ingest(workbook({"Sales": STORES}), "stores.xlsx")
    return service


async def test_two_files_are_joined_by_their_common_column(files: Components) -> None:
    answer = await ask(files, "Compare les stocks entre production.xlsx et inventaire.csv")
    assert answer.text.startswith(
        "« Stock » (production.xlsx) et « Quantité » (inventaire.csv) par « Produit » : 1 égaux, 2 différents : "
        "Boulon M8: 120 / 118 (+2); Pompe P200: 7 / 9 (-2)"
    )
    assert "Seulement dans production.xlsx, pas dans inventaire.csv, par « Produit » (1) : Joint plat" in answer.text
    assert "Seulement dans inventaire.csv, pas dans production.xlsx, par « Produit » (1) : Filtre" in answer.text
    assert answer.decision is Decision.CAN_PROCEED
    assert {citation.document_id for citation in answer.citations} == {hit.chunk.document.id for hit in answer.shown}
    assert [c.location.cell for c in answer.citations[:2] if c.location] == ["C2:C5", "B2:B5"]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("Which products are in production.xlsx but not in inventaire.csv?", "(1): Joint plat"),
        ("Which products are in inventaire.csv but not in production.xlsx?", "(1): Filtre"),
        ("¿Qué productos están en production.xlsx pero no en inventaire.csv?", "(1): Joint plat"),
        ("Which products are in both production.xlsx and inventaire.csv?", "(3): Boulon M8, Pompe P200, Vanne DN25"),
        ("What is the difference between 2022 and 2023 sales by store?", "Lyon: 140 / 100 (+40); Madrid: 75 / 80 (-5)"),
    ],
)
async def test_what_stands_in_one_or_both(files: Components, question: str, says: str) -> None:
    answer = await ask(files, question)
    assert says in answer.text
    assert is_computed(answer)
    assert answer.decision is Decision.CAN_PROCEED, answer.text


@pytest.mark.parametrize(
    "question",
    [
        "Compare the stock in production.xlsx and stores.xlsx",  # no key in common
        "Compare the suppliers in production.xlsx and inventaire.csv",  # no such column
        "Which red products are in production.xlsx but not in inventaire.csv?",  # no such value
    ],
)
async def test_what_cannot_be_joined_is_not(files: Components, question: str) -> None:
    answer = await ask(files, question)
    assert not is_computed(answer) or answer.decision is not Decision.CAN_PROCEED


async def test_a_file_of_another_user_is_not_joined(service: Components) -> None:
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        ana, ben = [
            Identity(user_id=(await create_user(connection, name=name, role=Role.USER)).id) for name in ("ana", "ben")
        ]
    data = workbook({"Production": PRODUCTION})
    await service.ingest(DocumentInput(data=data, file_name="production.xlsx"), ana)
    await service.ingest(DocumentInput(data=INVENTAIRE.encode(), file_name="inventaire.csv"), ben)
    answer = await ask(service, "Which products are in production.xlsx but not in inventaire.csv?", ana)
    assert not is_computed(answer)
    assert "Joint plat" not in answer.text or "Filtre" not in answer.text


async def test_a_computation_beyond_the_time_limit_is_told(files: Components, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(connection: Any, *_: Any) -> None:
        await connection.execute("SELECT pg_sleep(10)")

    monkeypatch.setattr(answers, "execute", slow)
    answer = await ask(files, "What is the total stock in production.xlsx?")
    assert "longer than the time limit" in answer.text
    assert answer.decision is not Decision.CAN_PROCEED


class DropsEverything(BaseNodePostprocessor):
    """An owner's rule that lets nothing through."""

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> list[Any]:
        return []


async def test_what_a_postprocessor_drops_is_not_computed_with(
    open_service: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "build_postprocessors", lambda _: [DropsEverything()])
    async with open_service() as service:
        data = workbook({"Production": PRODUCTION})
        await service.ingest(DocumentInput(data=data, file_name="production.xlsx"), LOCAL_ADMIN)
        answer = await ask(service, "What is the total stock?")
        assert not is_computed(answer)
        assert "613" not in answer.text
