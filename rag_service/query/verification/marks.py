"""Citation marks in an answer: how they are written, read and removed.

`[C1]`, `[c1]`, `[C 1]`, `[C1, C2]`, `[C1, 2]`, `[C1-3]`, and the same in full-width brackets. A mark
in code, inline or fenced, is text like the rest of the code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_service.text.citation_marks import MARK

_INLINE = re.compile(rf"`[^`\n]*`|(?P<mark>{MARK})")
_BLANK = r"[ \t\u00a0\u202f]"
_FENCED = r"^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)|\Z)"
_REMOVABLE = re.compile(rf"{_FENCED}|`[^`\n]*`|(?P<mark>(?<!{_BLANK}){_BLANK}*+{MARK})", re.MULTILINE | re.DOTALL)
_NUMBERS = re.compile(r"(?P<dash>[–-]?)[ \t\u00a0\u202fCc]*(?P<number>[0-9]+)")
_LONGEST_RANGE = 20  # [C1-3] means three chunks; a longer range is taken as its two ends


class Mark(NamedTuple):
    """Characters [start, end) of the text it was found in, and the chunk numbers that it names."""

    start: int
    end: int
    numbers: tuple[int, ...]  # as written, each once; not checked against the chunks shown


def find_marks(sentence: str) -> list[Mark]:
    """The marks of one sentence (not of a fenced code block), in order."""
    return [
        Mark(match.start(), match.end(), _read_numbers(match["mark"]))
        for match in _INLINE.finditer(sentence)
        if match["mark"]
    ]


def strip_marks(text: str) -> str:
    """The text without its marks and the space before each; code is left as it is.

    A mark inside a word leaves the word whole.
    """
    return _REMOVABLE.sub(lambda match: "" if match["mark"] else match[0], text)


def _read_numbers(mark: str) -> tuple[int, ...]:
    numbers: dict[int, None] = {}
    previous = 0
    for match in _NUMBERS.finditer(mark):
        number = int(match["number"])
        if match["dash"] and previous < number <= previous + _LONGEST_RANGE:
            numbers |= dict.fromkeys(range(previous, number))
        numbers[number] = None
        previous = number
    return tuple(numbers)
