"""Replies that stop working when their reader leaves.

Everything here runs in plain asyncio tasks, each cancelled once: whatever the engine awaits while it
is being closed runs to its end, which it would not below Litestar's cancel scopes.
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

from rag_service.api.wire.bodies import AnyRequest
from rag_service.api.wire.events import NDJSON, SSE, Encoder, NdjsonEncoder, SseEncoder, WireEvent
from rag_service.api.wire.problems import ClientGoneError, Problem, problem_response

log = structlog.get_logger(__name__)

_BUFFERED_EVENTS = 32  # how far the engine may run ahead of a slow reader

_Result = TypeVar("_Result")


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Await `work`, but cancel it as soon as the client disconnects.

    Args:
        receive: of the request, whose body has been read.
        work: what the client waits for.

    Raises:
        ClientGoneError: the client left first; `work` has been cancelled and has ended.
    """
    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        return task.result()
    finally:
        await _cancel(task, watcher)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class EventFeed:
    """Runs a generator of events in a task of its own, so that waiting for one can be given up.

    A generator must not be cancelled in the middle of a step just because a heartbeat is due.
    """

    def __init__(self, events: AsyncGenerator[WireEvent, None]):
        self._events = events
        self._queue: asyncio.Queue[WireEvent | None] = asyncio.Queue(_BUFFERED_EVENTS)

    async def __aenter__(self) -> EventFeed:
        self._task = asyncio.create_task(self._pump())
        return self

    async def __aexit__(self, *_: object) -> None:
        await _cancel(self._task)

    async def _pump(self) -> None:
        async with aclosing(self._events):
            async for event in self._events:
                await self._queue.put(event)
        await self._queue.put(None)

    async def next(self, patience: float) -> WireEvent | None:
        """The next event; None after the last.

        Raises:
            TimeoutError: none came within `patience` seconds.
        """
        async with asyncio.timeout(patience):
            return await self._queue.get()


class EventStreamResponse(Response[None]):
    """A streamed reply whose status is decided by its first event.

    A failure before any event is a problem with its own status. When the first event takes longer
    than a heartbeat, the stream begins with a heartbeat, lest a proxy gives the connection up; a
    failure is then an `error` event.
    """

    def __init__(
        self,
        events: AsyncGenerator[WireEvent, None],
        *,
        encoder: Encoder,
        heartbeat_seconds: float,
        refuse: Callable[[Problem], Response[Any]] = problem_response,
    ):
        """
        Args:
            events: what to write; closed at the end, also when the reader leaves.
            encoder: how.
            heartbeat_seconds: silence after which the encoder's heartbeat is sent.
            refuse: makes the reply of a failure before any event.
        """
        super().__init__(None)
        self._events = events
        self._encoder = encoder
        self._heartbeat_seconds = heartbeat_seconds
        self._refuse = refuse

    def to_asgi_response(  # type: ignore[override]  # the options that Litestar passes have no use here
        self, app: None, request: Request[Any, Any, Any], **_: object
    ) -> _EventStream:
        return _EventStream(self._events, self._encoder, self._heartbeat_seconds, self._refuse, request)


class _EventStream(ASGIResponse):
    def __init__(
        self,
        events: AsyncGenerator[WireEvent, None],
        encoder: Encoder,
        heartbeat_seconds: float,
        refuse: Callable[[Problem], Response[Any]],
        request: AnyRequest,
    ):
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(headers=headers, media_type=encoder.media_type)
        self._events = events
        self._encoder = encoder
        self._heartbeat_seconds = heartbeat_seconds
        self._refuse = refuse
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
                refusal = self._refuse(first.data).to_asgi_response(None, self._request)
                self._complete = True
                await refusal(scope, receive, send)
                return
            await self._start(send)
            item: WireEvent | bytes | None = first
            while item is not None:
                await _send(send, item if isinstance(item, bytes) else self._encoder.encode(item))
                item = await self._next(feed)
        self._complete = True
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next(self, feed: EventFeed) -> WireEvent | bytes | None:
        """The next event, or a heartbeat after silence."""
        try:
            return await feed.next(self._heartbeat_seconds)
        except TimeoutError:
            return self._encoder.heartbeat

    async def _start(self, send: Send) -> None:
        self.headers.pop("content-length", None)
        await send({"type": "http.response.start", "status": 200, "headers": self.headers.headers})
        await _send(send, self._encoder.opening)


async def _send(send: Send, body: bytes) -> None:
    if body:
        await send({"type": "http.response.body", "body": body, "more_body": True})


def choose_encoder(request: AnyRequest) -> Encoder:
    """NDJSON for clients that ask for it, else server-sent events."""
    return NdjsonEncoder() if request.accept.best_match([SSE, NDJSON]) == NDJSON else SseEncoder()
