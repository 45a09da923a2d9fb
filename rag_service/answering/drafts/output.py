"""The text of an answer on its way out: checked while it arrives, emitted as it becomes final."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from rag_service.answering.drafts.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.drafts.events import AnswerDelta, CitationChecked
from rag_service.observability.tracing import record_span
from rag_service.retrieval.query import AnswerRun, ignore

Emit = Callable[[Any], Awaitable[None]]


class Output:
    """Checks pieces of a text, and emits what is final of it."""

    def __init__(self, checker: AnswerChecker, emit: Emit) -> None:
        self.checker = checker  # replaced where the text begins again
        self._emit = emit
        self._verifying = 0.0  # seconds

    async def add(self, text: str, *, restart: bool = False) -> None:
        """Take the next piece; with `restart` the text begins here."""
        began = time.perf_counter()
        events = self.checker.feed(text, restart=restart)
        self._verifying += time.perf_counter() - began
        for event in events:
            await self._emit(event)

    async def begin_again(self, checker: AnswerChecker) -> None:
        """Take back the text."""
        self.checker = checker
        await self._emit(AnswerDelta(text="", restart=True))

    async def finish(self) -> CheckedAnswer:
        """Emit the last events; the whole answer."""
        began = time.perf_counter()
        events, checked = self.checker.finish()
        record_span("verify", self._verifying + time.perf_counter() - began)
        for event in events:
            await self._emit(event)
        return checked


def emit_while_checked(run: AnswerRun, *, withholds: bool, is_judged: bool) -> Emit:
    """Return what may be emitted while a text arrives: without the citations that a judge has yet to decide about, and
    nothing where unproved sentences are withheld."""

    async def emit_text(event: AnswerDelta | CitationChecked) -> None:
        if not isinstance(event, CitationChecked):
            await run.emit(event)

    if withholds:
        return ignore
    return emit_text if is_judged else run.emit


async def emit_rest(
    run: AnswerRun, checked: CheckedAnswer, *, notice: str, withholds: bool, is_judged: bool
) -> CheckedAnswer:
    """Emit what `emit_while_checked` has held back; the answer, with the notice for sentences that are withheld."""
    if withholds:
        checked = checked.withhold(notice)
        await run.emit(AnswerDelta(text=checked.text))
    if withholds or is_judged:
        for citation in checked.citations:
            await run.emit(CitationChecked(citation=citation))
    return checked
