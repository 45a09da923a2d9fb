"""Characters of a PDF page as PDFium tells them, and which of them its fonts do not explain."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from typing import Any

import pypdfium2.raw as pdfium

HYPHENS = "\x02\ufffe"
_CONTROL = re.compile(r"[\x03-\x08\x0b\x0c\x0e-\x1f]")
_LIGATURES = 0.1  # of the letters: TeX's "ff", "fi", "fl" are 1 or 2 in 100
_UNREADABLE = "\x01"  # no text has it, and none is stored with it
_UNREADABLE_WORD = re.compile(rf"\w{_UNREADABLE}+\w|{_UNREADABLE}{{3}}")
_MAX_BYTES = 200_000  # of a string


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
    text = _blank_glyph_numbers(text, text_page)
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


def is_unreadable(word: str) -> bool:
    """Whether the font of a word does not say which letters it shows; one or two marks at its ends may be bullets."""
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
