"""What the model tests share: the double of Ollama, settings that point at it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from rag_service.models.llm.model import ChatModel, build_chat
from rag_service.models.servers.resilience import RetryPolicy
from rag_service.settings import Settings
from tests.doubles.ollama import OllamaDouble, ollama
from tests.serving import PATIENCE

__all__ = ["ollama"]

QUICK = RetryPolicy(first_wait=0.01, jitter=0.0)
MESSAGES = [
    ChatMessage(role=MessageRole.SYSTEM, content="Answer from the sources."),
    ChatMessage(role=MessageRole.USER, content="When does the contract end?"),
]

MakeSettings = Callable[..., Settings]
MakeChat = Callable[..., ChatModel]


@pytest.fixture
def make_settings(ollama: OllamaDouble) -> MakeSettings:
    """Settings of a service that uses the double for everything; keywords override."""

    def make(**overrides: object) -> Settings:
        defaults = {
            "chat_provider": "ollama",
            "embedding_provider": "ollama",
            "embedding_model": "bge-m3",
            "ollama_url": ollama.url,
            "first_token_timeout": 300.0,  # no test waits that long
            "token_timeout": 300.0,
            "answer_timeout": 600.0,
        }
        return Settings(**(defaults | overrides))  # type: ignore[arg-type]

    return make


@pytest.fixture
async def make_chat(make_settings: MakeSettings) -> AsyncIterator[MakeChat]:
    """Builds chat models on the double and closes them after the test."""
    built: list[ChatModel] = []

    def make(**overrides: object) -> ChatModel:
        chat = build_chat(make_settings(**overrides), retries=QUICK)
        built.append(chat)
        return chat

    yield make
    for chat in built:
        await chat.aclose()


async def until(condition: Callable[[], bool], *, seconds: float = PATIENCE) -> None:
    """Wait for a condition of the double's thread."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "the condition did not come true in time"
        await asyncio.sleep(0.005)
