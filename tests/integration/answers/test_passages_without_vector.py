"""A text that the embedding model cannot embed costs its document nothing but that vector."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import pytest

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import EmbeddingError
from rag_service.ingest.documents import Outcome
from rag_service.retrieval.question import Question
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.integration.answers.conftest import opened_service

FAULTY = "Bitcoin"
TEXT = "\n\n".join(
    f"# {topic}\n\n" + f"{topic} is kept by the treasurer of the club. " * 40
    for topic in ("Cash", FAULTY, "Silver", "Stamps")
)


class FaultyEmbedding(FakeEmbedding):
    """Fails on texts with one word as model servers do, for as long as `fault` says how."""

    fault: str = ""

    def _embed(self, text: str) -> list[float]:
        vector = super()._embed(text)
        match self.fault if FAULTY in text else "":
            case "error":
                raise ValueError("failed to encode response: json: unsupported value: NaN")
            case "nan":
                return [math.nan] * len(vector)
            case "zeros":
                return [0.0] * len(vector)
        if self.fault == "down":
            raise ConnectionError("refused")
        return vector

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors = [self._embed(text) for text in texts]
        return vectors[:-1] if self.fault == "fewer" and len(texts) > 1 else vectors


@pytest.fixture
def faulty() -> FaultyEmbedding:
    return FaultyEmbedding(model_name="faulty", embed_batch_size=3)


@pytest.fixture
async def service(database_server: EmbeddedServer, faulty: FaultyEmbedding) -> AsyncIterator[Components]:
    async with opened_service(database_server, faulty) as components:
        yield components


async def ingest(service: Components, name: str = "club.md") -> tuple[Outcome, tuple[str, ...]]:
    done = await service.ingest(DocumentInput(data=TEXT.encode(), file_name=name), LOCAL_ADMIN)
    return done.outcome, done.warnings


async def without_vector(service: Components) -> int:
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        cursor = await connection.execute("SELECT count(*) FROM data_chunks WHERE embedding IS NULL")
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def best(service: Components, question: str) -> tuple[str, float, float | None]:
    hit = (await service.engine.search(Question(question, identity=LOCAL_ADMIN))).passages[0]
    return hit.chunk.text, hit.scores.relevance, hit.scores.dense


@pytest.mark.parametrize("fault", ["error", "nan", "zeros"])
async def test_a_text_that_cannot_be_embedded_is_stored_and_found_by_its_words(
    service: Components, faulty: FaultyEmbedding, fault: str
) -> None:
    faulty.fault = fault
    outcome, (warning,) = await ingest(service)
    assert outcome is Outcome.ADDED
    missing = await without_vector(service)
    assert 0 < missing < 4
    assert f"“# {FAULTY}" in warning
    assert "reingest" in warning
    assert {"error": "unsupported value: NaN", "nan": "usable numbers", "zeros": "vector of zeros"}[fault] in warning
    text, relevance, cosine = await best(service, "Who keeps Bitcoin?")
    assert FAULTY in text
    assert relevance > 0.5
    assert cosine is None
    text, _, cosine = await best(service, "Who keeps Silver?")
    assert "Silver" in text
    assert cosine is not None


async def test_too_few_vectors_of_a_batch_cost_nothing(service: Components, faulty: FaultyEmbedding) -> None:
    faulty.fault = "fewer"
    assert await ingest(service) == (Outcome.ADDED, ())
    assert await without_vector(service) == 0


async def test_a_server_that_is_down_stores_nothing(service: Components, faulty: FaultyEmbedding) -> None:
    faulty.fault = "down"
    with pytest.raises(EmbeddingError):
        await ingest(service)
    async with service.database.transaction(LOCAL_ADMIN) as connection:
        cursor = await connection.execute("SELECT FROM documents")
        assert await cursor.fetchall() == []


async def test_a_server_that_fails_on_every_text_is_not_taken_for_a_bad_text(
    service: Components, faulty: FaultyEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[float]:
        raise ValueError("out of memory")

    monkeypatch.setattr(FaultyEmbedding, "_embed", fail)
    with pytest.raises(EmbeddingError):
        await ingest(service)
