"""Structured answers over a governed knowledge base."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from litestar import Controller, Router, post
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from rag_service.advisor.schema import AdvisorResponse, Component, Inquiry, RequiredData, ResponseRequest, Section
from rag_service.api.advisor.schemas import (
    AdvisorMetadataBody,
    ArticleBody,
    GenerateResponseBody,
    GenerateResponseRequest,
    RequiredDataBody,
    RequiredDataRequest,
    RequiredFieldsBody,
    ResponseSectionsBody,
    SectionBody,
    StatementBody,
    StatementCitationBody,
)
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.presenters import present, present_citation, present_context, present_guardrails
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.queries import find_question_errors, find_unstorable
from rag_service.api.http.schemas import ReasonBody
from rag_service.api.http.services import READING, IdentityDependency, from_state
from rag_service.api.http.streaming import unless_gone
from rag_service.domain import Identity
from rag_service.errors import ContextOverflowError, InputError, RagError
from rag_service.settings import Settings

MIN_TOKENS = 200  # of a response; less holds neither a chunk nor a sentence
_WIRE_NAMES = {"record_keeper": "recordKeeper", "plan_type": "planType", "topic": "topic"}

_Result = TypeVar("_Result")


@dataclass(frozen=True, kw_only=True)
class AdvisorServices:
    """The two questions that the advisor answers."""

    settings: Settings
    required_data: Callable[[Inquiry, Identity], Awaitable[RequiredData]]
    generate_response: Callable[[ResponseRequest, Identity], Awaitable[AdvisorResponse]]


AdvisorDependency = NamedDependency[SkipValidation[AdvisorServices]]


class AdvisorController(Controller):
    """Advice on cases."""

    path = "/api/v1"
    tags = ["Advisor"]
    opt = READING  # cases are posted, but change nothing

    @post(
        "/required-data",
        status_code=200,
        summary="List the data that a case needs",
        operation_class=accepts(RequiredDataRequest),
        responses=problems(400, 401, 404, 413, 415, 500, 503),
    )
    async def required_data(
        self, request: AnyRequest, advisor: AdvisorDependency, identity: IdentityDependency
    ) -> RequiredDataBody:
        """The fields that the governing article requires in its required data, eligibility and business rules."""
        body = await read_json(request, RequiredDataRequest)
        inquiry = _read_inquiry(body, advisor.settings)
        work = _timed(advisor.required_data(inquiry, identity), body)
        outcome, latency_ms = await unless_gone(request.receive, work)
        return _present_required_data(outcome, latency_ms=latency_ms)

    @post(
        "/generate-response",
        status_code=200,
        summary="Answer a case",
        operation_class=accepts(GenerateResponseRequest),
        responses=problems(400, 401, 404, 413, 415, 500, 503),
    )
    async def generate_response(
        self, request: AnyRequest, advisor: AdvisorDependency, identity: IdentityDependency
    ) -> GenerateResponseBody:
        """Returns the decision, sections with verified citations, and the results of the guardrails."""
        body = await read_json(request, GenerateResponseRequest)
        asked = ResponseRequest(
            inquiry=_read_inquiry(body, advisor.settings), collected=body.collected_data, max_tokens=body.max_tokens
        )
        work = _timed(advisor.generate_response(asked, identity), body)
        outcome, latency_ms = await unless_gone(request.receive, work)
        return _present_response(outcome, latency_ms=latency_ms)


def advisor_router() -> Router:
    """The advisor's routes; they use `state.advisor`."""
    return Router(path="/", route_handlers=[AdvisorController], dependencies={"advisor": from_state("advisor")})


def _read_inquiry(body: RequiredDataRequest, settings: Settings) -> Inquiry:
    """
    Raises:
        InvalidRequestError: names every field that is out of bounds.
    """
    if errors := list(_find_errors(body, settings)):
        raise InvalidRequestError(errors)
    named = {name: value for name in _WIRE_NAMES if (value := getattr(body, name))}
    return Inquiry(
        text=body.inquiry.strip(),
        fields={**body.fields, **named},
        corpus_ids=tuple(body.corpus_ids),
        index=body.index or None,
    )


def _find_errors(body: RequiredDataRequest, settings: Settings) -> Iterator[FieldError]:
    yield from find_question_errors("inquiry", body.inquiry, settings)
    if isinstance(body, GenerateResponseRequest) and body.max_tokens is not None:
        maximum = settings.chat.context_window
        if not MIN_TOKENS <= body.max_tokens <= maximum:
            yield FieldError("maxTokens", f"must be from {MIN_TOKENS} to {maximum}")
    texts = {wire: [getattr(body, name) or ""] for name, wire in _WIRE_NAMES.items()}
    texts |= {"inquiry": [body.inquiry], "index": [body.index or ""], "fields": [*body.fields, *body.fields.values()]}
    yield from find_unstorable(texts)


async def _timed(work: Awaitable[_Result], body: RequiredDataRequest) -> tuple[_Result, float]:
    """What the advisor says, and after how many milliseconds; wrong fields are reported by their name in the API."""
    started = time.perf_counter()
    try:
        return await work, round((time.perf_counter() - started) * 1000, 1)
    except ContextOverflowError as error:
        if error.field == "maxTokens":
            raise _cannot_be_used("maxTokens", error) from error
        raise
    except InputError as error:
        if error.field is None or isinstance(error, InvalidRequestError):
            raise
        name = error.field if error.field not in body.fields else f"fields.{error.field}"
        raise _cannot_be_used(_WIRE_NAMES.get(name, name), error) from error


def _cannot_be_used(name: str, error: RagError) -> InvalidRequestError:
    return InvalidRequestError([FieldError(name, f"cannot be used: {error.message}")])


def _present_required_data(outcome: RequiredData, *, latency_ms: float) -> RequiredDataBody:
    groups = {name: [field for field in outcome.fields if field.group == name] for name in ("participant", "plan")}
    fields = present(RequiredFieldsBody, outcome, participant_data=groups["participant"], plan_data=groups["plan"])
    return present(RequiredDataBody, outcome, required_fields=fields, **_shared(outcome, 0, latency_ms))


def _present_response(outcome: AdvisorResponse, *, latency_ms: float) -> GenerateResponseBody:
    statements = list(_statements(outcome.sections))
    return present(
        GenerateResponseBody,
        outcome,
        confidence=outcome.confidence.value,
        response=ResponseSectionsBody(sections=[_present_section(section) for section in outcome.sections]),
        missing_fields=[field.field for field in outcome.missing],
        citations=[
            StatementCitationBody(statement=place, citation=present_citation(citation, outcome.shown))
            for place, component in statements
            for citation in component.citations
        ],
        flagged=[place for place, component in statements if component.flagged],
        withheld_statements=outcome.withheld,
        context_used=present_context(outcome.shown),
        guardrails=present_guardrails(outcome.guardrails),
        **_shared(outcome, outcome.answer_tokens, latency_ms),
    )


def _shared(outcome: RequiredData | AdvisorResponse, answer_tokens: int, latency_ms: float) -> dict[str, Any]:
    """The fields of both replies."""
    metadata = present(
        AdvisorMetadataBody,
        outcome,
        token_count=outcome.context_tokens + answer_tokens,
        answer_tokens=answer_tokens,
        chunks_used=len(outcome.shown),
        chunks_left_out=len(outcome.left_out),
        latency_ms=latency_ms,
    )
    article = ArticleBody(article_id=outcome.article_id, confidence=outcome.confidence.value)
    reasons = [present(ReasonBody, reason) for reason in outcome.reasons]
    return {
        "article_reference": article,
        "confidence_parts": outcome.confidence,
        "metadata": metadata,
        "reasons": reasons,
    }


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
