"""Request bodies: size limits, strict decoding, errors that name the field."""

from __future__ import annotations

import asyncio
import difflib
import json
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from rag_service.api.http.problems import (
    ClientGoneError,
    ContentTypeError,
    FieldError,
    InvalidRequestError,
    RequestTimeoutError,
    RequestTooLargeError,
)

JSON = "application/json"
BODY_LIMIT = 1_000_000  # bytes of a JSON body
SILENCE_SECONDS = 60.0  # between two pieces of a body
MIN_RATE = 8_000  # bytes a second, on average after a minute: a body that drips holds a connection for days
_NON_FINITE = object()  # NaN or Infinity
_SHOWN = 80  # characters of an unknown name in an error message

_OTHER_NAMES = {"question": "query"}  # the first guess of many → our name

_Kind = TypeVar("_Kind")
AnyRequest = Request[Any, Any, Any]

_STEPS = re.compile(r"[A-Za-z_]\w*")  # names in msgspec's path, without list positions
_PATH = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "uuid": "a UUID",
}


class Pace:
    """How long a client may take for the next piece of what it sends or reads."""

    def __init__(self) -> None:
        self._seconds = 0.0  # that were waited for the client
        self._bytes = 0

    def add(self, count: int) -> None:
        """Note that bytes went through."""
        self._bytes += count

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Wait for the client; TimeoutError if it takes `SILENCE_SECONDS`, or all of it has gone below `MIN_RATE`."""
        began = time.monotonic()
        left = SILENCE_SECONDS + self._bytes / MIN_RATE - self._seconds
        try:
            async with asyncio.timeout(min(SILENCE_SECONDS, max(0.0, left))):
                yield
        finally:
            self._seconds += time.monotonic() - began


async def read_json(request: AnyRequest, kind: type[_Kind]) -> _Kind:
    """The JSON body of a request, decoded strictly. Raises ContentTypeError, or as `read_chunks` and `decode`."""
    media_type = request.content_type[0]
    if media_type != JSON and not (media_type.startswith("application/") and media_type.endswith("+json")):
        raise ContentTypeError(f"The body must be {JSON}.")
    return decode(b"".join([chunk async for chunk in read_chunks(request)]), kind)


async def read_chunks(request: AnyRequest) -> AsyncIterator[bytes]:
    """The body of a request, piece by piece.

    Raises:
        RequestTooLargeError: the body, or its announced size, is over the limit of the route.
        RequestTimeoutError: nothing arrives for `SILENCE_SECONDS`, or less than `MIN_RATE`.
        ClientGoneError: the client disconnects before the end.
    """
    chunks, pace = request.stream(), Pace()
    try:
        while True:
            async with pace.limit():
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            pace.add(len(chunk))
            yield chunk
    except TimeoutError as error:
        raise RequestTimeoutError("The request was not completed in time.") from error
    except RequestEntityTooLarge as error:
        limit = request.route_handler.resolve_request_max_body_size()
        raise RequestTooLargeError(f"The body of this request must have at most {limit} bytes.") from error
    except InternalServerException as error:
        raise ClientGoneError from error


def decode(raw: bytes, kind: type[_Kind], *, name: str = "body") -> _Kind:
    """Decode JSON strictly: no text for numbers, no unknown fields.

    Raises InvalidRequestError, which names the wrong field, or `name` when the whole text is wrong.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidRequestError([_explain(str(error), kind, name)]) from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError([FieldError(name, "must be UTF-8 text")]) from error
    except RecursionError as error:
        raise InvalidRequestError([FieldError(name, "is nested too deeply")]) from error
    except msgspec.DecodeError as error:
        errors = [FieldError(field, "must be a finite number") for field in _find_non_finite(raw)]
        raise InvalidRequestError(errors or [FieldError(name, f"is not valid JSON ({error})")]) from error


def convert(fields: Mapping[str, Any], kind: type[_Kind]) -> _Kind:
    """A decoded object as a struct. Raises InvalidRequestError, which names the wrong field."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequestError([_explain(str(error), kind, "body")]) from error


def _explain(message: str, kind: type, name: str) -> FieldError:
    """msgspec's message in plain English, for the top-level field."""
    if unknown := re.match(r"Object contains unknown field `(.*?)`(?: - at `\$\.(.*)`)?$", message, re.DOTALL):
        field = unknown[1][:_SHOWN]
        if unknown[2]:  # inside of another field
            return FieldError(f"{unknown[2][:_SHOWN]}.{field}", "is not a field of this request")
        known = [one.encode_name for one in msgspec.structs.fields(kind)] if issubclass(kind, msgspec.Struct) else []
        near = difflib.get_close_matches(_OTHER_NAMES.get(field, field), known, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; its fields are {', '.join(known)}" if known else ""
        return FieldError(field, f"is not a field of this request{hint}")
    if missing := re.match(r"Object missing required field `(.*)`", message):
        return FieldError(missing[1], "is required")
    path = _PATH.search(message)
    field, _, index = (path[1] if path else "").partition("[")
    item = f"item {int(index[:-1]) + 1} " if index[:-1].isdigit() else ""
    if path and (value := re.match(r"Invalid enum value (.*) - at ", message, re.DOTALL)):
        choices = ", ".join(sorted(_find_choices(msgspec.inspect.type_info(kind), _STEPS.findall(path[1]))))
        return FieldError(field, f"{item}must be one of {choices}, not {value[1][:_SHOWN]}")
    return FieldError(field or name, item + _phrase(message[: path.start()] if path else message))


def _find_choices(kind: msgspec.inspect.Type, steps: Sequence[str]) -> set[str]:
    """The values allowed at a path, through lists and optional types."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return _find_choices(kind.type, steps)
    if isinstance(kind, msgspec.inspect.UnionType):
        return set().union(*(_find_choices(one, steps) for one in kind.types))
    if isinstance(kind, msgspec.inspect.CollectionType):
        return _find_choices(kind.item_type, steps)
    if isinstance(kind, msgspec.inspect.StructType) and steps:
        return set().union(*(_find_choices(f.type, steps[1:]) for f in kind.fields if f.encode_name == steps[0]))
    return {str(value) for value in kind.values} if isinstance(kind, msgspec.inspect.LiteralType) else set()


def _phrase(message: str) -> str:
    """ "Expected `int`, got `str`" becomes "must be a whole number, not text"."""
    if length := re.match(r"Expected `(\w+)`.* of length ([<>])= (\d+)", message):
        unit = "characters" if length[1] == "str" else "items"
        return f"must have at {'most' if length[2] == '<' else 'least'} {length[3]} {unit}"
    if bound := re.match(r"Expected `\w+` ([<>])= (\S+)", message):
        return f"must be at {'most' if bound[1] == '<' else 'least'} {bound[2]}"
    if types := re.match(r"Expected `(.*)`, got `(.*)`", message):
        expected = " or ".join(_TYPES.get(name, name) for name in types[1].split(" | "))
        return f"must be {expected}, not {_TYPES.get(types[2], types[2])}"
    return "must be a UUID" if message == "Invalid UUID" else message.lower()


def _find_non_finite(raw: bytes) -> list[str]:
    """Fields with NaN or Infinity, which JSON does not allow but some programs write."""
    try:
        parsed = json.loads(raw, parse_constant=lambda name: _NON_FINITE)
    except (ValueError, RecursionError):
        return []
    return [key for key, value in parsed.items() if value is _NON_FINITE] if isinstance(parsed, dict) else []
