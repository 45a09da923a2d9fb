"""The measures of a run, per question, so that two runs can be compared in pairs.

Sets of passages are judged by passage. In own sets, whose questions name documents, precision and reciprocal rank
count passages (a hit is right if its document is), recall and nDCG count documents, each at its best passage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rag_service.domain import Answer, CitationStatus, Decision
from rag_service.evaluation.eval_set import Question
from rag_service.language.words import fold

SECTION_RANK = 3  # the right section must be among the first hits
BINS = 5  # of confidence
LESS_IS_BETTER = frozenset({"refused wrongly", "unverified", "proceeds wrongly", "quotes"})

_MARKS = re.compile(r"(?<!\s)\s*+\[C\d+\]")


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A hit, to be judged."""

    key: str  # passage key, or file name of the document
    chunk_id: str
    right_section: bool = False


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One measure of a set's questions, in order; None where it does not apply."""

    values: tuple[float | None, ...]
    weights: tuple[int, ...] | None = None  # number of things that each value is a share of; None: 1

    def mean(self, chosen: Iterable[int] | None = None) -> float | None:
        """Weighted mean over the chosen questions (None: all); None if there are no values."""
        total = count = 0.0
        for number in range(len(self.values)) if chosen is None else chosen:
            value = self.values[number]
            if value is not None:
                weight = 1 if self.weights is None else self.weights[number]
                total += weight * value
                count += weight
        return total / count if count else None


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
    of_passages: dict[str, Score] = {**{f"P@{k}": partial(precision, k=k) for k in ks}, "RR": reciprocal_rank}
    of_targets: dict[str, Score] = {**{f"R@{k}": partial(recall, k=k) for k in ks}, "nDCG@10": partial(ndcg, k=10)}
    columns: dict[str, list[float | None]] = {name: [] for name in (*of_passages, *of_targets)}
    for question, ranking in zip(questions, rankings, strict=True):
        found, right = [hit.key for hit in ranking], question.targets
        if by_document:  # a passage is right if its document is
            places = [hit.chunk_id for hit in ranking]
            passages: Grades = {hit.chunk_id: 1 for hit in ranking if hit.key in right} or {"": 1}
            found = list(dict.fromkeys(found))
        else:
            places, passages = found, right
        for name, score in of_passages.items():
            columns[name].append(score(places, passages) if question.answerable else None)
        for name, score in of_targets.items():
            columns[name].append(score(found, right) if question.answerable else None)
    measures = {name: Measured(values=tuple(values)) for name, values in columns.items()}
    if any(question.sections for question in questions):
        measures[f"section@{SECTION_RANK}"] = Measured(
            values=tuple(
                float(any(hit.right_section for hit in ranking[:SECTION_RANK])) if question.sections else None
                for question, ranking in zip(questions, rankings, strict=True)
            )
        )
    return measures


Grades = Mapping[str, int]  # key → grade above 0; other keys are not relevant
Score = Callable[[Sequence[str], Grades], float]  # keys in the order found, best first


def precision(found: Sequence[str], judged: Grades, *, k: int) -> float:
    """Share of the first k that is relevant."""
    return sum(key in judged for key in found[:k]) / k


def recall(found: Sequence[str], judged: Grades, *, k: int) -> float:
    """Share of the relevant keys that is among the first k."""
    return sum(key in judged for key in found[:k]) / len(judged) if judged else 0.0


def reciprocal_rank(found: Sequence[str], judged: Grades) -> float:
    """1 / rank of the first relevant key; 0 if there is none."""
    return next((1 / place for place, key in enumerate(found, start=1) if key in judged), 0.0)


def ndcg(found: Sequence[str], judged: Grades, *, k: int) -> float:
    """Discounted gain of the first k, as a share of the best order's (Järvelin and Kekäläinen, TOIS 2002)."""
    best = _discounted(sorted(judged.values(), reverse=True)[:k])
    return _discounted([judged.get(key, 0) for key in found[:k]]) / best if best else 0.0


def _discounted(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, start=1))


def measure_refusals(questions: Sequence[Question], refused: Sequence[bool]) -> dict[str, Measured]:
    """`refused right` of unanswerable questions, `refused wrongly` of the others."""
    pairs = list(zip(questions, refused, strict=True))
    return {
        "refused right": Measured(values=tuple(None if q.answerable else float(was) for q, was in pairs)),
        "refused wrongly": Measured(values=tuple(float(was) if q.answerable else None for q, was in pairs)),
    }


def is_refusal(answer: Answer) -> bool:
    """Whether the service reported that the documents do not answer."""
    return answer.decision is Decision.OUT_OF_SCOPE


def holds_answer(text: str, answers: Sequence[str]) -> bool:
    """Whether a text contains one of the wordings, ignoring marks, accents, case and white space."""
    said = _plain(text)
    return any(_plain(answer) in said for answer in answers)


def _plain(text: str) -> str:
    return " ".join(fold(_MARKS.sub("", text)).replace("*", "").split())


def measure_answers(questions: Sequence[Question], answers: Sequence[Answer]) -> dict[str, Measured]:
    """Measures of answers.

    `contained`: a gold answer is in the reply; `first quote`: before its first mark. `proceeds right`: it is, and the
    decision is `can_proceed`; `proceeds wrongly`: of unanswerable questions with that decision. `quotes`: number of
    citations in a reply. `citation precision`: share of verified citations. `unverified`: share of other citations and
    of sentences without a mark among both kinds and the verified ones.
    """
    pairs = list(zip(questions, answers, strict=True))
    citations = [len(answer.citations) for answer in answers]
    verified = [sum(c.status is CitationStatus.VERIFIED for c in answer.citations) for answer in answers]
    proceeds = [answer.decision is Decision.CAN_PROCEED for answer in answers]
    held = [
        None if not question.answers or not question.answerable else holds_answer(answer.text, question.answers)
        for question, answer in pairs
    ]
    claims = [count + answer.unmarked_sentences for count, answer in zip(citations, answers, strict=True)]
    return {
        "contained": Measured(
            values=tuple(
                None if holds is None else float(holds and not is_refusal(answer))
                for holds, answer in zip(held, answers, strict=True)
            )
        ),
        "first quote": Measured(
            values=tuple(
                None if holds is None else float(holds_answer(_MARKS.split(answer.text)[0], question.answers))
                for holds, (question, answer) in zip(held, pairs, strict=True)
            )
        ),
        "proceeds right": Measured(
            values=tuple(
                None if holds is None else float(holds and sure) for holds, sure in zip(held, proceeds, strict=True)
            )
        ),
        "proceeds wrongly": Measured(
            values=tuple(
                None if question.answerable else float(sure) for question, sure in zip(questions, proceeds, strict=True)
            )
        ),
        "quotes": Measured(values=tuple(float(count) if count else None for count in citations)),
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
    """Answers of similar confidence."""

    low: float
    high: float
    count: int
    confidence: float  # mean
    right: float  # share of answers that hold a gold answer


def reliability(questions: Sequence[Question], answers: Sequence[Answer]) -> list[Bin]:
    """Correctness by confidence of the answers that are no refusals, in quantiles: most confidences are near 1."""
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
    """Category → indices of its questions."""
    members: dict[str, list[int]] = {}
    for number, question in enumerate(questions):
        if question.category:
            members.setdefault(question.category, []).append(number)
    return members
