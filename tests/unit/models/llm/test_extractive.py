"""Where no chat model is set, LlamaIndex still has an LLM, which says that there is none."""

from __future__ import annotations

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.errors import ModelOutputError
from rag_service.models.llm.extractive import ExtractiveLLM

HELLO = [ChatMessage(role=MessageRole.USER, content="Hello")]


async def test_every_call_is_refused_and_says_how_to_fix_it() -> None:
    llm = ExtractiveLLM()
    for call in (llm.achat, llm.astream_chat):
        with pytest.raises(ModelOutputError, match="configure a chat model"):
            await call(HELLO)
    for ask in (llm.complete, llm.stream_complete):
        with pytest.raises(ModelOutputError, match="configure a chat model"):
            ask("Hello")
    for chat in (llm.chat, llm.stream_chat):
        with pytest.raises(ModelOutputError, match="configure a chat model"):
            chat(HELLO)
