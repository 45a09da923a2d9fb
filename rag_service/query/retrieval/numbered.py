"""Numbered things that a question asks about, and which of them no passage holds: "line 5", "artículo 9".

A question about line 5 is not answered by what line 3 did, although all of its words stand there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_service.text.abbreviations import NAMED_BY_LETTER
from rag_service.text.stopwords import STOP_WORDS
from rag_service.text.words import fold

_MARK = r"(?:n\W{0,2}[oº°]?\W{0,2}|num\W{0,2}|#)?"
_NUMBERED = re.compile(
    rf"(?<![^\W_])(?P<noun>[^\W\d_]{{4,}}+)\s+{_MARK}(?P<number>\d{{1,4}})(?![\d.,%€$£]|\s?[%€$£])", re.IGNORECASE
)
_FOLLOWING = re.compile(r"\s*([^\W_]+)")
_NEAR = 100  # characters behind a number, which tell what it counts
_MOST = 10  # kinds of things, in one question
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
# Before a quantity or a time, and in no list of function words.
_OF_QUANTITIES = frozenset(
    """
    years anos annees
    above below over under after before than until within about around least most almost exactly nearly between
    hasta desde durante entre sobre tras antes despues menos apenas solo unos unas mas dentro
    depuis pendant apres avant environ moins plus jusque dans presque
    """.split()  # noqa: SIM905
)
_NAMED_BY_NUMBER = frozenset(map(fold, NAMED_BY_LETTER))


def find_absent_numbered(question: str, passages: Sequence[str]) -> tuple[str, ...]:
    """Things with a number of which the passages hold others, but not that one; as the question writes them.

    Args:
        question: as it was asked.
        passages: all that were found, not only the best.
    """
    asked: dict[str, dict[str, str]] = {}  # noun → number → as it is written
    for match in _NUMBERED.finditer(question):
        noun, number = fold(match["noun"]), match["number"]
        if not _YEAR.fullmatch(number) and _is_named(noun, question[match.end() :][:_NEAR]):
            asked.setdefault(noun, {})[number.lstrip("0")] = match[0]
        if len(asked) == _MOST:
            break
    folded = [fold(passage) for passage in passages] if asked else []
    absent = []
    for noun, numbers in asked.items():
        pattern = re.compile(rf"\b{re.escape(noun)}\s+{_MARK}(\d+)\b")
        held = {found.lstrip("0") for passage in folded for found in pattern.findall(passage)}
        absent += [written for number, written in numbers.items() if held and number not in held]
    return tuple(absent)


def _is_named(noun: str, behind: str) -> bool:
    """Whether the number is a name, and counts or measures nothing: what it counts would follow it."""
    if noun in _NAMED_BY_NUMBER:
        return True
    if any(noun in words for words in STOP_WORDS.values()) or noun in _OF_QUANTITIES:
        return False
    following = _FOLLOWING.match(behind)
    return following is None or any(fold(following[1]) in words for words in STOP_WORDS.values())
