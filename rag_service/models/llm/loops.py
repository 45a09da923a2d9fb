"""Finds where a model's text only repeats itself.

A small model, or a quantised one, may say the same sentence for ever. Its text then ends with one unit over and over:
the last characters stand once more a period before, and all between repeats with that period.
"""

from __future__ import annotations

import re

WINDOW = 3000  # characters at the end of a text that are looked at: a unit has at most a third
_TIMES = 3  # what an answer says three times in a row it does not mean
_PROBE = 20  # characters that are looked for further up; a shorter sentence may be a list's "Not stated." by right
_RUN = 300  # a repetition that is no sentence, such as rows of a table or "ha ha ha", must be as long as five lines
_MARK = r"[^\S\n]?\[C\d+\]"
_STOP = r"""(?:(?<=[^\W_])|(?<=[\])%€$"'”»]))[.!?…]"""  # none in "..." alone
_SENTENCE_END = re.compile(rf"""{_STOP}(?:["'”»)\]]|{_MARK})*(?:\s|\Z)|(?:{_MARK})+(?:\n|\Z)""")
_WORDS = 3  # of a sentence


def repeats(text: str) -> bool:
    """Whether a text ends with one sentence three times in a row, or with the same characters over and over."""
    return _period(text[-WINDOW:]) > 0


def without_repetition(text: str) -> str:
    """The text up to the end of what it then repeats."""
    text = text.rstrip()
    period = _period(text[-WINDOW:])
    if not period:
        return text
    start = len(text) - period
    while start > 0 and text[start - 1] == text[start - 1 + period]:
        start -= 1
    first = start + period
    said = len(text[:first].rstrip())
    ends = (match.end() for match in _SENTENCE_END.finditer(text, start, first + period))
    return text[: next((end for end in ends if end >= said), first)].rstrip()


def _period(tail: str) -> int:
    """Length of the unit that the text ends with several times; 0: it does not."""
    tail = tail.rstrip()
    probe = tail[-_PROBE:]
    if len(probe) < _PROBE or not any(map(str.isalnum, probe)):  # rulers are as long as their table
        return 0
    before = tail.rfind(probe, 0, len(tail) - 1)
    if before < 0:
        return 0
    period = len(tail) - _PROBE - before
    unit = tail[-period:]
    length = _TIMES * period - (len(unit) - len(unit.lstrip()))  # no white space stands behind the last
    if not _is_sentence(unit):
        length = max(length, _RUN)
    return period if len(tail) >= length and tail[-length:-period] == tail[period - length :] else 0


def _is_sentence(unit: str) -> bool:
    """Whether a unit, which may begin in the middle, is one sentence or several."""
    turned = unit + unit
    return len(unit) >= _PROBE and len(unit.split()) >= _WORDS and _SENTENCE_END.search(turned) is not None
