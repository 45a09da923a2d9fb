"""Joins the answers to the parts of a question.

Each part is answered as a question of its own. The whole is right if all of them are, so its confidence is the product
of theirs, and its decision that of the least certain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from rag_service.domain import Answer, Citation, Confidence, Decision, Hit, TokenCount
from rag_service.language.languages import quote_text

_MARK = re.compile(r"\[C(\d+)")


def join_answers(question: str, parts: Sequence[tuple[str, Answer]], *, doubtful: str) -> Answer | None:
    """One answer with the answer to each part below the part; None if they all say the same, or nothing.

    Its decision is yet to be made.

    Args:
        question: the whole.
        parts: each with its answer, in the question's order.
        doubtful: the sentence that stands before an uncertain answer to a part.
    """
    answers = [answer for _, answer in parts]
    if len({tuple(map(_place, answer.citations)) for answer in answers}) == 1:
        return None
    first = answers[0]
    shown = tuple({hit.chunk.id: hit for answer in answers for hit in answer.shown}.values())
    marks = {hit.chunk.id: mark for mark, hit in enumerate(shown, start=1)}
    pieces: list[str] = []
    citations: list[Citation] = []
    flagged: list[tuple[int, int]] = []
    offset = 0
    for part, answer in parts:
        head = f"{quote_text(part, answer.language)}:\n"
        if answer.decision is Decision.UNCERTAIN and not answer.text.startswith(doubtful):
            head += f"{doubtful}\n\n"
        text, moved = _renumber(answer, marks)
        start = offset + len(head)
        citations += [
            replace(one, mark=moved.mark(one.mark), sentence_start=start + moved.place(one.sentence_start),
                    sentence_end=start + moved.place(one.sentence_end))
            for one in answer.citations
        ]  # fmt: skip
        flagged += [(start + moved.place(begin), start + moved.place(end)) for begin, end in answer.flagged]
        pieces.append(head + text)
        offset = start + len(text) + 2
    return replace(
        first,
        question=question,
        text="\n\n".join(pieces),
        sources=tuple({hit.chunk.id: hit for answer in answers for hit in answer.sources}.values()),
        shown=shown,
        citations=tuple(citations),
        confidence=_join_confidence([answer.confidence for answer in answers]),
        tokens=TokenCount(
            prompt=sum(answer.tokens.prompt for answer in answers),
            completion=sum(answer.tokens.completion for answer in answers),
            estimated=any(answer.tokens.estimated for answer in answers),
        ),
        unmarked_sentences=sum(answer.unmarked_sentences for answer in answers),
        withheld_sentences=sum(answer.withheld_sentences for answer in answers),
        flagged=tuple(flagged),
        guardrails=tuple(chain.from_iterable(answer.guardrails for answer in answers)),
        answers_question=None,
        searched_for=None,
        related=_first_hits([answer.related for answer in answers]),
    )


class _Moved:
    """Where the characters and marks of a text are after its marks were renumbered."""

    def __init__(self, numbers: dict[int, int], changes: Sequence[tuple[int, int]]):
        self._numbers = numbers
        self._changes = changes  # (end of a mark before, characters that it has more)

    def mark(self, number: int) -> int:
        return self._numbers.get(number, number)

    def place(self, offset: int) -> int:
        return offset + sum(more for end, more in self._changes if end <= offset)


def _renumber(answer: Answer, marks: dict[str, int]) -> tuple[str, _Moved]:
    numbers = {number: marks[hit.chunk.id] for number, hit in enumerate(answer.shown, start=1)}
    changes: list[tuple[int, int]] = []

    def renumber(match: re.Match[str]) -> str:
        written = f"[C{numbers.get(int(match[1]), int(match[1]))}"
        changes.append((match.end(), len(written) - len(match[0])))
        return written

    text = _MARK.sub(renumber, answer.text)
    return text, _Moved(numbers, changes)


def _place(citation: Citation) -> tuple[object, ...]:
    return citation.chunk_id, citation.start, citation.end, citation.formula


def _join_confidence(parts: Sequence[Confidence]) -> Confidence:
    weakest = min(parts, key=lambda part: part.value)
    return replace(weakest, value=round(math.prod(part.value for part in parts), 2))


def _first_hits(lists: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    return tuple({hit.chunk.id: hit for hits in lists for hit in hits}.values())
