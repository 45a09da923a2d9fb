"""Pieces of a document's stored text: what the source panel shows around a quote. From `state.texts`, a `ReadText`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from litestar import get
from litestar.di import NamedDependency
from litestar.params import Parameter, SkipValidation
from msgspec import Struct

from rag_service.api.http.services import IdentityDependency, from_state
from rag_service.domain import Identity
from rag_service.errors import InputError, NotFoundError

DEFAULT_CHARS = 4_000
MAX_CHARS = 20_000

# Document, start and end → these characters of the stored text, and its length; None: not there, or not theirs.
ReadText = Callable[[UUID, int, int, Identity], Awaitable[tuple[str, int] | None]]


class TextBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """Characters [start, end) of a document's stored text, which citation offsets count in."""

    document_id: UUID
    start: int
    end: int
    length: int  # of the whole text
    text: str


@get(
    "/api/v1/documents/{document_id:uuid}/text",
    tags=["Documents"],
    summary="Read part of a document's text",
    dependencies={"texts": from_state("texts")},
    description=f"Characters from `start` (default 0) to `end` (default start + {DEFAULT_CHARS}) of the text that "
    f"citations refer to; at most {MAX_CHARS}.",
)
async def read_document_text(
    document_id: UUID,
    identity: IdentityDependency,
    texts: NamedDependency[SkipValidation[ReadText]],
    start: Annotated[str, Parameter(description="First character, from 0.")] = "0",
    end: Annotated[str, Parameter(description="Position after the last character.")] = "",
) -> TextBody:
    first = _read_offset(start, "start")
    last = _read_offset(end, "end") if end else first + DEFAULT_CHARS
    if not first <= last <= first + MAX_CHARS:
        raise InputError(f"The parameter end must be from start to start + {MAX_CHARS}.", field="end")
    part = await texts(document_id, first, last, identity)
    if part is None:
        raise NotFoundError("This document does not exist, or you do not have access to it.")
    text, length = part
    first = min(first, length)
    return TextBody(document_id=document_id, start=first, end=first + len(text), length=length, text=text)


def _read_offset(value: str, field: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 10):
        raise InputError(f"The parameter {field} must be a whole number from 0.", field=field)
    return int(value)
