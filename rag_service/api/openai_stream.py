"""A streamed answer as `chat.completion.chunk` events.

The same wire events as everywhere else, written differently. A failure before the first of them is
an error reply with its own status; a later one is an `error` event, and `[DONE]` does not follow.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

import msgspec
import structlog
from litestar import Request, Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from rag_service.api.bodies import AnyRequest
from rag_service.api.events import SSE, WireEvent
from rag_service.api.openai_errors import error_event, error_response
from rag_service.api.openai_schemas import (
    ChatCompletion,
    ChatCompletionChunk,
    Choice,
    ChunkChoice,
    CompletionMessage,
    Delta,
    RagBody,
    Usage,
)
from rag_service.api.problems import ClientGoneError, Problem
from rag_service.api.schemas import AnswerBody, DeltaData
from rag_service.api.streaming import EventFeed, unless_gone

log = structlog.get_logger(__name__)

_HEARTBEAT = b": keep-alive\n\n"
_DONE = b"data: [DONE]\n\n"


def present_completion(answer: AnswerBody, *, model: str) -> ChatCompletion:
    """A whole answer in that API's shape."""
    return ChatCompletion(
        id=completion_id(answer.answer_id),
        created=int(time.time()),
        model=model,
        choices=[Choice(message=CompletionMessage(content=answer.answer, citations=answer.citations))],
        usage=_usage(answer),
        rag=_rag(answer),
    )


def completion_id(key: UUID) -> str:
    return f"chatcmpl-{key.hex}"


def _usage(answer: AnswerBody) -> Usage:
    return Usage(
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        total_tokens=answer.prompt_tokens + answer.completion_tokens,
    )


def _rag(answer: AnswerBody) -> RagBody:
    return RagBody(
        answer_id=answer.answer_id,
        decision=answer.decision,
        confidence=answer.confidence,
        language=answer.language,
    )


class ChunkWriter:
    """Writes the events of one answer as chunks, which all carry the same id and time."""

    def __init__(self, *, key: UUID, model: str, include_usage: bool):
        """
        Args:
            key: makes the id of the completion; the answer's own is not known before its end.
            model: as the request names it.
            include_usage: a chunk with the token counts follows the answer.
        """
        self._id = completion_id(key)
        self._created = int(time.time())
        self._model = model
        self._include_usage = include_usage

    def start(self) -> bytes:
        """The chunk that says whose words follow."""
        return self._write([ChunkChoice(delta=Delta(role="assistant", content=""))])

    def write(self, event: WireEvent) -> bytes:
        """What an event is in that API; nothing for those that it has no words for."""
        match event.data:
            case DeltaData(text=text):
                return self._write([ChunkChoice(delta=Delta(content=text))])
            case AnswerBody() as answer:
                return self._finish(answer)
            case Problem() as problem:
                return error_event(problem)
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
            rag=None if answer is None else _rag(answer),
        )
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


class ChunkStreamResponse(Response[None]):
    """A streamed reply whose status is decided by its first event, or by the first heartbeat that is due."""

    def __init__(self, events: AsyncGenerator[WireEvent, None], writer: ChunkWriter, *, heartbeat_seconds: float):
        super().__init__(None)
        self._events = events
        self._writer = writer
        self._heartbeat_seconds = heartbeat_seconds

    def to_asgi_response(  # type: ignore[override]  # the options that Litestar passes have no use here
        self, app: None, request: Request[Any, Any, Any], **_: object
    ) -> _ChunkStream:
        return _ChunkStream(self._events, self._writer, self._heartbeat_seconds, request)


class _ChunkStream(ASGIResponse):
    def __init__(
        self,
        events: AsyncGenerator[WireEvent, None],
        writer: ChunkWriter,
        heartbeat_seconds: float,
        request: AnyRequest,
    ):
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"}, media_type=SSE)
        self._events = events
        self._writer = writer
        self._heartbeat_seconds = heartbeat_seconds
        self._request = request
        self._complete = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await unless_gone(receive, self._reply(scope, receive, send))
        except ClientGoneError:
            if not self._complete:  # the server reports the end of a complete reply as a disconnect, too
                log.info("client_gone")

    async def _reply(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with EventFeed(self._events) as feed:
            first = await self._next(feed)
            if isinstance(first, WireEvent) and isinstance(first.data, Problem):
                self._complete = True
                await error_response(first.data).to_asgi_response(None, self._request)(scope, receive, send)
                return
            self.headers.pop("content-length", None)
            await send({"type": "http.response.start", "status": 200, "headers": self.headers.headers})
            await _send(send, self._writer.start())
            item: WireEvent | bytes | None = first
            while item is not None:
                await _send(send, item if isinstance(item, bytes) else self._writer.write(item))
                item = await self._next(feed)
        self._complete = True
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next(self, feed: EventFeed) -> WireEvent | bytes | None:
        """The next event, or a heartbeat after silence."""
        try:
            return await feed.next(self._heartbeat_seconds)
        except TimeoutError:
            return _HEARTBEAT


async def _send(send: Send, body: bytes) -> None:
    if body:
        await send({"type": "http.response.body", "body": body, "more_body": True})
