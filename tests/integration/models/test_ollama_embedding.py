"""Embeddings against the double of Ollama."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from structlog.testing import capture_logs

from rag_service.errors import ConfigurationError, EmbeddingError
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import close_embedding, warm_up
from rag_service.models.local_runtime import somebody_waits
from tests.doubles.ollama import EMBED, OllamaDouble, embed, failure, refused, vector
from tests.integration.models.conftest import QUICK, MakeSettings

MakeEmbedding = Callable[..., BaseEmbedding]


@pytest.fixture
async def make_embedding(make_settings: MakeSettings) -> AsyncIterator[MakeEmbedding]:
    built: list[BaseEmbedding] = []

    def make(**overrides: object) -> BaseEmbedding:
        built.append(build_embedding(make_settings(**overrides), retries=QUICK))
        return built[-1]

    yield make
    for embedding in built:
        await close_embedding(embedding)


async def test_vectors_come_back_in_the_order_of_the_texts(make_embedding: MakeEmbedding, ollama: OllamaDouble) -> None:
    texts = [f"passage {i}" for i in range(70)]
    vectors = await make_embedding(embedding_batch_size=32).aget_text_embedding_batch(texts)
    assert vectors == [vector(text, 384) for text in texts]
    assert sorted(len(body["input"]) for body in ollama.bodies(EMBED)) == [6, 32, 32]


async def test_questions_and_passages_get_the_prefixes_of_the_model(
    make_embedding: MakeEmbedding, ollama: OllamaDouble
) -> None:
    embedding = make_embedding(embedding_model="nomic-embed-text")
    await embedding.aget_query_embedding("When?")
    await embedding.aget_text_embedding_batch(["One.", "Two."])
    sent = [body["input"] for body in ollama.bodies(EMBED)]
    assert sent == [["search_query: When?"], ["search_document: One.", "search_document: Two."]]


async def test_no_texts_need_no_request(make_embedding: MakeEmbedding, ollama: OllamaDouble) -> None:
    assert await make_embedding().aget_text_embedding_batch([]) == []
    assert await make_embedding()._aget_text_embeddings([]) == []
    assert ollama.requests == []


async def test_a_blank_text_gets_a_vector_and_is_not_sent_blank(
    make_embedding: MakeEmbedding, ollama: OllamaDouble
) -> None:
    vectors = await make_embedding().aget_text_embedding_batch(["one", "  \n", ""])
    assert [len(vector) for vector in vectors] == [384, 384, 384]
    assert all(text.strip() for text in ollama.bodies(EMBED)[0]["input"])


@pytest.mark.parametrize("reply", [failure(429), failure(500, "EOF"), failure(503), refused()])
async def test_a_failing_service_is_tried_three_times(
    make_embedding: MakeEmbedding, ollama: OllamaDouble, reply: object
) -> None:
    ollama.script(EMBED, reply, reply, reply)  # type: ignore[arg-type]
    with pytest.raises(EmbeddingError) as caught:
        await make_embedding().aget_query_embedding("a question")
    assert len(ollama.requests) == 3
    assert caught.value.code == "embedding_unavailable"
    assert caught.value.__cause__ is not None
    assert "EOF" not in caught.value.message


async def test_the_third_try_may_succeed_after_the_time_the_server_asked_for(
    make_embedding: MakeEmbedding, ollama: OllamaDouble
) -> None:
    ollama.script(EMBED, failure(429, retry_after="1"), refused())
    assert await make_embedding().aget_query_embedding("a question") == vector("a question", 384)
    first, second, _ = ollama.requests
    assert second.at - first.at >= 1.0


async def test_a_missing_model_is_not_tried_again(make_embedding: MakeEmbedding, ollama: OllamaDouble) -> None:
    ollama.missing.add("bge-m3")
    with pytest.raises(EmbeddingError, match="not available on its server"):
        await make_embedding().aget_query_embedding("a question")
    assert len(ollama.requests) == 1


async def test_a_wrong_dimension_names_the_setting_and_the_mend(
    make_embedding: MakeEmbedding, ollama: OllamaDouble
) -> None:
    ollama.dimension = 768
    with pytest.raises(ConfigurationError) as caught:
        await warm_up(make_embedding())
    assert caught.value.field == "RAG_EMBEDDING_DIMENSION"
    assert "768" in caught.value.message
    assert "384" in caught.value.message


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_a_wrong_number_of_vectors_is_an_error(
    make_embedding: MakeEmbedding, ollama: OllamaDouble, count: int
) -> None:
    ollama.script(EMBED, embed(count=count))
    with pytest.raises(EmbeddingError, match="wrong number"):
        await make_embedding().aget_text_embedding_batch(["one", "two"])


async def test_a_service_that_is_not_there_cannot_be_reached(make_embedding: MakeEmbedding) -> None:
    with pytest.raises(EmbeddingError, match="cannot be reached"):
        await make_embedding(ollama_url="http://127.0.0.1:9").aget_query_embedding("a question")


async def test_a_silent_service_is_left_in_time(make_embedding: MakeEmbedding, ollama: OllamaDouble) -> None:
    ollama.script(EMBED, embed(delay=30))
    with pytest.raises(EmbeddingError, match="in time"):
        await make_embedding(first_token_timeout=1).aget_query_embedding("a question")
    assert len(ollama.requests) == 1


async def test_a_question_does_not_wait_behind_a_folder_of_documents(
    make_embedding: MakeEmbedding, ollama: OllamaDouble
) -> None:
    embedding = make_embedding(model_concurrency=1, embedding_batch_size=1)
    ollama.script(EMBED, *[embed(delay=0.3) for _ in range(10)])
    passages = asyncio.create_task(embedding.aget_text_embedding_batch([f"passage {i}" for i in range(10)]))
    await asyncio.sleep(0.15)
    await embedding.aget_query_embedding("a question")
    with somebody_waits():
        await embedding.aget_text_embedding_batch(["a sentence of the answer"])
    assert not passages.done()
    await passages


async def test_an_input_that_the_server_cut_is_logged_once(make_embedding: MakeEmbedding, ollama: OllamaDouble) -> None:
    embedding = make_embedding()
    reply = embed(tokens=256)
    ollama.script(EMBED, reply, reply)
    with capture_logs() as logs:
        for _ in range(2):
            await embedding.aget_text_embedding("many words " * 1000)
    assert [entry["event"] for entry in logs] == ["embedding_input_truncated"]
