"""Two files, or two columns, are compared row by row; what cannot be joined with certainty is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from rag_service import components
from rag_service.domain import LOCAL_ADMIN, Decision, Identity, Role
from rag_service.retrieval.question import Question
from rag_service.store.accounts.users import create_user
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from rag_service.tables.asking import answers
from tests.integration.answers.conftest import OpenService, open_service
from tests.integration.tables.conftest import Library, files_of, is_computed, open_library

__all__ = ["open_service"]  # fixture

in_module_loop = pytest.mark.asyncio(loop_scope="module")
pytestmark = pytest.mark.xdist_group("table_comparisons")

MISSING = "Which products are in production.xlsx but not in inventaire.csv?"
STOCK = "What is the total stock in production.xlsx?"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def library(postgres: EmbeddedServer) -> AsyncIterator[Library]:
    async with open_library(postgres, files_of("comparisons")) as opened:
        yield opened


@in_module_loop
async def test_two_files_are_joined_by_their_common_column(library: Library) -> None:
    answer = await library.ask("Compare les stocks entre production.xlsx et inventaire.csv")
    assert answer.text.startswith(
        "« Stock » (production.xlsx) et « Quantité » (inventaire.csv) par « Produit » : 1 égaux, 2 différents : "
        "Boulon M8: 120 / 118 (+2); Pompe P200: 7 / 9 (-2)"
    )
    assert "Seulement dans production.xlsx, pas dans inventaire.csv, par « Produit » (1) : Joint plat" in answer.text
    assert "Seulement dans inventaire.csv, pas dans production.xlsx, par « Produit » (1) : Filtre" in answer.text
    assert answer.decision is Decision.CAN_PROCEED
    assert {citation.document_id for citation in answer.citations} == {hit.chunk.document.id for hit in answer.shown}
    assert [c.location.cell for c in answer.citations[:2] if c.location] == ["C2:C5", "B2:B5"]


@in_module_loop
@pytest.mark.parametrize(
    ("question", "says"),
    [
        (MISSING, "(1): Joint plat"),
        ("Which products are in both production.xlsx and inventaire.csv?", "(3): Boulon M8, Pompe P200, Vanne DN25"),
        ("What is the difference between 2022 and 2023 sales by store?", "Lyon: 140 / 100 (+40); Madrid: 75 / 80 (-5)"),
    ],
    ids=["only in one", "in both", "two columns"],
)
async def test_what_stands_in_one_or_both(library: Library, question: str, says: str) -> None:
    answer = await library.ask(question)
    assert says in answer.text
    assert is_computed(answer)
    assert answer.decision is Decision.CAN_PROCEED, answer.text


@in_module_loop
@pytest.mark.parametrize(
    "question",
    [
        "Compare the stock in production.xlsx and stores.xlsx",
        "Compare the suppliers in production.xlsx and inventaire.csv",
        "Which red products are in production.xlsx but not in inventaire.csv?",
    ],
    ids=["no key in common", "no such column", "no such value"],
)
async def test_what_cannot_be_joined_is_not(library: Library, question: str) -> None:
    answer = await library.ask(question)
    assert not is_computed(answer) or answer.decision is not Decision.CAN_PROCEED


@in_module_loop
async def test_a_computation_beyond_the_time_limit_is_told(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(connection: Any, *_: Any) -> None:
        await connection.execute("SELECT pg_sleep(10)")

    monkeypatch.setattr(answers, "execute", slow)
    monkeypatch.setattr(answers, "STATEMENT_MS", 100)
    answer = await library.ask(STOCK)
    assert "longer than the time limit" in answer.text
    assert answer.decision is not Decision.CAN_PROCEED


async def test_a_file_of_another_user_is_not_joined(open_service: OpenService) -> None:
    files = files_of("comparisons", "production.xlsx", "inventaire.csv")
    async with open_service() as service:
        async with service.database.transaction(LOCAL_ADMIN) as connection:
            users = [await create_user(connection, name=name, role=Role.USER) for name in ("ana", "ben")]
        for user, (name, data) in zip(users, files.items(), strict=True):
            await service.ingest(DocumentInput(data=data, file_name=name), Identity(user_id=user.id))
        answer = await service.engine.answer(Question(MISSING, identity=Identity(user_id=users[0].id)))
    assert not is_computed(answer)
    assert "Joint plat" not in answer.text or "Filtre" not in answer.text


class DropsEverything(BaseNodePostprocessor):
    """An owner's rule that lets nothing through."""

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> list[Any]:
        return []


async def test_what_a_postprocessor_drops_is_not_computed_with(
    postgres: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "build_postprocessors", lambda _: [DropsEverything()])
    async with open_library(postgres, files_of("comparisons", "production.xlsx")) as alone:
        answer = await alone.ask(STOCK)
    assert not is_computed(answer)
    assert "613" not in answer.text
