"""Checks texts that were written elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from litestar import Controller, post

from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems
from rag_service.api.http.presenters import present, present_citation
from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.queries import find_unstorable, is_blank
from rag_service.api.http.schemas import CheckBody, CheckRequest, FlaggedBody, ReasonBody, SentenceBody
from rag_service.api.http.services import READING, CheckText, IdentityDependency, ServicesDependency
from rag_service.api.http.streaming import unless_gone
from rag_service.domain import CitationStatus, Identity
from rag_service.errors import NotFoundError
from rag_service.language.languages import language_codes

if TYPE_CHECKING:  # loads LlamaIndex
    from rag_service.answering.checking import CheckedText

_BEST_FIRST = [status.value for status in CitationStatus]


class CheckController(Controller):
    """Answers of other programs."""

    path = "/api/v1/check"
    tags = ["Query"]
    opt = READING  # texts are posted, but nothing changes

    @post(
        status_code=200,
        summary="Check a text against passages",
        description="Each sentence gets the verdict that a sentence of an answer of the service would get. Marks say "
        "which passage a sentence is from; sentences without marks are compared with those that share most words.",
        operation_class=accepts(CheckRequest),
        responses=problems(400, 401, 404, 413, 415, 500),
    )
    async def check(self, request: AnyRequest, services: ServicesDependency, identity: IdentityDependency) -> CheckBody:
        body = await read_json(request, CheckRequest)
        return await unless_gone(request.receive, check_text(services.check, body, identity))


async def check_text(check: CheckText | None, body: CheckRequest, identity: Identity) -> CheckBody:
    """The reply to a request.

    Raises InvalidRequestError, and NotFoundError if a passage cannot be read or nothing can be checked here.
    """
    from rag_service.answering.checking import GivenPassage

    if check is None:
        raise NotFoundError("Texts cannot be checked with RAG_ENABLED=false.")
    errors = list(find_unstorable({"text": [body.text], "question": [body.question]}))
    if is_blank(body.text):
        errors.append(FieldError("text", "must not be blank"))
    if body.language not in (None, *language_codes()):
        errors.append(FieldError("language", f"must be one of {', '.join(language_codes())}"))
    for number, passage in enumerate(body.passages):
        if (passage.text is None) == (passage.chunk_id is None):
            errors.append(FieldError(f"passages[{number}]", "must have either `text` or `chunkId`"))
    if errors:
        raise InvalidRequestError(errors)
    started = time.perf_counter()
    checked = await check(
        body.text,
        [
            GivenPassage(text=passage.text or "", title=passage.title) if passage.chunk_id is None else passage.chunk_id
            for passage in body.passages
        ],
        identity,
        question=body.question.strip(),
        language=body.language,
    )
    return present_check(checked, latency_ms=round((time.perf_counter() - started) * 1000, 1))


def present_check(checked: CheckedText, *, latency_ms: float) -> CheckBody:
    sentences: dict[tuple[int, int], tuple[list[str], list[int]]] = {place: ([], []) for place in checked.unmarked}
    for claim in checked.claims:
        statuses, numbers = sentences.setdefault(claim.sentence, ([], []))
        statuses.append(min((checked.citations[number].status for number in claim.citations), key=_BEST_FIRST.index))
        numbers.extend(claim.citations)
    return CheckBody(
        decision=checked.decision.value,
        reasons=[present(ReasonBody, reason) for reason in checked.reasons],
        sentences=[
            SentenceBody(
                start=start,
                end=end,
                text=checked.text[start:end],
                status=str(max(statuses, key=_BEST_FIRST.index, default=CitationStatus.NOT_FOUND)),
                citations=sorted(numbers),
            )
            for (start, end), (statuses, numbers) in sorted(sentences.items())
        ],
        citations=[present_citation(citation, checked.passages) for citation in checked.citations],
        flagged=[FlaggedBody(start=start, end=end) for start, end in checked.flagged],
        language=checked.language,
        latency_ms=latency_ms,
    )
