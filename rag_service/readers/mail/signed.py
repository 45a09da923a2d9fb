"""The message within a signature that encloses it (application/pkcs7-mime, RFC 8551; the syntax is RFC 5652 in BER)."""

from __future__ import annotations

from typing import NamedTuple

_SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
_DATA = bytes.fromhex("2a864886f70d010701")
_END = 0  # the tag that ends a value of indefinite length
_MAX_DEPTH = 20


class _Value(NamedTuple):
    content: bytes
    inside: list[_Value]  # of a constructed value


def read_signed(data: bytes) -> bytes | None:
    """The signed message, whose signature is not checked; None for anything else, such as encrypted data."""
    try:
        kind, wrapped = _read(data, 0, depth=0)[1].inside[:2]
        if kind.content != _SIGNED_DATA:
            return None
        inner = wrapped.inside[0].inside[2].inside  # version, digest algorithms, content
        return _octets(inner[1].inside[0]) if inner[0].content == _DATA else None
    except (IndexError, ValueError):
        return None


def _octets(value: _Value) -> bytes:
    return b"".join(map(_octets, value.inside)) if value.inside else value.content


def _read(data: bytes, at: int, *, depth: int) -> tuple[int, _Value, int]:
    """(tag, value, where the next one begins). Raises IndexError and ValueError for what is no BER."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    tag, length, start = data[at], data[at + 1], at + 2
    if length > 0x80:
        start += length - 0x80
        length = int.from_bytes(data[at + 2 : start], "big")
    elif length == 0x80:
        length = -1
    end = len(data) if length < 0 else start + length
    if end > len(data):
        raise ValueError("cut off")
    if not tag & 0x20:
        return tag, _Value(data[start:end], []), end
    inside: list[_Value] = []
    while start < end:
        inner, value, start = _read(data, start, depth=depth + 1)
        if inner == _END and length < 0:
            return tag, _Value(b"", inside), start
        inside.append(value)
    return tag, _Value(b"", inside), end
