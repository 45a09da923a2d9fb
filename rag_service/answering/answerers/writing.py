"""Writes an answer with a chat model, in as many calls as it takes steps, and checks it while it streams.

    prompt → deltas of the model → output → events
      ↑                ↓
      └─ tool calls: what they find is added

Where the model fails, quotes of the passages take its place.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

import structlog
from llama_index.core.tools import BaseTool

from rag_service.answering.answerers.quoted import gather_evidence
from rag_service.answering.drafts.checked_answer import AnswerChecker, CheckedAnswer, Emit, Output
from rag_service.answering.drafts.events import StepTaken
from rag_service.answering.prompt.packing import PackedContext, ReadyPrompt
from rag_service.answering.quoting.quoter import Quoter
from rag_service.answering.quoting.quotes import Quotes
from rag_service.answering.tools.steps import OFFERED, Steps, offer_tokens
from rag_service.errors import ContextOverflowError, ModelError, ModelOutputError, PromptTooLongError
from rag_service.language.words import count_tokens
from rag_service.models.judge.judge import WriterPrompt
from rag_service.models.llm.call import ToolCall
from rag_service.models.llm.model import ChatDelta, ChatModel
from rag_service.retrieval.query import AnswerRun

log = structlog.get_logger(__name__)


class WrittenText:
    """The text of one answer, written in as many calls of the model as it takes steps, and checked while it streams."""

    def __init__(
        self,
        run: AnswerRun,
        prompted: ReadyPrompt,
        steps: Steps,
        *,
        quoter: Quoter,
        make_checker: Callable[[Steps], AnswerChecker],
        shorten: Callable[[ReadyPrompt], ReadyPrompt],
        emit: Emit,
    ) -> None:
        """`prompted` is the prompt with the rule about the tools that `steps` offers."""
        self.steps = steps
        self.model: ChatModel = run.model  # the fallback, after it has failed
        self.model_error: str | None = None  # code of its error
        self.quotes: Quotes | None = None  # in its place
        self.prompt_tokens = prompted.tokens  # our count
        self._run = run
        self._prompted = prompted
        self._quoter = quoter
        self._make_checker = make_checker
        self._shorten = shorten
        self._fed = ""  # text of the answer so far
        self._output = Output(make_checker(steps), emit)

    async def write(self) -> ChatDelta:
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

    @property
    def context(self) -> PackedContext:
        """The passages that were shown, also those that steps added."""
        context, shown = self._prompted.context, tuple(self.steps.shown)
        if not self.steps.steps:
            return context
        added = sum(count_tokens(hit.chunk.text) for hit in shown[len(context.hits) :])
        return replace(context, hits=shown, tokens=context.tokens + added)

    @property
    def sent(self) -> WriterPrompt:
        """What the model was sent, as a judge's prompt repeats it."""
        offers = self.steps.toolbox is not None
        return WriterPrompt(
            messages=self._prompted.messages,
            found=self.steps.results,
            boundary=self._prompted.boundary,
            tools=OFFERED if offers else (),
            tools_tokens=offer_tokens() if offers else 0,
        )

    async def quote_instead(self, fallback: ChatModel) -> ChatDelta:
        """Put quotes of the passages in the place of what the model wrote; return an empty last delta.

        A reader who cannot take text back keeps it before the quotes.
        """
        notices = self._prompted.notices
        if self._run.question.retractable:
            await self._output.begin_again(self._make_checker(self.steps))
            await self.add(f"{notices.after_failure}\n\n")
        else:
            await self.add(f"\n\n{notices.model_failed}\n\n")
        for piece in await self._quote(fallback, ModelOutputError.code):
            await self.add(piece)
        return ChatDelta(text="")

    async def add(self, text: str) -> None:
        """Append a text of the service itself."""
        await self._output.add(text)

    async def finish(self) -> CheckedAnswer:
        """Emit the last events; the whole answer."""
        return await self._output.finish()

    async def _call(self, tools: Sequence[BaseTool]) -> ChatDelta:
        last = ChatDelta(text="")
        deltas = self._stream(tools)
        async with aclosing(deltas):
            async for delta in deltas:
                last = delta
                self._fed = delta.text if delta.restart else self._fed + delta.text
                await self._output.add(delta.text, restart=delta.restart)
        if last.prompt_tokens is not None and not (tools or self.steps.steps or self.model_error):
            text = "".join(message.content or "" for message in self._prompted.messages)
            self.model.rates.learn(self._run.language, text, ours=self._prompted.tokens, theirs=last.prompt_tokens)
        return last

    async def _stream(self, tools: Sequence[BaseTool]) -> AsyncGenerator[ChatDelta]:
        """Yield what the model answers; the last delta has the counts, and the tools that it calls.

        A prompt that the server finds too long is tried once more with fewer passages. Where the model fails, its
        fallback goes on. What a reader has seen stays.

        Raises:
            ModelError: the model fails and has no fallback.
        """
        spoke = False
        try:
            for is_last in (False, True):
                try:
                    async with aclosing(self._ask(tools)) as deltas:
                        async for delta in deltas:
                            spoke = bool(delta.text) or (spoke and not delta.restart)
                            yield delta
                    return
                except PromptTooLongError as error:
                    if is_last:
                        raise
                    self._shorten_for(error)
        except ModelError as error:
            if self.model.fallback is None:
                raise
            log.warning("answer_degraded", without="model", code=error.code, exc_info=error)
            fallback, code = self.model.fallback, error.code
        notices = self._prompted.notices
        yield ChatDelta(text=f"\n\n{notices.model_failed}\n\n" if spoke else f"{notices.after_failure}\n\n")
        for piece in await self._quote(fallback, code):
            yield ChatDelta(text=piece)

    def _ask(self, tools: Sequence[BaseTool]) -> AsyncGenerator[ChatDelta]:
        return self.model.stream(
            [*self._prompted.messages, *self.steps.messages],
            expected_prompt_tokens=self._prompted.tokens,
            retractable=self._run.question.retractable,
            tools=tools,
        )

    async def _quote(self, fallback: ChatModel, code: str) -> Sequence[str]:
        """Quote in the place of a model that has failed, with the code of its error; return the text in pieces."""
        self.model, self.model_error = fallback, code
        prompted = self._prompted
        evidence = gather_evidence(self._run, prompted.context.hits, prompted.notices)
        self.quotes = await self._quoter.quote(evidence, fallback)
        return self.quotes.pieces

    def _shorten_for(self, error: PromptTooLongError) -> None:
        """Leave out passages after the server has refused the prompt. Raises the error if there is one passage only."""
        model, ours = self.model, self._prompted.tokens + self.steps.tokens
        # Without a count, half of it is tried.
        theirs = error.tokens or 2 * (model.context_window - model.max_tokens)
        model.learn_window(error.window)
        model.rates.refuse(ours=ours, theirs=theirs)
        try:
            self._prompted = self._shorten(self._prompted)
        except ContextOverflowError:
            raise error from None
        kept = self._prompted.context.hits
        log.warning("prompt_shortened", model=model.model_name, tokens=theirs, expected=ours, contexts=len(kept))
        if not self.steps.steps:
            self.steps.shown = list(kept)
            self._output.checker = self._make_checker(self.steps)

    async def _take(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls. What was written before them is taken back, or where that cannot be, stays."""
        mark = len(self.steps.shown) + 1
        for step, added in await self.steps.take(self._fed, calls):
            await self._run.emit(StepTaken(step=step, shown=added, first_mark=mark))
            mark += len(added)
        checker = self._make_checker(self.steps)
        if self._fed and self._run.question.retractable:
            self._fed = ""
            await self._output.begin_again(checker)
            return
        self._output.checker = checker
        if self._fed:
            checker.feed(self._fed)  # its events were emitted before
            self._fed += "\n\n"
            await self.add("\n\n")


def _sum(before: int | None, more: int | None) -> int | None:
    return None if before is None or more is None else before + more
