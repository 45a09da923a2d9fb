"""Words of a PDF page with their places, from PDFium's characters.

PDFium knows which characters make a word: it mends kerning, leaves out text that is drawn twice for boldness, and
follows a page's own notes on what its glyphs mean. Words are cut at its white space. Corrected here:

- A hyphen that ends a line is marked by U+0002 or U+FFFE, and the line break after it is missing.
- Symbol fonts give U+F020 to U+F0FF; their low byte is what the glyph is known by (a bullet, "x" for a ticked box).
- Numbers close to a heading ("2.5 Base Pay") are one word to PDFium; a gap that can be seen parts them.
- An italic "ff" drawn letter by letter loses its second letter, which lies over the first one (`_lost_letters`).
"""

from __future__ import annotations

import ctypes
import math
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

_HYPHENS = "\x02\ufffe"
_WORD = re.compile(rf"[^\s{_HYPHENS}]+[{_HYPHENS}]?|[{_HYPHENS}]")
_SEAM = re.compile(r"(?<=[^\W_])(?=[A-Z][a-z])|(?<=[A-Za-z).,;:])(?=\d)|(?<=\d)(?=[A-Z])")
_SEAM_GAP = 0.12  # of the height; a space is 0.2 or more, letters of a word touch
_SURROGATE = re.compile("[\ud800-\udfff]")
_TRANSLATION = {**dict.fromkeys(map(ord, _HYPHENS), "-"), **{0xF000 + code: chr(code) for code in range(0x20, 0x100)}}
_WIDE_LETTER = 0.5  # of the height: an "f" that hangs over both its neighbours
_LEVEL = 0.05  # of its width: a word that rises or falls less needs no question after its angle
_FONT_NAME = 200  # bytes
_BOLD = re.compile(
    r"(?i:bold)|(?<![A-Za-z])(?:Black|Heavy|Demi|BX|Bd)(?![a-z])|[a-z](?:Black|Heavy|Demi)|Medi(?:Ital)?$|CMBX|SFBX"
)
_MOST_SUSPECTS = 1_000  # on a page; to look at one takes longer the more characters the page has


class Word(NamedTuple):
    """A word and its place on a page, turned so that it reads from left to right; lengths in points."""

    text: str
    number: int  # place in PDFium's order
    spaced: bool  # PDFium has white space, not a line break, between the word before and this one
    turns: int | None  # quarter turns to the left that the page draws it with; None: a slant
    left: float
    right: float
    middle: float  # of its height; as everywhere in PDF, higher is more
    height: float  # from the descender to the ascender of its font
    at: int = -1  # PDFium's index of its first character; -1: none
    is_table: bool = False  # stands for a whole table, with a line of text for each of its rows; it is as high as one


Box = tuple[float, float, float, float]  # left, bottom, right, top


def read_words(page: Any, text_page: Any) -> list[Word]:
    """Words of a page in PDFium's order, given its raw handles."""
    reader = _Reader(text_page)
    words = list(reader.words())
    if reader.overhanging:
        words += [letter for letter in _lost_letters(page, text_page) if not _within(letter, words)]
    return words


def _within(letter: Word, words: list[Word]) -> bool:
    """Whether a word spans the letter, which then belongs between letters of that; rare, and left out."""
    for word in words:
        if (
            word.left <= letter.left
            and letter.right <= word.right
            and abs(word.middle - letter.middle) < word.height / 2
        ):
            return True
    return False


def is_bold(text_page: Any, index: int) -> bool:
    """Whether the font of a character says that it is bold: by its name, for PDFium guesses weights from the width."""
    buffer, flags = ctypes.create_string_buffer(_FONT_NAME), ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text_page, index, buffer, _FONT_NAME, ctypes.byref(flags))
    return is_bold_font(buffer.value.decode("utf-8", "replace"))


def is_bold_font(name: str) -> bool:
    """Whether a font is called a bold one: "ABCDEF+Arial-BoldMT", "NimbusRomNo9L-Medi", "CMBX12"."""
    return _BOLD.search(name) is not None


def _readable(text: str) -> str:
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text if text.isascii() and text.isprintable() else text.translate(_TRANSLATION)


def _characters(text_page: Any) -> str:
    """All characters, one for each of PDFium's indices; halves of surrogate pairs stay apart."""

    def explained(mark: re.Match[str]) -> str:
        """The mark itself, or nothing for a code that the page's font leaves unexplained."""
        return mark.group() if pdfium.FPDFText_IsHyphen(text_page, mark.start()) == 1 else "\0"

    return re.sub(f"[{_HYPHENS}]", explained, _coded(text_page))


def _coded(text_page: Any) -> str:
    count = pdfium.FPDFText_CountChars(text_page)
    buffer = (ctypes.c_ushort * (count + 1))()
    if pdfium.FPDFText_GetText(text_page, 0, count, buffer) == count + 1:
        text = bytes(buffer)[:-2].decode("utf-16-le", "surrogatepass")
        if len(text) == count:  # no pair of surrogates among them
            return text
    # Characters without a meaning are missing there, and others take two places: ask for each.
    codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
    return "".join([chr(code) if code <= sys.maxunicode else "\ufffd" for code in codes])


class _Reader:
    """Reads words one after the other, with two calls of PDFium for each where that is enough."""

    def __init__(self, text_page: Any):
        self._page = text_page
        self._first, self._last = pdfium.FS_RECTF(), pdfium.FS_RECTF()
        self._boxes = ctypes.byref(self._first), ctypes.byref(self._last)
        self.overhanging = False  # whether a word ends with an "f" that may hide another

    def words(self) -> Iterator[Word]:
        characters = _characters(self._page)
        number = end = 0
        for match in _WORD.finditer(characters):
            space = characters[end : match.start()]
            spaced = bool(space) and "\n" not in space
            end = match.end()
            for start, stop in self._cut(match.group(), match.start()):
                yield self._word(characters[start:stop], start, number=number, spaced=spaced)
                number += 1

    def _cut(self, word: str, start: int) -> Iterator[tuple[int, int]]:
        """Places of the parts of a word; nearly always itself."""
        begin = start
        for seam in () if word.islower() or word.isdigit() else _SEAM.finditer(word):
            place = start + seam.start()
            self._look(place - 1, place)
            height = self._first.top - self._first.bottom
            if _SEAM_GAP * height < self._last.left - self._first.right:
                yield begin, place
                begin = place
        yield begin, start + len(word)

    def _look(self, first: int, last: int) -> None:
        pdfium.FPDFText_GetLooseCharBox(self._page, first, self._boxes[0])
        pdfium.FPDFText_GetLooseCharBox(self._page, last, self._boxes[1])

    def _word(self, text: str, start: int, *, number: int, spaced: bool) -> Word:
        self._look(start, start + len(text) - 1)
        first, last = self._first, self._last
        left, bottom = min(first.left, last.left), min(first.bottom, last.bottom)
        box = left, bottom, max(first.right, last.right), max(first.top, last.top)
        turns: int | None = 0
        if not (first.left < last.left and abs(first.bottom - last.bottom) < _LEVEL * (last.right - first.left)):
            turns = _quarter_turns(pdfium.FPDFText_GetCharAngle(self._page, start))
        if text[-1] == "f" and last.right - last.left > _WIDE_LETTER * (last.top - last.bottom):
            self.overhanging = True
        left, bottom, right, top = turn(box, turns) if turns else box
        return Word(_readable(text), number, spaced, turns, left, right, (bottom + top) / 2, top - bottom, start)


def _quarter_turns(angle: float) -> int | None:
    quarters = angle / (math.pi / 2)
    return round(quarters) % 4 if abs(quarters - round(quarters)) < 0.05 else None


def turn(box: Box, turns: int) -> Box:
    """A box of the page as it lies where text is upright that the page draws with so many quarter turns."""
    for _ in range(turns):
        left, bottom, right, top = box
        box = -top, left, -bottom, right
    return box


def _lost_letters(page: Any, text_page: Any) -> list[Word]:
    """Letters that PDFium took for a second print of the letter before, though they stand beside it.

    It drops a text object that repeats the one before and covers half of it, which is so with the wide box of an
    italic "f". Which letter was dropped follows from the one before it. Only upright letters of the page itself.
    """
    found: list[Word] = []
    sides = [ctypes.c_float() for _ in range(4)]
    references = [ctypes.byref(side) for side in sides]
    before: Box = (0.0, 0.0, 0.0, 0.0)
    item_before = None
    suspects = 0
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        item = pdfium.FPDFPage_GetObject(page, index)
        pdfium.FPDFPageObj_GetBounds(item, *references)
        left, bottom, right, top = box = sides[0].value, sides[1].value, sides[2].value, sides[3].value
        step = left - before[0]
        if 0.15 * (top - bottom) < step < right - left and _same_size(box, before):
            suspects += 1
            if suspects > _MOST_SUSPECTS:
                break
            letter = _text(item_before, text_page).strip()
            if len(letter) == 1 and not _text(item, text_page):
                overhang = (right - left - step) / 2
                ends = left + overhang, right - overhang
                found.append(Word(letter, -2, False, 0, *ends, (bottom + top) / 2, top - bottom))
        before, item_before = box, item
    return found


def _same_size(box: Box, other: Box) -> bool:
    """Whether two boxes are equal but for their place on the line."""
    wider = (box[2] - box[0]) - (other[2] - other[0])
    return abs(wider) + abs(box[1] - other[1]) + abs(box[3] - other[3]) < 0.1


def _text(item: Any, text_page: Any) -> str:
    if pdfium.FPDFPageObj_GetType(item) != pdfium.FPDF_PAGEOBJ_TEXT:
        return ""
    size = pdfium.FPDFTextObj_GetText(item, text_page, None, 0)
    buffer = (ctypes.c_ushort * (size // 2))()
    pdfium.FPDFTextObj_GetText(item, text_page, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")
