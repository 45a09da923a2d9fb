"""What lines drawn over the words of a PDF page mean: words struck out, fractions, and minuses that are no text.

Word and LibreOffice export struck-out text as text with a line through it; viewers add the line as an annotation.
"""

from __future__ import annotations

import bisect
import ctypes
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pypdfium2 import raw as pdfium

from rag_service.language.normalise import RAISED_DIGITS
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.pdf.rules import PageObjects
from rag_service.readers.pdf.words import Box, Word

_THIN, _MIN_LENGTH = 2.0, 3.0  # points
# Of a word's height: where above its line a stroke lies, unlike an underline and a line over it.
_LOWEST, _HIGHEST = 0.12, 0.5
_COVERED = 0.6  # of a word by a line through it, and of the line by the words that it strikes out
_MAX_LINES = 2_000  # on a page; a drawing has more
_MAX_ANNOTATIONS, _MAX_ANNOTATED = 5_000, 500
_DIGITS, _LONGEST_BAR = 3, 30.0  # of the numbers of a fraction; points
_BESIDE = 4  # words before or behind, in PDFium's order: where the other number of a fraction is
_MAX_PAIRS = 200_000  # of numbers and bars
_SLASHED, _FIGURE = re.compile(r"\u2044\d{1,3}"), re.compile(r"\.?\d")
_RAISED_OVER = re.compile(rf"(\d*)([{RAISED_DIGITS}]{{1,3}})\u2044(\d{{1,3}})")
_TO_DIGITS = str.maketrans(RAISED_DIGITS, "0123456789")
_TOUCHING = 0.1  # of the height, by which words may overlap
_NEAR = 1.0  # of the height of a number, from its middle to the bar
# Of the height of a number: the length of a minus drawn before it, its distance, and where above its line it is. Marks
# at the axis of a chart are farther away.
_MINUS, _MINUS_GAP, _MINUS_LINE = (0.25, 0.7), 0.15, (0.12, 0.4)
_FREE = 0.3  # of the height, before a minus; a dash between two numbers is none


def find_level_lines(objects: PageObjects) -> Sequence[Box]:
    """Return the boxes of thin level lines; none if there are so many that they are a drawing."""
    found: list[Box] = []
    for path in objects.painted:
        if path.kind != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        left, bottom, right, top = objects.box(path.place, path.sides)
        if top - bottom <= _THIN and right - left >= _MIN_LENGTH:
            found.append((left, bottom, right, top))
            if len(found) > _MAX_LINES:
                return ()
    return found


def drop_struck(words: list[Word], page: Any, lines: Sequence[Box]) -> list[Word]:
    """Without words that a line or an annotation strikes out; `page`: PDFium's raw handle."""
    heights = sorted((word.line, place) for place, word in enumerate(words) if word.turns == 0)
    struck: set[int] = set()
    if heights:
        tallest = max(words[place].height for _, place in heights)
        for left, bottom, right, top in lines:
            at, covered, length = (bottom + top) / 2, list[int](), 0.0
            first = bisect.bisect(heights, (at - _HIGHEST * tallest,))
            for _, place in heights[first : bisect.bisect(heights, (at,))]:
                word = words[place]
                overlap = min(right, word.right) - max(left, word.left)
                is_through = _LOWEST * word.height < at - word.line < _HIGHEST * word.height
                if is_through and overlap >= _COVERED * (word.right - word.left) > 0:
                    covered.append(place)
            if covered:
                length = max(words[place].right for place in covered) - min(words[place].left for place in covered)
            if length >= _COVERED * (right - left):
                struck.update(covered)
    for left, bottom, right, top in itertools.islice(_annotated(page), _MAX_ANNOTATED):
        struck.update(
            place
            for place, word in enumerate(words)
            if word.turns == 0 and left < (word.left + word.right) / 2 < right and bottom < word.middle < top
        )
    return [word for place, word in enumerate(words) if place not in struck] if struck else words


def join_fractions(words: list[Word], lines: Sequence[Box]) -> list[Word]:
    """The words with each number over another, and a bar between them, as one: "2¹" over "2" is "2¹₂"."""
    below = [(place, word) for place, word in enumerate(words) if word.text.isdecimal() and len(word.text) <= _DIGITS]
    bars = [(left, right, top) for left, _, right, top in lines if right - left < _LONGEST_BAR]
    if not bars or len(bars) * len(below) > _MAX_PAIRS:
        return words
    joined: dict[int, Word] = {}  # place of a word → it with its denominator
    gone: set[int] = set()
    for left, right, at in bars:
        for place, under in below:
            is_in_place = left - under.height / 2 < under.left and under.right < right + under.height / 2
            if not (is_in_place and under.turns == 0 and 0 < at - under.middle < _NEAR * under.height):
                continue
            for other in range(max(place - _BESIDE, 0), min(place + _BESIDE, len(words))):
                over = words[other]
                ends_raised = over.text[-1:] in RAISED_DIGITS
                is_number = ends_raised or (over.text.isdecimal() and abs(over.height - under.height) < 1)
                is_over = over.turns == 0 and left < over.right < right + under.height and over.middle > at
                if is_number and is_over and over.middle - at < _NEAR * over.height and other not in joined:
                    text = over.text if ends_raised else raise_run(over.text)
                    joined[other] = over._replace(text=text + lower_run(under.text))
                    gone.add(place)
                    break
    return [joined.get(place, word) for place, word in enumerate(words) if place not in gone]


def join_slashed(words: list[Word]) -> list[Word]:
    """The words with a number, and a fraction slash behind it with another, as one: "1" and "⁄4" are "1/4"."""
    joined: list[Word] = []
    for word in words:
        over = joined[-1] if joined else None
        if found := _RAISED_OVER.fullmatch(word.text) if "\u2044" in word.text else None:
            whole = f"{found[1]} " if found[1] else ""
            joined.append(word._replace(text=f"{whole}{found[2].translate(_TO_DIGITS)}/{found[3]}"))
        elif (
            over is not None
            and _SLASHED.fullmatch(word.text)
            and over.text.isdecimal()
            and word.number == over.number + 1
            and over.turns == word.turns == 0
            and over.left <= word.left < over.right + _TOUCHING * word.height
            and abs(over.middle - word.middle) < _NEAR * word.height
        ):
            top, bottom = over.middle + over.height / 2, word.middle - word.height / 2
            joined[-1] = word._replace(
                text=f"{over.text}/{word.text[1:]}",
                spaced=True,
                left=over.left,
                middle=(top + bottom) / 2,
                height=top - bottom,
                at=over.at,
            )
        else:
            joined.append(word)
    return joined


def join_minuses(words: list[Word], lines: Sequence[Box]) -> list[Word]:
    """The words with a minus where a short line is drawn right before a number, as Matplotlib draws it."""
    places = [place for place, word in enumerate(words) if word.turns == 0 and _FIGURE.match(word.text)]
    if len(places) * len(lines) > _MAX_PAIRS:
        return words
    negative: dict[int, Word] = {}
    for left, bottom, right, top in lines:
        at = (bottom + top) / 2
        for place in places:
            word = words[place]
            is_before = 0 <= word.left - right < _MINUS_GAP * word.height
            is_long = _MINUS[0] * word.height < right - left < _MINUS[1] * word.height
            is_level = _MINUS_LINE[0] * word.height < at - word.line < _MINUS_LINE[1] * word.height
            if is_before and is_long and is_level and not _touches(words, word, left):
                negative[place] = word._replace(text=f"\u2212{word.text}", left=left)
    return [negative.get(place, word) for place, word in enumerate(words)] if negative else words


def _touches(words: Sequence[Word], number: Word, left: float) -> bool:
    """Whether another word ends where the minus of a number begins."""
    return any(
        other.right <= left + _TOUCHING * number.height
        and left - other.right < _FREE * number.height
        and abs(other.middle - number.middle) < number.height / 2
        for other in words
        if other is not number
    )


def _annotated(page: Any) -> Iterator[Box]:
    """What annotations strike out."""
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        if pdfium.FPDFAnnot_GetSubtype(annotation) == pdfium.FPDF_ANNOT_STRIKEOUT:
            quad = pdfium.FS_QUADPOINTSF()
            for number in range(min(pdfium.FPDFAnnot_CountAttachmentPoints(annotation), _MAX_LINES)):
                if pdfium.FPDFAnnot_GetAttachmentPoints(annotation, number, ctypes.byref(quad)):
                    xs, ys = (quad.x1, quad.x2, quad.x3, quad.x4), (quad.y1, quad.y2, quad.y3, quad.y4)
                    yield min(xs), min(ys), max(xs), max(ys)
        pdfium.FPDFPage_CloseAnnot(annotation)
