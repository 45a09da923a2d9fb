"""One stream of wire events for every kind of reply.

`wire_events` turns what the engine says into what goes over the wire; the encoders write it as
server-sent events or NDJSON, and `collect` makes the plain reply of the very same events.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Literal, Protocol, TypeVar
from uuid import UUID

import msgspec

from rag_service.api.wire.presenters import (
    documents_of,
    present_answer,
    present_citation,
    present_context,
    present_source,
)
from rag_service.api.wire.problems import Problem, report
from rag_service.api.wire.schemas import AnswerBody, CitationBody, DeltaData, DoneData, SourcesData
from rag_service.domain import DocumentRef
from rag_service.errors import RagError
from rag_service.query.events import AnswerComplete, AnswerDelta, AnswerEvent, CitationChecked, SourcesFound

EventName = Literal["sources", "delta", "citation", "final", "done", "error"]
EventData = SourcesData | DeltaData | CitationBody | AnswerBody | DoneData | Problem

NDJSON = "application/x-ndjson"
SSE = "text/event-stream"
SSE_HEARTBEAT = b": keep-alive\n\n"

_Item = TypeVar("_Item")


class WireEvent(msgspec.Struct, frozen=True):
    """One event of a streamed answer."""

    event: EventName
    data: EventData


async def wire_events(events: AsyncIterator[AnswerEvent]) -> AsyncGenerator[WireEvent, None]:
    """`sources`, many `delta` and `citation`, one `final`, `done`; or `error` wherever it fails, and no more.

    Never raises but for cancellation: a failure is reported (and logged) as the `error` event.
    `events` is closed before this ends, however it ends.
    """
    documents: dict[UUID, DocumentRef] = {}
    answer_id: UUID | None = None
    try:
        async with _closing(events):
            async for event in events:
                if isinstance(event, SourcesFound):
                    documents = documents_of((*event.sources, *event.shown))
                elif isinstance(event, AnswerComplete):
                    answer_id = event.answer.id
                yield _present(event, documents)
        if answer_id is None:
            raise RagError("The engine ended without an answer.")
    except Exception as error:  # noqa: BLE001 - logged, and told to the client as far as it may know
        yield WireEvent("error", report(error))
    else:
        yield WireEvent("done", DoneData(answer_id=answer_id))


def _present(event: AnswerEvent, documents: dict[UUID, DocumentRef]) -> WireEvent:
    match event:
        case SourcesFound():
            sources = [present_source(hit) for hit in event.sources]
            return WireEvent("sources", SourcesData(sources=sources, context_used=present_context(event.shown)))
        case AnswerDelta():
            return WireEvent("delta", DeltaData(text=event.text))
        case CitationChecked():
            return WireEvent("citation", present_citation(event.citation, documents))
        case AnswerComplete():
            return WireEvent("final", present_answer(event.answer))


@asynccontextmanager
async def _closing(events: AsyncIterator[_Item]) -> AsyncGenerator[None, None]:
    """Close a generator at the end; a plain iterator has nothing to close."""
    try:
        yield
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def collect(events: AsyncGenerator[WireEvent, None]) -> AnswerBody | Problem:
    """The plain reply: what `final` or `error` carries."""
    outcome: AnswerBody | Problem | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event.data, AnswerBody | Problem):
                outcome = event.data
    if outcome is None:
        raise RagError("The stream ended without an outcome.")
    return outcome


class Encoder(Protocol):
    """A way to write events."""

    media_type: str
    heartbeat: bytes
    opening: bytes  # what the stream begins with; may be empty

    def encode(self, event: WireEvent) -> bytes:
        """One event, complete with its end; nothing where it has no words for it."""


class SseEncoder:
    """Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

    media_type = SSE
    heartbeat = SSE_HEARTBEAT
    opening = b""

    def encode(self, event: WireEvent) -> bytes:
        # JSON holds no line break, so one data line is always enough
        return b"event: %b\ndata: %b\n\n" % (event.event.encode(), msgspec.json.encode(event.data, enc_hook=str))


class NdjsonEncoder:
    """One JSON object a line."""

    media_type = NDJSON
    heartbeat = b'{"event":"heartbeat"}\n'
    opening = b""

    def encode(self, event: WireEvent) -> bytes:
        return msgspec.json.encode(event, enc_hook=str) + b"\n"
