"""Numbers of headings and list items that OpenDocument programs make, as the list styles and the outline say.

OpenDocument 1.3, part 3: 5.3 (lists), 16.30 to 16.35 (their styles) and 19.829 to 19.880 (their attributes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rag_service.readers.common.list_numbers import NumberFormat, write_number
from rag_service.readers.common.xml import Element, local_name

_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
_TEXT, _TABLE, _STYLE = (f"{{{_ODF}{part}:1.0}}" for part in ("text", "table", "style"))
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_PARAGRAPHS = frozenset({_TEXT + "p", _TEXT + "h"})
_FORMATS = {str(format): format for format in NumberFormat}
_LEVELS = 10  # of a list
MARK = "rag-mark"  # the attribute with what stands before a paragraph: its number, a dash, or nothing


@dataclass(frozen=True, kw_only=True)
class _Level:
    format: NumberFormat | None  # None: no number
    prefix: str
    suffix: str
    start: int
    shown: int  # so many levels are in the number
    repeats_letters: bool


_Style = Mapping[int, _Level]  # level, from 1 → how it is numbered; bullets are missing


@dataclass(kw_only=True)
class _Counts:
    """How far the lists of a text are: level → number."""

    outline: dict[int, int] = field(default_factory=dict)
    by_name: dict[str, dict[int, int]] = field(default_factory=dict)  # of the last list of a style
    by_id: dict[str, dict[int, int]] = field(default_factory=dict)


class Numbering:
    """Marks the paragraphs of lists and numbers the headings of a text before it is read."""

    def __init__(self, *files: Element | None):
        found = [file for file in files if file is not None]
        named = [style for file in found for style in file.iter(_TEXT + "list-style", _TEXT + "outline-style")]
        self._styles = {style.get(_STYLE + "name") or "": _read_style(style) for style in named}
        outlines = (style for style in named if local_name(style) == "outline-style")
        self._outline: _Style = next(map(_read_style, outlines), {})

    def settle(self, body: Element) -> None:
        """Set `MARK` on the paragraphs of lists; put numbers before the text of headings and of cells of tables."""
        counts = _Counts()
        for block in list(body.iter(_TEXT + "h", _TEXT + "list")):
            if next(block.iterancestors(_TEXT + "tracked-changes"), None) is not None:
                continue
            if block.tag == _TEXT + "h":
                if _item_of(block) is None:
                    _put(block, self._number_of_heading(block, counts.outline))
            elif next(block.iterancestors(_TEXT + "list"), None) is None:
                self._settle_list(block, counts)

    def _number_of_heading(self, heading: Element, values: dict[int, int]) -> str:
        level = min(_integer(heading.get(_TEXT + "outline-level"), 1), _LEVELS)
        if heading.get(_TEXT + "is-list-header") == "true" or not self._outline or not _has_text(heading):
            return ""
        start = _integer(heading.get(_TEXT + "start-value"), -1)
        if heading.get(_TEXT + "restart-numbering") == "true":
            values.pop(level, None)
        return _count(self._outline, values, level, start=start)

    def _settle_list(self, top: Element, counts: _Counts) -> None:
        """Number the paragraphs of a list with the lists in it, which count on from each other's upper levels."""
        style = top.get(_TEXT + "style-name") or ""
        values: dict[int, int] = {}
        if (earlier := top.get(_TEXT + "continue-list")) is not None:
            values = counts.by_id.get(earlier, values)
        elif top.get(_TEXT + "continue-numbering") == "true":
            values = counts.by_name.get(style, values)
        counts.by_name[style] = values
        for name in filter(None, (top.get(_XML_ID),)):
            counts.by_id[name] = values
        waiting: list[tuple[Element, int, str]] = [(top, 1, style)]
        while waiting:
            element, level, style = waiting.pop()
            tag = local_name(element)
            if tag == "list":
                inner = element.get(_TEXT + "style-name") or style
                waiting += [(child, level, inner) for child in reversed(element)]
            elif tag == "list-item":
                self._settle_item(element, level, self._styles.get(style, {}), values)
            if tag in ("list-item", "list-header"):
                below = min(level + 1, _LEVELS)
                waiting += [(child, below, style) for child in reversed(element) if local_name(child) == "list"]

    def _settle_item(self, item: Element, level: int, style: _Style, values: dict[int, int]) -> None:
        paragraphs = [child for child in item if child.tag in _PARAGRAPHS]
        first = next((paragraph for paragraph in paragraphs if _has_text(paragraph) or _in_cell(paragraph)), None)
        if first is None:
            return  # it only holds a list
        number = _count(style, values, level, start=_integer(item.get(_TEXT + "start-value"), -1))
        if first.tag == _TEXT + "h" or _in_cell(first):
            _put(first, number)
        else:
            first.set(MARK, number or "-")


def _count(style: _Style, values: dict[int, int], level: int, *, start: int) -> str:
    """Count an item with the upper levels that have not begun, and end the lower ones; returns its number."""
    for at in range(1, level):
        values.setdefault(at, style[at].start if at in style else 1)
    own = style.get(level)
    first = own.start if own else 1
    values[level] = start if start >= 0 else values[level] + 1 if level in values else first
    for below in [at for at in values if at > level]:
        del values[below]
    if own is None or own.format is None:
        return ""
    parts = [
        write_number(values[at], number_format, repeats_letters=style[at].repeats_letters)
        for at in range(max(level - own.shown, 0) + 1, level + 1)
        if at in style and (number_format := style[at].format) is not None
    ]
    return f"{own.prefix}{'.'.join(parts)}{own.suffix}".strip()


def _read_style(style: Element) -> _Style:
    return dict(_levels(style))


def _levels(style: Element) -> Iterator[tuple[int, _Level]]:
    for part in style:
        if local_name(part) not in ("list-level-style-number", "outline-level-style"):
            continue
        yield (
            _integer(part.get(_TEXT + "level"), 1),
            _Level(
                format=_FORMATS.get(part.get(_STYLE + "num-format") or ""),
                prefix=(part.get(_STYLE + "num-prefix") or "")[:20],
                suffix=(part.get(_STYLE + "num-suffix") or "")[:20],
                start=_integer(part.get(_TEXT + "start-value"), 1),
                shown=_integer(part.get(_TEXT + "display-levels"), 1),
                repeats_letters=part.get(_STYLE + "num-letter-sync") == "true",
            ),
        )


def _put(paragraph: Element, number: str) -> None:
    if number:
        paragraph.text = f"{number} {paragraph.text or ''}"


def _item_of(paragraph: Element) -> Element | None:
    parent = paragraph.getparent()
    return parent if parent is not None and local_name(parent) in ("list-item", "list-header") else None


def _in_cell(paragraph: Element) -> bool:
    return next(paragraph.iterancestors(_TABLE + "table-cell"), None) is not None


def _has_text(paragraph: Element) -> bool:
    return any((text or "").strip() for text in paragraph.itertext())


def _integer(value: str | None, otherwise: int) -> int:
    """A number of at most six digits."""
    return int(value) if value is not None and len(value) < 7 and value.isascii() and value.isdecimal() else otherwise
