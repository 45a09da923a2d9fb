"""What stands where LlamaIndex wants an LLM, and there is none: quotes answer, which are no model's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from llama_index.core.base.llms.types import ChatMessage, LLMMetadata
from llama_index.core.llms import CustomLLM

from rag_service.errors import ModelOutputError
from rag_service.unpicklable import Unpicklable

EXTRACTIVE = "extractive"  # RAG_CHAT_PROVIDER where there is no chat model


class ExtractiveLLM(Unpicklable, CustomLLM):
    """Refuses every call with ModelOutputError: answers are quoted from passages, without an LLM."""

    @classmethod
    def class_name(cls) -> str:
        return "ExtractiveLLM"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=32_000, num_output=1000, model_name=EXTRACTIVE, is_chat_model=True)

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> NoReturn:
        _refuse()

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> NoReturn:
        _refuse()

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> NoReturn:
        _refuse()

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> NoReturn:
        _refuse()


def _refuse() -> NoReturn:
    raise ModelOutputError("The extractive answerer only supports answers from passages; configure a chat model.")
