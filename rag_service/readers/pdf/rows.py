"""Groups the words of a PDF page into rows by their positions.

A page may draw a table cell by cell, column by column or backwards. Words at the same height form a strip; strips that
are close enough and do not overlap form a row: a label and its figures half a line lower, a word and its footnote mark,
but never two lines of one cell. The constants were tuned on the five filings that `reader` names, against pypdf's
layout mode.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.pdf.words import COLUMN_GAP, Word, are_on_one_line, script_of

COLUMN = "   "  # marks a gap wider than any space of justified text
EMPTY = "—"  # as statements write it
# The following are fractions of a row's height.
_SAME_GAP = 0.05  # spaces of one justified line
_MIN_SPACES = 3  # of a line whose spaces are all wide, and one after the other
_STRETCHED = 1.6  # spaces of a justified line; they are alike, unlike gaps between columns
_ALIKE = 0.1  # the part by which stretched spaces differ
_TOUCHING = 0.06  # a footnote mark touches its word, another word never does
_SAME_HEIGHT = 0.2
_SAME_ROW = 0.7  # a figure centred beside a label of two lines is 0.5 to 0.68 away from either line
_OVERLAP = 0.2  # of neighbouring words: italics and kerning
_LEVEL_MIDDLE = 0.1  # between middles: up to 0.06 in frames of drawings, 0.2 and more of marks (30 public files)
_MUCH_NEARER = 0.5  # of the distance to the row above; a footnote mark is 0.3 above its row, 0.7 below the previous
_BULLETS = frozenset("•●▪■◦○□‣⁃➢➤►▶✓✔\uf0b7\uf0a7")  # stand apart from the item that they mark
_SCRIPT = re.compile(r"[-−+(\[]?\d{1,2}(?:[,;]\d{1,2})*[,;.)\]]?")  # what stands raised or lowered by itself
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")  # Hebrew, Arabic and related scripts


class Row:
    """Words side by side, and the word whose height is used for comparisons."""

    def __init__(self, word: Word):
        self.words = [word]
        self.anchor = word
        self._taken = [(word.left, word.right)]

    @property
    def length(self) -> int:
        return sum(len(word.text) for word in self.words)

    def distance(self, other: Row) -> float:
        """Between the centres, as a fraction of the greater height."""
        height = max(self.anchor.height, other.anchor.height) or 1.0
        return abs(self.anchor.middle - other.anchor.middle) / height

    def add(self, word: Word) -> None:
        self.words.append(word)
        bisect.insort(self._taken, (word.left, word.right))

    @cached_property
    def segments(self) -> list[list[Word]]:
        """The words of a complete row from left to right, split at its wide gaps; a bullet belongs to its item."""
        words = sorted(self.words, key=lambda word: word.left)
        gaps = [behind.left - before.right for before, behind in itertools.pairwise(words)]
        wide = COLUMN_GAP * self.anchor.height
        segments = [words[:1]]
        if not gaps or max(gaps) <= wide:
            segments[0] += words[1:]
            return segments
        stretched = _stretched_spaces(gaps, self.anchor.height)
        for place, (before, behind) in enumerate(itertools.pairwise(words)):
            is_item = len(segments[-1]) == 1 and before.text in _BULLETS
            if gaps[place] > wide and not is_item and place not in stretched:
                segments.append([])
            segments[-1].append(behind)
        return segments

    def collides(self, other: Row) -> bool:
        """Whether words of the two rows overlap horizontally."""
        slack = _OVERLAP * self.anchor.height
        for word in other.words:
            place = bisect.bisect(self._taken, (word.left, word.right))
            if place and self._taken[place - 1][1] > word.left + slack:
                return True
            if place < len(self._taken) and self._taken[place][0] < word.right - slack:
                return True
        return False

    def in_order(self) -> list[Word]:
        """From left to right, or in PDFium's order if the text runs from right to left."""
        is_reversed = self._is_right_to_left()
        return sorted(self.words, key=lambda word: (0 if is_reversed else word.left, word.number))

    def text(self, empty: Sequence[float] = ()) -> str:
        """Its words in order; `COLUMN` marks a wide gap, and `EMPTY` each empty cell, given where their middles are."""
        is_reversed, words = self._is_right_to_left(), self.in_order()
        texts = [word.text for word in words] if is_reversed else list(_with_scripts(words))
        parts = [texts[0]]
        is_justified = _is_justified(words, self.anchor.height)
        for (before, word), text in zip(itertools.pairwise(words), texts[1:], strict=True):
            gap = word.left - before.right
            if is_reversed:
                gap = max(gap, before.left - word.right)
            if gap > COLUMN_GAP * self.anchor.height and not is_justified:
                parts.append(COLUMN + f"{EMPTY}{COLUMN}" * sum(before.right < middle < word.left for middle in empty))
            elif gap > _TOUCHING * self.anchor.height or (word.spaced and word.number == before.number + 1):
                parts.append(" ")
            parts.append(text)
        parts += [f"{COLUMN}{EMPTY}" for middle in empty if middle > words[-1].right]
        return "".join(parts)

    def _is_right_to_left(self) -> bool:
        return _RIGHT_TO_LEFT.search("".join([word.text for word in self.words])) is not None

    def merge(self, other: Row) -> None:
        if other.length > self.length:
            self.anchor = other.anchor
        for word in other.words:
            self.add(word)


def _with_scripts(words: Sequence[Word]) -> Iterator[str]:
    """Their texts; marks and exponents that are words of their own are raised or lowered beside another word."""
    for place, word in enumerate(words):
        script = 0
        if not word.text.isalpha() and _SCRIPT.fullmatch(word.text):
            for other in (*words[max(0, place - 1) : place], *words[place + 1 : place + 2]):
                gap = max(word.left, other.left) - min(word.right, other.right)
                is_level = are_on_one_line(word.line, other.line, height=other.height) or (
                    abs(word.middle - other.middle) < _LEVEL_MIDDLE * other.height
                )
                if gap < COLUMN_GAP * other.height and not script and not is_level:
                    script = script_of(_edges(word), _edges(other))
        yield word.text if script == 0 else raise_run(word.text) if script > 0 else lower_run(word.text)


def _stretched_spaces(gaps: Sequence[float], height: float) -> set[int]:
    """Places of wide gaps that are the spaces of a justified line."""
    found: set[int] = set()
    begin = 0
    for place in range(1, len(gaps) + 1):
        if place < len(gaps) and abs(gaps[place] - gaps[begin]) <= _ALIKE * gaps[begin]:
            continue
        if place - begin >= _MIN_SPACES and COLUMN_GAP * height < gaps[begin] < _STRETCHED * height:
            found.update(range(begin, place))
        begin = place
    return found


def _edges(word: Word) -> tuple[float, float]:
    return word.middle - word.height / 2, word.height


def _is_justified(words: Sequence[Word], height: float) -> bool:
    """Whether few words fill a line: between words of different widths all spaces are the same, as in no table."""
    gaps = [word.left - before.right for before, word in itertools.pairwise(words)]
    widths = [word.right - word.left for word in words]
    return (
        len(gaps) >= _MIN_SPACES and max(gaps) - min(gaps) <= _SAME_GAP * height and max(widths) - min(widths) > height
    )


def read_rows(words: Sequence[Word]) -> Iterator[Row]:
    """Rows from top to bottom. A strip between two rows joins the nearer one, or the upper one if in doubt."""
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
            row.merge(strip)
        else:
            yield row
            row = strip
        strip = following
    yield row


def _strips(words: Sequence[Word]) -> Iterator[Row]:
    strip: Row | None = None
    for word in sorted(words, key=lambda word: (-word.middle, word.number)):
        if strip and strip.anchor.middle - word.middle <= _SAME_HEIGHT * max(word.height, strip.anchor.height):
            strip.add(word)
            continue
        if strip:
            yield strip
        strip = Row(word)
    if strip:
        yield strip
