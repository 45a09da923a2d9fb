"""Structured answers over a governed knowledge base: requirements B1 and B2."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterator
from typing import TypeVar

from litestar import Controller, Router, post
from litestar.di import Provide

from rag_service.api.advisor.presenters import present_required_data, present_response
from rag_service.api.advisor.schemas import (
    GenerateResponseBody,
    GenerateResponseRequest,
    RequiredDataBody,
    RequiredDataRequest,
)
from rag_service.api.advisor.services import AdvisorDependency, AdvisorServices
from rag_service.api.services import READING, IdentityDependency
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.presenters import find_nul, is_blank
from rag_service.api.wire.problems import FieldError, InvalidRequestError
from rag_service.api.wire.streaming import unless_gone
from rag_service.errors import ContextOverflowError, InputError
from rag_service.query.advisor.schema import Inquiry, ResponseRequest
from rag_service.settings import Settings

LEAST_TOKENS = 200  # of a response; less holds neither a chunk nor a sentence
_WIRE_NAMES = {"record_keeper": "recordKeeper", "plan_type": "planType", "topic": "topic"}

_Result = TypeVar("_Result")


class AdvisorController(Controller):
    """Advice on cases."""

    path = "/api/v1"
    tags = ["Advisor"]  # noqa: RUF012 - Litestar's way
    opt = READING  # cases are posted, but change nothing

    @post(
        "/required-data",
        status_code=200,
        summary="Which data a case needs",
        operation_class=accepts(RequiredDataRequest),
        responses=problems(400, 401, 404, 413, 415, 500, 503),
    )
    async def required_data(
        self, request: AnyRequest, advisor: AdvisorDependency, identity: IdentityDependency
    ) -> RequiredDataBody:
        """The fields that the governing article asks for, from its required data, eligibility and business rules."""
        body = await read_json(request, RequiredDataRequest)
        inquiry = _read_inquiry(body, advisor.settings)
        started = time.perf_counter()
        outcome = await unless_gone(request.receive, _answered(advisor.required_data(inquiry, identity), body))
        return present_required_data(outcome, latency_ms=_since(started))

    @post(
        "/generate-response",
        status_code=200,
        summary="A structured response to a case",
        operation_class=accepts(GenerateResponseRequest),
        responses=problems(400, 401, 404, 413, 415, 500, 503),
    )
    async def generate_response(
        self, request: AnyRequest, advisor: AdvisorDependency, identity: IdentityDependency
    ) -> GenerateResponseBody:
        """Decision, sections with verified citations, and the outcome of the guardrails."""
        body = await read_json(request, GenerateResponseRequest)
        asked = ResponseRequest(
            inquiry=_read_inquiry(body, advisor.settings), collected=body.collected_data, max_tokens=body.max_tokens
        )
        started = time.perf_counter()
        outcome = await unless_gone(request.receive, _answered(advisor.generate_response(asked, identity), body))
        return present_response(outcome, latency_ms=_since(started))


def advisor_router(services: AdvisorServices) -> Router:
    """The advisor's routes over given services."""
    return Router(
        path="/",
        route_handlers=[AdvisorController],
        dependencies={"advisor": Provide(lambda: services, sync_to_thread=False)},
    )


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
    if is_blank(body.inquiry):
        yield FieldError("inquiry", "must not be empty")
    elif len(body.inquiry) > settings.query_max_chars:
        yield FieldError("inquiry", f"must have at most {settings.query_max_chars} characters, has {len(body.inquiry)}")
    if isinstance(body, GenerateResponseRequest) and body.max_tokens is not None:
        most = settings.context_window
        if not LEAST_TOKENS <= body.max_tokens <= most:
            yield FieldError("maxTokens", f"must be from {LEAST_TOKENS} to {most}")
    texts = {wire: [getattr(body, name) or ""] for name, wire in _WIRE_NAMES.items()}
    texts |= {"inquiry": [body.inquiry], "index": [body.index or ""], "fields": [*body.fields, *body.fields.values()]}
    yield from find_nul(texts)


async def _answered(work: Awaitable[_Result], body: RequiredDataRequest) -> _Result:
    """Await the advisor; what the caller can mend is reported under its name on the wire."""
    try:
        return await work
    except ContextOverflowError as error:
        if error.field == "maxTokens":
            raise InvalidRequestError([FieldError("maxTokens", _as_predicate(error.message))]) from error
        raise
    except InputError as error:
        if error.field is None or isinstance(error, InvalidRequestError):
            raise
        name = error.field if error.field not in body.fields else f"fields.{error.field}"
        raise InvalidRequestError([FieldError(_WIRE_NAMES.get(name, name), _as_predicate(error.message))]) from error


def _as_predicate(message: str) -> str:
    return f"cannot be used: {message}"


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 1)
