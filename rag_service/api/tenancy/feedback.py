"""Feedback on answers, and its review: requirement E9."""

from __future__ import annotations

from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Response, delete, get, put

from rag_service.api.services import IdentityDependency
from rag_service.api.tenancy.fields import check_texts, present, present_page, read_choice, read_slice
from rag_service.api.tenancy.schemas_agents import FeedbackBody, FeedbackList, FeedbackRequest
from rag_service.api.tenancy.services import ADMINISTRATORS, TenancyDependency
from rag_service.api.wire.bodies import AnyRequest, read_json
from rag_service.api.wire.documentation import accepts, problems
from rag_service.api.wire.events import NDJSON
from rag_service.store.paging import Slice
from rag_service.store.people.feedback import Feedback, Thumbs, give_feedback, list_feedback, withdraw_feedback

_EXPORTED = 100_000  # most lines of an export


class ExportFormat(StrEnum):
    FEEDBACK = "feedback"
    EVAL = "eval"


class FeedbackController(Controller):
    """Thumbs and comments."""

    path = "/api/v1"
    tags = ["Feedback"]  # noqa: RUF012 - Litestar's way

    @put(
        "/answers/{answer_id:uuid}/feedback",
        summary="Give feedback on an answer",
        operation_class=accepts(FeedbackRequest),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def give(
        self, answer_id: UUID, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> FeedbackBody:
        """On one's own answer; again replaces it. Question and answer are shown to the administrators."""
        body = await read_json(request, FeedbackRequest)
        check_texts(required={}, optional={"comment": body.comment})
        async with tenancy.transaction(identity) as connection:
            given = await give_feedback(
                connection, identity, answer_id, thumbs=Thumbs(body.thumbs), comment=body.comment.strip()
            )
        tenancy.count_feedback(given.thumbs.value)
        return _present(given)

    @delete("/answers/{answer_id:uuid}/feedback", summary="Take feedback back", responses=problems(401, 403, 404, 500))
    async def withdraw(self, answer_id: UUID, tenancy: TenancyDependency, identity: IdentityDependency) -> None:
        async with tenancy.transaction(identity) as connection:
            await withdraw_feedback(connection, identity, answer_id)

    @get("/feedback", summary="List feedback", responses=problems(400, 401, 403, 500))
    async def list_all(
        self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> FeedbackList:
        """One's own, for administrators all, latest first. Query: `offset`, `limit`, `thumbs`."""
        part = read_slice(request, "thumbs")
        thumbs = read_choice(request, "thumbs", Thumbs, "up or down")
        async with tenancy.transaction(identity) as connection:
            page = await list_feedback(connection, part, thumbs=thumbs)
        return FeedbackList(**present_page(page, _present))

    @get("/feedback/export", summary="Export feedback", opt=ADMINISTRATORS, responses=problems(400, 401, 403, 500))
    async def export(
        self, request: AnyRequest, tenancy: TenancyDependency, identity: IdentityDependency
    ) -> Response[bytes]:
        """As NDJSON, latest first. Query: `thumbs`; `format` is `feedback`, or `eval` for the questions as an eval
        set: whoever reviews it fills in `documents` and `answers`, or sets `answerable` to false."""
        thumbs = read_choice(request, "thumbs", Thumbs, "up or down")
        shape = read_choice(request, "format", ExportFormat, "feedback or eval")
        async with tenancy.transaction(identity) as connection:
            page = await list_feedback(connection, Slice(limit=_EXPORTED), thumbs=thumbs)
        write = _as_eval_question if shape is ExportFormat.EVAL else _present
        lines = b"".join(msgspec.json.encode(write(item)) + b"\n" for item in page.items)
        headers = {"Content-Disposition": "attachment; filename=feedback.ndjson"}
        return Response(lines, media_type=NDJSON, headers=headers)


def _as_eval_question(item: Feedback) -> dict[str, Any]:
    """A line of an eval set that `rag-service eval run` asks to be completed."""
    return {
        "id": str(item.answer_id), "category": f"feedback {item.thumbs.value}", "question": item.question,
        "answerable": True, "documents": [], "answers": [], "comment": item.comment, "answered": item.answer,
    }  # fmt: skip


def _present(item: Feedback) -> FeedbackBody:
    return present(FeedbackBody, item, thumbs=item.thumbs.value)
