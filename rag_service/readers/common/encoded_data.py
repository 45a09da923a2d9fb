"""Leaves data in letters out of a text: data URIs, and Base64 by itself, on one line or in lines of one length."""

from __future__ import annotations

import re

from rag_service.readers.common.builder import pictures_not_read

_LEAST = 200  # characters of Base64 that stand by themselves; a shorter run may be a key or a name
_LEAST_LETTERS = 24  # different ones: figures in hexadecimal have 16, proteins 20, and Base64 nearly all 64
_STARTS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "PHN2Zy", "Qk")  # PNG, JPEG, GIF, WebP, SVG, BMP
_OTHER_STARTS = ("JVBERi0", "UEsDB", "H4sI", "AAAA")  # PDF, ZIP, gzip, fonts and video
# Within the strings of JSON, slashes and line ends may be escaped.
_ESCAPED = r"\\/|\\[rn]|%2[BFbf]"
_LETTER = rf"(?:[A-Za-z0-9+/_-]|{_ESCAPED})"
# Not a possessive quantifier over alternatives: those go wrong before Python 3.11.5 (gh-106052). Runs of plain letters
# are one step, for a group that may be given back keeps each of its steps in memory.
_LETTERS = rf"(?>(?:[A-Za-z0-9+/_-]++|{_ESCAPED})*)"
_URI = (
    r"data:(?P<type>[a-z]+/[\w.+-]+)(?:;[\w=.+-]+)*?"
    rf"(?:;base64,\s{{0,4}}{_LETTERS}(?>(?:\n[ \t]*(?={_LETTER}{{40}}){_LETTERS})*)(?:=|%3D){{0,2}}|,[^\s\"'<>)\]]*+)"
)
_RUN = rf"(?P<alone>(?={_LETTER}{{60}}){_LETTERS}(?>(?:\n[ \t>]{{0,8}}(?={_LETTER}{{20}}){_LETTERS})*))={{0,2}}"
_DATA = re.compile(rf"{_URI}|(?<![A-Za-z0-9+/_=.:\\-]){_RUN}(?![\w.:])")
_MAY_BE_URI = re.compile(r"data:[a-z]*/")
# A quick look at long texts: all letters of Base64 become "x", and others a space.
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-\\"
_TO_X = bytes(ord("x") if byte in _PLAIN else ord(" ") for byte in range(256))
_LONG_RUN = b"x" * 60


def leave_out_data(text: str) -> tuple[str, list[str]]:
    """Return a text without such data, and warnings of what was left out."""
    if not _may_hold(text):
        return text, []
    pictures = blocks = 0

    def leave_out(found: re.Match[str]) -> str:
        nonlocal pictures, blocks
        alone = found["alone"]
        if alone is None:
            is_picture = (found["type"] or "").startswith("image/")
        elif _is_data(alone):
            is_picture = alone.startswith(_STARTS)
        else:
            return found[0]
        pictures, blocks = pictures + is_picture, blocks + (not is_picture)
        return ""

    left = _DATA.sub(leave_out, text)
    warnings = [pictures_not_read(pictures)] if pictures else []
    if blocks:
        what = "1 block of Base64 data was" if blocks == 1 else f"{blocks:,} blocks of Base64 data were"
        warnings.append(f"{what} not read.")
    return left, warnings


def _may_hold(text: str) -> bool:
    return _LONG_RUN in text.encode(errors="replace").translate(_TO_X) or _MAY_BE_URI.search(text) is not None


def _is_data(run: str) -> bool:
    """Whether a run of letters is Base64: long, and as varied as it or with the start of a known format."""
    letters = re.sub(r"\\[rn]|[\s>\\]", "", run)
    if len(letters) < _LEAST:
        return False
    if letters.startswith((*_STARTS, *_OTHER_STARTS)):
        return True
    is_mixed = any(map(str.islower, letters)) and any(map(str.isupper, letters)) and any(map(str.isdigit, letters))
    return is_mixed and len(set(letters)) >= _LEAST_LETTERS
