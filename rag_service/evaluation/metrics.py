"""What a run measures, per question, so that two runs can be compared in pairs.

Ranking measures come from ir_measures. On sets of passages everything is counted in passages. On
own sets, whose questions name documents, precision and reciprocal rank count passages (a hit is
right when its document is), recall and nDCG count documents, each at its best passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import ir_measures
from ir_measures import RR, P, R, nDCG

from rag_service.domain import Answer, CitationStatus, Decision
from rag_service.evaluation.eval_set import Question
from rag_service.text.words import fold

SECTION_RANK = 3  # the right section must stand among this many first hits
BINS = 5  # of confidence
LESS_IS_BETTER = frozenset({"refused wrongly", "unverified"})

_MARKS = re.compile(r"(?<!\s)\s*+\[C\d+\]")


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A hit, as far as judging needs it."""

    key: str  # passage key, or file name of the document
    chunk_id: str
    relevance: float
    right_section: bool = False


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One measure over the questions of a set, in their order; None where it does not apply."""

    values: tuple[float | None, ...]
    weights: tuple[int, ...] | None = None  # how many things each value is the share of; None: 1 each

    def mean(self, chosen: Iterable[int] | None = None) -> float | None:
        """Weighted mean over the chosen questions (None: all); None when it applies to none of them."""
        total = count = 0.0
        for number in range(len(self.values)) if chosen is None else chosen:
            value = self.values[number]
            if value is not None:
                weight = 1 if self.weights is None else self.weights[number]
                total += weight * value
                count += weight
        return total / count if count else None


Measures = Mapping[str, Measured]


def measure_ranking(
    questions: Sequence[Question], rankings: Sequence[Sequence[Ranked]], *, ks: Sequence[int], by_document: bool
) -> dict[str, Measured]:
    """P@k, R@k, RR and nDCG@10 of the answerable questions, and section@3 where the set names sections.

    Args:
        questions: of the set.
        rankings: for each question its hits, best first.
        ks: cut-offs of P and R.
        by_document: the questions name documents, not passages.
    """
    asked = [number for number, question in enumerate(questions) if question.answerable]
    documents = [_first_of_each(ranking) for ranking in rankings] if by_document else rankings
    judged = {number: dict(questions[number].targets) for number in asked}
    if by_document:
        passages = {
            number: {hit.chunk_id: 1 for hit in rankings[number] if hit.key in judged[number]} or {"": 1}
            for number in asked
        }
        found = {number: [hit.chunk_id for hit in rankings[number]] for number in asked}
    else:
        passages, found = judged, {number: [hit.key for hit in rankings[number]] for number in asked}
    first = _calculate([*(P @ k for k in ks), RR], passages, found, len(questions))
    second = _calculate(
        [*(R @ k for k in ks), nDCG @ 10], judged,
        {number: [hit.key for hit in documents[number]] for number in asked}, len(questions),
    )  # fmt: skip
    measures = first | second
    if any(question.sections for question in questions):
        measures[f"section@{SECTION_RANK}"] = Measured(
            values=tuple(
                float(any(hit.right_section for hit in ranking[:SECTION_RANK])) if question.sections else None
                for question, ranking in zip(questions, rankings, strict=True)
            )
        )
    return measures


def _first_of_each(ranking: Sequence[Ranked]) -> list[Ranked]:
    best: dict[str, Ranked] = {}
    for hit in ranking:
        best.setdefault(hit.key, hit)
    return list(best.values())


def _calculate(
    measures: Sequence[ir_measures.measures.Measure],
    judged: Mapping[int, Mapping[str, int]],
    found: Mapping[int, Sequence[str]],
    count: int,
) -> dict[str, Measured]:
    qrels = [
        ir_measures.Qrel(str(number), key, grade) for number, grades in judged.items() for key, grade in grades.items()
    ]
    # Ranks as scores: what is judged is the order that a reader sees, ties included.
    run = [
        ir_measures.ScoredDoc(str(number), key, float(-rank))
        for number, keys in found.items()
        for rank, key in enumerate(keys)
    ]
    values: dict[str, list[float | None]] = {
        str(measure): [0.0 if number in judged else None for number in range(count)] for measure in measures
    }
    if qrels and run:
        for result in ir_measures.iter_calc(list(measures), qrels, run):
            values[str(result.measure)][int(result.query_id)] = float(result.value)
    return {name: Measured(values=tuple(column)) for name, column in values.items()}


def measure_refusals(questions: Sequence[Question], refused: Sequence[bool]) -> dict[str, Measured]:
    """Both ways to be wrong: `refused right` of unanswerable questions, `refused wrongly` of the others."""
    return {
        "refused right": Measured(
            values=tuple(
                None if question.answerable else float(was) for question, was in zip(questions, refused, strict=True)
            )
        ),
        "refused wrongly": Measured(
            values=tuple(
                float(was) if question.answerable else None for question, was in zip(questions, refused, strict=True)
            )
        ),
    }


def is_refusal(answer: Answer) -> bool:
    """Whether the service said that the documents do not answer."""
    return answer.decision is Decision.OUT_OF_SCOPE


def holds_answer(text: str, answers: Sequence[str]) -> bool:
    """Whether a text holds one of the wordings, marks, accents, case and white space aside."""
    said = _plain(text)
    return any(_plain(answer) in said for answer in answers)


def _plain(text: str) -> str:
    return " ".join(fold(_MARKS.sub("", text)).replace("*", "").split())


def measure_answers(questions: Sequence[Question], answers: Sequence[Answer]) -> dict[str, Measured]:
    """`contained`: a gold answer stands in the reply; `citation precision`: verified citations as a share
    of all; `unverified`: the others, and sentences without a mark, as a share of what was claimed."""
    pairs = list(zip(questions, answers, strict=True))
    citations = [len(answer.citations) for answer in answers]
    verified = [sum(c.status is CitationStatus.VERIFIED for c in answer.citations) for answer in answers]
    claims = [count + answer.unmarked_sentences for count, answer in zip(citations, answers, strict=True)]
    return {
        "contained": Measured(
            values=tuple(
                float(not is_refusal(answer) and holds_answer(answer.text, question.answers))
                if question.answerable and question.answers
                else None
                for question, answer in pairs
            )
        ),
        "citation precision": Measured(values=_shares(verified, citations), weights=tuple(citations)),
        "unverified": Measured(
            values=_shares([claim - right for claim, right in zip(claims, verified, strict=True)], claims),
            weights=tuple(claims),
        ),
    }


def _shares(parts: Sequence[int], wholes: Sequence[int]) -> tuple[float | None, ...]:
    return tuple(part / whole if whole else None for part, whole in zip(parts, wholes, strict=True))


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Answers of similar confidence: is it deserved?"""

    low: float
    high: float
    count: int
    confidence: float  # mean
    right: float  # share of answers that hold a gold answer


def reliability(questions: Sequence[Question], answers: Sequence[Answer]) -> list[Bin]:
    """Correctness by confidence over the questions that were answered; empty bins are left out.

    The bins are quantiles: confidences crowd near 1, and bins of equal width would hold nothing.
    """
    rated = sorted(
        (answer.confidence.value, question.answerable and holds_answer(answer.text, question.answers))
        for question, answer in zip(questions, answers, strict=True)
        if not is_refusal(answer) and (question.answers or not question.answerable)
    )
    size = -(-len(rated) // BINS) or 1
    parts = [rated[start : start + size] for start in range(0, len(rated), size)]
    return [
        Bin(
            low=part[0][0],
            high=part[-1][0],
            count=len(part),
            confidence=sum(confidence for confidence, _ in part) / len(part),
            right=sum(right for _, right in part) / len(part),
        )
        for part in parts
    ]


def by_category(questions: Sequence[Question]) -> dict[str, list[int]]:
    """Category → numbers of its questions, in order of appearance."""
    members: dict[str, list[int]] = {}
    for number, question in enumerate(questions):
        if question.category:
            members.setdefault(question.category, []).append(number)
    return members
