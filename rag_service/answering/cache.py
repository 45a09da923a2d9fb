"""Keeps quoted answers for those who ask the same again. A chat model may say something else each time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from rag_service.answering.decision.conclusion import Concluded
from rag_service.answering.drafts.events import AnswerEvent, SourcesFound
from rag_service.models.llm.model import ChatModel
from rag_service.recent import Recent
from rag_service.retrieval.found import Found
from rag_service.retrieval.query import AnswerRun
from rag_service.retrieval.question import Question

_KEPT = 128  # some 100 kB each, with the passages found
_SECONDS = 600.0

MakeAnswer = Callable[[AnswerRun], Awaitable[Concluded]]


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """An answer, and what it was made of."""

    question: Question
    found: Found
    model: ChatModel
    concluded: Concluded
    events: tuple[AnswerEvent, ...]
    at: float  # when, on the monotonic clock

    def answers(self, run: AnswerRun) -> bool:
        """Whether all that it was made of is the same, and it is not too old."""
        is_same = self.model is run.model and self.question == run.question and self.found == run.found
        return is_same and time.monotonic() - self.at < _SECONDS


class AnswerCache:
    """Gives an answer again until one of its inputs changes.

    Whoever asks has just found these passages: their texts are compared, not only their ids.
    """

    def __init__(self, make: MakeAnswer):
        """Prepare without any answer; `make` makes those that are not there."""
        self._make = make
        self._recent: Recent[_Kept] = Recent(_KEPT)

    async def answer(self, run: AnswerRun) -> Concluded:
        """Return the answer, with its events. One that was made without what failed is not kept."""
        key = f"{run.question.identity.user_id} {run.question.text}"
        kept = self._recent.get(key)
        if kept is not None and kept.answers(run):
            for event in kept.events:
                if isinstance(event, SourcesFound):
                    event = replace(event, timings_ms=run.found.timings_ms)
                await run.emit(event)
            return kept.concluded
        events: list[AnswerEvent] = []

        async def keep(event: AnswerEvent) -> None:
            events.append(event)
            await run.emit(event)

        concluded = await self._make(replace(run, emit=keep))
        if not concluded.is_degraded:
            made = _Kept(
                question=run.question,
                found=run.found,
                model=run.model,
                concluded=replace(concluded, draft=None),
                events=tuple(events),
                at=time.monotonic(),
            )
            self._recent.keep(key, made)
        return concluded
