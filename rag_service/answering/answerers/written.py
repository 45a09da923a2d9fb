"""Answers with a chat model, from the passages found and those that earlier answers cited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import partial

import structlog

from rag_service.answering.answerers.writing import WrittenText
from rag_service.answering.drafts.checked_answer import AnswerChecker, CheckedAnswer, emit_rest, emit_while_checked
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.drafts.events import SourcesFound
from rag_service.answering.drafts.judged import judge_answer
from rag_service.answering.prompt.notices import mentioned_sources, unique
from rag_service.answering.prompt.packing import ReadyPrompt, shorten_prompt, write_prompt
from rag_service.answering.prompt.templates import Prompts
from rag_service.answering.quoting.quoter import Quoter
from rag_service.answering.tools.steps import Steps, offer_tokens
from rag_service.answering.tools.toolbox import Tools
from rag_service.domain import AnswersQuestion, Hit
from rag_service.models.judge.judges import WatchedJudge
from rag_service.observability.tracing import span
from rag_service.retrieval.query import AnswerRun
from rag_service.retrieval.versions import find_amendments
from rag_service.settings import Settings

log = structlog.get_logger(__name__)


class WrittenAnswers:
    """Lets a chat model write."""

    def __init__(self, prompts: Prompts, settings: Settings, judge: WatchedJudge | None, quoter: Quoter) -> None:
        """Prepare without tools, which are offered later; `quoter` answers where a model fails."""
        self.tools: Tools | None = None  # that models may call
        self._prompts = prompts
        self._settings = settings
        self._judge = judge
        self._quoter = quoter

    async def answer(self, run: AnswerRun) -> Draft | None:
        """As `Answerer.answer`. Amendments of what was found are added to the sources.

        Raises:
            ModelError: the model fails and has no fallback.
            ContextOverflowError: question and instructions alone fill the window.
        """
        if run.model.only_quotes or not (sources := self._gather(run)):
            return None
        if run.question.threshold is None:
            sources = (*sources, *find_amendments(sources, run.found.hits))
        with span("prompt"):
            shown = unique(*sources, *self._next(run))
            prompted = write_prompt(run, shown, prompts=self._prompts, settings=self._settings)
        shown = prompted.context.hits
        documents = [(str(hit.chunk.document.id), hit.scores.relevance) for hit in shown]
        log.debug("prompt", documents=documents, prompt=[message.content for message in prompted.messages])
        await run.emit(SourcesFound(sources=sources, shown=shown, timings_ms=run.found.timings_ms))
        return await self._write(run, prompted, sources)

    async def _write(self, run: AnswerRun, prompted: ReadyPrompt, sources: tuple[Hit, ...]) -> Draft:
        judge = self._judge if self._judge is not None and self._judge.is_used else None
        holds = {"withholds": self._settings.answers.withhold_unverified, "is_judged": judge is not None}
        writing = self._begin(run, prompted, **holds)
        last = await writing.write()
        if last.is_cut:
            await writing.add(f"\n\n{prompted.notices.unfinished}")
        checked, answers = await writing.finish(), None
        if judge is not None and writing.model_error is None:  # else the server that has just failed would be asked
            checked, answers = await _ask_judge(judge, run, checked, writing)
        is_endless = last.finish_reason == "length" and not checked.has_proof
        if is_endless and (fallback := writing.model.fallback) is not None:
            # A model that loops, counts or is too weak to come to an end: the passages say more.
            log.warning("answer_degraded", without="model", code="cut", model=writing.model.model_name)
            last = await writing.quote_instead(fallback)
            checked, answers = await writing.finish(), None
        checked = await emit_rest(run, checked, notice=prompted.notices.withheld, **holds)
        steps, context = writing.steps, writing.context
        cited = {citation.chunk_id for citation in checked.citations}
        sources = unique(*sources, *(hit for hit in steps.shown if hit.chunk.id in cited))
        if steps.steps:
            sources = tuple({hit.chunk.id: hit for hit in (*sources, *steps.found)}.values())
        doubts = dict(prompted.notices.doubts)
        if any(citation.formula for citation in checked.citations):  # the model chose what to compute
            doubts[Doubt.TABLE_READING] = True
        return Draft(
            checked=checked,
            sources=sources,
            shown=context.hits,
            context_tokens=context.tokens,
            tokens=last.count(checked.text, prompt_estimate=writing.prompt_tokens),
            model=writing.model,
            refusal=prompted.notices.refusal,
            preface="" if writing.model_error is None else prompted.notices.after_failure,
            doubts=doubts,
            model_error=writing.model_error,
            answers=answers,
            steps=tuple(steps.steps),
            is_cut=last.is_cut,
            finish_reason=last.reported_reason,
            quotes=writing.quotes,
        )

    def _gather(self, run: AnswerRun) -> tuple[Hit, ...]:
        """Return the sources: what the last answers cited, what was found, what remembered answers cited.

        Where the caller has chosen the passages, or an owner's postprocessor has, earlier ones are not added.
        """
        question, sources = run.question, mentioned_sources(run.found)
        if question.given is not None or run.found.is_filtered:
            return sources or self._worth_searching(run)
        now = {hit.chunk.id for hit in sources}
        earlier = tuple(_recalled(run, question.earlier, now, is_last=True))
        before = tuple(_recalled(run, question.earlier_still, now))
        found_now = sources or (() if earlier or before else self._worth_searching(run))
        return unique(*earlier, *found_now, *before)

    def _next(self, run: AnswerRun) -> Iterator[Hit]:
        """Yield what was found after the sources: a prompt takes as many as its tokens allow."""
        question, found = run.question, run.found
        is_narrow = question.top_k < self._settings.retrieval.top_k or found.files is not None
        if found.is_filtered or question.given is not None or is_narrow:
            return
        for hit in found.hits:
            is_relevant = question.threshold is None or hit.scores.relevance >= question.threshold
            if is_relevant and hit.chunk.document.id not in found.other_versions:
                yield hit

    def _worth_searching(self, run: AnswerRun) -> tuple[Hit, ...]:
        """The nearest passages, although none is near enough, for a model that can search again in other words."""
        found = run.found
        if not self._offers_tools(run) or run.question.threshold is not None or found.is_filtered:
            return ()
        return () if found.files is not None and found.files.missing else found.hits[: run.question.top_k]

    def _offers_tools(self, run: AnswerRun) -> bool:
        return self.tools is not None and self._settings.answers.max_steps > 0 and run.model.offers_tools()

    def _begin(self, run: AnswerRun, prompted: ReadyPrompt, *, withholds: bool, is_judged: bool) -> WrittenText:
        steps = self._begin_steps(run, prompted)
        rule = self._prompts.message("tools", run.language) if steps.offered else ""

        def shorten(long: ReadyPrompt) -> ReadyPrompt:
            shorter = shorten_prompt(run, long, prompts=self._prompts, settings=self._settings, taken=steps.tokens)
            return shorter.offering(rule) if rule else shorter

        return WrittenText(
            run,
            prompted.offering(rule) if rule else prompted,
            steps,
            quoter=self._quoter,
            make_checker=partial(_make_checker, run, prompted),
            shorten=shorten,
            emit=emit_while_checked(run, withholds=withholds, is_judged=is_judged),
        )

    def _begin_steps(self, run: AnswerRun, prompted: ReadyPrompt) -> Steps:
        """Return what the model may call: nothing, if it cannot call tools or the window is full."""
        question, model, language = run.question, run.model, run.language
        calls = self._settings.answers.max_steps if self.tools is not None and model.offers_tools() else 0
        room = model.prompt_limit(language) - prompted.tokens - offer_tokens()
        tools = self.tools if calls and room > 0 else None
        toolbox = (
            None
            if tools is None
            else tools.of(
                question.identity,
                question.filters,
                threshold=question.threshold,
                language=language,
                question=question.text,
            )
        )
        return Steps(
            toolbox=toolbox,
            boundary=prompted.boundary,
            calls_left=calls,
            room=room,
            shown=list(prompted.context.hits),
            say=partial(self._prompts.message, language=language),
        )


def _make_checker(run: AnswerRun, prompted: ReadyPrompt, steps: Steps) -> AnswerChecker:
    ids = {hit.chunk.id for hit in steps.shown}
    return AnswerChecker(
        steps.shown,
        others=[hit for hit in run.found.hits if hit.chunk.id not in ids],
        question=run.question.text,
        harmless=prompted.notices.harmless,
        notice=prompted.notices.withheld,
        language=run.language,
        secrets=[prompted.secret],
        computed=steps.computed,
    )


async def _ask_judge(
    judge: WatchedJudge, run: AnswerRun, checked: CheckedAnswer, writing: WrittenText
) -> tuple[CheckedAnswer, AnswersQuestion | None]:
    """Return the answer as the judge decides it, and whether it answers the question."""
    return await judge_answer(
        judge,
        checked,
        writing.steps.shown,
        question=run.question.text,
        prompt=writing.sent,
        computed=writing.steps.computed,
        language=run.language,
    )


def _recalled(run: AnswerRun, hits: Sequence[Hit], found_now: Set[str], *, is_last: bool = False) -> Iterator[Hit]:
    """Yield passages of earlier answers that the request leaves: its threshold, its versions and the files it names.

    `is_last`: those of the last answers may be the version that another one is compared with.
    """
    question, found = run.question, run.found
    by_id = {hit.chunk.id: hit for hit in found.hits}
    named = () if found.files is None else found.files.document_ids
    for hit in hits:
        chunk = hit.chunk
        scores = by_id[chunk.id].scores if chunk.id in by_id else hit.scores
        is_relevant = question.threshold is None or scores.relevance >= question.threshold
        is_version_meant = is_last or chunk.document.id not in found.other_versions
        if is_relevant and is_version_meant and (not named or chunk.document.id in named):
            yield replace(hit, scores=scores, from_turn=None if chunk.id in found_now else hit.from_turn)
