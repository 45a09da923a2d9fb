"""The decision about a draft: confidence, doubts, and the answer that they make of it.

An answer without a doubt can proceed. Everything that doubts one adds its code here, in the order of what weighs most,
each with a sentence; every channel shows the first sentence or all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from rag_service.answering.decision.confidence import (
    COMPUTED_CONFIDENCE,
    estimate_confidence,
    rate_written,
    read_fit,
    read_signals,
)
from rag_service.answering.decision.gate import doubt_answer, is_refusal
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.guards.guardrails import GUARDRAIL_TYPES
from rag_service.answering.prompt.templates import Prompts
from rag_service.domain import Answer, AnswersQuestion, Confidence, Decision, GuardrailCheck, Hit, Reason
from rag_service.retrieval.query import AnswerRun
from rag_service.settings.answers import AnswerSettings

_NO_ANSWER = frozenset({
    Doubt.NO_QUESTION, Doubt.NO_DOCUMENTS, Doubt.NOTHING_SELECTED, Doubt.NOTHING_FOUND, Doubt.NOT_ANSWERED,
})  # fmt: skip
# What the documents shown forbid to say, checked against the text of an answer.
CheckGuardrails = Callable[[AnswerRun, Sequence[Hit], str], Awaitable[tuple[GuardrailCheck, ...]]]

_MAX_FLAGGED = 100  # sentences of an answer that are reported as unproved
# Of what a chat model wrote, which is rated by relevance alone. None of 186 near misses of `evals/written` passed.
_LEAST_WRITTEN = 0.77
# Of quotes whose tokens no model compared with the question: without vectors, or with vectors of another model. Only a
# relevance and a lead of almost 1 reach it. How many near misses do is not measured (decision 075).
_LEAST_NOT_COMPARED = 0.81


def decide(doubts: Collection[Doubt]) -> Decision:
    """Return the decision on an answer with these doubts."""
    if not doubts:
        return Decision.CAN_PROCEED
    return Decision.UNCERTAIN if _NO_ANSWER.isdisjoint(doubts) else Decision.OUT_OF_SCOPE


def find_doubts(found: Mapping[Doubt, bool]) -> tuple[Doubt, ...]:
    """Those that hold, in the order of what weighs most; where there is no answer, why there is none."""
    held = [doubt for doubt in Doubt if found.get(doubt)]
    return tuple(doubt for doubt in held if doubt in _NO_ANSWER) or tuple(held)


def make_reasons(
    doubts: Iterable[Doubt], sentences: Mapping[str, Mapping[str, str]], language: str
) -> tuple[Reason, ...]:
    """Each doubt with its sentence in a language, else in English."""
    told = {doubt: sentences[f"reason_{doubt}"] for doubt in dict.fromkeys(doubts)}
    return tuple(Reason(code=doubt.value, text=by.get(language) or by["en"]) for doubt, by in told.items())


@dataclass(frozen=True, kw_only=True)
class Concluded:
    """An answer with its decision, and what it was made of."""

    answer: Answer
    draft: Draft | None = None  # None: the service itself says why there is no answer
    signals: Mapping[str, float] = field(default_factory=dict)  # what the confidence is made of
    is_degraded: bool = False  # as `Draft.is_degraded`


class Concluder:
    """Decides about drafts."""

    def __init__(self, prompts: Prompts, settings: AnswerSettings, check_guardrails: CheckGuardrails) -> None:
        """`check_guardrails` is called where the index declares guardrails."""
        self._prompts = prompts
        self._check_guardrails = check_guardrails
        self._fit = read_fit(settings.confidence_fit)

    async def conclude(self, run: AnswerRun, draft: Draft) -> Concluded:
        """Return the answer with its confidence, decision and reasons."""
        found, checked = run.found, draft.checked
        signals = read_signals(draft.sources, draft.quotes) if draft.sources else {}
        confidence = self._rate(signals, draft)
        guardrails: tuple[GuardrailCheck, ...] = ()
        if not GUARDRAIL_TYPES.isdisjoint(found.index.ingest.chunk_types.values()):
            guardrails = await self._check_guardrails(run, draft.shown, checked.text)
        doubted = self._doubt(run, draft, confidence, guardrails)
        doubts, refused = find_doubts(doubted), doubted[Doubt.NOT_ANSWERED]
        answer = Answer(
            id=uuid4(),
            question=run.question.text,
            language=run.language,
            text=checked.text,
            sources=draft.sources,
            shown=draft.shown,
            context_tokens=draft.context_tokens,
            citations=checked.citations,
            decision=decide(doubts),
            reasons=make_reasons(doubts, self._prompts.messages, run.language),
            confidence=confidence,
            tokens=draft.tokens,
            latency_ms=0.0,
            model=draft.model.model_name,
            unmarked_sentences=0 if refused else len(checked.unmarked),
            withheld_sentences=checked.withheld,
            flagged=() if refused else checked.flagged[:_MAX_FLAGGED],
            guardrails=guardrails,
            model_error=draft.model_error,
            answers_question=draft.answers,
            incomplete=draft.is_cut,
            finish_reason=draft.finish_reason,
            searched_for=run.question.searched_for,
            steps=draft.steps,
            extraction=draft.extraction,
        )
        return Concluded(answer=answer, draft=draft, signals=signals, is_degraded=draft.is_degraded)

    def _doubt(
        self, run: AnswerRun, draft: Draft, confidence: Confidence, guardrails: Sequence[GuardrailCheck]
    ) -> dict[Doubt, bool]:
        """Return everything that can speak against an answer, and whether it does."""
        checked, index = draft.checked, run.found.index
        said = checked.text.removeprefix(draft.preface)
        is_proved = checked.has_proof and not checked.flagged and not checked.refuted
        # Passages were found that hold no sentence to quote: they are shown.
        only_places = draft.quotes is not None and bool(draft.quotes.places) and not draft.quotes.sentences
        # Relevance, names and a model's choice of an operation are signs that an answer may be about something else: a
        # judge has looked, and has read what was computed, with its formula and the rows that were left out.
        of_search = {} if is_proved and draft.answers is AnswersQuestion.YES else draft.doubts
        return {
            **of_search,
            Doubt.FILE_UNKNOWN: draft.doubts.get(Doubt.FILE_UNKNOWN, False),
            **doubt_answer(run.question, run.found, draft),
            Doubt.NOT_ANSWERED: not only_places
            and is_refusal(said, checked.citations, refusal=draft.refusal, language=run.language),
            Doubt.MODEL_FAILED: draft.model_error is not None,
            Doubt.INCOMPLETE: draft.is_cut,
            Doubt.CONTRADICTED: checked.refuted > 0,
            Doubt.UNPROVED: not checked.has_proof or bool(checked.flagged or checked.withheld),
            Doubt.RULE_BROKEN: not all(check.passed for check in guardrails),
            Doubt.JOINED_QUESTION: run.question.is_joined,
            Doubt.LITTLE_CONTEXT: draft.context_tokens < index.query.minimum_context_tokens,
            Doubt.LOW_CONFIDENCE: draft.answers is None and confidence.value < self._least(draft),
        }

    def _least(self, draft: Draft) -> float:
        """Return the confidence below which an answer that no judge has seen is uncertain."""
        if not draft.model.only_quotes:
            return min(self._fit.least, _LEAST_WRITTEN)
        is_compared = draft.quotes is not None and draft.quotes.unmatched is not None
        return self._fit.least if is_compared else min(self._fit.least, _LEAST_NOT_COMPARED)

    def _rate(self, signals: Mapping[str, float], draft: Draft) -> Confidence:
        checked, sources = draft.checked, draft.sources
        if draft.answers is not None:
            return rate_written(sources, proved=checked.proved, answers=draft.answers is AnswersQuestion.YES)
        rated = estimate_confidence(self._fit, signals, sources, refuted=checked.refuted, has_proof=checked.has_proof)
        return replace(rated, value=max(rated.value, COMPUTED_CONFIDENCE)) if draft.is_computed else rated
