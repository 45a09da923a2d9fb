"""Raised and lowered characters: one notation for all formats.

Readers write raised digits as Unicode superscripts and lowered ones as subscripts, run by run, and `clean` settles
what they are by what stands around them:

- an exponent stays on its number or unit: `10⁶`, `2⁻¹`, `m²`, `sin²x`
- a footnote mark is set apart: `500 ¹ euros`, `members ¹`; `language.normalise` says how it is read
- a lowered digit is an index, as people type it: `H2O`; after a digit `10_2`
- one digit over another is a fraction: `3 1/2`

Two raised digits or more after a number may be a mark, cents or minutes (`12⁹⁹`). They stay on it, and nobody reads a
number there.
"""

from __future__ import annotations

import re

from rag_service.language.normalise import RAISED, RAISED_DIGITS, TO_RAISED, TO_RAISED_LETTER

_LOWERED_DIGITS = "₀₁₂₃₄₅₆₇₈₉"
_TO_LOWERED = str.maketrans("0123456789", _LOWERED_DIGITS)
_FROM_RAISED = str.maketrans(RAISED_DIGITS, "0123456789")
_FROM_LOWERED = str.maketrans(_LOWERED_DIGITS, "0123456789")
_SUSPECT = re.compile(f"[{RAISED}{_LOWERED_DIGITS}]")
_FRACTION = re.compile(rf"(\d?)([{RAISED_DIGITS}]{{1,3}})[/⁄∕]?([{_LOWERED_DIGITS}]{{1,3}})")
_INDEX = re.compile(rf"(\d?)([{_LOWERED_DIGITS}]+)")
_RUN = re.compile(rf"(?:(?<=\s)|\A|(?<=([^\s{RAISED}])))[{RAISED}]+(?:,[{RAISED}]+)*")
_NUMBER = re.compile(r"(?<![^\W_])\d[\d.,]*\Z")
_WORD = re.compile(r"([/·⋅*]?)([^\W\d_]+)\Z")
_GOES_ON = re.compile(r"[^\W_]|[(\[]|[ \t]?[=×·⋅*^≤≥≈<>]")  # what follows an exponent, and no footnote mark
_LONG = 20  # characters: small print, neither a mark nor an exponent
_LOOK_BACK = 24  # characters; longer words and numbers end the same way
_MARK_LETTERS = 3  # of a word or a number; fewer letters are a unit or a variable, and raised ones an abbreviation


def raise_run(text: str) -> str:
    """A run of raised text. One letter is a mark as digits are; more stay as people type them: "5th", "Mme"."""
    bare = re.sub(r"[ \t]*([,;])[ \t]*", ",", text.strip())
    if bracketed := re.fullmatch(r"\[([^\[\]\s]{1,3})\]", bare):  # as encyclopedias write their marks
        bare = bracketed[1]
    if len(bare) > _LONG:
        return f" {text}"
    raised = bare.translate(TO_RAISED_LETTER if len(bare) == 1 and bare.isalpha() else TO_RAISED)
    ahead, behind = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{ahead}{raised}{behind}" if bare else text


def is_raised(text: str) -> bool:
    """Whether a text consists of raised characters."""
    return bool(text) and all(character in RAISED for character in text)


def lower_run(text: str) -> str:
    """A run of lowered text."""
    return text.translate(_TO_LOWERED)


def has_raised(text: str) -> bool:
    """Return whether a text has raised or lowered characters, which `settle_raised` may write in another way."""
    return not text.isascii() and _SUSPECT.search(text) is not None


def settle_raised(text: str) -> str:
    """Set footnote marks apart and write indices and fractions, as the module declares."""
    if not has_raised(text):
        return text
    text = _FRACTION.sub(_fraction, text)
    text = _INDEX.sub(lambda found: f"{found[1]}{'_' * bool(found[1])}{found[2].translate(_FROM_LOWERED)}", text)
    return _RUN.sub(_settle_run, text)


def _fraction(found: re.Match[str]) -> str:
    whole = f"{found[1]} " if found[1] else ""
    return f"{whole}{found[2].translate(_FROM_RAISED)}/{found[3].translate(_FROM_LOWERED)}"


def _settle_run(found: re.Match[str]) -> str:
    run, before = found[0], found.string[max(0, found.start() - _LOOK_BACK) : found.start()]
    if found[1] is None:
        begins = not before or before[-1] == "\n"
        # A footnote begins with its mark, "¹Only for members"; "¹⁴C" is an isotope.
        return f"{run} " if begins and re.match(r"[^\W\d_]{3}", found.string[found.end() :][:3]) else run
    goes_on = _GOES_ON.match(found.string, found.end()) is not None
    return f" {run}" if not goes_on and run[0] not in "⁻⁺" and _is_mark(before, run) else run


def _is_mark(before: str, run: str) -> bool:
    is_letter = run[0].isalpha()
    if number := _NUMBER.search(before):
        if is_letter:
            return len(number[0]) >= _MARK_LETTERS
        if any(len(part.strip("⁽⁾")) > 1 for part in run.split(",")):
            return False
        return number[0] != "10" or run == "¹"
    if word := _WORD.search(before):
        if len(word[2]) >= _MARK_LETTERS:
            return not word[1]
        # The first power is never written, and a unit or a variable is not two capitals.
        return run == "¹" or (not is_letter and len(word[2]) == 2 and word[2].isupper())
    return before[-1] in ".,;:!?%€$£¥\"'’”»…*" or (before[-1] in ")]" and run == "¹")
