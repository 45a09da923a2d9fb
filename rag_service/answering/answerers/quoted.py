"""Answers without a chat model: quotes the sentences that answer best, and what amends them."""

from __future__ import annotations

from collections.abc import Sequence

from rag_service.answering.answerers.evidence import gather_evidence
from rag_service.answering.answerers.sources import mentioned_sources
from rag_service.answering.drafts.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.drafts.events import SourcesFound
from rag_service.answering.drafts.judged import judge_answer
from rag_service.answering.drafts.output import Output, emit_rest, emit_while_checked
from rag_service.answering.prompt.notices import Notices, make_notices
from rag_service.answering.prompt.packing import PackedContext, pack_sources
from rag_service.answering.prompt.templates import Prompts, new_boundary
from rag_service.answering.quoting.quoter import Quoter
from rag_service.answering.quoting.quotes import Evidence, Quotes
from rag_service.domain import AnswersQuestion, Hit, TokenCount
from rag_service.language.words import count_tokens
from rag_service.models.judge.judges import WatchedJudge
from rag_service.observability.tracing import span
from rag_service.retrieval.amendments import find_amendments
from rag_service.retrieval.query import AnswerRun
from rag_service.settings.answers import AnswerSettings


class QuotedAnswers:
    """Quotes passages."""

    def __init__(self, prompts: Prompts, settings: AnswerSettings, judge: WatchedJudge | None, quoter: Quoter) -> None:
        self._prompts = prompts
        self._settings = settings
        self._judge = judge
        self._quoter = quoter

    async def answer(self, run: AnswerRun) -> Draft | None:
        """As `Answerer.answer`. Amendments of what was found are added to the sources."""
        if not run.model.only_quotes or not (sources := mentioned_sources(run.found)):
            return None
        if run.question.threshold is None:
            sources = (*sources, *find_amendments(sources, run.found.hits))
        notices, context, evidence = self._gather(run, sources)
        await run.emit(SourcesFound(sources=sources, shown=context.hits, timings_ms=run.found.timings_ms))
        judge = self._judge if self._judge is not None and self._judge.is_used else None
        holds = {"withholds": self._settings.withhold_unverified, "is_judged": judge is not None}
        output = Output(_make_checker(run, context, notices), emit_while_checked(run, **holds))
        quotes = await self._quoter.quote(evidence, run.model)
        for piece in _introduce(quotes, notices):
            await output.add(piece)
        checked, answers = await output.finish(), None
        if judge is not None:
            checked, answers = await _ask_judge(judge, run, checked, context.hits)
        checked = await emit_rest(run, checked, notice=notices.withheld, **holds)
        return Draft(
            checked=checked,
            sources=sources,
            shown=context.hits,
            context_tokens=context.tokens,
            tokens=TokenCount(prompt=0, completion=count_tokens(checked.text), estimated=True),
            model=run.model,
            refusal=notices.refusal,
            preface=notices.introduction,
            doubts=notices.doubts,
            answers=answers,
            quotes=quotes,
        )

    async def choose(self, run: AnswerRun) -> Quotes:
        """Choose what would be quoted, with its windows, and emit nothing."""
        _, _, evidence = self._gather(run, run.found.passages)
        return await self._quoter.quote(evidence, run.model)

    def _gather(self, run: AnswerRun, sources: Sequence[Hit]) -> tuple[Notices, PackedContext, Evidence]:
        with span("prompt"):
            notices = make_notices(run.found, sources, self._prompts)
            context = pack_sources(run, sources, settings=self._settings, boundary=new_boundary())
            return notices, context, gather_evidence(run, context.hits, notices)


def _make_checker(run: AnswerRun, context: PackedContext, notices: Notices) -> AnswerChecker:
    ids = {hit.chunk.id for hit in context.hits}
    return AnswerChecker(
        context.hits,
        others=[hit for hit in run.found.hits if hit.chunk.id not in ids],
        question=run.question.text,
        harmless=notices.harmless,
        notice=notices.withheld,
        language=run.language,
    )


async def _ask_judge(
    judge: WatchedJudge, run: AnswerRun, checked: CheckedAnswer, shown: Sequence[Hit]
) -> tuple[CheckedAnswer, AnswersQuestion | None]:
    return await judge_answer(judge, checked, shown, question=run.question.text, language=run.language)


def _introduce(quotes: Quotes, notices: Notices) -> Sequence[str]:
    """Return the quotes in pieces after their introduction, which a refusal does without."""
    first, *others = quotes.pieces
    introduces = quotes.sentences and notices.introduction
    return [f"{notices.introduction}\n\n{first}" if introduces else first, *others]
