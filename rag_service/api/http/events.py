"""One stream of API events for every kind of reply.

The encoders write it as server-sent events or NDJSON; `collect` makes the plain reply from the same events.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol
from uuid import UUID

import msgspec

from rag_service.answering.drafts.events import (
    AnswerComplete,
    AnswerDelta,
    AnswerEvent,
    CitationChecked,
    SourcesFound,
    StepTaken,
)
from rag_service.api.http.presenters import (
    present,
    present_answer,
    present_citation,
    present_context,
    present_hit,
)
from rag_service.api.http.problems import Problem, report
from rag_service.api.http.schemas import AnswerBody, DeltaData, DoneData, SourceBody, SourcesData, StepData
from rag_service.domain import Hit
from rag_service.errors import RagError

NDJSON = "application/x-ndjson"
SSE = "text/event-stream"
SSE_HEARTBEAT = b": keep-alive\n\n"


class WireEvent(msgspec.Struct, frozen=True):
    """One event of a streamed reply."""

    event: str  # of an answer: sources, step, delta, citation, final, done or error
    data: Any  # the body of that event, a structure of `schemas`; of `error` a Problem


async def present_events(events: AsyncGenerator[AnswerEvent]) -> AsyncGenerator[WireEvent, None]:
    """`sources`, perhaps some `step`, many `delta` and `citation`, one `final`, `done`.

    Raises what `events` raises, and closes it.
    """
    found: tuple[Hit, ...] = ()
    answer_id: UUID | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, SourcesFound):
                found = (*event.sources, *event.shown)
            elif isinstance(event, StepTaken):
                found = (*found, *event.shown)
            elif isinstance(event, AnswerComplete):
                answer_id = event.answer.id
            yield _present(event, found)
    if answer_id is None:
        raise RagError("The engine ended without an answer.")
    yield WireEvent("done", DoneData(answer_id=answer_id))


def wire_events(events: AsyncGenerator[AnswerEvent]) -> AsyncGenerator[WireEvent, None]:
    """The events of an answer for a connection, see `wired`."""
    return wired(present_events(events))


async def wired(events: AsyncGenerator[WireEvent, None]) -> AsyncGenerator[WireEvent, None]:
    """The events for a connection: a failure is the last one, `error`. Raises nothing except on cancellation."""
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except Exception as error:  # noqa: BLE001 - logged, and reported to the client
        yield WireEvent("error", report(error))


def _present(event: AnswerEvent, found: Sequence[Hit]) -> WireEvent:
    match event:
        case SourcesFound():
            sources = [present_hit(SourceBody, hit) for hit in event.sources]
            return WireEvent("sources", SourcesData(sources=sources, context_used=present_context(event.shown)))
        case StepTaken():
            context = present_context(event.shown, first_mark=event.first_mark)
            return WireEvent("step", present(StepData, event.step, context_used=context))
        case AnswerDelta():
            return WireEvent("delta", DeltaData(text=event.text, restart=event.restart))
        case CitationChecked():
            return WireEvent("citation", present_citation(event.citation, found))
        case AnswerComplete():
            return WireEvent("final", present_answer(event.answer))


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
    """Writes events."""

    media_type: str
    heartbeat: bytes
    opening: bytes  # start of the stream; may be empty

    def encode(self, event: WireEvent) -> bytes:
        """One complete event; empty if the format has no equivalent."""


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
