"""Headings of a PDF, which says nothing of structure: what stands out by its size or in bold, alone on its line.

A PDF holds glyphs and places. Readers tell headings from the body by letters that are larger than most, or bold
where most are not, with nothing beside them. So does this. When in doubt a line is no heading: the text is the same
either way, and a false heading would part what belongs together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_LARGER = 1.15  # than the letters of the body; fonts of one size differ by less
_SAME_SIZE = 1.05  # of headings of one level
_MOST_LINES = 3
MOST_CHARACTERS = 150
_MOST_LEVELS = 4  # of a path; deeper ones say more about the layout than about the text
_MOST_OF_ALL = 0.35  # of the characters; a form or a poster is large and bold all over
_RUNNING_PAGES = 3  # with the same line at their top or bottom: it belongs to the paper, not to the text
_EDGE = 2  # lines that make the top or bottom of a page
_LEAST_LETTERS = 3
_MOST_WORDS_OF_A_STATEMENT = 6  # "2. Purpose." is a heading that ends like a sentence
_COLUMN = re.compile(r"\S {2,}\S")
# "2.1", "IV.", "A.", and with a word before: "Item 1A.", "Article 3".
_NUMBER = re.compile(
    r"(?:[A-ZÀ-Ý][^\W\d_]{1,11}\s+)?(?P<number>\d{1,3}[A-Z]?(?:\.\d{1,3}){0,5}\.?|[IVXLC]{1,6}\.|[A-Z]\.)\s+(?=\S)"
)
_BRACKETS = (("(", ")"), ("[", "]"))


class PageLine(NamedTuple):
    """A line of a page; without text, the room between two."""

    text: str
    height: float = 0.0  # of its letters in points; 0: unknown
    is_bold: bool = False


class Heading(NamedTuple):
    """A heading, and where its page has it."""

    text: str  # on one line
    first: int  # place of its first line on the page
    last: int
    level: tuple[int, int]  # lower ones stand above


@dataclass(frozen=True, kw_only=True)
class _Body:
    """What most of the text looks like."""

    height: float
    is_bold: bool


class _Found(NamedTuple):
    page: int
    first: int
    last: int
    text: str
    height: float  # 0: bold letters of the body's size


def find_headings(pages: Sequence[Sequence[PageLine]]) -> list[list[Heading]]:
    """The headings of each page in its order."""
    body = _body_of(pages)
    headings: list[list[Heading]] = [[] for _ in pages]
    if body is None:
        return headings
    running = _running_lines(pages)
    found = [heading for number, lines in enumerate(pages) for heading in _candidates(number, lines, body, running)]
    total = sum(len(line.text) for lines in pages for line in lines)
    if sum(len(heading.text) for heading in found) > _MOST_OF_ALL * total:
        return headings
    ranks = _rank({heading.height for heading in found})
    for heading in found:
        level = ranks[heading.height], _depth(heading.text)
        headings[heading.page].append(Heading(heading.text, heading.first, heading.last, level))
    return headings


def follow_path(path: Sequence[Heading], heading: Heading) -> list[Heading]:
    """The headings that a text stands under, outermost first, once one more has been passed."""
    return [*(above for above in path if above.level < heading.level), heading][-_MOST_LEVELS:]


def _body_of(pages: Sequence[Sequence[PageLine]]) -> _Body | None:
    """The commonest letters; None where no line has a height."""
    sizes: Counter[float] = Counter()
    for line in (line for lines in pages for line in lines if line.height):
        sizes[round(line.height, 1)] += len(line.text)
    if not sizes:
        return None
    height = sizes.most_common(1)[0][0]
    alike = [line for lines in pages for line in lines if height / _SAME_SIZE < line.height < height * _SAME_SIZE]
    bold = sum(len(line.text) for line in alike if line.is_bold)
    return _Body(height=height, is_bold=bold > sum(len(line.text) for line in alike) / 2)


def _running_lines(pages: Sequence[Sequence[PageLine]]) -> set[str]:
    """Lines that many pages have at their top or bottom."""
    seen: Counter[str] = Counter()
    for lines in pages:
        texts = [line.text for line in lines if line.text]
        seen.update({*texts[:_EDGE], *texts[-_EDGE:]})
    return {text for text, count in seen.items() if count >= _RUNNING_PAGES}


def _candidates(page: int, lines: Sequence[PageLine], body: _Body, running: Container[str]) -> Iterator[_Found]:
    """Groups of lines that look alike, stand out and read like a heading; a number begins another."""
    heights = [None if line.text in running else _standing_out(line, body) for line in lines]
    place, follows_heading = 0, True
    while place < len(lines):
        height = heights[place]
        if height is None:
            follows_heading = follows_heading and (not lines[place].text or lines[place].text in running)
            place += 1
            continue
        last = place
        while last + 1 < len(lines) and _goes_on(lines[last + 1], heights[last + 1], height):
            last += 1
        text = " ".join(line.text for line in lines[place : last + 1])
        stands_alone = height > 0 or follows_heading or not lines[place - 1].text
        follows_heading = stands_alone and last - place < _MOST_LINES and _reads_like_heading(text)
        if follows_heading:
            yield _Found(page, place, last, " ".join(text.split()), height)
        place = last + 1


def _standing_out(line: PageLine, body: _Body) -> float | None:
    """The height of larger letters, 0 for bold ones of the body's size, None for all others."""
    if not line.text or not line.height:
        return None
    if line.height >= _LARGER * body.height:
        return line.height
    is_small = line.height < body.height / _SAME_SIZE
    return 0.0 if line.is_bold and not body.is_bold and not is_small else None


def _goes_on(line: PageLine, height: float | None, above: float) -> bool:
    is_same = height is not None and max(height, above) <= _SAME_SIZE * min(height, above)
    return is_same and not _NUMBER.match(line.text)


def _reads_like_heading(text: str) -> bool:
    numbered = _NUMBER.match(text)
    words = text[numbered.end() if numbered else 0 :]
    letters = sum(char.isalpha() for char in words)
    return (
        len(text) <= MOST_CHARACTERS
        and letters >= max(_LEAST_LETTERS, sum(not char.isspace() for char in words) / 2)
        and not _COLUMN.search(words)
        and all(text.count(opening) == text.count(closing) for opening, closing in _BRACKETS)  # else part of a line
        and words[-1] not in ",;"
        and (words[-1] != "." or len(words.split()) <= _MOST_WORDS_OF_A_STATEMENT)
    )


def _rank(heights: set[float]) -> dict[float, int]:
    """Height → level, 0 for the largest; bold letters of the body's size come last."""
    ranks: dict[float, int] = {}
    rank, largest = -1, 0.0
    for height in sorted(heights, reverse=True):
        if not ranks or largest > _SAME_SIZE * height:
            rank, largest = rank + 1, height
        ranks[height] = rank
    return ranks


def _depth(text: str) -> int:
    """1 for "2. Pay" and for what has no number, 2 for "2.1 Base pay"."""
    numbered = _NUMBER.match(text)
    return len(numbered["number"].rstrip(".").split(".")) if numbered else 1
