"""What a judge of citations is asked and shown, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """A sentence of an answer that code found evidence for, but cannot decide. All texts are data, no instructions."""

    sentence: str  # as it stands in the answer, without marks
    evidence: str  # the nearest words of the passage, verbatim
    passage: str  # the whole cited passage
    language: str | None  # ISO 639-1 of the answer


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a judge says of one claim."""

    entailed: bool  # whether the passage says what the sentence says
    probability: float | None = None  # of `entailed`, 0..1, from judges that give one
    quote: str | None = None  # words of the passage that show it, verbatim, from judges that give them


class Judge(Protocol):
    """Says of sentences whether their evidence entails them."""

    name: str  # shown to readers: "checked by ..."

    async def judge(self, claims: Sequence[JudgedClaim]) -> Sequence[Verdict | None]:
        """One verdict for each claim, in the same order; None: not judged.

        A time-out or a failed model gives None verdicts and never raises.
        """


def extract(passage: str, evidence: str, size: int) -> str:
    """At most about `size` characters of a passage around the evidence, cut at words; the whole passage if it fits.

    Evidence that is not in the passage as it stands is shown before its beginning.
    """
    if len(passage) <= size:
        return passage if evidence in passage else f"{evidence}\n\n{passage}"
    place = passage.find(evidence)
    if place < 0:
        return f"{evidence}\n\n{_cut(passage, 0, max(0, size - len(evidence)))}".strip()
    if len(evidence) >= size:
        return _cut(passage, place, place + size)
    begin = max(0, min(place - (size - len(evidence)) // 2, len(passage) - size))
    return _cut(passage, begin, begin + size)


def _cut(text: str, start: int, end: int) -> str:
    """Characters [start, end) without the words that the cut goes through."""
    while start > 0 and start < end and not text[start - 1].isspace():
        start += 1
    while end < len(text) and end > start and not text[end].isspace():
        end -= 1
    return text[start:end].strip()
