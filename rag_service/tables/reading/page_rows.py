"""Rows of the tables on pages that are no statements: ruled ones, which their reader labels, and aligned ones.

Product: Hex bolt | Stock: 120            Product   Stock   Price
Product: Washer | Stock: 80               Hex bolt  120     0.35
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_service.language.words import words
from rag_service.tables.reading.page_lines import PageLine, Part, is_value

_LABELLED = re.compile(r"(?P<label>[^|]{1,100}?): (?P<value>.+)")
_MIN_ALIGNED = 2  # rows below a line of names
_NAME_WORDS = 6
_HEADING_WORDS = 8
_WRAPPED_WORDS = 3
_LINES_BETWEEN = 3  # page headers and footers between the parts of a table
_SAME_KIND = 0.8  # of the parts of a column


@dataclass(frozen=True, kw_only=True)
class PageRow:
    page: int
    cells: Mapping[int, Part]  # column, from 1
    names: Mapping[int, str]  # of the columns; none for a sub-heading
    begins: bool  # a table
    above: str  # the line before the table


def find_rows(lines: Sequence[PageLine]) -> Iterator[PageRow]:
    """The rows of ruled and aligned tables, in the order of the pages."""
    at, above = 0, ""
    while at < len(lines):
        end = _end_of_labelled(lines, at)
        if end > at:
            yield from _labelled_rows(lines[at:end], above)
        else:
            end = _end_of_aligned(lines, at, above)
            if end > at:
                yield from _aligned_rows(lines[at:end], above)
        above = lines[at].text.strip() if end == at and lines[at].parts else above
        at = max(end, at + 1)


def _cells(line: PageLine) -> list[tuple[str, Part]] | None:
    """(name of the column, value) of a labelled line; None for another."""
    found, start = [], line.start
    if " | " not in line.text:
        return None
    for piece in line.text.split(" | "):
        match = _LABELLED.fullmatch(piece)
        if match is None:
            return None
        found.append((match["label"], Part(match["value"], start + match.start("value"))))
        start += len(piece) + len(" | ")
    return found if len(found) > 1 and len({name for name, _ in found}) == len(found) else None


def _end_of_labelled(lines: Sequence[PageLine], at: int) -> int:
    """The end of the lines that share names of columns, with sub-headings and page headers between."""
    first = _cells(lines[at])
    if first is None:
        return at
    names, end, between = {name for name, _ in first}, at + 1, 0
    for place in range(at + 1, len(lines)):
        cells = _cells(lines[place])
        if cells is not None:
            shared = names & {name for name, _ in cells}
            if len(shared) * 2 < len(cells):
                break
            names |= {name for name, _ in cells}
            end, between = place + 1, 0
        elif lines[place].parts:
            between += 1
            if between > _LINES_BETWEEN or len(lines[place].text.split()) > _HEADING_WORDS:
                break
    return end


def _labelled_rows(lines: Sequence[PageLine], above: str) -> Iterator[PageRow]:
    widest = max((cells for line in lines if (cells := _cells(line))), key=len)
    order = {name: place for place, (name, _) in enumerate(widest, start=1)}
    begins = True
    for number, line in enumerate(lines):
        cells = _cells(line)
        if cells is None:
            same_page = lines[number - 1].page == line.page and all(one.page == line.page for one in lines[number:][:3])
            if line.parts and same_page:
                yield PageRow(page=line.page, cells={1: line.parts[0]}, names={}, begins=False, above=above)
            continue
        for name, _ in cells:
            order.setdefault(name, len(order) + 1)
        names = {place: name for name, place in order.items()}
        values = {order[name]: part for name, part in cells}
        yield PageRow(page=line.page, cells=values, names=names, begins=begins, above=above)
        begins = False


def _end_of_aligned(lines: Sequence[PageLine], at: int, above: str) -> int:
    """The end of the lines with as many parts as the names above them; what is not certain is no table."""
    names = [part.text for part in lines[at].parts]
    if len(names) < 2 or lines[at].figures or "  " in above or len(set(names)) < len(names):
        return at
    if at and lines[at - 1].parts and len(lines[at - 1].text.split()) <= _WRAPPED_WORDS:
        return at  # perhaps the first line of a name
    if any(len(name.split()) > _NAME_WORDS or not words(name) or is_value(name) for name in names):
        return at
    end = at + 1
    while end < len(lines) and len(lines[end].parts) == len(names) and lines[end].page == lines[at].page:
        end += 1
    rows = [line.parts for line in lines[at + 1 : end]]
    if len(rows) < _MIN_ALIGNED or any(is_value(row[0].text) for row in rows):
        return at
    shares = [sum(is_value(row[place].text) for row in rows) / len(rows) for place in range(len(names))]
    certain = all(share >= _SAME_KIND or share <= 1 - _SAME_KIND for share in shares)
    return end if certain and max(shares) >= _SAME_KIND else at


def _aligned_rows(lines: Sequence[PageLine], above: str) -> Iterator[PageRow]:
    names = {place: part.text for place, part in enumerate(lines[0].parts, start=1)}
    for number, line in enumerate(lines[1:]):
        cells = dict(enumerate(line.parts, start=1))
        yield PageRow(page=line.page, cells=cells, names=names, begins=number == 0, above=above)
