"""An answer that is read while it is written, in plain and in async code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator

from rag_service.api.http.events import WireEvent
from rag_service.api.http.schemas import AnswerBody
from rag_service.client.background_loop import BackgroundLoop
from rag_service.client.results import CitedAnswer


class AnswerStream:
    """The events of an answer as the API streams them: `for event in stream` or `async for event in stream`, once.

    Each has a name, `event.event`, and `event.data`: `sources`, perhaps some `step`, many `delta` and `citation`, one
    `final`, `done`. A failure midway is raised. Who leaves the loop ends the answer.
    """

    def __init__(self, loop: BackgroundLoop, events: AsyncGenerator[WireEvent, None], question: str):
        """Waits for the first event, so that what is wrong with the request is raised here."""
        self._loop = loop
        self._events = events
        self._question = question
        self._first: WireEvent | None = loop.run(_next(events))
        self._body: AnswerBody | None = None

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

    def finish(self) -> CitedAnswer:
        """Read what is left; the whole answer. Raises RuntimeError if the stream was left before its end."""
        for _ in self:
            pass
        if self._body is None:
            raise RuntimeError("The stream was closed before the answer was complete.")
        return CitedAnswer(question=self._question, body=self._body)

    def close(self) -> None:
        """End the answer. May be called again."""
        if not self._loop.is_closed:
            self._loop.run(self._events.aclose())

    def _take_first(self) -> WireEvent | None:
        first, self._first = self._first, None
        return first

    def _seen(self, event: WireEvent) -> WireEvent:
        if isinstance(event.data, AnswerBody):
            self._body = event.data
        return event


async def _next(events: AsyncGenerator[WireEvent, None]) -> WireEvent | None:
    return await anext(events, None)
