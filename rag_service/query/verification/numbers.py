"""Numbers as they are written, made comparable: amounts, percentages, dates, codes.

Two numbers are equal when both can be read in one way only and the readings agree: `1.234,56`,
`1,234.56` and `1 234,56` are one number. `1.234` may be a thousand and more or one and a bit, so it
equals only itself, and so do version numbers and codes such as `M8`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from rag_service.query.verification.lexicon import UNITS, fold_word

_DATE = r"(?<![\w/])\d{1,4}(?P<sep>[/.-])\d{1,2}(?P=sep)\d{2,4}(?![\d/])"
_CODE = r"(?<![^\W_])(?:[^\W\d_]+\d[^\W_]*|\d+[^\W\d_]+\d[^\W_]*)"
_PLAIN = r"\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*"
_TOKEN = re.compile(
    r"(?P<word>[^\W\d_]++(?!\d))"  # first, since most tokens are words
    rf"|(?P<date>{_DATE})|(?P<code>{_CODE})"
    rf"|(?:(?<![\w)])(?P<sign>[-+]))?(?P<before>[$€£] ?)?(?P<plain>{_PLAIN})(?P<after> ?[%€$£])?"
)
_GROUPS = re.compile(r"[1-9]\d{0,2}(?:([., ])\d{3})(?:\1\d{3})*")
_UNIT_DISTANCE = 3  # words between a number and its unit: "15 primeros días", "20 full working days"


class Number(NamedTuple):
    """A number in a text. Two are the same when `value` and `unit` are equal."""

    value: str  # canonical digits, or the text as written when it cannot be read in one way only
    unit: str  # canonical unit: "%", "€", "day" …; empty when there is none
    start: int  # in the text it was read from, sign, currency and percent sign included
    end: int

    @property
    def is_code(self) -> bool:
        """Whether it names something ("M8") rather than measures or counts it."""
        return any(character.isalpha() for character in self.value)


def find_numbers(text: str, words: Mapping[str, str]) -> list[Number]:
    """The numbers of a normalised lower-case text, in order.

    `words` gives the value of number words ("tres" → "3") of the language.
    """
    numbers: list[Number] = []
    distance = _UNIT_DISTANCE + 1  # words since the last number; beyond the limit its unit stays empty
    for token in _TOKEN.finditer(text):
        word = token["word"]
        value = _value(token) if word is None else words.get(fold_word(word))
        if value is not None:
            sign = (token["before"] or token["after"] or "").strip()
            numbers.append(Number(value, UNITS.get(sign, sign), token.start(), token.end()))
            distance = 0 if not sign else _UNIT_DISTANCE + 1
        elif distance < _UNIT_DISTANCE and numbers:
            distance = _UNIT_DISTANCE + 1 if _breaks(text, numbers[-1].end, token.start()) else distance + 1
            unit = UNITS.get(fold_word(token[0]))
            if unit is not None and distance <= _UNIT_DISTANCE:
                numbers[-1] = numbers[-1]._replace(unit=unit)
                distance = _UNIT_DISTANCE + 1
    return numbers


def _breaks(text: str, start: int, end: int) -> bool:
    return any(mark in text[start:end] for mark in ",;:.|(")


def _value(token: re.Match[str]) -> str:
    if token["date"]:
        return "/".join(part.lstrip("0") for part in token["date"].split(token["sep"]))
    if token["code"]:
        return token["code"]
    sign = "-" if token["sign"] == "-" else ""
    return sign + canonical(token["plain"])


def canonical(written: str) -> str:
    """The one reading of a number without sign or unit; `=` and the text as written if there are several.

    >>> canonical("1.234,56"), canonical("12,50"), canonical("1.234.567"), canonical("1.234")
    ('1234.56', '12.5', '1234567', '=1.234')
    """
    marks = {mark for mark in "., " if mark in written}
    as_written = f"={written}"
    if not marks:
        # "03" of a date is 3; "007" is a code.
        return written.lstrip("0") or "0" if len(written) <= 2 or written[0] != "0" else as_written
    last = max(marks, key=written.rfind)
    whole, _, fraction = written.rpartition(last)
    if len(marks) == 1 and written.count(last) > 1:
        return re.sub(r"[., ]", "", written) if _GROUPS.fullmatch(written) else as_written
    if last == " " or written.count(last) > 1 or (len(marks) == 1 and _GROUPS.fullmatch(written)):
        return as_written
    if len(marks) > 1 and not _GROUPS.fullmatch(whole):
        return as_written
    return _decimal(re.sub(r"[., ]", "", whole), fraction)


def _decimal(whole: str, fraction: str) -> str:
    fraction = fraction.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{fraction}" if fraction else whole
