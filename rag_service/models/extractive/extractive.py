"""The answerer without a model: quotes the sentences that answer best, each with its mark.

It is a LlamaIndex LLM like any other, so that every path (streaming, citations, records) runs the
same code with it. What it needs beyond the prompt's text, the passages themselves, comes with the
last message, which must be a `GroundedMessage`; other LLMs read that as a plain message. See
`rag_service.models.extractive.sentence_choice` for which sentences those are.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM

from rag_service.errors import ModelOutputError
from rag_service.models.extractive.grounded_message import Evidence, GroundedMessage
from rag_service.models.extractive.sentence_choice import Sentence, select_sentences

MODEL_NAME = "extractive"


class ExtractiveLLM(CustomLLM):
    """Answers by quotation; needs no model server."""

    _embedding: BaseEmbedding | None = PrivateAttr(default=None)
    _context_window: int = PrivateAttr(default=32_000)

    def __init__(self, embedding: BaseEmbedding | None = None):
        """
        Args:
            embedding: compares sentences with the question; None scores by words alone.
        """
        super().__init__()
        self._embedding = embedding

    @classmethod
    def class_name(cls) -> str:
        return "ExtractiveLLM"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self._context_window, num_output=1000, model_name=MODEL_NAME, is_chat_model=True
        )

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseAsyncGen:
        """Stream the answer sentence by sentence.

        Raises:
            ModelOutputError: the last message carries no evidence.
        """
        evidence = _evidence_of(messages)
        sentences = await select_sentences(evidence, self._embedding)

        async def stream() -> AsyncGenerator[ChatResponse]:
            text = ""
            for delta in compose(sentences, evidence.refusal, warning=evidence.warning):
                text += delta
                yield ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), delta=delta)

        return stream()

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        evidence = _evidence_of(messages)
        sentences = await select_sentences(evidence, self._embedding)
        text = "".join(compose(sentences, evidence.refusal, warning=evidence.warning))
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text))

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        raise ModelOutputError("The extractive answerer answers grounded chats only; configure a chat model.")

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:
        raise ModelOutputError("The extractive answerer answers grounded chats only; configure a chat model.")


def _evidence_of(messages: Sequence[ChatMessage]) -> Evidence:
    last = messages[-1] if messages else None
    if not isinstance(last, GroundedMessage) or last.evidence is None:
        raise ModelOutputError("The extractive answerer answers grounded chats only; configure a chat model.")
    return last.evidence


def compose(sentences: Sequence[Sentence], refusal: str, *, warning: str = "") -> list[str]:
    """The answer in pieces as they are streamed; one paragraph a sentence, each with its mark."""
    if not sentences:
        return [refusal]
    pieces: list[str] = [f"{warning}\n\n"] if warning else []
    previous: Sentence | None = None
    for sentence in sentences:
        if previous is not None and sentence.unit.header and sentence.table == previous.table:
            pieces.append("\n" + sentence.text)  # one more row below the same header
        else:
            pieces.append(("\n\n" if previous else "") + sentence.unit.with_header)
        pieces.append(f" [C{sentence.mark}]")
        if sentence.unit.short_answer:
            pieces.append(f" {sentence.unit.short_answer}")
        previous = sentence
    return pieces
