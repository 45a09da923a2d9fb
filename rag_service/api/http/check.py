"""Checks texts that were written elsewhere: at once, as a stream, or in the background."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from litestar import Controller, MediaType, Response, get, post

from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.check_jobs import CheckJobs
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.events import WireEvent, wired
from rag_service.api.http.presenters import present, present_citation
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.queries import find_unstorable, is_blank
from rag_service.api.http.schemas import (
    CheckBody,
    CheckDone,
    CheckJobBody,
    CheckRequest,
    CheckTextRequest,
    FlaggedBody,
    ReasonBody,
    SentenceBody,
    SentenceData,
)
from rag_service.api.http.services import READING, CheckText, IdentityDependency, Services, ServicesDependency
from rag_service.api.http.streaming import check_streaming, stream_events, unless_gone
from rag_service.domain import CitationStatus, Hit, Identity
from rag_service.errors import NotFoundError
from rag_service.language.detection import detect_language
from rag_service.language.languages import language_names

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.answering.checking import CheckedText
    from rag_service.answering.drafts.checked_answer import CheckedAnswer

_BEST_FIRST = [status.value for status in CitationStatus]
_NOT_HERE = "Texts cannot be checked with RAG_ENABLED=false."


class CheckController(Controller):
    """Answers of other programs."""

    path = "/api/v1/check"
    tags = ["Query"]

    @post(
        status_code=200,
        summary="Check a text against passages",
        description="Each sentence gets the verdict that a sentence of an answer of the service would get. Marks say "
        "which passage a sentence is from; sentences without marks are compared with those that share most words. With "
        "`stream: true`, a `sentence` event for each as soon as it is checked, `final` with the complete reply and "
        "`done`, in the formats of a streamed answer. With `background: true`, 202 and a check to ask for later.",
        operation_class=accepts(CheckTextRequest),
        opt=READING,  # texts are posted, but nothing changes
        responses=problems(400, 401, 404, 413, 415, 500),
    )
    async def check(
        self, request: AnyRequest, services: ServicesDependency, identity: IdentityDependency
    ) -> Response[CheckBody]:
        services.turns.checks.require_room(identity.user_id)
        body = await read_json(request, CheckTextRequest)
        if body.stream and body.background:
            raise InvalidRequestError([FieldError("background", "cannot be combined with `stream`")])
        events = _by_turns(services, check_events(services.check, body, identity), identity)
        return await _reply(events, body, request, services, identity)

    @get(
        "/{check_id:uuid}",
        summary="State and result of a check in the background",
        description="Kept in the memory of the server process that took it: behind several, send both requests to one.",
        responses=problems(401, 404),
    )
    async def read(self, check_id: UUID, request: AnyRequest, identity: IdentityDependency) -> CheckJobBody:
        if "checks" not in request.app.state:
            raise NotFoundError(_NOT_HERE)
        jobs: CheckJobs = request.app.state.checks
        return jobs.read(check_id, identity)


async def _reply(
    events: AsyncGenerator[WireEvent, None],
    body: CheckTextRequest,
    request: AnyRequest,
    services: Services,
    identity: Identity,
) -> Response[Any]:
    if body.stream:
        check_streaming(services.settings)
        return stream_events(wired(events), request, services.settings)
    if body.background:
        jobs: CheckJobs = request.app.state.checks
        return Response(jobs.start(events, identity), status_code=202)
    checked = await unless_gone(request.receive, _collect(events))
    return Response(await asyncio.to_thread(msgspec.json.encode, checked), media_type=MediaType.JSON)


async def _by_turns(
    services: Services, events: AsyncGenerator[WireEvent, None], identity: Identity
) -> AsyncGenerator[WireEvent, None]:
    """The events of a check, which begins when it is this user's turn. Raises as `Turns.take`."""
    async with aclosing(events), services.turns.checks.take(identity.user_id):
        async for event in events:
            yield event


async def check_text(check: CheckText | None, body: CheckRequest, identity: Identity) -> CheckBody:
    """The reply to a request. Raises as `check_events`."""
    return await _collect(check_events(check, body, identity))


async def check_by_turns(services: Services, body: CheckRequest, identity: Identity) -> CheckBody:
    """The reply to a request of one of several users. Raises as `check_events` and `Turns.take`."""
    return await _collect(_by_turns(services, check_events(services.check, body, identity), identity))


async def _collect(events: AsyncGenerator[WireEvent, None]) -> CheckBody:
    async with aclosing(events):
        async for event in events:
            if isinstance(event.data, CheckBody):
                return event.data
    raise RuntimeError("The check ended without a result.")


def check_events(check: CheckText | None, body: CheckRequest, identity: Identity) -> AsyncGenerator[WireEvent, None]:
    """A `sentence` for each, once it is checked, `final` and `done`.

    Raises InvalidRequestError, and NotFoundError if nothing can be checked here, or, with the first event, if a
    passage cannot be read.
    """
    if check is None:
        raise NotFoundError(_NOT_HERE)
    errors = list(find_unstorable({"text": [body.text], "question": [body.question]}))
    if is_blank(body.text):
        errors.append(FieldError("text", "must not be blank"))
    if body.language not in (None, *language_names()):
        errors.append(FieldError("language", "must be an ISO 639-1 code, such as en"))
    for number, passage in enumerate(body.passages):
        if (passage.text is None) == (passage.chunk_id is None):
            errors.append(FieldError(f"passages[{number}]", "must have either `text` or `chunkId`"))
    if errors:
        raise InvalidRequestError(errors)
    return _check(check, body, identity)


async def _check(check: CheckText, body: CheckRequest, identity: Identity) -> AsyncGenerator[WireEvent, None]:
    from rag_service.answering.checking import CheckedText, GivenPassage

    started = time.perf_counter()
    passages: list[GivenPassage | str] = [
        GivenPassage(text=passage.text or "", title=passage.title) if passage.chunk_id is None else passage.chunk_id
        for passage in body.passages
    ]
    question = body.question.strip()
    language = body.language or await asyncio.to_thread(detect_language, body.text)
    parts = check(body.text, passages, identity, question=question, language=language)
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, CheckedText):
                latency_ms = round((time.perf_counter() - started) * 1000, 1)
                yield WireEvent("final", await asyncio.to_thread(present_check, part, latency_ms=latency_ms))
            else:
                for sentence in _sentences(part.checked, part.passages):
                    yield WireEvent("sentence", sentence)
    yield WireEvent("done", CheckDone())


def present_check(text: CheckedText, *, latency_ms: float) -> CheckBody:
    checked = text.checked
    return CheckBody(
        decision=text.decision.value,
        reasons=[present(ReasonBody, reason) for reason in text.reasons],
        sentences=[
            SentenceBody(start=start, end=end, text=checked.text[start:end], status=status, citations=numbers)
            for (start, end), status, numbers in _verdicts(checked)
        ],
        citations=[present_citation(citation, text.passages) for citation in checked.citations],
        flagged=[FlaggedBody(start=start, end=end) for start, end in checked.flagged],
        language=text.language,
        latency_ms=latency_ms,
    )


def _sentences(checked: CheckedAnswer, passages: Sequence[Hit]) -> Iterator[SentenceData]:
    for (start, end), status, numbers in _verdicts(checked):
        citations = [present_citation(checked.citations[number], passages) for number in numbers]
        yield SentenceData(start=start, end=end, text=checked.text[start:end], status=status, citations=citations)


def _verdicts(checked: CheckedAnswer) -> Iterator[tuple[tuple[int, int], str, list[int]]]:
    """(offsets, status, positions of its citations) of each sentence, in order."""
    sentences: dict[tuple[int, int], tuple[list[str], list[int]]] = {place: ([], []) for place in checked.unmarked}
    for claim in checked.claims:
        statuses, numbers = sentences.setdefault(claim.sentence, ([], []))
        statuses.append(min((checked.citations[number].status for number in claim.citations), key=_BEST_FIRST.index))
        numbers.extend(claim.citations)
    for place, (statuses, numbers) in sorted(sentences.items()):
        status = max(statuses, key=_BEST_FIRST.index, default=CitationStatus.NOT_FOUND)
        yield place, str(status), sorted(numbers)
