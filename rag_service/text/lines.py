"""What a line of text is by its looks: a heading, an item, a row, a title, code, or a part of wrapped text."""

from __future__ import annotations

import re

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
# A short word that ends a row rather than one that a wrapped line goes on after. No unit here is a preposition, too:
# "3 a", "12 in" and "2 de" run on.
_QUANTITY = re.compile(
    r"\d[ \u00a0\u202f]?(?:h|hs|hrs?|min|sec|s|g|kg|mg|l|cl|ml|m|km|cm|mm|ha|t|lb|oz|ft|mph|w|kw|kwh|v|px|"
    r"[ap]m|eur|ans?|año|mes|día)\Z"
)
_TITLE_LENGTH = 60  # a line this short that the next, capitalised line follows reads as a title


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
