"""Words of a PDF page with their positions, from PDFium's characters.

PDFium decides which characters form a word: it corrects kerning, drops text drawn twice to look bold and applies the
page's glyph mapping. We split at its white space and correct six things; `page_words` corrects what only shows beside
other words:

- A hyphen at a line end is U+0002 or U+FFFE, and the line break after it is missing.
- Symbol fonts use U+F020 to U+F0FF; the low byte identifies the glyph (a bullet, "x" for a ticked box).
- A minus of a font without a meaning for it is a control character; its shape is that of a bar (`_with_minus`).
- A number just before a heading ("2.5 Base Pay") is joined to it; we split where there is a visible gap.
- Raised and lowered characters are digits like others, only smaller, and higher or lower (`script_of`).
- Characters one below the other are joined to one word (`_rows`).
"""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from rag_service.domain import Box as PageBox
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.pdf.characters import HYPHENS, WRONG, read_characters
from rag_service.readers.pdf.rules import directly

_WORD = re.compile(rf"[^\s{HYPHENS}]+[{HYPHENS}]?|[{HYPHENS}]")
_SEAM = re.compile(r"(?<=[^\W_])(?=[A-Z][a-z])|(?<=[A-Za-z).,;:])(?=\d)|(?<=\d)(?=[A-Z])")
_SEAM_GAP = 0.12  # of the height; a space is 0.2 or more, letters of a word touch
_MAYBE_MINUS = re.compile(rf"[\x00\x01\x03-\x1f{WRONG}](?=[\d.])")
_FLAT = 4.0  # times its height: the width of a minus
_SURROGATE = re.compile("[\ud800-\udfff]")
_TRANSLATION = {**dict.fromkeys(map(ord, HYPHENS), "-"), **{0xF000 + code: chr(code) for code in range(0x20, 0x100)}}
_WIDE_LETTER = 0.5  # of the height: an "f" that overlaps both its neighbours
_LEVEL = 0.05  # of its width: a word that rises or falls less is upright
_FONT_NAME = 200  # bytes
_BOLD = re.compile(
    r"(?i:bold)|(?<![A-Za-z])(?:Black|Heavy|Demi|BX|Bd)(?![a-z])|[a-z](?:Black|Heavy|Demi)|Medi(?:Ital)?$|CMBX|SFBX"
)
# Of raised and lowered characters, as fractions of the height beside them. Word draws them at 0.65, TeX at 0.7 to 0.8.
_SMALL = 0.85
# How much higher their lower edge is; that of small letters on the line is 0.03 or more.
_RAISED, _LOWERED = 0.15, -0.02
_ONE_LINE = 0.02
_RUN_END = re.compile(r"(?<=\w)\d(?!\d)")
_PLAIN_NUMBER = re.compile(r"[\d.,]+")
_SIGNS = ("Sm", "Pd", "Co", "Cc")  # categories of a minus, also of one that has no meaning
_MARK_LETTERS = 3  # of a word that a raised letter may be a footnote mark of
COLUMN_GAP = 0.7  # of the height, between words of two columns; spaces of justified text stay below 0.6
_STACKED = 2.0  # times the height of a character: a word of two lines; an index below an exponent takes less
_STEP, FINE = 100, 1000  # points, and parts of a thousandth, from which a page's directions are measured

_loose_box = directly(pdfium.FPDFText_GetLooseCharBox, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_origin = directly(pdfium.FPDFText_GetCharOrigin, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 2)


class Word(NamedTuple):
    """A word and its position on a page, rotated so that it reads from left to right; lengths in points."""

    text: str
    number: int  # position in PDFium's order
    spaced: bool  # white space other than a line break precedes it
    turns: int | None  # quarter turns to the left; None: slanted
    left: float
    right: float
    middle: float  # vertical centre; as everywhere in PDF, higher is more
    height: float  # from the descender to the ascender of its font
    at: int = -1  # PDFium's index of its first character; -1: none
    is_table: bool = False  # represents a whole table, one line of text per row; its height is that of one row
    rows: Sequence[Sequence[Lettered]] = ()  # of a table: the words of each line
    line: float = math.nan  # height of the line that its first character stands on, if it is upright

    @property
    def is_placed(self) -> bool:
        """Whether it stands somewhere: positions on a broken page may be infinite."""
        return all(map(math.isfinite, (self.left, self.right, self.middle, self.height)))


Lettered = tuple[int, Word]  # a word of a line, and how many letters and digits of the line stand before it
Box = tuple[float, float, float, float]  # left, bottom, right, top


def count_letters(text: str) -> int:
    """Letters and digits: laying out and joining words leaves them in their order."""
    return len(text) if text.isalnum() else sum(map(str.isalnum, text))


def letter(words: Sequence[Word], text: str) -> list[Lettered]:
    """The words of a line or cell, placed in its text; one for all of them where their letters are not those of it."""
    counts = [count_letters(word.text) for word in words]
    if sum(counts) == count_letters(text):
        return list(zip(itertools.accumulate(counts, initial=0), words, strict=False))
    if len({word.turns for word in words}) > 1:
        return []
    bottom = min(word.middle - word.height / 2 for word in words)
    top = max(word.middle + word.height / 2 for word in words)
    left, right = min(word.left for word in words), max(word.right for word in words)
    whole = words[0]._replace(text=text, left=left, right=right, middle=(bottom + top) / 2, height=top - bottom)
    return [(0, whole)]


def level(words: Sequence[Lettered]) -> Iterator[Lettered]:
    """Words of a line, signs that stand alone no higher than what is beside them: see `_Reader._word`."""
    for place, (at, word) in enumerate(words):
        if not count_letters(word.text):
            for _, other in words[place + 1 : place + 2] or words[:place][-1:]:
                is_beside = word.turns == other.turns and abs(word.middle - other.middle) < word.height / 2
                if is_beside and other.height < word.height:
                    word = word._replace(middle=other.middle, height=other.height)
        yield at, word


def is_bold(text_page: Any, index: int) -> bool:
    """Whether a character's font is bold by its name; PDFium only guesses weights from the width."""
    buffer, flags = ctypes.create_string_buffer(_FONT_NAME), ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text_page, index, buffer, _FONT_NAME, ctypes.byref(flags))
    return is_bold_font(buffer.value.decode("utf-8", "replace"))


def is_bold_font(name: str) -> bool:
    """Whether a font's name says bold: "ABCDEF+Arial-BoldMT", "NimbusRomNo9L-Medi", "CMBX12"."""
    return _BOLD.search(name) is not None


class WordReader:
    """Reads words with as few calls to PDFium as possible: two for most words."""

    def __init__(self, text_page: Any):
        self._page = text_page
        self._first, self._last = pdfium.FS_RECTF(), pdfium.FS_RECTF()
        self._boxes = ctypes.addressof(self._first), ctypes.addressof(self._last)
        self._address = ctypes.cast(text_page, ctypes.c_void_p).value
        self._origin = (ctypes.c_double * 2)()
        self._origin_at = ctypes.addressof(self._origin), ctypes.addressof(self._origin) + 8
        self._height = math.inf  # that a word of one line has at most
        self.may_hide_letters = False  # a word ends with a wide "f", which may cover another

    def words(self) -> Iterator[Word]:
        characters = read_characters(self._page)
        number = end = 0
        for match in _WORD.finditer(characters):
            space = characters[end : match.start()]
            spaced = bool(space) and "\n" not in space
            end = match.end()
            for start, stop in self._split(match.group(), match.start()):
                word = self._word(characters[start:stop], start, number=number, spaced=spaced)
                if word.height <= self._height or word.turns is None:
                    yield word
                    number += 1
                    continue
                for begin, beyond in self._rows(start, stop, word.turns):
                    yield self._word(characters[begin:beyond], begin, number=number, spaced=spaced)
                    number += 1

    def _split(self, word: str, start: int) -> Iterator[tuple[int, int]]:
        """Split a word at visible gaps; nearly always there are none."""
        begin = start
        for seam in () if word.islower() or word.isdigit() else _SEAM.finditer(word):
            place = start + seam.start()
            self._load_boxes(place - 1, place)
            height = self._first.top - self._first.bottom
            if _SEAM_GAP * height < self._last.left - self._first.right:
                yield begin, place
                begin = place
        yield begin, start + len(word)

    def _rows(self, start: int, stop: int, turns: int) -> Iterator[tuple[int, int]]:
        """Split characters that stand one below the other."""
        boxes = []
        for place in range(start, stop):
            self._load_boxes(place, place)
            box = self._first
            boxes.append(turn((box.left, box.bottom, box.right, box.top), turns))
        highest = max(top - bottom for _, bottom, _, top in boxes)
        middles = [(bottom + top) / 2 for _, bottom, _, top in boxes]
        begin = 0
        for place in range(1, len(middles)):
            if abs(middles[place] - middles[begin]) > highest:
                yield start + begin, start + place
                begin = place
        yield start + begin, stop

    def _load_boxes(self, first: int, last: int) -> None:
        _loose_box(self._address, first, self._boxes[0])
        _loose_box(self._address, last, self._boxes[1])

    def _word(self, text: str, start: int, *, number: int, spaced: bool) -> Word:
        self._load_boxes(start, start + len(text) - 1)
        first, last = self._first, self._last
        first_left, first_bottom, last_left, last_bottom = first.left, first.bottom, last.left, last.bottom
        first_top, last_top, last_right = first.top, last.top, last.right
        box = (
            min(first_left, last_left),
            min(first_bottom, last_bottom),
            max(first.right, last_right),
            max(first_top, last_top),
        )
        turns: int | None = 0
        if not (first_left < last_left and abs(first_bottom - last_bottom) < _LEVEL * (last_right - first_left)):
            quarters = pdfium.FPDFText_GetCharAngle(self._page, start) / (math.pi / 2)
            turns = round(quarters) % 4 if abs(quarters - round(quarters)) < 0.05 else None
        if turns in (1, 3):
            self._height = _STACKED * max(first.right - first_left, last_right - last_left)
        else:
            self._height = _STACKED * max(first_top - first_bottom, last_top - last_bottom)
        is_plain = text.isascii() and text.isprintable()
        if not is_plain and _MAYBE_MINUS.search(text):
            text = self._with_minus(text, start)
        if turns == 0 and len(text) > 1:
            is_framed = first_top - first_bottom > last_top - last_bottom and unicodedata.category(text[0]) in _SIGNS
            text = self._with_scripts(text, start)
            if is_framed:  # the frame of a sign of another font may reach into the lines above and below
                bottom, height = self._edges(start + 1)
                box = box[0], bottom, box[2], bottom + height
        if text[-1] == "f" and last_right - last_left > _WIDE_LETTER * (last_top - last_bottom):
            self.may_hide_letters = True
        if not is_plain:
            if _SURROGATE.search(text):
                text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            text = text.translate(_TRANSLATION)
            if "\u00ad" in text:
                text = self._with_dashes(text, start)
        left, bottom, right, top = turn(box, turns) if turns else box
        line = self._line(start) if turns == 0 else math.nan
        return Word(text, number, spaced, turns, left, right, (bottom + top) / 2, top - bottom, start, line=line)

    def _with_scripts(self, text: str, start: int) -> str:
        """A word with its raised and lowered characters, given that the boxes of its ends are loaded."""
        first_end = self._first.bottom, self._first.top - self._first.bottom
        last_end = self._last.bottom, self._last.top - self._last.bottom
        if first_end == last_end and text.isalpha():
            return text
        if len(text) > 2 and unicodedata.category(text[0]) in ("Sm", "Cc"):  # a sign, often of another font
            self._load_boxes(start + 1, start + len(text) - 1)
            return text[0] + self._with_scripts(text[1:], start + 1)
        beside = first_end if first_end[1] >= last_end[1] else last_end
        last = len(text) - 1
        line = start if beside is first_end else start + last
        suspects = [place for place, end in ((0, first_end), (last, last_end)) if script_of(end, beside)]
        if not _PLAIN_NUMBER.fullmatch(text):
            suspects += [found.start() for found in _RUN_END.finditer(text, 1, last)]
        if not suspects:
            return text
        scripts = [0] * len(text)
        for place in suspects:
            script = self._script(start + place, beside, line)
            for step in (-1, 1) if script else ():
                at = place
                while 0 <= at <= last and self._script(start + at, beside, line) == script:
                    scripts[at] = script
                    at += step
        runs = itertools.groupby(range(len(text)), key=scripts.__getitem__)
        return "".join(_write_script(text, list(places), script) for script, places in runs)

    def _with_minus(self, text: str, start: int) -> str:
        def read(sign: re.Match[str]) -> str:
            sides = [ctypes.c_double() for _ in range(4)]
            pdfium.FPDFText_GetCharBox(self._page, start + sign.start(), *map(ctypes.byref, sides))
            left, right, bottom, top = (side.value for side in sides)
            return "\u2212" if 0 < _FLAT * (top - bottom) < right - left else sign[0]

        return _MAYBE_MINUS.sub(read, text)

    def _with_dashes(self, text: str, start: int) -> str:
        """A word whose font calls its dash a soft hyphen; one that is not drawn only says where a word may break."""

        def read(mark: re.Match[str]) -> str:
            sides = [ctypes.c_double() for _ in range(4)]
            pdfium.FPDFText_GetCharBox(self._page, start + mark.start(), *map(ctypes.byref, sides))
            return "-" if sides[1].value > sides[0].value else mark[0]

        return re.sub("\u00ad", read, text)

    def _script(self, index: int, beside: tuple[float, float], other: int) -> int:
        """As `script_of`, of a character beside one at the index `other`."""
        script = script_of(self._edges(index), beside)
        return 0 if script and are_on_one_line(self._line(index), self._line(other), height=beside[1]) else script

    def _line(self, index: int) -> float:
        _origin(self._address, index, *self._origin_at)
        return self._origin[1]

    def _edges(self, index: int) -> tuple[float, float]:
        _loose_box(self._address, index, self._boxes[0])
        return self._first.bottom, self._first.top - self._first.bottom


def script_of(edges: tuple[float, float], beside: tuple[float, float]) -> int:
    """1: raised, -1: lowered, 0: neither, by (lower edge, height) of characters and of those beside them."""
    (bottom, height), (line, usual) = edges, beside
    if not 0 < height < _SMALL * usual or not line - usual < bottom < line + usual:
        return 0
    shift = (bottom - line) / usual
    return 1 if shift > _RAISED else -1 if shift < _LOWERED else 0


def are_on_one_line(one: float, other: float, *, height: float) -> bool:
    """Whether characters stand on one line: old-style figures and fonts without a height are not raised or lowered."""
    return abs(one - other) < _ONE_LINE * height


def _write_script(text: str, places: Sequence[int], script: int) -> str:
    run = text[places[0] : places[-1] + 1]
    if script > 0 and not (len(run) == 1 and run.isalpha() and places[0] < _MARK_LETTERS):  # "It" after a drop cap
        return raise_run(run)
    return lower_run(run) if script < 0 else run


def turn(box: Box, turns: int) -> Box:
    """Rotate a box of a page whose text is drawn with so many quarter turns, so that the text is upright."""
    for _ in range(turns):
        left, bottom, right, top = box
        box = -top, left, -bottom, right
    return box


def boxes_on(page: Any) -> Callable[[Word], PageBox | None]:
    """Gives the boxes of words on a page as it is shown: cut to its crop box, and rotated."""
    (x, y), *units = (_on_page(page, *point) for point in ((0, 0), (_STEP, 0), (0, _STEP)))
    (right_x, right_y), (up_x, up_y) = (((unit[0] - x) / _STEP, (unit[1] - y) / _STEP) for unit in units)

    def box_of(word: Word) -> PageBox | None:
        left, right, half = word.left, word.right, word.height / 2
        bottom, top = word.middle - half, word.middle + half
        if word.turns:
            left, bottom, right, top = turn((left, bottom, right, top), -word.turns % 4)
        try:
            x1, x2 = round(x + left * right_x + bottom * up_x), round(x + right * right_x + top * up_x)
            y1, y2 = round(y + left * right_y + bottom * up_y), round(y + right * right_y + top * up_y)
        except (OverflowError, ValueError):  # positions on a broken page may be infinite
            return None
        return x1 if x1 < x2 else x2, y1 if y1 < y2 else y2, x2 if x1 < x2 else x1, y2 if y1 < y2 else y1

    return box_of


def _on_page(page: Any, right: float, up: float) -> tuple[float, float]:
    """A point in thousandths of the page as it is shown, from its top left."""
    x, y = ctypes.c_int(), ctypes.c_int()
    size = 1000 * FINE
    pdfium.FPDF_PageToDevice(page, 0, 0, size, size, 0, right, up, ctypes.byref(x), ctypes.byref(y))
    return x.value / FINE, y.value / FINE
