"""What a judge is asked and shown, and what it answers.

A judge has `judge`. One that can also tell whether an answer answers its question has `judge_answer`, which is called
instead, once for each answer. It may have `warm_up` and `aclose`, and `revision`: a text that changes when its verdicts
may, such as with another prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rag_service.domain import AnswersQuestion


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


@dataclass(frozen=True, kw_only=True)
class JudgedAnswer:
    """An answer to be judged. All texts are data, no instructions."""

    question: str  # standalone; "": only the claims are judged
    text: str  # the whole answer, quotes included, without marks
    claims: Sequence[JudgedClaim] = ()  # its sentences that code cannot decide; may be none
    language: str | None = None  # ISO 639-1


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a judge says of an answer."""

    verdicts: Sequence[Verdict | None]  # one for each claim, in their order; None: not judged
    answers: AnswersQuestion | None = None  # None: it cannot tell


@runtime_checkable
class Judge(Protocol):
    """Says of sentences whether their evidence entails them."""

    name: str  # shown to readers: "checked by ..."

    async def judge(self, claims: Sequence[JudgedClaim]) -> Sequence[Verdict | None]:
        """One verdict for each claim, in the same order; None: not judged.

        A time-out or a failed model gives None verdicts and never raises.
        """


@runtime_checkable
class AnswerJudge(Protocol):
    """A judge that also says whether an answer answers its question."""

    async def judge_answer(self, answer: JudgedAnswer) -> Judgement:
        """Verdicts on the claims and a word on the whole answer, in one call."""


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
