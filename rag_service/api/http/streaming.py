"""Replies that stop when the client disconnects.

Everything runs in plain asyncio tasks, each cancelled once at first, so that the engine's cleanup can finish;
Litestar's cancel scopes would cancel every `await` of the cleanup again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

import structlog
from litestar import Request, Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from rag_service.api.http.bodies import AnyRequest, Pace
from rag_service.api.http.events import NDJSON, SSE, Encoder, NdjsonEncoder, SseEncoder, WireEvent, collect
from rag_service.api.http.problems import ClientGoneError, Problem, StreamingDisabledError, problem_response, report
from rag_service.settings import Settings
from rag_service.tasks import end_tasks

log = structlog.get_logger(__name__)

_BUFFERED_EVENTS = 32  # how far the engine may run ahead of a slow reader
_SLICE = 2**16  # bytes; a connection holds so many before it waits for its client

_Result = TypeVar("_Result")


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Await `work`; cancel it and raise ClientGoneError if the client disconnects first.

    The body of the request must have been read from `receive`.
    """
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        return task.result()
    finally:
        await end_tasks(task, watcher)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _with_heartbeats(
    events: AsyncGenerator[WireEvent, None], seconds: float
) -> AsyncGenerator[WireEvent | None, None]:
    """The events, and None after each silence of `seconds`.

    They are made in a task of their own, so that a due heartbeat does not cancel them in the middle of a step.
    """
    queue: asyncio.Queue[WireEvent | None] = asyncio.Queue(_BUFFERED_EVENTS)

    async def pump() -> None:
        async with aclosing(events):
            async for event in events:
                await queue.put(event)
        await queue.put(None)

    task = asyncio.create_task(pump())
    try:
        while True:
            try:
                async with asyncio.timeout(seconds):
                    event = await queue.get()
            except TimeoutError:
                yield None
                continue
            if event is None:
                return
            yield event
    finally:
        await end_tasks(task)


async def _send_piece(send: Send, piece: bytes, pace: Pace) -> None:
    """Send a part of the body. Raises ClientGoneError if the client takes nothing, or too little, see `Pace`.

    A large one is sent in slices: a slow client takes megabytes in many minutes.
    """
    try:
        for start in range(0, len(piece), _SLICE):
            part = piece[start : start + _SLICE]
            async with pace.limit():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            pace.add(len(part))
    except TimeoutError:
        log.info("client_takes_nothing")
        raise ClientGoneError from None


class EventStreamResponse(Response[None]):
    """A streamed reply whose status depends on its first event.

    A failure before any event is a problem with its own status. If the first event takes longer than a
    heartbeat, the stream begins with a heartbeat to keep proxies waiting; a failure is then an `error` event.

    A client that takes nothing for a minute has left: its answer holds a place that others want.
    """

    def __init__(
        self,
        events: AsyncGenerator[WireEvent, None],
        *,
        encoder: Encoder,
        heartbeat_seconds: float,
        refuse: Callable[[Problem], Response[Any]] = problem_response,
    ):
        """`events` are always closed; a heartbeat is sent after `heartbeat_seconds` of silence; `refuse` makes the
        reply when the first event is an error."""
        super().__init__(None)
        self.events = events
        self.encoder = encoder
        self.heartbeat_seconds = heartbeat_seconds
        self.refuse = refuse

    def to_asgi_response(  # type: ignore[override]  # the options that Litestar passes are not needed
        self, app: None, request: Request[Any, Any, Any], **_: object
    ) -> _EventStream:
        return _EventStream(self, request)


class _EventStream(ASGIResponse):
    def __init__(self, response: EventStreamResponse, request: AnyRequest):
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(headers=headers, media_type=response.encoder.media_type)
        self._response = response
        self._request = request
        self._complete = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await unless_gone(receive, self._reply(scope, receive, send))
        except ClientGoneError:
            if not self._complete:  # the server reports the end of a complete reply as a disconnect, too
                log.info("client_gone")

    async def _reply(self, scope: Scope, receive: Receive, send: Send) -> None:
        encoder, started, pace = self._response.encoder, False, Pace()
        async with aclosing(_with_heartbeats(self._response.events, self._response.heartbeat_seconds)) as events:
            async for event in events:
                if not started and event is not None and isinstance(event.data, Problem):
                    refusal = self._response.refuse(event.data).to_asgi_response(None, self._request)
                    self._complete = True
                    await refusal(scope, receive, send)
                    return
                piece = encoder.heartbeat if event is None else encoder.encode(event)
                if not started:
                    started, piece = True, encoder.opening + piece
                    self.headers.pop("content-length", None)
                    await send({"type": "http.response.start", "status": 200, "headers": self.headers.headers})
                if piece:
                    await _send_piece(send, piece, pace)
        self._complete = True
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def stream_events(events: AsyncGenerator[WireEvent, None], request: AnyRequest, settings: Settings) -> Response[None]:
    """The events as NDJSON for clients that ask for it, else as server-sent events."""
    encoder = NdjsonEncoder() if request.accept.best_match([SSE, NDJSON]) == NDJSON else SseEncoder()
    return EventStreamResponse(events, encoder=encoder, heartbeat_seconds=settings.http.heartbeat_seconds)


class DownloadResponse(Response[bytes]):
    """A file in pieces.

    A failure before the first one is a problem with its own status; after a later one the connection is closed before
    the end of the reply, so that the client sees that the file is not complete. So it is where a client takes too
    little, see `Pace`: what makes the pieces holds a connection to the database.
    """

    def __init__(self, pieces: AsyncGenerator[bytes], *, media_type: str, disposition: str):
        """`pieces` are closed, if the reply is sent; `disposition` is the header `Content-Disposition`."""
        super().__init__(b"")
        self.pieces = pieces
        self.file_headers = {
            "cache-control": "no-store",
            "content-disposition": disposition,
            "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
        }
        self.file_type = media_type

    def to_asgi_response(  # type: ignore[override]  # the options that Litestar passes are not needed
        self, app: None, request: Request[Any, Any, Any], **_: object
    ) -> _Download:
        return _Download(self)


class _Download(ASGIResponse):
    def __init__(self, response: DownloadResponse):
        super().__init__(headers=response.file_headers, media_type=response.file_type)
        self._response = response
        self._complete = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await unless_gone(receive, self._reply(send))
        except ClientGoneError:
            if not self._complete:
                log.info("client_gone")

    async def _reply(self, send: Send) -> None:
        started, pace = False, Pace()
        try:
            async with aclosing(self._response.pieces) as pieces:
                async for piece in pieces:
                    if not started:
                        self.headers.pop("content-length", None)
                        await send({"type": "http.response.start", "status": 200, "headers": self.headers.headers})
                        started = True
                    if piece:
                        await _send_piece(send, piece, pace)
        except ClientGoneError:
            raise
        except Exception as error:
            if not started:
                raise
            report(error)  # the server closes the connection, since the reply has no end
            return
        self._complete = True
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def reply_with_answer(
    events: AsyncGenerator[WireEvent, None], request: AnyRequest, settings: Settings, *, stream: bool
) -> Response[Any]:
    """The events of an answer as a stream or as one body. Raises StreamingDisabledError, and ClientGoneError."""
    if stream:
        check_streaming(settings)
        return stream_events(events, request, settings)
    outcome = await unless_gone(request.receive, collect(events))
    return problem_response(outcome) if isinstance(outcome, Problem) else Response(outcome)


def check_streaming(settings: Settings) -> None:
    """Raise StreamingDisabledError unless answers may be streamed."""
    if not settings.http.stream_enabled:
        raise StreamingDisabledError("Streamed answers are turned off here.", field="stream")
