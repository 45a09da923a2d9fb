"""The advisor's answers as they go over the wire."""

from __future__ import annotations

from collections.abc import Iterator

from rag_service.api.advisor.schemas import (
    AdvisorMetadataBody,
    ArticleBody,
    GenerateResponseBody,
    RequiredDataBody,
    RequiredFieldBody,
    RequiredFieldsBody,
    ResponseSectionsBody,
    SectionBody,
    StatementBody,
    StatementCitationBody,
)
from rag_service.api.wire.presenters import documents_of, present_citation, present_context, present_guardrails
from rag_service.api.wire.schemas import ConfidenceBody
from rag_service.domain import Confidence
from rag_service.query.advisor.schema import AdvisorResponse, Component, RequiredData, RequiredField, Section


def present_required_data(outcome: RequiredData, *, latency_ms: float) -> RequiredDataBody:
    return RequiredDataBody(
        article_reference=ArticleBody(article_id=outcome.article_id, confidence=float(outcome.confidence.value)),
        required_fields=RequiredFieldsBody(
            participant_data=[_present_field(field) for field in outcome.fields if field.group == "participant"],
            plan_data=[_present_field(field) for field in outcome.fields if field.group == "plan"],
        ),
        decision=outcome.decision.value,
        confidence_parts=_present_confidence(outcome.confidence),
        metadata=AdvisorMetadataBody(
            token_count=outcome.context_tokens,
            context_tokens=outcome.context_tokens,
            answer_tokens=0,
            chunks_used=outcome.chunks_used,
            chunks_left_out=outcome.chunks_left_out,
            language=outcome.language,
            model=outcome.model,
            latency_ms=latency_ms,
        ),
    )


def present_response(outcome: AdvisorResponse, *, latency_ms: float) -> GenerateResponseBody:
    documents = documents_of(outcome.shown)
    statements = list(_statements(outcome.sections))
    return GenerateResponseBody(
        decision=outcome.decision.value,
        confidence=float(outcome.confidence.value),
        confidence_parts=_present_confidence(outcome.confidence),
        article_reference=ArticleBody(article_id=outcome.article_id, confidence=float(outcome.confidence.value)),
        response=ResponseSectionsBody(sections=[_present_section(section) for section in outcome.sections]),
        missing_fields=[field.field for field in outcome.missing],
        citations=[
            StatementCitationBody(statement=place, citation=present_citation(citation, documents))
            for place, component in statements
            for citation in component.citations
        ],
        flagged=[place for place, component in statements if component.flagged],
        withheld_statements=outcome.withheld,
        context_used=present_context(outcome.shown),
        guardrails=present_guardrails(outcome.guardrails),
        metadata=AdvisorMetadataBody(
            token_count=outcome.context_tokens + outcome.answer_tokens,
            context_tokens=outcome.context_tokens,
            answer_tokens=outcome.answer_tokens,
            chunks_used=len(outcome.shown),
            chunks_left_out=len(outcome.left_out),
            language=outcome.language,
            model=outcome.model,
            latency_ms=latency_ms,
        ),
    )


def _present_field(field: RequiredField) -> RequiredFieldBody:
    return RequiredFieldBody(
        field=field.field,
        description=field.description,
        why_needed=field.why_needed,
        data_type=field.data_type,
        required=field.required,
    )


def _present_section(section: Section) -> SectionBody:
    return SectionBody(
        topic=section.topic,
        answer_components=[component.text for component in section.answer_components],
        steps=[component.text for component in section.steps],
        warnings=[component.text for component in section.warnings],
    )


def _statements(sections: tuple[Section, ...]) -> Iterator[tuple[StatementBody, Component]]:
    for number, section in enumerate(sections):
        for part, components in section.parts():
            for item, component in enumerate(components):
                yield StatementBody(section=number, part=part, item=item), component


def _present_confidence(confidence: Confidence) -> ConfidenceBody:
    return ConfidenceBody(
        mean_relevance=float(confidence.mean_relevance),
        mean_rerank=None if confidence.mean_rerank is None else float(confidence.mean_rerank),
        critical_boost=confidence.critical_boost,
    )
