"""Chat and embeddings from any OpenAI-compatible server, under the same limits as Ollama."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.errors import ConfigurationError, EmbeddingError, ModelBusyError, ModelError
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.models.embedding.guarded import close_embedding, warm_up
from rag_service.models.llm.model import ChatModel, build_chat, collect
from rag_service.settings import Settings
from tests.doubles.ollama import vector
from tests.doubles.openai import CHAT, EMBED, OpenAIDouble, Reply, openai_server
from tests.integration.models.conftest import MESSAGES, QUICK, until

__all__ = ["openai_server"]


MakeSettings = Callable[..., Settings]


@pytest.fixture
def make_settings(openai_server: OpenAIDouble) -> MakeSettings:
    def make(**overrides: object) -> Settings:
        defaults = {
            "chat_provider": "openai_like",
            "embedding_provider": "openai_like",
            "embedding_model": "bge-m3",
            "openai_url": openai_server.url,
            "openai_api_key": "key-of-the-server",
        }
        return Settings(**(defaults | overrides))  # type: ignore[arg-type]

    return make


@pytest.fixture
async def chat(make_settings: MakeSettings) -> AsyncIterator[ChatModel]:
    built = build_chat(make_settings(), retries=QUICK)
    yield built
    await built.aclose()


@pytest.fixture
async def embedding(make_settings: MakeSettings) -> AsyncIterator[BaseEmbedding]:
    built = build_embedding(make_settings(), retries=QUICK)
    yield built
    await close_embedding(built)


async def test_an_answer_streams_with_its_counts(chat: ChatModel, openai_server: OpenAIDouble) -> None:
    openai_server.key = "key-of-the-server"
    async with aclosing(chat.stream(MESSAGES, max_tokens=99)) as stream:
        deltas = [delta async for delta in stream]
    assert "".join(delta.text for delta in deltas).strip() == openai_server.answer
    assert len(deltas) > 3
    last = deltas[-1]
    assert (last.text, last.prompt_tokens, last.completion_tokens, last.finish_reason) == ("", 42, 7, "stop")
    [body] = openai_server.bodies(CHAT)
    assert (body["model"], body["max_tokens"], body["temperature"], body["stream"]) == ("llama3.2", 99, 0.1, True)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


async def test_content_in_parts_is_joined_without_the_thoughts(chat: ChatModel, openai_server: OpenAIDouble) -> None:
    """As Mistral's reasoning models send it."""
    thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]
    said = [[{"type": "text", "text": "Three "}], [{"type": "text", "text": "days."}]]
    openai_server.script(CHAT, Reply(deltas=(thought, *said)))  # type: ignore[arg-type]
    async with aclosing(chat.stream(MESSAGES, max_tokens=99)) as stream:
        assert "".join([delta.text async for delta in stream]) == "Three days."


async def test_structured_output_is_held_to_the_schema(chat: ChatModel, openai_server: OpenAIDouble) -> None:
    openai_server.answer = '{"score": 7}'
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}}
    assert (await chat.complete_json(MESSAGES, schema)).strip() == '{"score": 7}'
    [body] = openai_server.bodies(CHAT)
    assert body["response_format"]["json_schema"]["schema"] == schema


async def test_an_answer_cut_by_its_limit_says_so(chat: ChatModel, openai_server: OpenAIDouble) -> None:
    openai_server.script(CHAT, Reply(deltas=("The contract ",), finish_reason="length"))
    text, last = await collect(chat.stream(MESSAGES))
    assert (text, last.finish_reason) == ("The contract ", "length")


@pytest.mark.parametrize(
    ("thinking", "fields"),
    [
        (False, {"chat_template_kwargs": {"enable_thinking": False}}),
        (True, {"chat_template_kwargs": {"enable_thinking": True}}),
        (
            "low",
            {
                "chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "low"},
                "reasoning_effort": "low",
            },
        ),
    ],
)
async def test_the_server_is_told_whether_to_think(
    make_settings: MakeSettings, openai_server: OpenAIDouble, thinking: object, fields: dict[str, object]
) -> None:
    chat = build_chat(make_settings(thinking=thinking), retries=QUICK)
    await collect(chat.stream(MESSAGES))
    await chat.aclose()
    [body] = openai_server.bodies(CHAT)
    assert fields.items() <= body.items()
    assert ("reasoning_effort" in body) == ("reasoning_effort" in fields)


async def test_a_server_that_refuses_the_switch_of_thinking_is_asked_without_it_from_then_on(
    chat: ChatModel, openai_server: OpenAIDouble
) -> None:
    openai_server.unknown = "chat_template_kwargs"
    for _ in range(2):
        assert (await collect(chat.stream(MESSAGES)))[0].strip() == openai_server.answer
    bodies = openai_server.bodies(CHAT)
    assert ["chat_template_kwargs" in body for body in bodies] == [True, False, False]
    assert all(body["stream_options"] == {"include_usage": True} for body in bodies)


async def test_another_refusal_is_not_tried_again_once_the_switch_is_known(
    chat: ChatModel, openai_server: OpenAIDouble
) -> None:
    await collect(chat.stream(MESSAGES))
    openai_server.script(CHAT, Reply(status=400))
    with pytest.raises(ModelError, match="refused the request"):
        await collect(chat.stream(MESSAGES))
    assert len(openai_server.bodies(CHAT)) == 2


async def test_a_cut_stream_is_an_error_and_not_half_an_answer(chat: ChatModel, openai_server: OpenAIDouble) -> None:
    openai_server.script(CHAT, Reply(deltas=("The contract",), cut=True))
    with pytest.raises(ModelError, match="stopped before the end"):
        async with aclosing(chat.stream(MESSAGES)) as stream:
            async for _ in stream:
                pass
    assert len(openai_server.bodies(CHAT)) == 1


async def test_a_busy_server_is_tried_three_times(chat: ChatModel, openai_server: OpenAIDouble) -> None:
    openai_server.script(CHAT, *[Reply(status=429, headers={"retry-after": "0"})] * 3)
    with pytest.raises(ModelBusyError):
        async with aclosing(chat.stream(MESSAGES)) as stream:
            async for _ in stream:
                pass
    assert len(openai_server.bodies(CHAT)) == 3


async def test_a_reader_who_leaves_ends_the_request(chat: ChatModel, openai_server: OpenAIDouble) -> None:
    openai_server.script(CHAT, Reply(deltas=("The", "contract"), hang=True))
    async with aclosing(chat.stream(MESSAGES)) as stream:
        assert (await anext(stream)).text == "The"
    await until(lambda: len(openai_server.disconnects) == 1)


async def test_silence_between_tokens_ends_in_time(make_settings: MakeSettings, openai_server: OpenAIDouble) -> None:
    chat = build_chat(make_settings(token_timeout=0.3), retries=QUICK)
    openai_server.script(CHAT, Reply(deltas=("The",), hang=True))
    with pytest.raises(ModelError, match="in time"):
        async with aclosing(chat.stream(MESSAGES)) as stream:
            async for _ in stream:
                pass
    await until(lambda: len(openai_server.disconnects) == 1)
    await chat.aclose()


async def test_vectors_are_in_the_order_of_the_texts(embedding: BaseEmbedding, openai_server: OpenAIDouble) -> None:
    texts = ["first", "  ", "third"]
    vectors = await embedding.aget_text_embedding_batch(texts)
    assert vectors[0] == pytest.approx(vector("first", 384))
    assert vectors[2] == pytest.approx(vector("third", 384))
    assert openai_server.bodies(EMBED)[0]["input"] == ["first", ".", "third"]
    assert await embedding.aget_query_embedding("third") == pytest.approx(vectors[2])
    assert embedding.get_text_embedding("first") == pytest.approx(vectors[0])


async def test_questions_and_passages_get_the_prefixes_of_the_model(
    make_settings: MakeSettings, openai_server: OpenAIDouble
) -> None:
    embedding = build_embedding(make_settings(embedding_model="nomic-embed-text"), retries=QUICK)
    await embedding.aget_query_embedding("When?")
    await embedding.aget_text_embedding_batch(["One.", "Two."])
    await close_embedding(embedding)
    sent = [body["input"] for body in openai_server.bodies(EMBED)]
    assert sent == [["search_query: When?"], ["search_document: One.", "search_document: Two."]]


async def test_a_wrong_dimension_names_the_setting(embedding: BaseEmbedding, openai_server: OpenAIDouble) -> None:
    openai_server.dimension = 768
    with pytest.raises(ConfigurationError, match="RAG_EMBEDDING_DIMENSION is 384: set it to 768"):
        await warm_up(embedding)


async def test_a_failing_embedding_server_is_tried_three_times(
    embedding: BaseEmbedding, openai_server: OpenAIDouble
) -> None:
    openai_server.script(EMBED, *[Reply(status=500)] * 3)
    with pytest.raises(EmbeddingError):
        await embedding.aget_query_embedding("text")
    assert len(openai_server.bodies(EMBED)) == 3


async def test_a_server_that_is_gone_is_reported(make_settings: MakeSettings, openai_server: OpenAIDouble) -> None:
    openai_server.stop()
    embedding = build_embedding(make_settings(), retries=QUICK)
    with pytest.raises(EmbeddingError, match="cannot be reached"):
        await embedding.aget_query_embedding("text")
    await close_embedding(embedding)
