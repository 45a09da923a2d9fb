"""Parse multipart/form-data while it arrives, so that a file over the limit is refused early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from multipart import (  # type: ignore[import-untyped]  # has no py.typed
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
)

from rag_service.api.http.bodies import AnyRequest, read_chunks
from rag_service.api.http.problems import FieldError, InvalidRequestError, RequestTooLargeError
from rag_service.errors import TooLargeError
from rag_service.settings import Settings

FORM = "multipart/form-data"
MEGABYTE = 1024 * 1024
_FORM_OVERHEAD = 500_000  # bytes of a form besides its file: fields, boundaries
_TEXT_LIMIT = 100_000  # bytes of a text field
_MAX_PARTS = 100


def largest_body(settings: Settings) -> int:
    """Maximum size in bytes of a request that uploads a document."""
    return settings.uploads.max_mb * MEGABYTE + _FORM_OVERHEAD


@dataclass(frozen=True, kw_only=True)
class Form:
    """A form with at most one file."""

    file: bytes | None = None
    file_name: str | None = None  # as the client wrote it; untrusted
    texts: Mapping[str, list[str]] = field(default_factory=dict)  # field → its values, in order


async def read_form(
    request: AnyRequest,
    *,
    file_field: str,
    text_fields: frozenset[str],
    file_limit: int,
    into: BinaryIO | None = None,
) -> Form:
    """Read a form of text fields and at most one file of `file_limit` bytes.

    `into`: where the file is written as it arrives; None: it is kept in memory, and returned.

    Raises:
        InvalidRequestError: the form is broken, or has unknown, repeated or undecodable fields.
        TooLargeError: the file or the body is over its limit.
        ClientGoneError: the client disconnects before the end.
    """
    file: bytes | None = None
    file_name: str | None = None
    texts: dict[str, list[str]] = {}
    payload, size = bytearray(), 0
    segment: MultipartSegment | None = None
    too_large = TooLargeError(f"The file is larger than {file_limit // MEGABYTE} MB.", field=file_field)
    try:
        async for event in _parse(request):
            if isinstance(event, MultipartSegment):
                segment, payload, size = event, bytearray(), 0
                _check_segment(segment, file_field, text_fields, has_file=file_name is not None)
            elif segment is None:
                continue
            elif event is not None:
                size += len(event)
                if segment.name == file_field and size > file_limit:
                    raise too_large
                if segment.name != file_field and size > _TEXT_LIMIT:
                    raise _invalid(segment.name, f"must have at most {_TEXT_LIMIT} bytes")
                if segment.name == file_field and into is not None:
                    await asyncio.to_thread(into.write, event)
                else:
                    payload += event
            elif segment.name == file_field:
                file, file_name = bytes(payload), segment.filename
            else:
                texts.setdefault(segment.name, []).append(payload.decode(segment.charset or "utf-8"))
    except RequestTooLargeError as error:  # known before the first byte is read
        raise too_large from error
    except UnicodeDecodeError as error:
        raise _invalid(segment.name if segment else "body", "must be UTF-8 text") from error
    except (MultipartError, LookupError) as error:  # LookupError: unknown charset
        raise _invalid("body", "is not valid multipart/form-data") from error
    return Form(file=file, file_name=file_name, texts=texts)


async def _parse(request: AnyRequest) -> AsyncIterator[MultipartSegment | bytes | bytearray | None]:
    """The events of the parser: a segment, its payload in pieces, None at its end."""
    boundary = request.content_type[1].get("boundary", "")
    with PushMultipartParser(boundary, max_segment_count=_MAX_PARTS, max_header_size=8192) as parser:
        async for chunk in read_chunks(request):
            for event in parser.parse(chunk) if not parser.closed else ():
                yield event


def _check_segment(segment: MultipartSegment, file_field: str, text_fields: frozenset[str], *, has_file: bool) -> None:
    name = segment.name
    if name != file_field and name not in text_fields:
        raise _invalid(name[:80], "is not a field of this form")
    if name == file_field and has_file:
        raise _invalid(name, "must be sent once; upload files one by one")
    if name == file_field and not segment.filename:
        raise _invalid(name, "must be a file with a file name")


def _invalid(field: str, message: str) -> InvalidRequestError:
    return InvalidRequestError([FieldError(field, message)])
