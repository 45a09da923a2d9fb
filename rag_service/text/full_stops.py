"""Whether a full stop ends a sentence, or belongs to an abbreviation, an initial, a number or a list item."""

from __future__ import annotations

import re

from rag_service.text.abbreviations import (
    ALWAYS,
    BEFORE_NUMBER,
    NAMED_BY_LETTER,
    SENTENCE_STARTERS,
    SOMETIMES,
    for_language,
)

_WORD = re.compile(r"\w+")
_UNIT = re.compile(r"\d[ \u00a0\u202f]?[ghlmt]\Z")  # "14 h", "3,5 m": no abbreviation that a name follows
_LONGEST_ABBREVIATION = 6  # letters of the longest entry without inner stops; a longer word is a word
_LOOK_BACK = 24  # characters


class FullStops:
    """Knows the abbreviations of a language ("es", "fr", "en"); None: of all three."""

    def __init__(self, language: str | None):
        self._always, self._before_number, self._sometimes = (
            for_language(table, language) for table in (ALWAYS, BEFORE_NUMBER, SOMETIMES)
        )

    def ends_sentence(self, text: str, at: int, after: int, *, start: int, line: int, final: bool) -> bool | None:
        """Whether the stop at `at` does; None: more text is needed to tell.

        Args:
            after: Place of the next visible character, which is no lower-case letter and no comma.
            start: Where the sentence begins.
            line: Where the line begins.
            final: Whether no more text comes.
        """
        if at - start > _LONGEST_ABBREVIATION and text[at - _LONGEST_ABBREVIATION - 1 : at].isalpha():
            return True
        tail = text[max(start, at - _LOOK_BACK) : at]
        if not tail or tail[-1].isspace():
            return True
        token = tail.split()[-1].replace("’", "'").rpartition("'")[2].lstrip('([{"«“‘¿¡*_-')
        word = token.lower()
        if len(token) == 1 and token.islower() and _UNIT.search(tail):
            return True
        if word in self._always:
            return False
        if word in self._before_number:
            return not text[after].isdigit()
        if token.isdigit() and len(token) <= 3 and text[line:at] == token:
            return False  # the number of a list item
        is_letter = len(token) == 1 and token.isalpha()
        is_dotted = "." in token and not any(character.isdigit() for character in token)
        if not (is_letter or is_dotted or word in self._sometimes) or (is_letter and _names_by_letter(tail)):
            return True
        following = _WORD.match(text, after)
        if following is None:  # what stands in brackets says more of the company, whose abbreviation this is
            return is_letter or text[after] != "("
        if following.end() == len(text) and not final:
            return None
        is_initial = len(following[0]) == 1 and text[following.end() : following.end() + 1] == "."  # "S. A."
        return following[0] in SENTENCE_STARTERS and not is_initial


def _names_by_letter(tail: str) -> bool:
    """Whether the letter at the end is the name of a gate or an annex, and no initial."""
    words = tail.lower().replace("’", " ").replace("'", " ").split()
    return len(words) > 1 and words[-1].isalpha() and words[-2] in NAMED_BY_LETTER
