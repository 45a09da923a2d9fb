"""How programs write the numbers of lists, headings and clauses: 4, d, iv."""

from __future__ import annotations

from enum import StrEnum

_MAX_LETTERS = 780  # "a" thirty times, as far as Word counts in letters
_ROMAN = tuple(zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
                   ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"), strict=True))  # fmt: skip


class NumberFormat(StrEnum):
    """Formats by their names in HTML and OpenDocument."""

    DECIMAL = "1"
    LOWER_LETTER = "a"
    UPPER_LETTER = "A"
    LOWER_ROMAN = "i"
    UPPER_ROMAN = "I"


def write_number(value: int, format: NumberFormat, *, repeats_letters: bool = False) -> str:
    """A number in a format; in digits where the format has no way to write it.

    `repeats_letters`: "bb" follows "aa", as in Word; else "ab" does, as on web pages.
    """
    if format in (NumberFormat.LOWER_LETTER, NumberFormat.UPPER_LETTER) and 0 < value <= _MAX_LETTERS:
        written = _repeated(value) if repeats_letters else _letters(value)
    elif format in (NumberFormat.LOWER_ROMAN, NumberFormat.UPPER_ROMAN) and 0 < value < 4000:
        written = _roman(value)
    else:
        return str(value)
    return written.upper() if format in (NumberFormat.UPPER_LETTER, NumberFormat.UPPER_ROMAN) else written


def _repeated(value: int) -> str:
    return chr(ord("a") + (value - 1) % 26) * ((value - 1) // 26 + 1)


def _letters(value: int) -> str:
    letters = ""
    while value > 0:
        value, rest = divmod(value - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _roman(value: int) -> str:
    letters = ""
    for unit, sign in _ROMAN:
        letters += sign * (value // unit)
        value %= unit
    return letters
