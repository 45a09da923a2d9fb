"""A streamed answer as `chat.completion.chunk` events; a late failure is an `error` event without `[DONE]`."""

from __future__ import annotations

import time
from uuid import UUID

import msgspec

from rag_service.api.http.events import SSE, SSE_HEARTBEAT, WireEvent
from rag_service.api.http.presenters import present
from rag_service.api.http.problems import Problem
from rag_service.api.http.schemas import AnswerBody, DeltaData
from rag_service.api.openai.errors import present_error
from rag_service.api.openai.schemas import (
    ChatCompletion,
    ChatCompletionChunk,
    Choice,
    ChunkChoice,
    CompletionMessage,
    Delta,
    RagBody,
    Usage,
)

_DONE = b"data: [DONE]\n\n"


def present_completion(answer: AnswerBody, *, model: str) -> ChatCompletion:
    """A whole answer in that API's shape."""
    return ChatCompletion(
        id=completion_id(answer.answer_id),
        created=int(time.time()),
        model=model,
        choices=[Choice(message=CompletionMessage(content=answer.answer, citations=answer.citations))],
        usage=_usage(answer),
        rag=present(RagBody, answer),
    )


def completion_id(key: UUID) -> str:
    return f"chatcmpl-{key.hex}"


def _usage(answer: AnswerBody) -> Usage:
    return Usage(
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        total_tokens=answer.prompt_tokens + answer.completion_tokens,
    )


class ChunkEncoder:
    """Writes the events of one answer as chunks, which all carry the same id and time."""

    media_type = SSE
    heartbeat = SSE_HEARTBEAT

    def __init__(self, *, key: UUID, model: str, include_usage: bool):
        self._id = completion_id(key)
        self._created = int(time.time())
        self._model = model
        self._include_usage = include_usage
        self.opening = self._write([ChunkChoice(delta=Delta(role="assistant", content=""))])  # says whose words follow

    def encode(self, event: WireEvent) -> bytes:
        """What an event is in that API; nothing for those that it has no words for."""
        match event.data:
            case DeltaData(text=text):
                return self._write([ChunkChoice(delta=Delta(content=text))])
            case AnswerBody() as answer:
                return self._finish(answer)
            case Problem() as problem:
                return b"data: " + msgspec.json.encode(present_error(problem)) + b"\n\n"
            case _:
                return b""

    def _finish(self, answer: AnswerBody) -> bytes:
        last = ChunkChoice(delta=Delta(citations=answer.citations), finish_reason="stop")
        written = self._write([last], answer)
        return written + (self._write([], answer, _usage(answer)) if self._include_usage else b"") + _DONE

    def _write(self, choices: list[ChunkChoice], answer: AnswerBody | None = None, usage: Usage | None = None) -> bytes:
        chunk = ChatCompletionChunk(
            id=self._id,
            object="chat.completion.chunk",
            created=self._created,
            model=self._model,
            choices=choices,
            usage=usage,
            citations=None if answer is None else answer.citations,
            rag=None if answer is None else present(RagBody, answer),
        )
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"
