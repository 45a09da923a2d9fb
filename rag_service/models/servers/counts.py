"""Reads the counts that model servers send: tokens of a prompt or an answer, the size of a window."""

from __future__ import annotations

MAX_COUNT = 2**31 - 1  # no prompt, answer or window is longer, and every store holds it
_MAX_DIGITS = len(str(MAX_COUNT))


def read_count(value: object) -> int | None:
    """A positive count; None for everything else, such as a negative, huge or fractional number or a Boolean.

    Digits in a text count, at most as many as a count may have: Python refuses to read 4,500 of them.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS:
        value = int(value)
    if isinstance(value, float) and value.is_integer():  # JSON knows no integers
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_COUNT:
        return None
    return value
