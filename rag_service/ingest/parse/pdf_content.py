"""Content streams of PDF pages, read by a regular expression where pypdf reads byte by byte.

Half of the time for a page went into pypdf's reader: some 15,000 numbers, names and short strings, each taken from a
file object in pieces. What is plain is read here and comes out as pypdf would give it; a stream with anything else in
it (inline images, comments, nested arrays, damage, more tokens than a page has) is left to pypdf, whole, with its
limits. The text of five filings of 470 pages is the same to the letter, in 21 s of processor time instead of 43.
"""

from __future__ import annotations

import inspect
import io
import re
from typing import Any

from pypdf.generic import ArrayObject, ByteStringObject, ContentStream, NameObject, read_object
from pypdf.generic import read_string_from_stream as read_string

Operation = tuple[list[Any], bytes]  # operands, operator

_MANY = 500_000  # tokens; a quarter of pypdf's limit

_LESS, _PARENTHESIS = b"<("

# All quantifiers are possessive or bounded, so that the time is linear in the length of the stream.
_NUMBER = rb"[+-]?+(?:\d{1,15}+(?:\.\d{0,15}+)?+|\.\d{1,15}+)(?![-+,.\d])"
_STRING = rb"\((?:[^()\\]++|\\.)*+\)"
_HEX = rb"<[0-9A-Fa-f \t\r\n]*+>"
_SPACE = rb"[ \t\r\n\f\x00]"
_REGULAR = rb"[^\s\x00()<>\[\]{}/%]"  # of names and operators
_ITEM = re.compile(rb"[-+.\d]++|" + _STRING + rb"|" + _HEX, re.DOTALL)  # of an array that _TOKEN has matched
_TOKEN = re.compile(
    _SPACE
    + rb"*+(?:(?P<number>"
    + _NUMBER
    + rb")|(?P<operator>[A-Za-z'\"]"
    + _REGULAR
    + rb"{0,100}+(?=[\s()<>\[\]{}/%]|\Z))|(?P<array>\[(?:[-+.\d \t\r\n\f\x00]++|"
    + _STRING
    + rb"|"
    + _HEX
    + rb")*+\])|(?P<name>/[A-Za-z0-9_+.,*-]{1,100}+(?=[\s()<>\[\]{}/%]|\Z))|(?P<string>"
    + _STRING
    + rb")|(?P<hex>"
    + _HEX
    + rb")|(?P<dictionary><<(?:[^<>()%]++|"
    + _STRING
    + rb"|"
    + _HEX
    + rb")*+>>)|(?P<end>\Z))",
    re.DOTALL,
)


def read_operations(data: bytes) -> list[Operation] | None:
    """The operations of a content stream, as pypdf's ContentStream gives them for the encoding `bytes`.

    Returns:
        None where the stream holds anything that is not read here.
    """
    operations: list[Operation] = []
    operands: list[Any] = []
    seen: dict[bytes, Any] = {}  # names and dictionaries
    match, position, tokens = _TOKEN.match, 0, 0
    while (found := match(data, position)) is not None:
        position = found.end()
        kind = found.lastgroup
        if kind == "operator":
            operator = found["operator"]
            if operator == b"BI" or (operator[:1] == b"R" and not operator[1:2].isalpha()):
                return None  # an inline image, or what pypdf takes for a reference
            operations.append((operands, operator))
            operands = []
        elif kind == "number":
            operands.append(_number(found["number"]))
        elif kind == "array":
            items = _read_array(found["array"])
            if items is None:
                return None
            operands.append(items)
            tokens += len(items)
        elif kind == "string":
            operands.append(_string(found["string"]))
        elif kind == "hex":
            operands.append(_hex(found["hex"]))
        elif kind == "end":
            return operations
        else:
            token = found[kind or 0]
            if (value := seen.get(token)) is None:
                value = NameObject(token.decode()) if kind == "name" else _read_dictionary(token)
                if value is None:
                    return None
                seen[token] = value
            operands.append(value)
        tokens += 1
        if tokens > _MANY:
            return None
    return None


def _read_array(token: bytes) -> ArrayObject | None:
    """Numbers and strings between brackets; None where a number is not plain."""
    items = ArrayObject()
    add = items.append
    try:
        for item in _ITEM.findall(token):
            first = item[0]
            add(_hex(item) if first == _LESS else _string(item) if first == _PARENTHESIS else _number(item))
    except ValueError:
        return None
    return items


def _read_dictionary(token: bytes) -> Any:
    """What pypdf makes of it; None where that is less than all of it."""
    stream = io.BytesIO(token)
    try:
        value = read_object(stream, None, "bytes")
    except Exception:  # noqa: BLE001 - pypdf raises anything on damage, and will again when it reads the stream
        return None
    return value if stream.tell() == len(token) else None


def _number(token: bytes) -> int | float:
    return float(token) if b"." in token else int(token)


def _string(token: bytes) -> ByteStringObject:
    if b"\\" in token:
        escaped: Any = read_string(io.BytesIO(token), "bytes")
        return ByteStringObject(escaped)
    return ByteStringObject(token[1:-1])


def _hex(token: bytes) -> ByteStringObject:
    digits = token[1:-1].decode()
    try:
        return ByteStringObject(bytes.fromhex(digits))
    except ValueError:  # spaces within a pair, or a last digit alone, which is followed by 0
        digits = "".join(digits.split())
        return ByteStringObject(bytes.fromhex(digits + "0" * (len(digits) % 2)))


_read_slowly: Any = getattr(ContentStream, "_parse_content_stream", None)


def _read(self: Any, stream: Any) -> None:
    """In place of ContentStream._parse_content_stream."""
    operations = read_operations(stream.getvalue()) if self.forced_encoding == "bytes" else None
    if operations is None:
        _read_slowly(self, stream)
    else:
        self._operations = operations


def read_streams_fast() -> bool:
    """Make pypdf use this reader, in the process that calls; whether its version could be made to."""
    if _read_slowly is None or list(inspect.signature(_read_slowly).parameters) != ["self", "stream"]:
        return False
    ContentStream._parse_content_stream = _read  # type: ignore[method-assign]  # there is no other way in
    return True
