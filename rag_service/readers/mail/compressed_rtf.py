"""The RTF body of an Outlook message, which is stored compressed ([MS-OXRTFCP])."""

from __future__ import annotations

import struct

_COMPRESSED, _PLAIN = b"LZFu", b"MELA"
_DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW = 4_096  # bytes that a reference can reach
_HEADER = 16
_MAX_BYTES = 50_000_000


def read_compressed_rtf(data: bytes) -> bytes | None:
    """The RTF text; None for anything else. What is cut off or damaged ends the text early."""
    if len(data) < _HEADER:
        return None
    size, kind = struct.unpack_from("<I4s", data, 4)
    if kind == _PLAIN:
        return data[_HEADER : _HEADER + size]
    if kind != _COMPRESSED:
        return None
    text = bytearray(_DICTIONARY)
    at, end = _HEADER, min(size + len(_DICTIONARY), _MAX_BYTES)
    while at < len(data) and len(text) < end:
        kinds, at = data[at], at + 1
        for bit in range(8):
            if at + (kinds >> bit & 1) >= len(data):
                break
            if not kinds >> bit & 1:
                text.append(data[at])
                at += 1
                continue
            reference = data[at] << 8 | data[at + 1]
            at += 2
            place = reference >> 4  # in a window that is written round and round
            back = (len(text) - place) % _WINDOW
            if not back:
                return bytes(text[len(_DICTIONARY) : end])
            for _ in range((reference & 0xF) + 2):
                text.append(text[-back] if back <= len(text) else 0x20)
    return bytes(text[len(_DICTIONARY) : end])
