"""Puts the words of a PDF page into lines, so that the figures of a table row stay beside their label.

A page may draw a table cell by cell, column by column or backwards. Words come from `pdf_words` with their boxes;
here they are put into lines by their place. Words of one height are a strip; strips that lie close enough and do not
collide make a line: a label and its figures half a line lower, a word and its footnote mark, but never two lines of a
cell. The tuned numbers were set on the five filings that `pdf` names, where pypdf's layout mode was the measure.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rag_service.ingest.parse.pdf_words import Word

COLUMN = "   "  # between words further apart than any space of justified text
_BACKWARDS = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")  # Hebrew, Arabic and their neighbours
# All of these are shares of a line's height.
_COLUMN_GAP = 0.7  # spaces of justified text stay below 0.6
_PARAGRAPH_STEP = 1.75  # from the middle of a line to the next; of the smaller one, so that headings stand alone
_TOUCHING = 0.06  # a footnote mark touches its word, a word its neighbour never
_SAME_HEIGHT = 0.2
_SAME_LINE = 0.7  # a figure centred beside a label of two lines is 0.5 to 0.68 away from either
_MUCH_NEARER = 0.5  # of the distance to the line above; a footnote mark is 0.3 above its line, 0.7 below the one before
_OVERLAP = 0.2  # of two words side by side: italics and kerning


class Line(NamedTuple):
    """A line of a page as it reads; without text, the room that the page leaves above the next."""

    text: str
    height: float = 0.0  # of its letters in points; 0: turned or slanted
    ends: tuple[int, int] = (-1, -1)  # PDFium's index of the first character of its first word and of its last


def lay_out(words: Sequence[Word]) -> list[Line]:
    """The lines of a page; `COLUMN` stands for a wide gap, an empty line for a high one.

    Words turned by a quarter are laid out among themselves, after those of the commonest direction; slanted words come
    last, in PDFium's order.
    """
    turned: dict[int | None, list[Word]] = {}
    for word in words:
        turned.setdefault(word.turns, []).append(word)
    slanted = turned.pop(None, [])
    lines: list[Line] = []
    for number, group in enumerate(sorted(turned.values(), key=len, reverse=True)):
        paragraphs = _paragraphs(group)
        lines += paragraphs if number == 0 else [Line(""), *(Line(line.text) for line in paragraphs)]
    if slanted:
        lines += [Line("")] * bool(lines) + [Line(" ".join(word.text for word in slanted))]
    return lines


def _paragraphs(words: list[Word]) -> list[Line]:
    lines: list[Line] = []
    above: Word | None = None
    for row in _rows(words):
        here = row.anchor
        if above and above.middle - here.middle > _PARAGRAPH_STEP * min(above.height, here.height):
            lines.append(Line(""))
        lines.append(_join(row))
        above = here
    return lines


class _Row:
    """Words side by side, and the word whose height the others are measured by."""

    def __init__(self, word: Word):
        self.words = [word]
        self.anchor = word
        self._taken = [(word.left, word.right)]

    @property
    def length(self) -> int:
        return sum(len(word.text) for word in self.words)

    def distance(self, other: _Row) -> float:
        """Between the middles, as a share of the greater height."""
        height = max(self.anchor.height, other.anchor.height) or 1.0
        return abs(self.anchor.middle - other.anchor.middle) / height

    def add(self, word: Word) -> None:
        self.words.append(word)
        bisect.insort(self._taken, (word.left, word.right))

    def collides(self, other: _Row) -> bool:
        """Whether a word of the other stands where one of this line's stands."""
        slack = _OVERLAP * self.anchor.height
        for word in other.words:
            place = bisect.bisect(self._taken, (word.left, word.right))
            if place and self._taken[place - 1][1] > word.left + slack:
                return True
            if place < len(self._taken) and self._taken[place][0] < word.right - slack:
                return True
        return False

    def take_in(self, other: _Row) -> None:
        if other.length > self.length:
            self.anchor = other.anchor
        for word in other.words:
            self.add(word)


def _rows(words: list[Word]) -> Iterator[_Row]:
    """Lines from top to bottom. A strip between two lines goes to the nearer one, the upper one when in doubt."""
    strips = _strips(words)
    line = next(strips)
    strip = next(strips, None)
    while strip is not None:
        following = next(strips, None)
        distance = line.distance(strip)
        nearer_below = (
            following is not None
            and strip.distance(following) < _MUCH_NEARER * distance
            and not following.collides(strip)
        )
        if distance < _SAME_LINE and not nearer_below and not line.collides(strip):
            line.take_in(strip)
        else:
            yield line
            line = strip
        strip = following
    yield line


def _strips(words: list[Word]) -> Iterator[_Row]:
    strip: _Row | None = None
    for word in sorted(words, key=lambda word: (-word.middle, word.number)):
        height = max(word.height, strip.anchor.height) if strip else 0.0
        if strip and strip.anchor.middle - word.middle <= _SAME_HEIGHT * height:
            strip.add(word)
            continue
        if strip:
            yield strip
        strip = _Row(word)
    if strip:
        yield strip


def _join(row: _Row) -> Line:
    """Words from left to right, or as PDFium has them where letters run from right to left."""
    height = row.anchor.height
    backwards = any(_BACKWARDS.search(word.text) for word in row.words)
    words = sorted(row.words, key=lambda word: (0 if backwards else word.left, word.number))
    parts = [words[0].text]
    for before, word in itertools.pairwise(words):
        gap = word.left - before.right
        if backwards:
            gap = max(gap, before.left - word.right)
        if gap > _COLUMN_GAP * height:
            parts.append(COLUMN)
        elif gap > _TOUCHING * height or (word.spaced and word.number == before.number + 1):
            parts.append(" ")
        parts.append(word.text)
    return Line("".join(parts), height, (words[0].at, words[-1].at))
