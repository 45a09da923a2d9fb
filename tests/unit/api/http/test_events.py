"""Wire events from engine events, and the two ways to write them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from rag_service.answering.drafts.events import AnswerDelta, AnswerEvent, SourcesFound
from rag_service.api.http.events import NdjsonEncoder, SseEncoder, WireEvent, collect, wire_events
from rag_service.api.http.problems import Problem
from rag_service.api.http.schemas import DeltaData
from rag_service.errors import ModelError
from rag_service.retrieval.question import Question
from tests.unit.api.samples import ADMIN, EVENTS, Script


def play(script: Script) -> AsyncIterator[AnswerEvent]:
    return script.answer(Question("a question", identity=ADMIN))


async def test_failure_while_closing_the_engine_is_reported() -> None:
    async def broken() -> AsyncIterator[AnswerEvent]:
        try:
            for event in EVENTS:
                yield event
        finally:
            raise ModelError("could not hang up")

    assert [event.event async for event in wire_events(broken())][-2:] == ["final", "error"]
    assert isinstance(await collect(wire_events(broken())), Problem)


async def test_abandoned_stream_closes_the_engine() -> None:
    script = Script(endless=True)
    events = wire_events(play(script))
    assert (await anext(events)).event == "sources"
    await events.aclose()
    assert script.closed == 1


async def test_event_that_cannot_be_presented_is_an_internal_error() -> None:
    script = Script(events=(*EVENTS[:1], SourcesFound(sources=(None,), shown=(), timings_ms={})))  # type: ignore[arg-type]
    events = [event async for event in wire_events(play(script))]
    assert [event.event for event in events] == ["sources", "error"]
    assert isinstance(events[1].data, Problem) and events[1].data.code == "internal_error"


@pytest.mark.parametrize("text", ["", "a\nb\r\n\r\ndata: x", "\u2028\u2029", "[C1] ñ €  😀", "\0\x1b", '"\\'])
def test_any_text_survives_both_encodings(text: str) -> None:
    event = WireEvent("delta", DeltaData(text=text))
    first, second, *rest = SseEncoder().encode(event).split(b"\n")
    assert (first, rest) == (b"event: delta", [b"", b""])
    assert json.loads(second.removeprefix(b"data: ")) == {"text": text}
    line = NdjsonEncoder().encode(event)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line) == {"event": "delta", "data": {"text": text}}


def test_heartbeats_are_complete() -> None:
    assert SseEncoder.heartbeat == b": keep-alive\n\n"
    assert json.loads(NdjsonEncoder.heartbeat) == {"event": "heartbeat"}


async def test_delta_before_sources_is_passed_on() -> None:
    script = Script(events=(AnswerDelta(text="a"), *EVENTS))
    assert [event.event async for event in wire_events(play(script))][:2] == ["delta", "sources"]
