"""Joins words that a PDF hyphenates at its line ends: "inver-\\nsión" is stored as "inversión".

A hyphen at a line end is part of a compound if the document says so: it writes the compound within a line, or both its
parts as words of their own. Without such evidence a hyphen before a small letter is one of the line's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

_LETTER = r"[^\W\d_]"
# The hyphen of a line, and the first word of the next line, perhaps at the top of the next column.
_BREAK = re.compile(rf"(?<={_LETTER})[-‐](?P<gap>\n{{1,2}})(?P<second>{_LETTER}+)(?P<rest>\S*)(?P<tail> {{2,}}| ?\n?)")
_FIRST = re.compile(rf"(?:{_LETTER}+[-‐])*{_LETTER}+\Z")  # the last word of a line
_MAX_WORD = 100  # characters
_WORD = re.compile(rf"{_LETTER}+(?:[-‐]{_LETTER}+)*")
_MIN_PART = 4  # letters of the first part of a compound; "con", "de" and "in" also begin hyphenated words
_ALWAYS_PARTS = frozenset({"self", "well"})


def read_vocabulary(pages: Iterable[str]) -> Set[str]:
    """Words that the pages write within a line, in small letters; empty where no line ends with a hyphen."""
    words: set[str] = set()
    texts = list(pages)
    if not any("-\n" in text or "‐\n" in text for text in texts):
        return words
    for text in texts:
        words.update(_WORD.findall(_without_breaks(text).casefold()))
    return words


def _without_breaks(text: str) -> str:
    """The text without both parts of the words that are broken at a line end: "margina" and "les" are no words."""
    lines: list[str] = []
    is_broken = False
    for line in filter(None, text.split("\n")):
        whole = line.partition(" ")[2] if is_broken else line
        is_broken = line[-1] in "-‐" and line[-2:-1].isalpha()
        lines.append(whole.rpartition(" ")[0] if is_broken else whole)
    return "\n".join(lines)


def join_hyphenated(text: str, vocabulary: Set[str]) -> str:
    """Join words over line ends; the line ends after them instead, except in a row of a table, which goes on."""
    if "-\n" not in text and "‐\n" not in text:
        return text

    def join(found: re.Match[str]) -> str:
        start = max(found.string.rfind("\n", 0, found.start()) + 1, found.start() - _MAX_WORD)
        first = _FIRST.search(found.string[start : found.start()].rpartition(" ")[2])
        following = found["second"] + found["rest"]
        if len(found["gap"]) > 1 and following[0].isupper() and not (first and first.group().isupper()):
            return found.group()  # the next column begins with something else
        hyphen = "-" if first is None or _is_compound(first.group(), following, vocabulary) else ""
        return hyphen + following + (found["tail"] if found["tail"].startswith("  ") else found["gap"])

    previous = None
    while previous != text:  # a word may be broken twice, over three lines
        previous, text = text, _BREAK.sub(join, text)
    return text.rstrip("\n")


def _is_compound(first: str, following: str, vocabulary: Set[str]) -> bool:
    match = _WORD.match(following)
    second = match.group() if match else following
    if "-" in first or "-" in second or len(first) == 1:
        return True  # state-of-the-art, e-mail
    if second[0].isupper() and not first.isupper():
        return True  # North-America
    whole, left, right = (word.casefold() for word in (first + second, first, second))
    if whole in vocabulary:
        return False
    if f"{left}-{right}" in vocabulary or left in _ALWAYS_PARTS:
        return True
    return len(left) >= _MIN_PART and left in vocabulary and right in vocabulary
