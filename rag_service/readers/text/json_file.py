"""JSON and JSON Lines: one labelled line for each object, each value with its path.

customer name: Ana | total: 12.50        orders[2].customer.name, orders[2].total
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.names import choose_title, suffix_of

MEDIA_TYPE = "application/json"
_LINES = frozenset({".jsonl", ".ndjson"})
_MAX_DEPTH = 100
_MAX_LABEL = 100  # characters


class Object(list[tuple[str, Any]]):
    """The members of an object in order; a name may occur twice."""


class _Number(str):
    """A number as it is written: 1.10 stays 1.10."""

    __slots__ = ()


_DECODER = json.JSONDecoder(object_pairs_hook=Object, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
_NOT_SPACE = re.compile(r"\S")
# What settings files add to JSON; a string comes first, so that what looks like it within one stays.
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_TOO_DEEP = "it is nested too deeply"


@dataclass(frozen=True, slots=True)
class _Value:
    label: str  # the names that lead to it within its object
    path: str
    text: str


def read_json(text: str) -> list[tuple[int | None, Any]] | None:
    """The values of a file: one, or several one after the other with their lines; None if it is not JSON.

    Comments and commas before a closing bracket, as settings files have them, do no harm.
    """
    found = _read(text)
    return found if isinstance(found, list) else None


def parse_json(text: str, *, name: str) -> ParsedDocument:
    """Read a JSON file. `Location.path` leads to the value; `row` is the line of one of several values.

    Raises DocumentError: not JSON, or nested too deeply. TooLargeError.
    """
    values = _read(clean(text))
    builder = TextBuilder(name)
    if isinstance(values, str) and suffix_of(name) in _LINES:
        values = _read_lines(clean(text), builder) or values
    if isinstance(values, str):
        raise DocumentError(f'"{name}" is not valid JSON: {values}. Correct it, or rename it to .txt.')
    for number, value in values:
        write_value(builder, value, row=number, name=name)
    members = values[0][1] if len(values) == 1 and isinstance(values[0][1], Object) else ()
    title = next((text for key, text in members if key == "title"), None)
    return builder.build(title=choose_title(name, title), media_type=MEDIA_TYPE)


def _read(text: str) -> list[tuple[int | None, Any]] | str:
    """The values of a file, or what is wrong with it."""
    try:
        return _decode(text)
    except RecursionError:
        return _TOO_DEEP
    except ValueError as error:
        first = error
    try:
        return _decode(_without(_LAST_COMMA, _without(_COMMENT, text)))
    except RecursionError:
        return _TOO_DEEP
    except ValueError:
        if not isinstance(first, json.JSONDecodeError):
            return "a number is too long"
        fault = first.msg[:1].lower() + first.msg[1:].removesuffix(" at")
        return f"{fault} in line {first.lineno}"


def _read_lines(text: str, builder: TextBuilder) -> list[tuple[int | None, Any]]:
    """The values of JSON Lines, each with its line; a line that is none is left out and reported."""
    values: list[tuple[int | None, Any]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            found = _decode(line) if line.strip() else []
        except (ValueError, RecursionError):
            builder.warn(f"Line {number} is not valid JSON and was not read.")
            continue
        values += [(number, value) for _, value in found]
    return values


def _without(pattern: re.Pattern[str], text: str) -> str:
    """A text without what a pattern finds besides strings; the lines keep their numbers."""
    return pattern.sub(lambda found: found[0] if found[0].startswith('"') else "\n" * found[0].count("\n"), text)


def write_value(builder: TextBuilder, value: Any, *, row: int | None, name: str) -> None:
    """Write a value: texts, numbers, lists, and objects; raises DocumentError if it is nested too deeply."""
    _write(builder, value, path="", label="", row=row, depth=0, name=name)


def _decode(text: str) -> list[tuple[int | None, Any]]:
    """The value of a text, or several objects and lists one after the other, each with its line.

    Raises ValueError and RecursionError.
    """
    values: list[tuple[int | None, Any]] = []
    line, done, at = 1, 0, _after_space(text, 0)
    while True:
        value, end = _DECODER.raw_decode(text, at)
        line, done = line + text.count("\n", done, at), at
        values.append((line, value))
        at = _after_space(text, end)
        if at == len(text):
            break
        if not isinstance(value, list):
            raise json.JSONDecodeError("Extra data", text, at)
    if len(values) == 1:
        return [(None, values[0][1])]
    if not isinstance(values[-1][1], list):
        raise json.JSONDecodeError("Extra data", text, done)
    return values


def _after_space(text: str, start: int) -> int:
    found = _NOT_SPACE.search(text, start)
    return found.start() if found else len(text)


def _write(builder: TextBuilder, value: Any, *, path: str, label: str, row: int | None, depth: int, name: str) -> None:
    """Write the plain values of an object on one line, then each list of objects in it."""
    if depth > _MAX_DEPTH:
        raise DocumentError(f'"{name}" is nested too deeply to be read.')
    if isinstance(value, list) and not isinstance(value, Object) and not _is_plain(value):
        for index, item in enumerate(value):
            _write(builder, item, path=f"{path}[{index}]", label=label, row=row, depth=depth + 1, name=name)
        return
    lists: list[tuple[str, str, Any]] = []
    line = list(_flatten(value, label, path, lists, depth))
    for position, found in enumerate(line):
        place = Location(path=found.path or None, row=row)
        between = " | " if position else ""
        builder.write(f"{between}{found.label}: " if found.label else between, place if not position else None)
        builder.write(found.text, place)
    builder.write("\n" if line else "")
    for inner_label, inner_path, inner in lists:
        _write(builder, inner, path=inner_path, label=inner_label, row=row, depth=depth + 1, name=name)


def _flatten(value: Any, label: str, path: str, lists: list[tuple[str, str, Any]], depth: int) -> Iterator[_Value]:
    """The plain values of an object and of the objects in it; lists of objects are left for later."""
    if isinstance(value, Object) and depth <= _MAX_DEPTH:
        for key, inner in value:
            name = one_line(key)[:_MAX_LABEL]
            inner_path = f"{path}.{name}" if path else name
            yield from _flatten(inner, f"{label} {name}" if label and depth else name, inner_path, lists, depth + 1)
    elif isinstance(value, list) and not _is_plain(value):
        lists.append((label, path, value))
    elif text := _shown(value):
        yield _Value(label[-_MAX_LABEL:], path, text)


def _is_plain(value: list[Any]) -> bool:
    return not any(isinstance(item, list) for item in value) and not isinstance(value, Object)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_shown, value)))
    if value is None:
        return ""
    return one_line(json.dumps(value) if isinstance(value, bool) else str(value))
