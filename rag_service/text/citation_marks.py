"""What a citation mark such as `[C1]` looks like, whole and as far as a stream has brought it."""

from __future__ import annotations

import re

_S = "[ \t\u00a0\u202f]"
# [C1], [c1], [C 1], [C1, C2], [C1, 2], [C1-3], also in full-width brackets. Every repetition is
# bounded, so that a stream knows when an opening bracket can no longer become a mark.
MARK = (
    rf"[\[［【]{_S}?[Cc]{_S}?[0-9]{{1,9}}"
    rf"(?:{_S}{{0,2}}[,;–-]{_S}{{0,2}}(?:[Cc]{_S}?)?[0-9]{{1,9}}){{0,63}}{_S}?[\]］】]"
)
OPENING = "[［【"
BEFORE_MARK = OPENING + ",;."
_PARTIAL_MARK = rf"(?:[{re.escape(OPENING)}][ \t\u00a0\u202fCc0-9,;–-]{{0,2000}})?\Z"
_BEFORE = r"[ \t]*+(?:[,;.][ \t]*+)?"  # white space in one way only: any other takes long to fail
MARKS = re.compile(rf"(?:{_BEFORE}{MARK})+\.?")
MARKS_OPEN = re.compile(rf"{_BEFORE}{_PARTIAL_MARK}")
