"""Answers that were given: requirement F3."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from litestar import get
from litestar.handlers import HTTPRouteHandler

from rag_service.api.services import IdentityDependency
from rag_service.api.wire.documentation import problems
from rag_service.domain import Identity

ReadAnswer = Callable[[UUID, Identity], Awaitable[dict[str, Any]]]


def answers_route(read: ReadAnswer) -> HTTPRouteHandler:
    """`GET /api/v1/answers/{id}` over a function that reads a record."""

    @get(
        "/api/v1/answers/{answer_id:uuid}",
        tags=["Query"],
        summary="Where an answer comes from",
        description="Its provenance record: model, prompt, definition, settings, ranked chunks and verification.",
        responses=problems(401, 404, 500),
    )
    async def read_answer(answer_id: UUID, identity: IdentityDependency) -> dict[str, Any]:
        return await read(answer_id, identity)

    return read_answer
