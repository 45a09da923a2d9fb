"""Two identities, one of whom may see the sample document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from rag_service.answering.drafts.events import AnswerComplete, AnswerDelta, AnswerEvent, SourcesFound
from rag_service.api.http.services import Services
from rag_service.domain import Answer, Decision, Identity, Role
from rag_service.errors import AuthenticationError
from rag_service.observability.metrics import Channel
from rag_service.retrieval.question import Question
from tests.unit.api.samples import ADMIN, ANSWER

OTHER = Identity(user_id=UUID(int=2), role=Role.USER)
_PEOPLE = {"Bearer admin": ADMIN, "Bearer other": OTHER}
NOTHING: Answer = replace(ANSWER, text="No lo sé.", sources=(), shown=(), citations=(), decision=Decision.OUT_OF_SCOPE)


async def identify(headers: Mapping[str, str]) -> Identity:
    """A scripted `authenticate`."""
    found = _PEOPLE.get(headers.get("authorization", ""))
    if found is None:
        raise AuthenticationError("The API key is unknown, revoked or expired.")
    return found


def only_for_admin(services: Services) -> Services:
    """The same services, in which everybody but ADMIN finds nothing."""

    async def search(query: Question) -> Any:
        found = await services.search(query)
        return found if query.identity == ADMIN else SimpleNamespace(**{**vars(found), "passages": ()})

    async def answer(query: Question, channel: Channel) -> AsyncIterator[AnswerEvent]:
        if query.identity == ADMIN:
            async for event in services.answer(query, channel):
                yield event
        else:
            yield SourcesFound(sources=(), shown=(), timings_ms={})
            yield AnswerDelta(text=NOTHING.text)
            yield AnswerComplete(answer=NOTHING)

    return replace(services, search=search, answer=answer, authenticate=identify)
