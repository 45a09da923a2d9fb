"""Decodes text files: byte-order marks, UTF-16 without one, UTF-8, Western and other legacy encodings."""

from __future__ import annotations

import codecs
import re

from rag_service.readers.common.legacy_encoding import decode_legacy

_MARKS = (  # UTF-32 first: its little-endian mark starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_-]{2,30})""")
_SAMPLE = 65_536  # bytes inspected
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\x1a\x1b\b")


def decode_text(data: bytes) -> str | None:
    """The text of a file, or None if the bytes are not text.

    A byte-order mark decides; damaged characters after it become U+FFFD. Otherwise: UTF-16 by the pattern of its NULs,
    UTF-8, and finally the encoding that makes the best words (charset-normalizer guesses wrongly on short texts).
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _plausible(data[len(mark) :].decode(encoding, errors="replace"))
    wide = _utf16_without_mark(data)
    if wide is not None:
        return wide
    if _looks_binary(data):
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _legacy(data)


def decode_page(data: bytes, *, encoding: str | None = None) -> str | None:
    """The text of a web page or XML file, which may declare its encoding: used unless the bytes are UTF-8.

    Args:
        data: the file.
        encoding: for a page that declares none.
    """
    declared = _DECLARED.search(data[:2_048])
    label = encoding if declared is None else declared[1].decode("ascii")
    text = decode_text(data)
    if label is None or text is None or data.startswith(tuple(mark for mark, _ in _MARKS)):
        return text
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        try:
            found = data.decode(codec_of(label), errors="replace")
        except LookupError:
            return text
        foreign = sum(not character.isascii() for character in found)
        return text if found.count("�") * 2 > foreign else found  # mostly damaged: it is declared wrongly
    return text


def declares_encoding(data: bytes) -> bool:
    """Whether a file says in which encoding it is, as web pages and XML do."""
    return _DECLARED.search(data[:2_048]) is not None


def codec_of(label: str) -> str:
    """Python's name of a declared encoding; what calls itself ISO-8859-1 is Windows-1252 (WHATWG Encoding Standard).

    Raises LookupError.
    """
    name = codecs.lookup(label).name
    return "cp1252" if name == "iso8859-1" else name


def _plausible(text: str) -> str | None:
    """Text after a byte-order mark, unless mostly damaged: then the mark was part of a binary file."""
    sample = text[:_SAMPLE]
    damaged = sum(char == "�" or (char < " " and char not in "\t\n\r\v\f") for char in sample)
    return text if damaged <= len(sample) * 0.1 else None


def _utf16_without_mark(data: bytes) -> str | None:
    """UTF-16 of mostly Latin text has NULs in one byte of each pair and none in the other."""
    sample = data[:_SAMPLE]
    if len(sample) < 4 or len(data) % 2:
        return None
    half = len(sample) // 2
    first, second = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    encoding = "utf-16-le" if second > 0.7 and first < 0.05 else "utf-16-be" if first > 0.7 and second < 0.05 else None
    if encoding is None:
        return None
    try:
        return _plausible(data.decode(encoding))
    except UnicodeDecodeError:
        return None


def _looks_binary(data: bytes) -> bool:
    """Whether the start has many control characters; a few stray ones are removed later."""
    sample = data[:_SAMPLE]
    controls = sum(sample.count(code) for code in range(32) if code not in _TEXT_CONTROLS)
    return controls > max(len(sample) * 0.01, min(len(sample) * 0.2, 8))


def guessed_encoding(data: bytes) -> str | None:
    """The encoding that `decode_text` took for a file, if another may be the right one; None: it is certain."""
    if data.startswith(tuple(mark for mark, _ in _MARKS)) or _utf16_without_mark(data) is not None:
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        if _damaged_utf8(data) is not None:
            return "utf-8, damaged"
        found = decode_legacy(data)
        return None if found is None or found.is_certain else found.encoding
    return None


def _legacy(data: bytes) -> str | None:
    damaged = _damaged_utf8(data)
    if damaged is not None:
        return damaged
    found = decode_legacy(data)
    return None if found is None else found.text


def _damaged_utf8(data: bytes) -> str | None:
    """UTF-8 with some wrong bytes, which become U+FFFD; legacy encodings have hardly a valid sequence."""
    text = data.decode("utf-8", errors="replace")
    damaged = text.count("\ufffd")
    foreign = len(re.findall(r"[^\x00-\x7f\ufffd]", text[: 4 * _SAMPLE]))
    return text if foreign >= 3 * damaged else None
