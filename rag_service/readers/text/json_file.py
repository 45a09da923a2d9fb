"""JSON and JSON Lines: one labelled line for each object, each value with its path.

customer name: Ana | total: 12.50        orders[2].customer.name, orders[2].total
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.names import choose_title

MEDIA_TYPE = "application/json"
_MAX_DEPTH = 100
_MAX_LABEL = 100  # characters


class Object(list[tuple[str, Any]]):
    """The members of an object in order; a name may occur twice."""


class _Number(str):
    """A number as it is written: 1.10 stays 1.10."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Value:
    label: str  # the names that lead to it within its object
    path: str
    text: str


def read_json(text: str) -> list[tuple[int | None, Any]] | None:
    """The value of a JSON file, or those of JSON Lines with their line; None if the text is neither."""
    try:
        return [(None, _decode(text))]
    except (ValueError, RecursionError):
        pass
    values: list[tuple[int | None, Any]] = []
    try:
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                values.append((number, _decode(line)))
    except (ValueError, RecursionError):
        return None
    return values if values and all(isinstance(value, list) for _, value in values) else None


def parse_json(text: str, *, name: str) -> ParsedDocument:
    """Read a JSON file. `Location.path` leads to the value; `row` is the line of JSON Lines.

    Raises DocumentError: not JSON, or nested too deeply. TooLargeError.
    """
    values = read_json(clean(text))
    if values is None:
        raise DocumentError(f'"{name}" is not valid JSON, or nested too deeply. Check it, or rename it to .txt.')
    builder = TextBuilder(name)
    for number, value in values:
        write_value(builder, value, row=number, name=name)
    members = values[0][1] if len(values) == 1 and isinstance(values[0][1], Object) else ()
    title = next((text for key, text in members if key == "title"), None)
    return builder.build(title=choose_title(name, title), media_type=MEDIA_TYPE)


def write_value(builder: TextBuilder, value: Any, *, row: int | None, name: str) -> None:
    """Write a value: texts, numbers, lists, and objects; raises DocumentError if it is nested too deeply."""
    _write(builder, value, path="", label="", row=row, depth=0, name=name)


def _decode(text: str) -> Any:
    return json.loads(text, object_pairs_hook=Object, parse_int=_Number, parse_float=_Number, parse_constant=_Number)


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
