"""YAML: one labelled line for each object, as in JSON, with its comments.

Scalars stay as they are written (1.10, 020, yes). Nothing is made of tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.common.builder import TextBuilder, clean, one_line, too_large
from rag_service.readers.common.names import choose_title
from rag_service.readers.text.json_file import Object, write_value
from rag_service.readers.text.plain import parse_plain

MEDIA_TYPE = "application/yaml"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMMENT = re.compile(r"(?:^|(?<=\s))#+[ \t]*([^\n]*)")
_COMMENT_KEY = "#"
_MERGE_KEY = "<<"
_EMPTY = frozenset({"", "~", "null", "Null", "NULL"})
_MAX_DEPTH = 100
_MAX_VALUES = 300_000  # with those that aliases repeat


@dataclass(kw_only=True)
class _Open:
    """A list or an object that has not ended."""

    value: list[Any]
    anchor: str | None
    size: int = 1
    key: str | None = None  # of the object's next value
    merged: list[Any] = field(default_factory=list)  # values of its merge keys


@dataclass(kw_only=True)
class _Document:
    """One of the documents of a file."""

    row: int = 1
    comments: list[tuple[int, str]] = field(default_factory=list)  # (line, text) outside all objects
    value: Any = None


def parse_yaml(text: str, *, name: str) -> ParsedDocument:
    """Read a YAML file. `Location.path` leads to the value; `row` is the first line of one of several documents.

    What is not valid YAML, as templates are, is read as plain text with a warning. Raises DocumentError: nested too
    deeply, or refers to itself. TooLargeError, also for aliases that repeat too much.
    """
    text = clean(text)
    builder = TextBuilder(name)
    try:
        documents = list(_Reader(text, name).read())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1})"
        plain = parse_plain(text, name=name)
        return replace(plain, warnings=(f"The file is not valid YAML{where} and was read as plain text.",))
    for document in documents:
        _write_comments(builder, [one for one in document.comments if one[0] < document.row])
        row = document.row if len(documents) > 1 else None
        write_value(builder, document.value, row=row, name=name)
        _write_comments(builder, [one for one in document.comments if one[0] >= document.row])
    members = documents[0].value if len(documents) == 1 and isinstance(documents[0].value, Object) else ()
    title = next((value for key, value in members if key == "title"), None)
    return builder.build(title=choose_title(name, title), media_type=MEDIA_TYPE)


def _write_comments(builder: TextBuilder, comments: Sequence[tuple[int, str]]) -> None:
    for row, comment in comments:
        builder.write(comment, Location(row=row))
        builder.write("\n")


class _Reader:
    """Makes values of the parser's events, without recursion."""

    def __init__(self, text: str, name: str):
        self._text, self._name = text, name
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}  # name → value, size
        self._document = _Document()
        self._waiting: list[tuple[int, str]] = []  # comments on lines of their own, which belong to what follows

    def read(self) -> Iterator[_Document]:
        before: yaml.Event | None = None
        for event in yaml.parse(self._text, Loader=_LOADER):
            self._collect_comments(before, event)
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
                self._document.row = _mark(event.start_mark)[1] + 1
            elif isinstance(event, yaml.DocumentEndEvent):
                self._attach_waiting()
                yield self._document
                self._document = _Document()
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()
            elif isinstance(event, yaml.AliasEvent):
                self._add(*self._target(event.anchor or ""))
            elif isinstance(event, yaml.ScalarEvent):
                value = None if event.value in _EMPTY and event.implicit[0] else event.value
                self._keep(event.anchor, value, 1)
                self._add(value, 1)
            before = event

    def _collect_comments(self, before: yaml.Event | None, event: yaml.Event) -> None:
        """Read the comments between two events: those beside a value belong to it, others to what follows."""
        start, row = (0, 0) if before is None else _mark(before.end_mark)
        end, _ = _mark(event.start_mark)
        is_beside = isinstance(before, yaml.ScalarEvent | yaml.AliasEvent | yaml.CollectionEndEvent)
        if isinstance(before, yaml.ScalarEvent) and before.style in ("|", ">"):
            is_beside = False  # its end is that of its last line
        for line in self._text[start:end].split("\n") if end > start else ():
            row += 1
            found = _COMMENT.search(line)
            comment = one_line(found[1]) if found else ""
            if any(map(str.isalnum, comment)):
                self._waiting.append((row, comment))
            if is_beside:
                self._attach_waiting()
                is_beside = False
        if not isinstance(event, yaml.CollectionEndEvent | yaml.CollectionStartEvent):
            self._attach_waiting()

    def _attach_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._attach(waiting)

    def _attach(self, comments: Sequence[tuple[int, str]]) -> None:
        """Give comments to the innermost object, as values of their own."""
        if not comments:
            return
        inner = next((one for one in reversed(self._open) if isinstance(one.value, Object)), None)
        if inner is None or (len(self._open) == 1 and not inner.value and inner.key is None):
            self._document.comments += comments
        else:
            inner.value.append((_COMMENT_KEY, " ".join(text for _, text in comments)))
            inner.size += 1

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) >= _MAX_DEPTH:
            raise DocumentError(f'"{self._name}" is nested too deeply to be read.')
        is_object = isinstance(event, yaml.MappingStartEvent)
        self._open.append(_Open(value=Object() if is_object else [], anchor=event.anchor))

    def _end(self) -> None:
        ended = self._open.pop()
        if ended.merged:
            _merge(ended.value, ended.merged)
        self._keep(ended.anchor, ended.value, ended.size)
        self._add(ended.value, ended.size)

    def _keep(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size

    def _target(self, anchor: str) -> tuple[Any, int]:
        if any(one.anchor == anchor for one in self._open):
            raise DocumentError(f'"{self._name}" refers to itself. Remove the alias "*{anchor}" and upload it again.')
        return self._anchors.get(anchor, (None, 1))

    def _add(self, value: Any, size: int) -> None:
        """Add a value to the list or object that is open, or a key."""
        if not self._open:
            self._document.value = value
            return
        parent = self._open[-1]
        parent.size += size
        if parent.size > _MAX_VALUES:
            raise too_large(self._name)
        if not isinstance(parent.value, Object):
            parent.value.append(value)
        elif parent.key is None:
            if isinstance(value, list):
                raise yaml.YAMLError  # braces of a template: an object as the name of a value
            parent.key = value or ""
        else:
            key, parent.key = parent.key, None
            if key == _MERGE_KEY:
                parent.merged += [value] if isinstance(value, Object) else value or ()
            else:
                parent.value.append((key, value))


def _mark(mark: Any) -> tuple[int, int]:
    """(character, line) of a mark, both from 0."""
    return mark.index, mark.line


def _merge(into: list[Any], sources: Sequence[Any]) -> None:
    """Add the members of the objects that merge keys name, where there are none of their names."""
    names = {key for key, _ in into}
    for source in sources:
        new = [pair for pair in (source if isinstance(source, Object) else ()) if pair[0] not in names]
        into += new
        names.update(key for key, _ in new)
