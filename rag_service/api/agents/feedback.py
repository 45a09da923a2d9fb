"""Records of answers, feedback on them, and its review."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Response, delete, get, post, put

from rag_service.api.agents.schemas import DifferenceBody, FeedbackBody, FeedbackList, FeedbackRequest, ReplayBody
from rag_service.api.http.access import ADMINISTRATORS, CallerDependency
from rag_service.api.http.bodies import AnyRequest, read_json
from rag_service.api.http.documentation import accepts, problems, takes_query
from rag_service.api.http.events import NDJSON
from rag_service.api.http.fields import SLICE, check_texts, read_choice, read_slice
from rag_service.api.http.presenters import present
from rag_service.api.http.services import READING
from rag_service.store.accounts.answers import (
    Feedback,
    Thumbs,
    give_feedback,
    list_feedback,
    read_answer,
    withdraw_feedback,
)
from rag_service.store.rows import Slice

_THUMBS = {"enum": ["up", "down"], "description": "Only these."}
_EXPORTED = 100_000  # maximum number of lines of an export


class ExportFormat(StrEnum):
    FEEDBACK = "feedback"
    EVAL = "eval"


@get(
    "/api/v1/answers/{answer_id:uuid}",
    tags=["Query"],
    summary="Read the record of an answer",
    description="Model, prompt, index definition, settings, ranked chunks and the result of the citation check.",
    responses=problems(401, 404, 500),
)
async def read_answer_record(answer_id: UUID, caller: CallerDependency) -> dict[str, Any]:
    return await caller.run(read_answer, answer_id)


@post(
    "/api/v1/answers/{answer_id:uuid}/replay",
    status_code=200,
    tags=["Query"],
    summary="Replay an answer",
    description="Repeats the recorded request without recording the new answer. Lists the differences, causes "
    "first; the list is empty if the answer is the same.",
    opt=READING,
    responses=problems(401, 404, 500, 503),
)
async def replay_answer(answer_id: UUID, caller: CallerDependency) -> ReplayBody:
    found = await caller.tenancy.replay(answer_id, caller.identity)
    return ReplayBody(differences=[DifferenceBody(what=one.what, detail=one.detail) for one in found])


class FeedbackController(Controller):
    """Thumbs and comments."""

    path = "/api/v1"
    tags = ["Feedback"]

    @put(
        "/answers/{answer_id:uuid}/feedback",
        summary="Give feedback on an answer",
        operation_class=accepts(FeedbackRequest),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def give(self, answer_id: UUID, request: AnyRequest, caller: CallerDependency) -> FeedbackBody:
        """For the caller's own answers and their citations. Replaces earlier feedback. Administrators can see it with
        the question and answer."""
        body = await read_json(request, FeedbackRequest)
        check_texts(required={}, optional={"comment": body.comment})
        thumbs, comment = Thumbs(body.thumbs), body.comment.strip()
        given = await caller.run(
            give_feedback, caller.identity, answer_id, thumbs=thumbs, comment=comment, citation=body.citation
        )
        if given.citation is None:
            caller.tenancy.count_feedback(given.thumbs.value)
        return present(FeedbackBody, given)

    @delete(
        "/answers/{answer_id:uuid}/feedback",
        summary="Withdraw feedback",
        operation_class=takes_query(
            citation={
                "type": "integer",
                "minimum": 0,
                "description": "Feedback on this citation of the answer; else on the answer.",
            }
        ),
        responses=problems(400, 401, 403, 404, 500),
    )
    async def withdraw(self, answer_id: UUID, request: AnyRequest, caller: CallerDependency) -> None:
        citation = read_choice(request, "citation", _read_place, "a whole number from 0")
        await caller.run(withdraw_feedback, caller.identity, answer_id, citation=citation)

    @get(
        "/feedback",
        summary="List feedback",
        operation_class=takes_query(**SLICE, thumbs=_THUMBS),
        responses=problems(400, 401, 403, 500),
    )
    async def list_all(self, request: AnyRequest, caller: CallerDependency) -> FeedbackList:
        """The caller's own feedback, newest first; administrators see all."""
        part = read_slice(request, "thumbs")
        thumbs = read_choice(request, "thumbs", Thumbs, "up or down")
        return present(FeedbackList, await caller.run(list_feedback, part, thumbs=thumbs, user_id=caller.own))

    @get(
        "/feedback/export",
        summary="Export feedback",
        opt=ADMINISTRATORS,
        operation_class=takes_query(
            thumbs=_THUMBS,
            format={
                "enum": ["feedback", "eval"],
                "default": "feedback",
                "description": "`eval`: the questions as an eval set in which a reviewer fills in `documents` and "
                "`answers`, or sets `answerable` to false.",
            },
        ),
        responses=problems(400, 401, 403, 500),
    )
    async def export(self, request: AnyRequest, caller: CallerDependency) -> Response[bytes]:
        """NDJSON, newest first."""
        thumbs = read_choice(request, "thumbs", Thumbs, "up or down")
        shape = read_choice(request, "format", ExportFormat, "feedback or eval")
        page = await caller.run(list_feedback, Slice(limit=_EXPORTED), thumbs=thumbs)
        lines = await asyncio.to_thread(_write_lines, page.items, shape)
        headers = {"Content-Disposition": "attachment; filename=feedback.ndjson"}
        return Response(lines, media_type=NDJSON, headers=headers)


def _write_lines(items: Sequence[Feedback], shape: ExportFormat | None) -> bytes:
    write = _as_eval_question if shape is ExportFormat.EVAL else partial(present, FeedbackBody)
    items = [item for item in items if shape is not ExportFormat.EVAL or item.citation is None]
    return b"".join(msgspec.json.encode(write(item)) + b"\n" for item in items)


def _read_place(text: str) -> int:
    if not re.fullmatch(r"\d{1,6}", text, re.ASCII):
        raise ValueError
    return int(text)


def _as_eval_question(item: Feedback) -> dict[str, Any]:
    """A line of an eval set that `rag-service eval run` asks to be completed."""
    return {
        "id": str(item.answer_id), "category": f"feedback {item.thumbs.value}", "question": item.question,
        "answerable": True, "documents": [], "answers": [], "comment": item.comment, "answered": item.answer,
    }  # fmt: skip
