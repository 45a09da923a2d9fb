"""Rows of words that stand side by side on a PDF page.

A page may draw a table cell by cell, column by column or backwards. Words come from `pdf_words` with their boxes;
here they are put into rows by their place. Words of one height are a strip; strips that lie close enough and do not
collide make a row: a label and its figures half a line lower, a word and its footnote mark, but never two lines of a
cell. The tuned numbers were set on the five filings that `pdf` names, where pypdf's layout mode was the measure.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence

from rag_service.ingest.parse.pdf_words import Word

COLUMN = "   "  # between words further apart than any space of justified text
COLUMN_GAP = 0.7  # of a row's height, between words of two columns; spaces of justified text stay below 0.6
_BACKWARDS = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")  # Hebrew, Arabic and their neighbours
_TOUCHING = 0.06  # of a row's height; a footnote mark touches its word, a word its neighbour never
# All of these are shares of a row's height.
_SAME_HEIGHT = 0.2
_SAME_ROW = 0.7  # a figure centred beside a label of two lines is 0.5 to 0.68 away from either
_MUCH_NEARER = 0.5  # of the distance to the row above; a footnote mark is 0.3 above its row, 0.7 below the one before
_OVERLAP = 0.2  # of two words side by side: italics and kerning


class Row:
    """Words side by side, and the word whose height the others are measured by."""

    def __init__(self, word: Word):
        self.words = [word]
        self.anchor = word
        self._taken = [(word.left, word.right)]

    @property
    def length(self) -> int:
        return sum(len(word.text) for word in self.words)

    def distance(self, other: Row) -> float:
        """Between the middles, as a share of the greater height."""
        height = max(self.anchor.height, other.anchor.height) or 1.0
        return abs(self.anchor.middle - other.anchor.middle) / height

    def add(self, word: Word) -> None:
        self.words.append(word)
        bisect.insort(self._taken, (word.left, word.right))

    def collides(self, other: Row) -> bool:
        """Whether a word of the other stands where one of this row's stands."""
        slack = _OVERLAP * self.anchor.height
        for word in other.words:
            place = bisect.bisect(self._taken, (word.left, word.right))
            if place and self._taken[place - 1][1] > word.left + slack:
                return True
            if place < len(self._taken) and self._taken[place][0] < word.right - slack:
                return True
        return False

    def in_order(self) -> list[Word]:
        """From left to right, or as PDFium has them where letters run from right to left."""
        backwards = self._runs_backwards()
        return sorted(self.words, key=lambda word: (0 if backwards else word.left, word.number))

    def text(self) -> str:
        """Its words in order; `COLUMN` stands for a wide gap."""
        backwards, words = self._runs_backwards(), self.in_order()
        parts = [words[0].text]
        for before, word in itertools.pairwise(words):
            gap = word.left - before.right
            if backwards:
                gap = max(gap, before.left - word.right)
            if gap > COLUMN_GAP * self.anchor.height:
                parts.append(COLUMN)
            elif gap > _TOUCHING * self.anchor.height or (word.spaced and word.number == before.number + 1):
                parts.append(" ")
            parts.append(word.text)
        return "".join(parts)

    def _runs_backwards(self) -> bool:
        return _BACKWARDS.search("".join([word.text for word in self.words])) is not None

    def take_in(self, other: Row) -> None:
        if other.length > self.length:
            self.anchor = other.anchor
        for word in other.words:
            self.add(word)


def read_rows(words: Sequence[Word]) -> Iterator[Row]:
    """Rows from top to bottom. A strip between two rows goes to the nearer one, the upper one when in doubt."""
    strips = _strips(words)
    row = next(strips, None)
    if row is None:
        return
    strip = next(strips, None)
    while strip is not None:
        following = next(strips, None)
        distance = row.distance(strip)
        nearer_below = (
            following is not None
            and strip.distance(following) < _MUCH_NEARER * distance
            and not following.collides(strip)
        )
        if distance < _SAME_ROW and not nearer_below and not row.collides(strip):
            row.take_in(strip)
        else:
            yield row
            row = strip
        strip = following
    yield row


def _strips(words: Sequence[Word]) -> Iterator[Row]:
    strip: Row | None = None
    for word in sorted(words, key=lambda word: (-word.middle, word.number)):
        height = max(word.height, strip.anchor.height) if strip else 0.0
        if strip and strip.anchor.middle - word.middle <= _SAME_HEIGHT * height:
            strip.add(word)
            continue
        if strip:
            yield strip
        strip = Row(word)
    if strip:
        yield strip
