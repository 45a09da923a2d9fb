"""A question in one language, answered by documents in others, with the packaged model, through HTTP.

How many are answered rightly is measured over the set `harbour`: `python -m evals.sets`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from evals.sets.questions import read_set
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

HARBOUR = read_set("harbour")  # documents in English, Spanish, French and Portuguese


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(postgres: EmbeddedServer) -> AsyncIterator[httpx.AsyncClient]:
    """Of one service for the module, whose documents no test changes."""
    embedding: Any = build_embedding(Settings())
    with cloned_database(postgres) as server:
        async with opened_service(server, embedding, similarity_threshold=0.6) as service:
            for name in HARBOUR.file_names:
                await service.ingest(DocumentInput(data=HARBOUR.read_file(name), file_name=name), LOCAL_ADMIN)
            async with serving_here(create_app(service.settings, components=service)) as connected:
                yield connected


async def ask(client: httpx.AsyncClient, question: str) -> dict[str, Any]:
    reply = await client.post("/api/v1/query/answer", json={"query": question})
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


async def test_the_answer_is_found_in_another_language(client: httpx.AsyncClient) -> None:
    answer = await ask(client, "Where do I get rid of waste oil?")
    assert answer["decision"] != "out_of_scope"
    assert answer["sources"][0]["fileName"] == "residuos.md"
    assert "contentor amarelo" in answer["answer"]


async def test_what_no_document_says_in_any_language_does_not_proceed(client: httpx.AsyncClient) -> None:
    assert (await ask(client, "Who won the football final?"))["decision"] != "can_proceed"
