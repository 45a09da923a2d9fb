"""Questions in one language, answered by documents in others, with the packaged model, through HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from rag_service.app import create_app
from rag_service.domain import LOCAL_ADMIN
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.settings import Settings
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import cloned_database
from tests.integration.answers.conftest import opened_service
from tests.serving import serving_here

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENTS = {
    "berths.md": """# Berths

A berth on the north quay is let by the season. Boats longer than twelve metres lie at the outer pontoon. Whoever leaves
for more than a week tells the office, so that visitors can use the berth.
""",
    "visitors.md": """# Visitors

Visitors report to the office on arrival. The first two hours are free. Dogs are kept on a lead on the pontoons. Showers
open at six in the morning.
""",
    "office.md": """# Office

The office is open from Monday to Saturday. In winter nobody is there on Wednesdays. Keys are handed out against a
signature.
""",
    "grua.md": """# Uso de la grúa

La grúa saca barcos de hasta nueve toneladas. Hay que reservarla con cuatro días de antelación y el patrón debe estar
presente durante toda la maniobra. Con viento de más de 35 km/h no se trabaja.
""",
    "carburant.md": """# Station de carburant

La pompe ne délivre que du gazole. On paie par carte uniquement. Il est interdit de fumer et de laisser tourner le
moteur pendant le plein. Les bidons de plus de vingt litres sont refusés.
""",
    "residuos.md": """# Resíduos

O óleo usado entrega-se no contentor amarelo atrás da oficina. As baterias velhas vão para a oficina. Quem deitar
resíduos à água paga uma coima de 600 euros.
""",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(postgres: EmbeddedServer) -> AsyncIterator[httpx.AsyncClient]:
    """Of one service for the module, whose documents no test changes."""
    embedding: Any = build_embedding(Settings())
    with cloned_database(postgres) as server:
        async with opened_service(server, embedding, similarity_threshold=0.6) as service:
            for name, text in DOCUMENTS.items():
                await service.ingest(DocumentInput(data=text.encode(), file_name=name), LOCAL_ADMIN)
            async with serving_here(create_app(service.settings, components=service)) as connected:
                yield connected


@pytest.mark.parametrize(
    ("question", "source", "holds"),
    [
        ("¿Puedo pagar el combustible en efectivo?", "carburant.md", "carte uniquement"),
        ("Where do I get rid of waste oil?", "residuos.md", "contentor amarelo"),
        ("À quelle heure ouvrent les douches ?", "visitors.md", "six in the morning"),
        ("Com quanta antecedência tenho de reservar a grua?", "grua.md", "cuatro días"),
    ],
)
async def test_the_answer_is_found_in_another_language(
    client: httpx.AsyncClient, question: str, source: str, holds: str
) -> None:
    reply = await client.post("/api/v1/query/answer", json={"query": question})
    assert reply.status_code == 200, reply.text
    answer = reply.json()
    assert answer["decision"] != "out_of_scope"
    assert answer["sources"][0]["fileName"] == source
    assert holds in answer["answer"]


async def test_what_no_document_says_in_any_language_does_not_proceed(client: httpx.AsyncClient) -> None:
    for question in ("Who won the football final?", "¿Cuánto cuesta alquilar una bicicleta?"):
        reply = await client.post("/api/v1/query/answer", json={"query": question})
        assert reply.json()["decision"] != "can_proceed"
