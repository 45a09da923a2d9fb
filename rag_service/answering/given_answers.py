"""Keeps answers that were just given, for those who ask the same again.

Quoted answers only: a chat model may say something else each time.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from llama_index.core.schema import NodeWithScore

from rag_service.answering.events import AnswerEvent, SourcesFound
from rag_service.domain import Answer
from rag_service.recent import Recent
from rag_service.retrieval.query import RagQuery

_KEPT = 128  # some 100 kB each, with the passages found
_SECONDS = 600.0

MakeAnswer = Callable[[RagQuery, Sequence[NodeWithScore]], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class _Given:
    """An answer, and what it was made of."""

    asked: tuple[Any, ...]  # as `RagQuery.all_asked` gives it
    answer: Answer
    events: tuple[AnswerEvent, ...]
    signals: Mapping[str, float]  # as in the query
    at: float  # when, on the monotonic clock


class GivenAnswers:
    """Gives an answer again while all that it was made of is the same.

    Who asks has just found these passages, and what they say is compared, not only where they stand.
    """

    def __init__(self, make: MakeAnswer):
        """Prepare without any answer; `make` makes those that are not there."""
        self._make = make
        self._recent: Recent[_Given] = Recent(_KEPT)

    async def answer(self, query: RagQuery, nodes: Sequence[NodeWithScore]) -> Answer:
        """The answer, with its events. One that was made without what failed is not kept."""
        asked, key = query.all_asked(nodes), f"{query.identity.user_id} {query.question}"
        given = self._recent.get(key)
        if given is not None and given.asked == asked and time.monotonic() - given.at < _SECONDS:
            query.signals = given.signals
            for event in given.events:
                if isinstance(event, SourcesFound):
                    event = replace(event, timings_ms=query.found.timings_ms)
                await query.emit(event)
            return given.answer
        events: list[AnswerEvent] = []
        emit = query.emit

        async def keep(event: AnswerEvent) -> None:
            events.append(event)
            await emit(event)

        query.emit = keep
        try:
            answer = await self._make(query, nodes)
        finally:
            query.emit = emit
        if not query.degraded:
            made = _Given(
                asked=asked,
                answer=answer,
                events=tuple(events),
                signals=query.signals,
                at=time.monotonic(),
            )
            self._recent.keep(key, made)
        return answer
