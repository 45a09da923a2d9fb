"""Characters of a PDF page as PDFium tells them, and which of them its fonts do not explain."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from rag_service.readers.pdf.rules import directly

HYPHENS = "\x02\ufffe"
_CONTROL = re.compile(r"[\x03-\x08\x0b\x0c\x0e-\x1f]")
_LIGATURES = 0.1  # of the letters: TeX's "ff", "fi", "fl" are 1 or 2 in 100
_UNREADABLE = "\x01"  # no text has it, and none is stored with it
_UNREADABLE_WORD = re.compile(rf"\w{_UNREADABLE}+\w|{_UNREADABLE}{{3}}")
WRONG = "\uffff"  # stands for a character that its font calls by another's name; no text has it
_CONTROLS = re.compile(r"[\x80-\x84\x86-\x9f]+")  # a glyph whose font gives it no letter, such as an arrow
_WRONG_WORD = re.compile(rf"\w{WRONG}+\w|{WRONG}{{3}}|^{WRONG}+$")
_TELLING = re.compile("[0-9,:;¼½¾]")  # look alike in all fonts
# Of shapes: fractions of the height from descender to ascender, beyond those of all true fonts of 1,247 public files.
_NO_SHAPE = 0.02
_BAR, _FLAT_FRACTION = 4.0, 2.0  # times its height: the width of what is no digit, of what is no fraction
_TALL_COMMA, _HANGS, _COLON_HANGS = 0.45, -0.03, -0.15
_DOT, _ROUND, _LOW, _HIGH = 0.2, 0.7, 0.12, 0.1
_MAX_BYTES = 200_000  # of a string

_object_of = directly(pdfium.FPDFText_GetTextObject, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


def read_characters(text_page: Any) -> str:
    """All characters, one per PDFium index; surrogate pairs stay split. Unmapped codes that look like hyphens are 0."""
    count = pdfium.FPDFText_CountChars(text_page)
    buffer = (ctypes.c_ushort * (count + 1))()
    text = ""
    if pdfium.FPDFText_GetText(text_page, 0, count, buffer) == count + 1:
        text = bytes(buffer)[:-2].decode("utf-16-le", "surrogatepass")
    if len(text) != count:  # GetText skips unmapped characters and writes surrogate pairs: ask for each
        codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
        text = "".join([chr(code) if code <= sys.maxunicode else "\ufffd" for code in codes])
    text = _blank_wrong_letters(_blank_glyph_numbers(text, text_page), text_page)
    return re.sub(
        f"[{HYPHENS}]",
        lambda mark: mark.group() if pdfium.FPDFText_IsHyphen(text_page, mark.start()) == 1 else "\0",
        text,
    )


def _blank_glyph_numbers(text: str, text_page: Any) -> str:
    """Write `_UNREADABLE` for characters of fonts that give numbers of glyphs instead of letters.

    PDFium takes a code that the font does not explain for the character itself. Among glyph numbers are many of control
    characters, which no text has: the letters and digits that the font's other codes look like are not on the page.
    Fonts of TeX have ASCII codes but for a few ligatures, and its Type 3 fonts explain none.
    """
    if not any(pdfium.FPDFText_HasUnicodeMapError(text_page, found.start()) == 1 for found in _CONTROL.finditer(text)):
        return text
    unexplained = dict[int, list[int]]()  # address of a font → places of its characters
    for at in range(len(text)):
        if pdfium.FPDFText_HasUnicodeMapError(text_page, at) == 1 and (font := _named_font(text_page, at)):
            unexplained.setdefault(font, []).append(at)
    characters = list(text)
    for places in unexplained.values():
        if sum(_CONTROL.match(text, at) is not None for at in places) > _LIGATURES * len(places):
            for at in places:
                characters[at] = _UNREADABLE
    return "".join(characters)


class _Shape(NamedTuple):
    """The box of a glyph: its sides in points, and in fractions of the height from descender to ascender."""

    width: float
    height: float
    part: float  # its height as a fraction
    top: float  # above the line, as a fraction
    bottom: float  # above the line, as a fraction; below it: negative

    def is_no(self, character: str) -> bool:
        """Whether no font draws a telling character like this."""
        if self.part < _NO_SHAPE:  # letters of recognised text are not drawn
            return False
        if character == ",":
            return self.bottom > _HANGS and self.part > _TALL_COMMA
        if character == ":":
            return self.bottom < _COLON_HANGS or (self.part < _DOT and self.width > _ROUND * self.height)
        if character == ";":
            return self.is_comma
        return self.width > (_BAR if character.isdecimal() else _FLAT_FRACTION) * self.height

    @property
    def meaning(self) -> str:
        """The minus, point or comma that it is; else `WRONG`."""
        if self.bottom > _HIGH and self.width > _BAR * self.height:
            return "\u2212"
        return "." if self.is_point else "," if self.is_comma else WRONG

    @property
    def is_point(self) -> bool:
        return self.top < _DOT and self.bottom > _HANGS and _ROUND < self.width / self.height < 1 / _ROUND

    @property
    def is_comma(self) -> bool:
        return self.top < _DOT and self.bottom < _HANGS and self.part > _LOW


def _blank_wrong_letters(text: str, text_page: Any) -> str:
    """Write `WRONG` for characters of fonts that call their glyphs by the names of others, as symbol fonts do.

    The proof is a digit, fraction or mark whose shape no font gives it: a "2" that is a bar, a ":" of one dot. The
    minus, the point and the comma of such a font are read by their shape.
    """
    page = ctypes.cast(text_page, ctypes.c_void_p).value
    fonts = dict[int | None, int | None]()  # address of a text → of its font
    judged = dict[tuple[int, str], bool]()
    wrong = set[int]()
    for found in _TELLING.finditer(text):
        address = _object_of(page, found.start())
        if address not in fonts:
            fonts[address] = _named_font(text_page, found.start())
        font = fonts[address]
        if font is None or (font, found[0]) in judged:
            continue
        shape = _shape(text_page, found.start())
        judged[font, found[0]] = is_wrong = shape is not None and shape.is_no(found[0])
        if is_wrong:
            wrong.add(font)
    if not wrong:
        return text
    characters = list(text)
    for at, character in enumerate(text):
        if not character.isspace() and _named_font(text_page, at) in wrong:
            shape = _shape(text_page, at)
            characters[at] = shape.meaning if shape else WRONG
    return "".join(characters)


def _shape(text_page: Any, index: int) -> _Shape | None:
    """Of an upright character; None: it has none."""
    if pdfium.FPDFText_GetCharAngle(text_page, index) != 0:
        return None
    left, right, bottom, top = sides = [ctypes.c_double() for _ in range(4)]
    x, line, loose = ctypes.c_double(), ctypes.c_double(), pdfium.FS_RECTF()
    pdfium.FPDFText_GetCharBox(text_page, index, *map(ctypes.byref, sides))
    pdfium.FPDFText_GetCharOrigin(text_page, index, ctypes.byref(x), ctypes.byref(line))
    pdfium.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(loose))
    width, height, whole = right.value - left.value, top.value - bottom.value, loose.top - loose.bottom
    if min(width, height, whole) <= 0:
        return None
    return _Shape(width, height, height / whole, (top.value - line.value) / whole, (bottom.value - line.value) / whole)


def is_unreadable(word: str) -> bool:
    """Whether the font of a word does not say which letters it shows; one or two marks at its ends may be bullets."""
    if _CONTROLS.fullmatch(word):
        return True
    if WRONG in word:
        return _WRONG_WORD.search(word) is not None
    return _UNREADABLE in word and _UNREADABLE_WORD.search(word) is not None


def _named_font(text_page: Any, index: int) -> int | None:
    """Address of the font of a character; None: it is drawn by the page (Type 3), or PDFium made the character up."""
    text = pdfium.FPDFText_GetTextObject(text_page, index)
    font = pdfium.FPDFTextObj_GetFont(text) if text else None
    if not font or pdfium.FPDFFont_GetBaseFontName(font, None, 0) <= 1:
        return None
    return ctypes.cast(font, ctypes.c_void_p).value


def read_string(read: Callable[..., int]) -> str:
    """A text from a PDFium function that fills a buffer of UTF-16 and returns its size in bytes."""
    size = read(None, 0)
    if size > _MAX_BYTES:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    read(buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")
