"""The lines of pages (PDF), and the parts that gaps divide them into.

A page has no cells. Its reader leaves two spaces between columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_service.domain import Span
from rag_service.language.normalise import FOOTNOTE_MARK
from rag_service.tables.reading.values import is_nothing, normal_figure

_MARK_AT_END = re.compile(rf" *{FOOTNOTE_MARK}(?= {{2}}|$)")  # of a part; offsets must stay
_PART = re.compile(r"\S+(?: \S+)*")
_FIGURES = re.compile(r"[$€£]? ?\(?[$€£]? ?[-−–]?\d[\d.,]*\)? ?%?\)?|[—–-](?= |$)")
_OPENING, _CLOSING = ("$", "€", "£", "(", "$ ("), ("%", ")", ")%", ") %")  # signs in columns of their own


@dataclass(frozen=True, slots=True)
class Part:
    """What stands between two gaps of a line."""

    text: str
    start: int  # in the document's stored text


@dataclass(frozen=True)
class PageLine:
    page: int
    start: int
    text: str
    parts: tuple[Part, ...]

    @cached_property
    def figures(self) -> int:
        """How many of its last parts are figures, or say that there is none."""
        count = 0
        while count < len(self.parts) and is_value(self.parts[-1 - count].text):
            count += 1
        return count


def read_page_lines(text: str, spans: Sequence[Span]) -> Iterator[PageLine]:
    """The lines of pages, with the parts that gaps divide them into; empty lines have none."""
    for span in spans:
        page = span.location.page
        if page is None or span.location.cell:
            continue
        start = span.start
        for line in text[span.start : span.end].split("\n"):
            line = _MARK_AT_END.sub(lambda mark: " " * len(mark[0]), line)
            yield PageLine(page, start, line, tuple(_parts(line, start)))
            start += len(line) + 1


def _parts(line: str, start: int) -> Iterator[Part]:
    if "  " not in line and not line[:1].isdigit():
        if line.strip():
            yield Part(line.strip(), start + len(line) - len(line.lstrip()))
        return
    found: list[tuple[int, int]] = []
    for match in _PART.finditer(line):
        here = match[0]
        before = line[slice(*found[-1])] if found else ""
        if before and (here in _CLOSING or before in _OPENING):
            found[-1] = (found[-1][0], match.end())
            continue
        several = [one for one in _FIGURES.finditer(here) if one[0].strip()]
        if len(several) > 1 and not _FIGURES.sub("", here).strip() and not is_value(here):
            found += [(match.start() + one.start(), match.start() + one.end()) for one in several]
        else:
            found.append(match.span())
    for begin, end in found:
        piece = line[begin:end]
        yield Part(piece.strip(), start + begin + len(piece) - len(piece.lstrip()))


def is_value(text: str) -> bool:
    """Whether a part is a figure, or says that there is none: "—"."""
    return normal_figure(text) is not None or is_nothing(text)
