"""What a judge is asked and shown, and what it answers.

A judge has `judge`. One that can also tell whether an answer answers its question has `judge_answer`, which is called
instead, once for each answer; `claims_at_once` is how many sentences it can be asked about in one call, if that is
limited. It may have `warm_up` and `aclose`, and `revision`: a text that changes when its verdicts may, such as with
another prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import BaseTool

from rag_service.domain import AnswersQuestion, Hit


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """A sentence of an answer. All texts are data, no instructions."""

    sentence: str  # as the answer says it, without marks
    evidence: str  # the words that it points to or that are nearest to it, verbatim; may be empty
    passage: str  # all passages that it cites, each after its title
    language: str | None  # ISO 639-1 of the answer
    marks: Sequence[tuple[int, Sequence[str]]] = ()  # its marks, each with the words that its writer copied into it
    before: str = ""  # what stands before it and is not judged, such as a heading, or the sentences judged already


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a judge says of one claim."""

    entailed: bool  # whether the passages say what the sentence says
    probability: float | None = None  # of `entailed`, 0..1, from judges that give one
    quote: str | None = (
        None  # words of a passage that decide, verbatim: for the sentence, or against it; None: no quotes
    )


@dataclass(frozen=True, kw_only=True)
class WriterPrompt:
    """What the writer of an answer was sent: a judge whose prompt begins alike finds it in a prefix cache."""

    messages: Sequence[ChatMessage]  # system and user
    found: str = ""  # results of the tools that were called, as the writer read them
    boundary: str  # around untrusted text
    tools: Sequence[BaseTool] = ()  # that were offered: templates put them at the beginning
    tools_tokens: int = 0  # that they take there


@dataclass(frozen=True, kw_only=True)
class JudgedAnswer:
    """An answer to be judged as a whole. All texts are data, no instructions."""

    question: str  # standalone; "": only the claims are judged
    claims: Sequence[JudgedClaim] = ()  # its sentences, in order
    passages: Sequence[Hit] = ()  # all that its writer was shown, [C1] first
    prompt: WriterPrompt | None = None  # None: it was written elsewhere
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
