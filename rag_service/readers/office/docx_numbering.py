"""Numbers that Word makes: "2.1", "(a)", "Article IV", as the numbering part and the styles of a document say.

ECMA-376-1, 17.9. What the standard leaves open is as Word does it: lists of one abstract definition count together, and
an upper level that has not begun begins with the first paragraph below it (Microsoft Q110380).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rag_service.readers.common.list_numbers import NumberFormat, write_number
from rag_service.readers.common.xml import Element
from rag_service.readers.office.docx_characters import is_on

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE, _LEVEL, _NUMBER = _W + "val", _W + "ilvl", _W + "numId"
_TEXT, _FALLBACK = _W + "t", "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_GONE = tuple(_W + tag for tag in ("del", "moveFrom", "vanish"))  # marks of paragraphs that nobody sees
_LEVELS = 9  # of a list
_HOPS = 20  # styles may refer to each other in a circle
_MAX_LABEL = 100  # characters; a longer one is no number
_PLACEHOLDER = re.compile(r"%([1-9])")
_FORMATS = {
    "lowerLetter": NumberFormat.LOWER_LETTER, "upperLetter": NumberFormat.UPPER_LETTER,
    "lowerRoman": NumberFormat.LOWER_ROMAN, "upperRoman": NumberFormat.UPPER_ROMAN,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Level:
    start: int
    format: str
    text: str  # "%1.%2"
    restart: int  # after a paragraph of one of so many upper levels; 0: never
    is_decimal: bool  # the numbers of all levels in it
    style: str | None  # of the paragraphs that have this level


@dataclass(frozen=True, kw_only=True)
class _List:
    abstract: str  # the definition whose lists count together
    levels: Mapping[int, _Level]
    starts: Mapping[int, int]  # level → where this list begins anew


@dataclass
class _Counts:
    """How far the lists of a text are."""

    values: dict[str, dict[int, int]] = field(default_factory=dict)  # abstract definition → level → number
    begun: set[tuple[str, int]] = field(default_factory=set)  # (list, level) that began anew


class Numbering:
    """Writes the numbers of paragraphs into a document before it is read."""

    def __init__(self, numbering: Element | None, styles: Element):
        self._styles = {style.get(_W + "styleId"): style for style in styles.iterchildren(_W + "style")}
        parts = [] if numbering is None else numbering
        self._abstract = {part.get(_W + "abstractNumId"): part for part in parts if part.tag == _W + "abstractNum"}
        self._numbers = {part.get(_NUMBER): part for part in parts if part.tag == _W + "num"}
        self._lists: dict[str, _List | None] = {}

    def settle(self, root: Element) -> None:
        """Put the label of each numbered paragraph before its text.

        A paragraph without text is counted, but has its number only in a cell of a table, where it may be the content.
        """
        if not self._numbers:
            return
        counts = _Counts()
        for paragraph in list(root.iter(_W + "p")):
            label = self._label(paragraph, counts)
            if label and (_has_text(paragraph) or next(paragraph.iterancestors(_W + "tc"), None) is not None):
                text = paragraph.makeelement(_TEXT)
                text.text = f"{label} "
                paragraph.insert(0, text)

    def _label(self, paragraph: Element, counts: _Counts) -> str:
        properties = paragraph.find(_W + "pPr")
        if properties is None or _is_gone(properties) or next(paragraph.iterancestors(_FALLBACK), None) is not None:
            return ""
        number, level = self._place(properties)
        found = self._list(number) if number else None
        if found is None or level not in found.levels:
            return ""
        values = counts.values.setdefault(found.abstract, {})
        _count(number, level, found, values, counts.begun)
        return _write(found.levels, level, values)

    def _place(self, properties: Element) -> tuple[str, int]:
        """(list, level) of a paragraph by its own properties or those of its styles; an empty list: not numbered."""
        own = properties.find(_W + "numPr")
        styles = list(self._with_bases(_value(properties, "pStyle")))
        marks = [mark for style in styles if (mark := style.find(f"{_W}pPr/{_W}numPr")) is not None]
        marks = marks if own is None else [own, *marks]
        number = next((value for mark in marks if (value := _value(mark, "numId")) is not None), "0")
        found = self._list(number)
        if number == "0" or found is None:
            return "", 0
        if own is not None and (level := _integer(_value(own, "ilvl"))) is not None:
            return number, level
        for style in styles:
            for level, definition in found.levels.items():
                if definition.style is not None and definition.style == style.get(_W + "styleId"):
                    return number, level
        return number, next((at for mark in marks if (at := _integer(_value(mark, "ilvl"))) is not None), 0)

    def _with_bases(self, identifier: str | None) -> Iterator[Element]:
        """A style and those that it is based on."""
        for _ in range(_HOPS):
            style = self._styles.get(identifier)
            if style is None:
                return
            yield style
            identifier = _value(style, "basedOn")

    def _list(self, number: str) -> _List | None:
        if number not in self._lists:
            self._lists[number] = self._read_list(number)
        return self._lists[number]

    def _read_list(self, number: str) -> _List | None:
        own = self._numbers.get(number)
        name = None if own is None else _value(own, "abstractNumId")
        abstract = self._abstract.get(name)
        for _ in range(_HOPS):  # a definition may refer to that of a style
            link = None if abstract is None else _value(abstract, "numStyleLink")
            if link is None:
                break
            style = self._styles.get(link)
            mark = None if style is None else style.find(f"{_W}pPr/{_W}numPr")
            linked = None if mark is None else self._numbers.get(_value(mark, "numId"))
            name = None if linked is None else _value(linked, "abstractNumId")
            abstract = self._abstract.get(name)
        else:
            return None  # in a circle
        if own is None or abstract is None or name is None:
            return None
        levels = dict(_levels(abstract))
        starts = {}
        for change in own.iterchildren(_W + "lvlOverride"):
            at = _integer(change.get(_LEVEL))
            if at is not None and at < _LEVELS:
                levels.update(entry for entry in _levels(change) if entry[0] == at)
                if (start := _integer(_value(change, "startOverride"))) is not None:
                    starts[at] = start
        return _List(abstract=name, levels=levels, starts=starts)


def _levels(parent: Element) -> Iterator[tuple[int, _Level]]:
    for part in parent.iterchildren(_W + "lvl"):
        at = _integer(part.get(_LEVEL))
        if at is None or at >= _LEVELS:
            continue
        restart = _integer(_value(part, "lvlRestart"))
        decimal = part.find(_W + "isLgl")
        yield (
            at,
            _Level(
                start=_integer(_value(part, "start")) or 0,
                format=_value(part, "numFmt") or "decimal",
                text=_value(part, "lvlText") or "",
                restart=at if restart is None else min(restart, at),
                is_decimal=decimal is not None and is_on(decimal),
                style=_value(part, "pStyle"),
            ),
        )


def _count(number: str, level: int, found: _List, values: dict[int, int], begun: set[tuple[str, int]]) -> None:
    """Count a paragraph of a list, with the upper levels that have not begun, and end the lower ones."""
    for at in range(level + 1):
        begins_anew = at in found.starts and (number, at) not in begun
        if begins_anew or at not in values:
            begun.add((number, at))
            values[at] = found.starts.get(at, found.levels[at].start if at in found.levels else 0)
        elif at == level:
            values[at] += 1
    for below, definition in found.levels.items():
        if below > level and level < definition.restart:
            values.pop(below, None)


def _write(levels: Mapping[int, _Level], level: int, values: Mapping[int, int]) -> str:
    """The label of a paragraph; none for bullets."""
    own = levels[level]
    if own.format == "bullet" or len(own.text) > _MAX_LABEL:
        return ""

    def number(found: re.Match[str]) -> str:
        at = int(found[1]) - 1
        if at > level or at not in levels:
            return ""
        is_plain = own.is_decimal and levels[at].format not in ("none", "bullet")
        return _format(values.get(at, 0), "decimal" if is_plain else levels[at].format)

    return _PLACEHOLDER.sub(number, own.text).strip()


def _format(value: int, format: str) -> str:
    """A number as a format writes it; in digits for the formats of other scripts."""
    if format in ("none", "bullet"):
        return ""
    if format == "decimalZero":
        return f"{value:02}"
    return write_number(value, _FORMATS.get(format, NumberFormat.DECIMAL), repeats_letters=True)


def _has_text(paragraph: Element) -> bool:
    return any((text.text or "").strip() for text in paragraph.iter(_TEXT))


def _is_gone(properties: Element) -> bool:
    look = properties.find(_W + "rPr")
    gone = [] if look is None else look.iterchildren(*_GONE)
    return any(map(is_on, gone))


def _value(parent: Element, tag: str) -> str | None:
    child = parent.find(_W + tag)
    return None if child is None else child.get(_VALUE)


def _integer(value: str | None) -> int | None:
    """A number of at most nine digits."""
    return int(value) if value is not None and len(value) < 10 and value.isascii() and value.isdecimal() else None
