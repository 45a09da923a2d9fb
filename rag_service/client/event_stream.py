"""Replies that are read while they are made, in plain and in async code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any, Generic, TypeVar

from rag_service.api.http.events import WireEvent
from rag_service.client.background_loop import BackgroundLoop

T = TypeVar("T")


class EventStream(Generic[T]):
    """The events of a reply as the API streams them: `for event in stream` or `async for event in stream`, once.

    Each has a name, `event.event`, and `event.data`. A failure midway is raised. Who leaves the loop ends the work.
    """

    def __init__(
        self, loop: BackgroundLoop, events: AsyncGenerator[WireEvent, None], complete: Callable[[Any], T]
    ) -> None:
        """Waits for the first event, so that what is wrong with the request is raised here.

        `complete` makes the whole reply of the data of `final`.
        """
        self._loop = loop
        self._events = events
        self._complete = complete
        self._first: WireEvent | None = loop.run(_next(events))
        self._final: WireEvent | None = None

    def __iter__(self) -> Iterator[WireEvent]:
        try:
            while (event := self._take_first() or self._loop.run(_next(self._events))) is not None:
                yield self._seen(event)
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[WireEvent]:
        try:
            while (event := self._take_first() or await self._loop.arun(_next(self._events))) is not None:
                yield self._seen(event)
        finally:
            await self._loop.arun(self._events.aclose())

    def finish(self) -> T:
        """Read what is left; the whole reply. Raises RuntimeError if the stream was left before its end."""
        for _ in self:
            pass
        if self._final is None:
            raise RuntimeError("The stream was closed before the reply was complete.")
        return self._complete(self._final.data)

    def close(self) -> None:
        """End the work. May be called again."""
        if not self._loop.is_closed:
            self._loop.run(self._events.aclose())

    def _take_first(self) -> WireEvent | None:
        first, self._first = self._first, None
        return first

    def _seen(self, event: WireEvent) -> WireEvent:
        if event.event == "final":
            self._final = event
        return event


async def _next(events: AsyncGenerator[WireEvent, None]) -> WireEvent | None:
    return await anext(events, None)
