"""Answers without a chat model: quotes the sentences that answer best, and what amends them.

Quotes are chosen from the passages that are shown, without what may not be quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from rag_service.answering.drafts.checked_answer import (
    AnswerChecker,
    CheckedAnswer,
    Output,
    emit_rest,
    emit_while_checked,
)
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.drafts.events import SourcesFound
from rag_service.answering.drafts.judged import judge_answer
from rag_service.answering.guards.injection import without_injections
from rag_service.answering.prompt.cutting import weight_held
from rag_service.answering.prompt.notices import Notices, make_notices, mentioned_sources
from rag_service.answering.prompt.packing import PackedContext, pack_sources
from rag_service.answering.prompt.templates import Prompts, new_boundary
from rag_service.answering.quoting.quoter import Quoter
from rag_service.answering.quoting.quotes import Evidence, Quotes
from rag_service.domain import AnswersQuestion, Hit, TokenCount
from rag_service.language.words import count_tokens, word_forms
from rag_service.models.judge.judges import WatchedJudge
from rag_service.observability.tracing import span
from rag_service.retrieval.named_files import Place
from rag_service.retrieval.planner import QueryPlan
from rag_service.retrieval.query import AnswerRun
from rag_service.retrieval.versions import find_amendments
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


def gather_evidence(run: AnswerRun, shown: Sequence[Hit], notices: Notices) -> Evidence:
    """Return what quotes are chosen from: the passages shown, the question that they answer, and its words."""
    question, found = run.question, run.found
    asked = question.text if found.versions is None else found.versions.question
    if question.is_joined:  # the questions before have their answers
        asked = question.asked
    place = None if found.files is None else found.files.place
    return Evidence(
        question=asked,
        language=found.plan.language,
        hits=tuple(_quotable(hit, found.weights, place) if hit.from_turn is None else _blank(hit) for hit in shown),
        weights=found.weights,
        equivalents=_equivalents(found.plan, asked),
        refusal=notices.refusal,
        preface=notices.introduction,
        by_document=found.of_several,
    )


def _equivalents(plan: QueryPlan, question: str) -> dict[str, int]:
    """Index term → the word of the question that it stands for, if the question has one of these words."""
    forms = word_forms(question)
    asked = {term.group for term in plan.terms if term.term in forms}
    return {term.term: term.group for term in plan.terms if term.group >= 0 and term.group in asked}


def _quotable(hit: Hit, weights: Mapping[str, float], place: Place | None) -> Hit:
    """Return what may be quoted: no injections, and nothing of a passage found mainly for their words.

    Of a question about a page or a cell only what stands there.
    """
    hit = hit if place is None else _only_at(place, hit)
    cleared = without_injections(hit)
    before, after = hit.chunk.text, cleared.chunk.text
    if before == after or 2 * weight_held(after, weights) >= weight_held(before, weights):
        return cleared
    return replace(cleared, chunk=replace(cleared.chunk, text="\n" * len(before)))


def _blank(hit: Hit) -> Hit:
    """A passage that an earlier answer cited and that is not found now: it would answer the earlier question."""
    return replace(hit, chunk=replace(hit.chunk, text=""))


def _only_at(place: Place, hit: Hit) -> Hit:
    """Return the hit with all else blanked out of its text; offsets stay valid. A cell is shown with its row."""
    chunk = hit.chunk
    spans = [span for span in chunk.spans if place.holds(span.location)]
    if place.kind in ("cell", "row"):  # the names of the columns stand between the cells
        rows = {(span.location.sheet, span.location.row) for span in spans}
        whole = [span for span in chunk.spans if (span.location.sheet, span.location.row) in rows]
        if len(rows) == 1:
            whole = [msgspec.structs.replace(whole[0], end=max(span.end for span in whole))]
        spans = whole
    kept = ["\n"] * len(chunk.text)
    for one in spans:
        start, end = max(0, one.start - chunk.start), max(0, one.end - chunk.start)
        kept[start:end] = chunk.text[start:end]
    return replace(hit, chunk=replace(chunk, text="".join(kept)))
