"""Writes an answer with a chat model, in as many calls as it takes steps, and checks it while it streams.

    prompt → deltas of the model → checker → events
      ↑                ↓
      └─ tool calls: what they find is added

Where the model fails, quotes of the passages take its place.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import structlog
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import BaseTool

from rag_service.answering.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.events import AnswerDelta, CitationChecked, StepTaken
from rag_service.answering.prompt.packing import Prompted
from rag_service.answering.tools.steps import OFFERED, Steps, offer_tokens
from rag_service.errors import ContextOverflowError, ModelError, ModelOutputError, PromptTooLongError
from rag_service.models.judge.judge import WriterPrompt
from rag_service.models.llm.call import ToolCall
from rag_service.models.llm.model import ChatDelta, ChatModel
from rag_service.observability.tracing import record_span
from rag_service.retrieval.query import RagQuery

log = structlog.get_logger(__name__)


class Writing:
    """Writes an answer in as many calls of the model as it takes steps, and checks it while it streams."""

    def __init__(
        self,
        query: RagQuery,
        prompted: Prompted,
        steps: Steps,
        *,
        make_checker: Callable[[Steps], AnswerChecker],
        shorten: Callable[[Prompted], Prompted],
        emit: Callable[[Any], Awaitable[None]],
    ) -> None:
        """`prompted` is the prompt with the rule about the tools that `steps` offers."""
        self.steps = steps
        self._query = query
        self._given = self._prompted = prompted
        self._make_checker = make_checker
        self._shorten = shorten
        self._emit = emit
        self._fed = ""  # text of the answer so far
        self._checker = make_checker(steps)
        self._verifying = 0.0  # seconds

    async def run(self) -> ChatDelta:
        """Write to the end; the last delta, with the tokens of all calls."""
        prompt_tokens: int | None = 0
        completion_tokens: int | None = 0
        while True:
            tools = self.steps.offered
            last = await self._call(tools)
            prompt_tokens = _sum(prompt_tokens, last.prompt_tokens)
            completion_tokens = _sum(completion_tokens, last.completion_tokens)
            if not (tools and last.tool_calls):
                return replace(last, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
            await self._take(last.tool_calls)

    def outcome(self) -> Prompted:
        """Return the prompt as it was answered: with the passages that were shown, also those that steps added."""
        answered = replace(self._given, context=self._prompted.context, quote_signals=self._prompted.quote_signals)
        return answered.showing(tuple(self.steps.shown)) if self.steps.steps else answered

    @property
    def sent(self) -> WriterPrompt:
        """Return what the model was sent, as a judge's prompt repeats it."""
        offers = self.steps.toolbox is not None
        return WriterPrompt(
            messages=self._prompted.messages,
            found=self.steps.results,
            boundary=self._prompted.boundary,
            tools=OFFERED if offers else (),
            tools_tokens=offer_tokens() if offers else 0,
        )

    async def quote_instead(self) -> ChatDelta:
        """Put quotes of the passages in the place of what the model wrote; return their last delta.

        A reader who cannot take text back keeps it before the quotes.
        """
        query, prompted = self._query, self._prompted
        query.model, query.model_error = query.model.fallback, ModelOutputError.code
        last = ChatDelta(text="")
        if query.retractable:
            self._checker = self._make_checker(self.steps)
            await self._emit(AnswerDelta(text="", restart=True))
            await self.add(f"{prompted.failed().preface}\n\n")
        else:
            await self.add(f"\n\n{prompted.model_failed}\n\n")
        quotes = query.model.stream(prompted.messages)
        async with aclosing(quotes):
            async for last in quotes:
                await self.add(last.text)
        return last

    async def add(self, text: str) -> None:
        """Append a text of the service itself."""
        for event in self._checker.feed(text):
            await self._emit(event)

    async def finish(self) -> CheckedAnswer:
        """Emit the last events; the whole answer."""
        began = time.perf_counter()
        events, checked = self._checker.finish()
        record_span("verify", self._verifying + time.perf_counter() - began)
        for event in events:
            await self._emit(event)
        return checked

    async def _call(self, tools: Sequence[BaseTool]) -> ChatDelta:
        last = ChatDelta(text="")
        deltas = stream_answer(
            self._query, self._prompted, shorten=self._shorten_for, more=self.steps.messages, tools=tools
        )
        async with aclosing(deltas):
            async for delta in deltas:
                last = delta
                self._fed = delta.text if delta.restart else self._fed + delta.text
                began = time.perf_counter()
                events = self._checker.feed(delta.text, restart=delta.restart)
                self._verifying += time.perf_counter() - began
                for event in events:
                    await self._emit(event)
        counted, model = last.prompt_tokens, self._query.model
        if counted is not None and not (tools or self.steps.steps or self._query.model_error):
            text = "".join(message.content or "" for message in self._prompted.messages)
            model.rates.learn(self._query.found.plan.language, text, ours=self._prompted.tokens, theirs=counted)
        return last

    def _shorten_for(self, error: PromptTooLongError) -> Prompted:
        """Return the prompt with fewer passages, after the server has refused it. Raises the error if there is none."""
        query, ours = self._query, self._prompted.tokens + self.steps.tokens
        model: ChatModel = query.model
        # Without a count, half of it is tried.
        theirs = error.tokens or 2 * (model.context_window - model.max_tokens)
        model.learn_window(error.window)
        model.rates.refuse(ours=ours, theirs=theirs)
        try:
            shorter = self._shorten(self._prompted)
        except ContextOverflowError:
            raise error from None
        kept = len(shorter.context.hits)
        log.warning("prompt_shortened", model=model.model_name, tokens=theirs, expected=ours, contexts=kept)
        self._prompted = replace(shorter, preface=self._prompted.preface)
        if not self.steps.steps:
            self.steps.shown = list(shorter.context.hits)
            self._checker = self._make_checker(self.steps)
        return self._prompted

    async def _take(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls. What was written before them is taken back, or where that cannot be, stays."""
        mark = len(self.steps.shown) + 1
        for step, added in await self.steps.take(self._fed, calls):
            await self._query.emit(StepTaken(step=step, shown=added, first_mark=mark))
            mark += len(added)
        self._checker = self._make_checker(self.steps)
        if self._fed and self._query.retractable:
            self._fed = ""
            await self._emit(AnswerDelta(text="", restart=True))
        elif self._fed:
            self._prompted = replace(self._prompted, preface="")
            self._checker.feed(self._fed)  # its events were emitted before
            self._fed += "\n\n"
            await self.add("\n\n")


def _sum(before: int | None, more: int | None) -> int | None:
    return None if before is None or more is None else before + more


async def emit_text(query: RagQuery, event: AnswerDelta | CitationChecked) -> None:
    """Emit an event, unless it is a citation: the judge has yet to decide about it."""
    if not isinstance(event, CitationChecked):
        await query.emit(event)


async def stream_answer(
    query: RagQuery,
    prompted: Prompted,
    *,
    shorten: Callable[[PromptTooLongError], Prompted],
    more: Sequence[ChatMessage] = (),
    tools: Sequence[BaseTool] = (),
) -> AsyncGenerator[ChatDelta]:
    """Return what `query.model` answers, after its preface; the last delta has the counts, and the tools that it calls.

    A prompt that the server finds too long is tried once more with what `shorten` makes of it. Where the model fails,
    its fallback goes on and is `query.model` from then on, and `query.model_error` says why. What a reader has seen
    stays.

    Args:
        more: messages after the prompt: calls of tools and their results.

    Raises:
        ModelError: the model fails and has no fallback.
    """
    model: ChatModel = query.model
    spoke = False
    try:
        for is_last in (False, True):
            try:
                async with aclosing(_ask(query, prompted, more, tools)) as deltas:
                    async for delta in deltas:
                        spoke = bool(delta.text) or (spoke and not delta.restart)
                        yield delta
                return
            except PromptTooLongError as error:
                if is_last:
                    raise
                prompted = shorten(error)
    except ModelError as error:
        if model.fallback is None:
            raise
        log.warning("answer_degraded", without="model", code=error.code, exc_info=error)
        query.model, query.model_error = model.fallback, error.code
    yield ChatDelta(text=f"\n\n{prompted.model_failed}\n\n" if spoke else f"{prompted.failed().preface}\n\n")
    quotes = query.model.stream(prompted.messages)
    async with aclosing(quotes):
        async for delta in quotes:
            yield delta


def _ask(
    query: RagQuery, prompted: Prompted, more: Sequence[ChatMessage], tools: Sequence[BaseTool]
) -> AsyncGenerator[ChatDelta]:
    model: ChatModel = query.model
    deltas = model.stream(
        [*prompted.messages, *more],
        expected_prompt_tokens=prompted.tokens,
        retractable=query.retractable,
        tools=tools,
    )
    return _introduced(deltas, prompted) if prompted.preface else deltas


async def _introduced(deltas: AsyncGenerator[ChatDelta], prompted: Prompted) -> AsyncGenerator[ChatDelta]:
    """Return the pieces of an answer after its preface, which a refusal does without."""
    held, waiting, last = "", True, None
    async for delta in deltas:
        last = delta
        if delta.restart:
            held, waiting = "", True
            yield replace(delta, text="")
        if waiting:
            held += delta.text
            if prompted.refusal.startswith(held.strip()):
                continue
            waiting, last = False, replace(delta, text=f"{prompted.preface}\n\n{held}", restart=False)
        yield last
    if waiting and last is not None:
        yield replace(last, text=held)
