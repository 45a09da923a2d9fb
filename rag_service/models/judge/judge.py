"""What a judge of citations is asked, and what it answers."""

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
