"""The chat model over any LlamaIndex LLM, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import MockLLM

from rag_service.errors import ContextOverflowError, ModelError, ModelOutputError
from rag_service.models.chat.chat import build_chat
from rag_service.settings import Settings

MESSAGES = [ChatMessage(role=MessageRole.USER, content="One two three")]


class FakeLLM(MockLLM):
    """An LLM that yields these deltas; an exception among them is raised."""

    _deltas: list[Any] = PrivateAttr()
    _seen: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    def __init__(self, *deltas: Any):
        super().__init__()
        self._deltas = list(deltas)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> AsyncGenerator[ChatResponse, None]:
        self._seen.append(kwargs)

        async def stream() -> AsyncGenerator[ChatResponse, None]:
            for delta in self._deltas:
                await asyncio.sleep(0)
                if isinstance(delta, Exception):
                    raise delta
                yield ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=delta), delta=delta)

        return stream()


async def test_any_llm_streams_through_it_and_is_called_once() -> None:
    llm = FakeLLM("May", " 30.")
    chat = build_chat(Settings(), extractive=llm)
    deltas = [delta async for delta in chat.stream(MESSAGES)]
    assert [(delta.text, delta.last) for delta in deltas] == [("May", False), (" 30.", False), ("", True)]
    assert deltas[-1].prompt_tokens is None
    assert llm._seen == [{}]
    assert chat.provider == "extractive"


async def test_llama_indexs_own_mock_works_as_it_is() -> None:
    chat = build_chat(Settings(), extractive=MockLLM(max_tokens=3))
    assert "".join([delta.text async for delta in chat.stream(MESSAGES)]) == "text text text"


async def test_max_tokens_is_passed_on_in_llama_indexs_usual_name() -> None:
    llm = FakeLLM("May")
    chat = build_chat(Settings(), extractive=llm)
    assert [delta async for delta in chat.stream(MESSAGES, max_tokens=20)]
    assert llm._seen == [{"max_tokens": 20}]


async def test_an_error_of_the_service_itself_passes_unchanged() -> None:
    chat = build_chat(Settings(), extractive=FakeLLM("May", ContextOverflowError("too long")))
    with pytest.raises(ContextOverflowError):
        [delta async for delta in chat.stream(MESSAGES)]


async def test_any_other_error_is_a_model_error_without_internals() -> None:
    chat = build_chat(Settings(), extractive=FakeLLM(ValueError("secret detail")))
    with pytest.raises(ModelError) as caught:
        [delta async for delta in chat.stream(MESSAGES)]
    assert "secret" not in caught.value.message
    assert str(caught.value.__cause__).startswith("ValueError: ")  # for the log


async def test_a_model_without_structured_output_says_so() -> None:
    chat = build_chat(Settings(), extractive=FakeLLM("May"))
    assert not chat.structured_output
    with pytest.raises(ModelOutputError):
        await chat.complete_json(MESSAGES, {"type": "object"})
