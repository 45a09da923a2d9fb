"""No mixture of words breaks an answer, and a computed answer is the same on every channel."""

from __future__ import annotations

import json
import random

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN
from rag_service.language.languages import language_codes, load_language
from rag_service.retrieval.query import RagQuery
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.integration.answers.conftest import Ingest, ingest, open_service, service
from tests.integration.tables.sheets import TENTS, files, workbook
from tests.integration.tenancy.web import client_of, real_application

__all__ = ["ingest", "open_service", "service"]  # fixtures

WORDS = """
stock price weight model type warehouse tents Lyon Lille Sevilla Alpina 2 3 2025 1.5 50% € kg family trekking
expedition total yes no 2025-02-11 March and in of than the
"""


async def test_no_mixture_of_words_breaks_an_answer(service: Components, ingest: Ingest) -> None:
    await ingest(files()["tents.xlsx"], "tents.xlsx")
    chance = random.Random(7)  # noqa: S311 - not for secrets
    cues = {
        code: [phrase for phrases in load_language(code).tables.phrases.values() for phrase in phrases]
        for code in language_codes()
    }
    computed = 0
    for _ in range(400):
        code = chance.choice(language_codes())
        picked = [*chance.sample(cues[code], chance.randint(1, 2)), *chance.sample(WORDS.split(), chance.randint(1, 3))]
        if chance.random() < 0.5:
            chance.shuffle(picked)
        answer = await service.engine.answer(RagQuery(" ".join(picked) + "?", identity=LOCAL_ADMIN, recorded=False))
        computed += any(citation.formula for citation in answer.citations)
        assert all(citation.quote for citation in answer.citations if citation.formula)
    assert computed > 20  # else the mixtures would show nothing


async def test_rest_gives_method_formula_and_place(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding
) -> None:
    async with real_application(database_server, fake_embedding) as (application, components):
        async with components.database.transaction(LOCAL_ADMIN) as connection:
            _, key = await create_key(connection, user_id=LOCAL_ADMIN.user_id, name="k", scopes=ALL_SCOPES)
        await components.ingest(DocumentInput(data=workbook({"Tents": TENTS}), file_name="tents.xlsx"), LOCAL_ADMIN)
        body = {"query": "What is the total stock of tents?"}
        async with client_of(application, key) as client:
            answer = (await client.post("/api/v1/query/answer", json=body)).json()
            streamed = await client.post("/api/v1/query/answer/stream", json=body)
    citation = answer["citations"][0]
    assert answer["decision"] == "can_proceed"
    assert (citation["status"], citation["method"]) == ("verified", "computed")
    assert citation["formula"] == "SUM(E2:E8) = 107"
    assert citation["place"] == "tents.xlsx, sheet Tents, cells E2:E8"
    assert json.dumps("SUM(E2:E8) = 107") in streamed.text
