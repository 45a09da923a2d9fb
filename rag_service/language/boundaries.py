"""What decides whether a full stop or a line break ends a sentence."""

from __future__ import annotations

import re
from functools import cache

from rag_service.language.languages import Words, languages_of

FENCE = re.compile(r"```|~~~")
MARKER = re.compile(  # what a new item, heading, row, rule or block begins with
    r"[-*+•‣▪·–—]\s|\(?\d{1,3}[.)]\s|\(?[a-zA-Z]\)\s|#{1,6}\s|\||>|```|~~~|(?:-{3,}|\*{3,}|_{3,}|={3,})\s"
)
# The same as far as a stream has brought it.
MARKER_OPEN = re.compile(r"(?:[-*+•‣▪·–—]+|_+|=+|\(?\d{0,3}[.)]?|\(?[a-zA-Z]\)?|#{1,6}|`{1,2}|~{1,2})\Z")
# The label of a row: "Price: 5 | …".
LABEL = re.compile(r"[^\n.!?|:]{1,60}:[ \t]")
LABEL_LENGTH = 62
CELL_LENGTH = 300  # of a row's first cell; a stream waits no longer for its bar
_HEADING = re.compile(r"#{1,6}\s")
_SHORT_LAST_WORD = re.compile(r"(?:^|\s)[a-zà-ÿ'’]{1,3}$")
# A short last word that is a unit ends a row; any other may go on in the next line. Units that are also
# prepositions are left out: "3 a", "12 in", "2 de".
_QUANTITY = re.compile(
    r"\d[ \u00a0\u202f]?(?:h|hs|hrs?|min|sec|s|g|kg|mg|l|cl|ml|m|km|cm|mm|ha|t|lb|oz|ft|mph|w|kw|kwh|v|px|"
    r"[ap]m|eur|ans?|año|mes|día)\Z"
)
_TITLE_LENGTH = 60  # a line this short that the next, capitalised line follows reads as a title

_WORD = re.compile(r"\w+")
_UNIT = re.compile(r"\d[ \u00a0\u202f]?[ghlmt]\Z")  # "14 h", "3,5 m": no abbreviation that a name follows
_LONGEST_ABBREVIATION = 6  # letters of the longest entry without inner stops; a longer word is a word
_LOOK_BACK = 24  # characters


def stands_alone(line: str, following: str) -> bool:
    """Whether a line is a heading, a row or a lead-in, given the first visible character behind it."""
    if _HEADING.match(line):
        return True
    shown = line.rstrip()
    if not shown or following.islower():
        return False  # also a row whose last cell runs on
    return shown[-1] == ":" or shown[0] == "|" or " | " in shown


def reads_as_title(line: str, following: str) -> bool:
    """Likewise, whether a line that begins a sentence is all of it, as a title is, and no part of wrapped text."""
    shown = line.rstrip()
    return (
        0 < len(shown) <= _TITLE_LENGTH
        and (following.isupper() or following in '¿¡"«“*_')
        and shown[-1] not in ",;-–—(/.…"
        and (_SHORT_LAST_WORD.search(shown) is None or _QUANTITY.search(shown) is not None)
    )


class FullStops:
    """Knows the abbreviations of a language; of all languages where it is None or not supported."""

    def __init__(self, language: str | None):
        every = [data.sentences for data in languages_of(language)]
        self._always = _union([data.abbreviations for data in every])
        self._before_number = _union([data.abbreviations_before_numbers for data in every])
        self._at_end = _union([data.abbreviations_at_end for data in every])
        self._starters = _union([data.sentence_starters for data in every])
        self._named_by_letter = _union([data.named_by_letter for data in every])

    def ends_sentence(self, text: str, at: int, after: int, *, start: int, line: int, final: bool) -> bool | None:
        """Whether the stop at `at` does; None: more text is needed to tell.

        `after` is the next visible character, neither lower case nor a comma; sentence and line begin at `start` and
        `line`; `final` says that no more text comes.
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
        if not (is_letter or is_dotted or word in self._at_end) or (is_letter and self._names_by_letter(tail)):
            return True
        following = _WORD.match(text, after)
        if following is None:  # brackets after a company's abbreviation say more about the company
            return is_letter or text[after] != "("
        if following.end() == len(text) and not final:
            return None
        is_initial = len(following[0]) == 1 and text[following.end() : following.end() + 1] == "."  # "S. A."
        return following[0] in self._starters and not is_initial

    def _names_by_letter(self, tail: str) -> bool:
        """Whether the letter at the end is the name of a gate or an annex, and no initial."""
        words = tail.lower().replace("’", " ").replace("'", " ").split()
        return len(words) > 1 and words[-1].isalpha() and words[-2] in self._named_by_letter


full_stops = cache(FullStops)


def _union(groups: list[Words]) -> frozenset[str]:
    return frozenset().union(*groups)
