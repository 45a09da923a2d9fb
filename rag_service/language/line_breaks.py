"""What decides whether a line break ends a sentence."""

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
_LABEL_LENGTH = 62
_CELL_LENGTH = 300  # of a row's first cell; a stream waits no longer for its bar
HEADING = re.compile(r"#{1,6}\s")
_SHORT_LAST_WORD = re.compile(r"(?:^|\s)[a-zà-ÿ'’]{1,3}$")
# A short last word that is a unit ends a row; any other may go on in the next line. Units that are also
# prepositions are left out: "3 a", "12 in", "2 de".
_QUANTITY = re.compile(
    r"\d[ \u00a0\u202f]?(?:h|hs|hrs?|min|sec|s|g|kg|mg|l|cl|ml|m|km|cm|mm|ha|t|lb|oz|ft|mph|w|kw|kwh|v|px|"
    r"[ap]m|eur|ans?|año|mes|día)\Z"
)
_TITLE_LENGTH = 60  # a line this short that the next, capitalised line follows reads as a title


def stands_alone(line: str, following: str) -> bool:
    """Whether a line is a heading, a row or a lead-in, given the first visible character behind it."""
    if HEADING.match(line):
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


def labelled_row_follows(text: str, start: int, *, final: bool, behind_row: bool) -> bool | None:
    """Whether the line that begins at `start` is a row like "label: value | …"; None: too soon to tell.

    The title above a sheet would else read as one sentence with its first row, and rows of tables whose labels are
    in lower case as one that runs on. `behind_row`: the line before is a row, so that a label is enough.
    """
    end = text.find("\n", start, start + _CELL_LENGTH)
    is_whole = final or end >= 0
    if not LABEL.match(text, start):
        return False if is_whole or len(text) - start > _LABEL_LENGTH else None
    if text[start].islower() and behind_row:
        return True
    if text.find(" | ", start, end if end >= 0 else start + _CELL_LENGTH) >= 0:
        return True
    return False if is_whole or len(text) - start > _CELL_LENGTH else None
