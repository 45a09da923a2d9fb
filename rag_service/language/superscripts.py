"""Raised and lowered characters as stored texts have them.

A raised digit is a Unicode superscript (`10⁶`, `m²`), never a digit of the line, so that no number grows by it. Readers
set a footnote mark apart from the word before it: `500 ¹ euros`. What is set apart says nothing about its sentence.
"""

from __future__ import annotations

import re

RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_DIGITS, _SIGNS, _BRACKETS = "0123456789", "+-−–", "()"
_LETTERS = "abcdefghijklmnoprstuvwxyz"  # Unicode 9 has no raised q
_RAISED_LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
TO_RAISED = str.maketrans(_DIGITS + _SIGNS + _BRACKETS, RAISED_DIGITS + "⁺⁻⁻⁻⁽⁾")
TO_RAISED_LETTER = str.maketrans(_LETTERS, _RAISED_LETTERS)
RAISED = f"{RAISED_DIGITS}⁺⁻⁽⁾{_RAISED_LETTERS}"  # for use inside a character class

# As readers leave it: alone between white space and punctuation.
_FIRST = f"[{RAISED_DIGITS}⁽{_RAISED_LETTERS}]"
MARK = rf"(?<!\S){_FIRST}[{RAISED}]{{0,3}}(?:,[{RAISED}]{{1,4}}){{0,9}}(?=[\s.,;:!?|)\]\"»”]|\Z)"
_MARK = re.compile(rf"[ \t]?{MARK}")
# What compatibility decomposition (NFKD) would make one number with the digit before it: "10⁶", "3½".
_AFTER_DIGIT = re.compile(rf"(?<=\d)(?=[{RAISED_DIGITS}⁻⁺¼-¾⅐-⅞])")


def without_marks(text: str) -> str:
    """The text without the footnote marks that are set apart in it."""
    return text if text.isascii() else _MARK.sub("", text)


def keep_numbers_apart(text: str) -> str:
    """The text with a sign between a digit and what is raised behind it: decomposed, "10⁶" must not become "106"."""
    return _AFTER_DIGIT.sub("^", text)
