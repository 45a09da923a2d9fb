"""Headings of a PDF, which declares no structure: lines that stand alone and are larger than the body text, or bold.

When in doubt a line is not a heading: the text is the same either way, and a false heading would split a section.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from rag_service.domain import Box
from rag_service.readers.common.headings import NUMBER, reads_like_heading

_LARGER = 1.15  # than body text; fonts of one size differ by less
_SAME_SIZE = 1.05  # of headings of one level
_MAX_LINES = 3
_MAX_LEVELS = 4  # of a path; deeper ones reflect the layout rather than the text
_MAX_SHARE = 0.35  # of the characters; forms and posters are large and bold throughout
_RUNNING_PAGES = 3  # with the same line at the top or bottom: a running header or footer
_EDGE = 2  # lines at the top or bottom of a page


class PageLine(NamedTuple):
    """A line of a page; without text, vertical space."""

    text: str
    height: float = 0.0  # of its letters in points; 0: unknown
    is_bold: bool = False
    middle: float | None = None  # its vertical centre; None: unknown, or in a ruled table
    words: Sequence[tuple[int, str, Box]] = ()  # each with the letters and digits of the line before it


class Heading(NamedTuple):
    """A heading and its position on its page."""

    text: str  # on one line
    first: int  # index of its first line on the page
    last: int
    level: tuple[int, int]  # (rank of its size, depth of its number); lower is further out


class _Candidate(NamedTuple):
    text: str
    first: int
    last: int
    height: float  # 0: bold text of the body's size


class _Body(NamedTuple):
    """What most of the text looks like."""

    height: float
    is_bold: bool


def find_headings(pages: Sequence[Sequence[PageLine]]) -> list[list[Heading]]:
    body = _body_of(pages)
    if body is None:
        return [[] for _ in pages]
    running = _running_lines(pages)
    found = [list(_candidates(lines, body, running)) for lines in pages]
    total = sum(len(line.text) for lines in pages for line in lines)
    if sum(len(heading.text) for on_page in found for heading in on_page) > _MAX_SHARE * total:
        return [[] for _ in pages]
    ranks = _rank({heading.height for on_page in found for heading in on_page})
    return [
        [Heading(text, first, last, (ranks[height], _depth(text))) for text, first, last, height in on_page]
        for on_page in found
    ]


def follow_path(path: Sequence[Heading], heading: Heading) -> list[Heading]:
    """The heading path after one more heading, outermost first."""
    return [*(above for above in path if above.level < heading.level), heading][-_MAX_LEVELS:]


def _body_of(pages: Sequence[Sequence[PageLine]]) -> _Body | None:
    """The most common size and weight; None if no line has a height."""
    lines = [line for on_page in pages for line in on_page if line.height]
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[round(line.height, 1)] += len(line.text)
    if not sizes:
        return None
    height = sizes.most_common(1)[0][0]
    alike = [line for line in lines if height / _SAME_SIZE < line.height < height * _SAME_SIZE]
    bold = sum(len(line.text) for line in alike if line.is_bold)
    return _Body(height, bold > sum(len(line.text) for line in alike) / 2)


def _running_lines(pages: Sequence[Sequence[PageLine]]) -> set[str]:
    """Running headers and footers: lines at the top or bottom of several pages."""
    seen: Counter[str] = Counter()
    for lines in pages:
        texts = [line.text for line in lines if line.text]
        seen.update({*texts[:_EDGE], *texts[-_EDGE:]})
    return {text for text, count in seen.items() if count >= _RUNNING_PAGES}


def _candidates(lines: Sequence[PageLine], body: _Body, running: Container[str]) -> Iterator[_Candidate]:
    """Groups of lines of the same look that stand out and read like a heading; a number begins a new one."""
    heights = [None if line.text in running else _prominence(line, body) for line in lines]
    place, follows_heading = 0, True
    while place < len(lines):
        height = heights[place]
        if height is None:
            follows_heading = follows_heading and (not lines[place].text or lines[place].text in running)
            place += 1
            continue
        last = place
        while last + 1 < len(lines) and _continues(lines[last + 1], heights[last + 1], height):
            last += 1
        text = " ".join(line.text for line in lines[place : last + 1])
        stands_alone = height > 0 or follows_heading or not lines[place - 1].text
        follows_heading = stands_alone and last - place < _MAX_LINES and _reads_like_heading(text)
        if follows_heading:
            yield _Candidate(" ".join(text.split()), place, last, height)
        place = last + 1


def _prominence(line: PageLine, body: _Body) -> float | None:
    """The height of text larger than the body, 0 for bold text of its size, None for any other."""
    if not line.text or not line.height:
        return None
    if line.height >= _LARGER * body.height:
        return line.height
    is_small = line.height < body.height / _SAME_SIZE
    return 0.0 if line.is_bold and not body.is_bold and not is_small else None


def _continues(line: PageLine, height: float | None, above: float) -> bool:
    is_same = height is not None and max(height, above) <= _SAME_SIZE * min(height, above)
    return is_same and not NUMBER.match(line.text)


def _reads_like_heading(text: str) -> bool:
    numbered = NUMBER.match(text)
    return reads_like_heading(text, text[numbered.end() if numbered else 0 :])


def _rank(heights: set[float]) -> dict[float, int]:
    """Height → rank, 0 for the largest; bold text of the body's size comes last."""
    ranks: dict[float, int] = {}
    rank, largest = -1, 0.0
    for height in sorted(heights, reverse=True):
        if not ranks or largest > _SAME_SIZE * height:
            rank, largest = rank + 1, height
        ranks[height] = rank
    return ranks


def _depth(text: str) -> int:
    """1 for "2. Pay" and for headings without a number, 2 for "2.1 Base pay"."""
    numbered = NUMBER.match(text)
    return len(numbered["number"].rstrip(".").split(".")) if numbered else 1
