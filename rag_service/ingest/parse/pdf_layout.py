"""Puts the words of a PDF page into lines, so that the figures of a table row stay beside their label.

Columns of prose are read one after the other (`pdf_columns`), words side by side are a line (`pdf_rows`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rag_service.ingest.parse.pdf_columns import COLUMN_GAP, part_columns
from rag_service.ingest.parse.pdf_rows import Row, read_rows
from rag_service.ingest.parse.pdf_words import Word

COLUMN = "   "  # between words further apart than any space of justified text
_BACKWARDS = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")  # Hebrew, Arabic and their neighbours
# Shares of a line's height.
_PARAGRAPH_STEP = 1.75  # from the middle of a line to the next; of the smaller one, so that headings stand alone
_TOUCHING = 0.06  # a footnote mark touches its word, a word its neighbour never


class Line(NamedTuple):
    """A line of a page as it reads; without text, the room that the page leaves above the next."""

    text: str
    height: float = 0.0  # of its letters in points; 0: not of the page's commonest direction
    ends: tuple[int, int] = (-1, -1)  # PDFium's index of the first character of its first word and of its last


def lay_out(words: Sequence[Word]) -> list[Line]:
    """The lines of a page; `COLUMN` stands for a wide gap, an empty line for a high one or the end of a column.

    Words turned by a quarter are laid out among themselves, after those of the commonest direction; slanted words come
    last, in PDFium's order.
    """
    turned: dict[int | None, list[Word]] = {}
    for word in words:
        turned.setdefault(word.turns, []).append(word)
    slanted = turned.pop(None, [])
    lines: list[Line] = []
    upright, *others = sorted(turned.values(), key=len, reverse=True) or [[]]
    for part in part_columns(upright):
        lines += [Line("")] * bool(lines) + _paragraphs(part)
    for group in others:
        lines += [Line(""), *(Line(line.text) for line in _paragraphs(read_rows(group)))]
    if slanted:
        lines += [Line("")] * bool(lines) + [Line(" ".join(word.text for word in slanted))]
    return lines


def _paragraphs(rows: Iterable[Row]) -> list[Line]:
    lines: list[Line] = []
    above: Word | None = None
    for row in rows:
        here = row.anchor
        if above and above.middle - here.middle > _PARAGRAPH_STEP * min(above.height, here.height):
            lines.append(Line(""))
        lines.append(_join(row))
        above = here
    return lines


def _join(row: Row) -> Line:
    """Words from left to right, or as PDFium has them where letters run from right to left."""
    height = row.anchor.height
    backwards = _BACKWARDS.search("".join([word.text for word in row.words])) is not None
    words = sorted(row.words, key=lambda word: (0 if backwards else word.left, word.number))
    parts = [words[0].text]
    for before, word in itertools.pairwise(words):
        gap = word.left - before.right
        if backwards:
            gap = max(gap, before.left - word.right)
        if gap > COLUMN_GAP * height:
            parts.append(COLUMN)
        elif gap > _TOUCHING * height or (word.spaced and word.number == before.number + 1):
            parts.append(" ")
        parts.append(word.text)
    return Line("".join(parts), height, (words[0].at, words[-1].at))
