"""Between the wire and the domain."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from msgspec import structs

from rag_service.api.wire.problems import FieldError, InvalidRequestError
from rag_service.api.wire.schemas import (
    AnswerBody,
    CitationBody,
    ConfidenceBody,
    ContextBody,
    FlaggedBody,
    GuardrailCheckBody,
    GuardrailsBody,
    LocationBody,
    PassageBody,
    RelatedBody,
    ScoresBody,
    SearchRequest,
    SourceBody,
)
from rag_service.domain import Answer, AnswerQuery, Citation, DocumentRef, Filters, GuardrailCheck, Hit, Location
from rag_service.query.verification.places import describe_place
from rag_service.settings import Settings

SNIPPET_CHARS = 300


def read_query(request: SearchRequest, settings: Settings) -> AnswerQuery:
    """What a request asks for, defaults filled in.

    Raises:
        InvalidRequestError: names every field that is out of bounds.
    """
    if errors := list(_find_errors(request, settings)):
        raise InvalidRequestError(errors)
    return AnswerQuery(
        question=request.query.strip(),
        top_k=settings.topk_default if request.top_k is None else request.top_k,
        threshold=request.similarity_threshold,
        filters=Filters(
            corpus_ids=tuple(request.corpus_ids),
            document_ids=tuple(request.document_ids),
            file_name=request.file_name or None,
            source=request.source or None,
            tags=tuple(request.tags),
            fields=request.fields,
            must_exist=True,
        ),
    )


def _find_errors(request: SearchRequest, settings: Settings) -> Iterable[FieldError]:
    if is_blank(request.query):
        yield FieldError("query", "must not be empty")
    elif len(request.query) > settings.query_max_chars:
        yield FieldError("query", f"must have at most {settings.query_max_chars} characters, has {len(request.query)}")
    if request.top_k is not None and not 1 <= request.top_k <= settings.topk_max:
        yield FieldError("topK", f"must be from 1 to {settings.topk_max}")
    if request.similarity_threshold is not None and not 0 <= request.similarity_threshold <= 1:
        yield FieldError("similarityThreshold", "must be from 0 to 1")
    texts = {
        "query": [request.query],
        "source": [request.source or ""],
        "fileName": [request.file_name or ""],
        "tags": request.tags,
        "fields": [*request.fields, *request.fields.values()],
    }
    yield from find_nul(texts)


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: blanks, control and zero-width characters only."""
    return all(char.isspace() or unicodedata.category(char)[0] == "C" for char in text)


def find_nul(texts: Mapping[str, Iterable[str]]) -> Iterable[FieldError]:
    """An error for each field with a NUL character, which PostgreSQL cannot hold."""
    for name, values in texts.items():
        if any("\0" in value for value in values):
            yield FieldError(name, "must not hold the character NUL")


def present_passage(hit: Hit) -> PassageBody:
    chunk, document = hit.chunk, hit.chunk.document
    location = _location_of(hit)
    return PassageBody(
        chunk_id=chunk.id,
        document_id=document.id,
        corpus_id=document.corpus_id,
        title=document.title,
        file_name=document.file_name,
        source=document.source,
        tags=list(document.tags),
        chunk_index=chunk.index,
        score=float(hit.scores.relevance),
        scores=_present_scores(hit),
        text=chunk.text,
        start=chunk.start,
        end=chunk.end,
        location=present_location(location),
        place=describe_place(document, location),
        content_hash=document.content_hash,
        metadata=dict(chunk.metadata),
    )


def _present_scores(hit: Hit) -> ScoresBody:
    scores = hit.scores
    return ScoresBody(
        relevance=float(scores.relevance),
        dense=_as_float(scores.dense),
        bm25=_as_float(scores.bm25),
        coverage=_as_float(scores.coverage),
        fused=_as_float(scores.fused),
        rerank=_as_float(scores.rerank),
    )


def _as_float(value: float | None) -> float | None:
    """NumPy's own float types are none to the encoder."""
    return None if value is None else float(value)


def present_source(hit: Hit) -> SourceBody:
    chunk, document = hit.chunk, hit.chunk.document
    location = _location_of(hit)
    return SourceBody(
        document_id=document.id,
        title=document.title,
        chunk_index=chunk.index,
        score=float(hit.scores.relevance),
        source=document.source,
        tags=list(document.tags),
        chunk_id=chunk.id,
        file_name=document.file_name,
        location=present_location(location),
        place=describe_place(document, location),
    )


def present_related(hit: Hit) -> RelatedBody:
    source = present_source(hit)
    return RelatedBody(**structs.asdict(source), text=hit.chunk.text)


def present_context(hits: Iterable[Hit]) -> list[ContextBody]:
    """The passages put before the model, [C1] first."""
    return [
        ContextBody(
            mark=mark,
            document_id=hit.chunk.document.id,
            chunk_index=hit.chunk.index,
            snippet=_snippet(hit.chunk.text),
        )
        for mark, hit in enumerate(hits, start=1)
    ]


def present_citation(citation: Citation, documents: Mapping[UUID, DocumentRef]) -> CitationBody:
    """A citation with the title and place of its document.

    Args:
        citation: checked.
        documents: those of the passages found, by id.
    """
    document = None if citation.document_id is None else documents.get(citation.document_id)
    return CitationBody(
        mark=citation.mark,
        status=citation.status.value,
        quote=citation.quote,
        document_id=citation.document_id,
        title=None if document is None else document.title,
        content_hash=citation.content_hash,
        chunk_id=citation.chunk_id,
        start=citation.start,
        end=citation.end,
        location=present_location(citation.location),
        place=None if document is None else describe_place(document, citation.location),
        support=float(citation.support),
        sentence_start=citation.sentence_start,
        sentence_end=citation.sentence_end,
    )


def present_answer(answer: Answer) -> AnswerBody:
    documents = documents_of((*answer.sources, *answer.shown))
    return AnswerBody(
        answer_id=answer.id,
        answer=answer.text,
        decision=answer.decision.value,
        confidence=float(answer.confidence.value),
        confidence_parts=ConfidenceBody(
            mean_relevance=float(answer.confidence.mean_relevance),
            mean_rerank=_as_float(answer.confidence.mean_rerank),
            critical_boost=answer.confidence.critical_boost,
        ),
        sources=[present_source(hit) for hit in answer.sources],
        context_used=present_context(answer.shown),
        citations=[present_citation(citation, documents) for citation in answer.citations],
        unmarked_sentences=answer.unmarked_sentences,
        withheld_sentences=answer.withheld_sentences,
        flagged=[FlaggedBody(start=start, end=end) for start, end in answer.flagged],
        guardrails=present_guardrails(answer.guardrails),
        language=answer.language,
        model=answer.model,
        latency_ms=round(answer.latency_ms, 1),
        prompt_tokens=answer.tokens.prompt,
        completion_tokens=answer.tokens.completion,
        related=[present_related(hit) for hit in answer.related],
    )


def present_guardrails(checks: Sequence[GuardrailCheck]) -> GuardrailsBody:
    bodies = [
        GuardrailCheckBody(
            kind=check.kind,
            phrase=check.phrase,
            passed=check.passed,
            rule=check.rule,
            document_id=check.document_id,
            chunk_id=check.chunk_id,
            start=check.start,
            end=check.end,
            location=present_location(check.location),
            found_in=check.found_in,
            found_start=check.found_start,
            found_end=check.found_end,
        )
        for check in checks
    ]
    violations = [body for body in bodies if not body.passed]
    return GuardrailsBody(passed=not violations, checks=bodies, violations=violations)


def documents_of(hits: Iterable[Hit]) -> dict[UUID, DocumentRef]:
    """The documents of passages, by id."""
    return {hit.chunk.document.id: hit.chunk.document for hit in hits}


def present_location(location: Location | None) -> LocationBody | None:
    if location is None:
        return None
    return LocationBody(
        page=location.page,
        headings=list(location.headings),
        sheet=location.sheet,
        cell=location.cell,
        row=location.row,
        paragraph=location.paragraph,
    )


def _location_of(hit: Hit) -> Location | None:
    """Where a passage begins."""
    return hit.chunk.spans[0].location if hit.chunk.spans else None


def _snippet(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= SNIPPET_CHARS else shown[: SNIPPET_CHARS - 1].rstrip() + "…"
