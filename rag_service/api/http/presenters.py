"""Results as response bodies."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rag_service.answering.follow_ups import find_follow_ups
from rag_service.api.http.schemas import (
    AnswerBody,
    CitationBody,
    ContextBody,
    EvidenceBody,
    FlaggedBody,
    GuardrailCheckBody,
    GuardrailsBody,
    MarkedBody,
    ModelCallBody,
    PassageBody,
    PlaceBody,
    ReasonBody,
    RelatedBody,
    SearchBody,
    SourceBody,
    StepBody,
    TimingsBody,
    ValueBody,
)
from rag_service.domain import (
    Answer,
    Citation,
    CitedWords,
    ExtractedValue,
    FoundPlace,
    GuardrailCheck,
    Hit,
    describe_place,
)
from rag_service.retrieval.question import Question
from rag_service.word_boxes import with_boxes

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.retrieval.found import Found

SNIPPET_CHARS = 300
_Body = TypeVar("_Body", bound=msgspec.Struct)


def present(kind: type[_Body], item: Any, /, **given: Any) -> _Body:
    """A domain value as a body: its attributes that the body has, nested values likewise, and what is given."""
    shared = {name: getattr(item, name) for name in kind.__struct_fields__ if hasattr(item, name)}
    return msgspec.convert(SimpleNamespace(**shared | given), kind, from_attributes=True)


def present_hit(kind: type[_Body], hit: Hit) -> _Body:
    """A passage as SourceBody, RelatedBody or PassageBody."""
    chunk, document = hit.chunk, hit.chunk.document
    location = chunk.location
    if location is not None and kind is PassageBody:
        location = with_boxes(location, chunk.spans, chunk.start, chunk.end)
    return present(
        kind,
        document,
        document_id=document.id,
        chunk_id=chunk.id,
        chunk_index=chunk.index,
        score=hit.scores.relevance,
        scores=hit.scores,
        location=location,
        place=describe_place(document, location),
        text=chunk.text,
        start=chunk.start,
        end=chunk.end,
        fields=chunk.metadata,
        metadata={**chunk.extra, **chunk.metadata},
    )


def present_context(hits: Iterable[Hit], *, first_mark: int = 1) -> list[ContextBody]:
    """The passages given to the model, [C1] or that of `first_mark` first."""
    bodies = []
    for mark, hit in enumerate(hits, start=first_mark):
        text = " ".join(hit.chunk.text.split())
        snippet = text if len(text) <= SNIPPET_CHARS else text[: SNIPPET_CHARS - 1].rsplit(maxsplit=1)[0] + "…"
        document_id = hit.chunk.document.id
        bodies.append(
            ContextBody(
                mark=mark,
                document_id=document_id,
                chunk_index=hit.chunk.index,
                snippet=snippet,
                from_turn=hit.from_turn,
            )
        )
    return bodies


def present_citation(citation: Citation, hits: Iterable[Hit]) -> CitationBody:
    """A citation with the title and place of its document, which is that of one of the passages."""
    documents = (hit.chunk.document for hit in hits)
    document = next((document for document in documents if document.id == citation.document_id), None)
    words: list[Citation | CitedWords] = [] if citation.quote is None else [citation, *citation.evidence]
    evidence = [
        present(EvidenceBody, one, place=None if document is None else describe_place(document, one.location))
        for one in words
    ]
    return present(
        CitationBody,
        citation,
        title=None if document is None else document.title,
        place=evidence[0].place if evidence else None,
        evidence=evidence,
    )


def present_place(place: FoundPlace) -> PlaceBody:
    return present(
        PlaceBody,
        place.document,
        document_id=place.document.id,
        chunk_id=place.chunk_id,
        place=describe_place(place.document, place.location),
        location=place.location,
        text=place.text,
        marked=[MarkedBody(start=start, end=end) for start, end in place.marked],
        start=place.start,
        end=place.end,
        formula=place.formula,
        part=place.part,
    )


def _present_value(value: ExtractedValue, hits: Sequence[Hit]) -> ValueBody:
    return ValueBody(
        pointer=value.pointer,
        value=value.value,
        status="missing" if value.status is None else value.status.value,
        reason=value.reason,
        citation=None if value.citation is None else present_citation(value.citation, hits),
    )


def present_answer(answer: Answer) -> AnswerBody:
    extraction, hits = answer.extraction, (*answer.sources, *answer.shown)
    return present(
        AnswerBody,
        answer,
        answer_id=answer.id,
        answer=answer.text,
        reasons=[present(ReasonBody, reason) for reason in answer.reasons],
        confidence=answer.confidence.value,
        confidence_parts=answer.confidence,
        sources=[present_hit(SourceBody, hit) for hit in answer.sources],
        context_used=present_context(answer.shown),
        citations=[present_citation(citation, hits) for citation in answer.citations],
        flagged=[FlaggedBody(start=start, end=end) for start, end in answer.flagged],
        guardrails=present_guardrails(answer.guardrails),
        latency_ms=round(answer.latency_ms, 1),
        timings=TimingsBody(
            retrieval_ms=answer.retrieval_ms, model_calls=[present(ModelCallBody, call) for call in answer.calls]
        ),
        steps=[present(StepBody, step) for step in answer.steps],
        prompt_tokens=answer.tokens.prompt,
        completion_tokens=answer.tokens.completion,
        related=[present_hit(RelatedBody, hit) for hit in answer.related],
        follow_ups=find_follow_ups(answer),
        places=list(map(present_place, answer.places)),
        data=None if extraction is None else extraction.data,
        values=[] if extraction is None else [_present_value(value, hits) for value in extraction.values],
    )


async def present_search(search: Callable[[Question], Awaitable[Found]], question: Question) -> SearchBody:
    """Run a search, and show what it found and how long it took."""
    started = time.perf_counter()
    found = await search(question)
    return SearchBody(
        passages=[present_hit(PassageBody, hit) for hit in found.passages],
        language=found.plan.language,
        latency_ms=round((time.perf_counter() - started) * 1000, 1),
    )


def present_guardrails(checks: Sequence[GuardrailCheck]) -> GuardrailsBody:
    bodies = [present(GuardrailCheckBody, check) for check in checks]
    violations = [body for body in bodies if not body.passed]
    return GuardrailsBody(passed=not violations, checks=bodies, violations=violations)
