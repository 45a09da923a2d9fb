"""multipart/form-data, parsed while it arrives: a file is refused at its limit, not after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from multipart import (  # type: ignore[import-untyped]  # has no py.typed
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
)

from rag_service.api.wire.bodies import AnyRequest, read_chunks
from rag_service.api.wire.problems import FieldError, InvalidRequestError, RequestTooLargeError
from rag_service.errors import TooLargeError

FORM = "multipart/form-data"
MEGABYTE = 1024 * 1024
_TEXT_LIMIT = 100_000  # bytes of a field that is no file
_MAX_PARTS = 100


@dataclass(frozen=True, kw_only=True)
class Form:
    """A form with at most one file."""

    file: bytes | None = None
    file_name: str | None = None  # as the client wrote it; untrusted
    texts: Mapping[str, list[str]] = field(default_factory=dict)  # field → its values, in order


async def read_form(request: AnyRequest, *, file_field: str, text_fields: frozenset[str], file_limit: int) -> Form:
    """Read a form.

    Args:
        request: its content type is multipart/form-data.
        file_field: name of the field that carries the file.
        text_fields: names of the other fields.
        file_limit: most bytes of the file.

    Raises:
        InvalidRequestError: the form is broken, or has unknown, repeated or undecodable fields.
        TooLargeError: the file is longer than `file_limit`, or the whole body than the route allows.
        ClientGoneError: the client leaves before its end.
    """
    collector = _Collector(file_field, text_fields, file_limit)
    try:
        parser = PushMultipartParser(
            request.content_type[1].get("boundary", ""), max_segment_count=_MAX_PARTS, max_header_size=8192
        )
        with parser:
            async for chunk in read_chunks(request):
                for event in parser.parse(chunk) if not parser.closed else ():
                    collector.take(event)
    except RequestTooLargeError as error:  # said before the first byte is read
        raise _too_large(file_field, file_limit) from error
    except (MultipartError, LookupError) as error:  # LookupError: a charset that nobody knows
        raise InvalidRequestError([FieldError("body", "is no valid multipart/form-data")]) from error
    return collector.result()


class _Collector:
    """Takes the parser's events: a segment, its payload in pieces, None at its end."""

    def __init__(self, file_field: str, text_fields: frozenset[str], file_limit: int):
        self._file_field = file_field
        self._text_fields = text_fields
        self._file_limit = file_limit
        self._segment: MultipartSegment | None = None
        self._payload = bytearray()
        self._file: bytes | None = None
        self._file_name: str | None = None
        self._texts: dict[str, list[str]] = {}

    def take(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, MultipartSegment):
            self._begin(event)
        elif event is not None:
            self._add(event)
        elif self._segment is not None:
            self._finish(self._segment)

    def _begin(self, segment: MultipartSegment) -> None:
        name = segment.name
        if name != self._file_field and name not in self._text_fields:
            raise InvalidRequestError([FieldError(name[:80], "is not a field of this form")])
        if name == self._file_field and self._file is not None:
            raise InvalidRequestError([FieldError(name, "must be sent once; upload files one by one")])
        if name == self._file_field and not segment.filename:
            raise InvalidRequestError([FieldError(name, "must be a file with a file name")])
        self._segment, self._payload = segment, bytearray()

    def _add(self, piece: bytes | bytearray) -> None:
        if self._segment is None:
            return
        self._payload += piece
        if self._segment.name != self._file_field and len(self._payload) > _TEXT_LIMIT:
            raise InvalidRequestError([FieldError(self._segment.name, f"must have at most {_TEXT_LIMIT} bytes")])
        if self._segment.name == self._file_field and len(self._payload) > self._file_limit:
            raise _too_large(self._file_field, self._file_limit)

    def _finish(self, segment: MultipartSegment) -> None:
        if segment.name == self._file_field:
            self._file, self._file_name = bytes(self._payload), segment.filename
        else:
            self._texts.setdefault(segment.name, []).append(self._decode(segment))
        self._segment, self._payload = None, bytearray()

    def _decode(self, segment: MultipartSegment) -> str:
        try:
            return self._payload.decode(segment.charset or "utf-8")
        except UnicodeDecodeError as error:
            raise InvalidRequestError([FieldError(segment.name, "must be UTF-8 text")]) from error

    def result(self) -> Form:
        return Form(file=self._file, file_name=self._file_name, texts=self._texts)


def _too_large(field: str, limit: int) -> TooLargeError:
    return TooLargeError(f"The file is larger than {limit // MEGABYTE} MB.", field=field)


def split_values(values: list[str]) -> Iterator[str]:
    """Values of a repeated field, each of which may hold several, separated by commas."""
    for value in values:
        yield from (part for raw in value.split(",") if (part := raw.strip()))
