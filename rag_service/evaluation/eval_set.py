"""An evaluation set: questions, their right answers, and the texts or documents that they are about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import permutations
from pathlib import Path

from rag_service.errors import EvalSetError


class SetKind(StrEnum):
    OWN = "own"  # questions in JSONL over a folder of documents
    SQUAD = "squad"  # paragraphs and questions in one JSON file
    BEIR = "beir"  # corpus.jsonl, queries.jsonl, qrels/test.tsv


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text that becomes exactly one chunk."""

    key: str  # unique in the set; what relevance judgements name
    text: str
    group: int  # number of its article, from 0: passages of one article belong together


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with its right answers."""

    key: str
    text: str
    answerable: bool
    category: str = ""  # "" where the set has none
    answers: tuple[str, ...] = ()  # wordings, any of which is right
    targets: Mapping[str, int] = field(default_factory=dict)  # passage key or file name → grade
    sections: tuple[str, ...] = ()  # headings, any of which is right
    group: int = 0  # number of its article, from 0


@dataclass(frozen=True, kw_only=True)
class EvalSet:
    """Questions, and the passages or documents that they are about."""

    name: str
    path: Path
    kind: SetKind
    digest: str  # SHA-256 of the set's files, hex
    questions: tuple[Question, ...]
    passages: tuple[Passage, ...] = ()
    documents: tuple[Path, ...] = ()  # files of an own set
    left_out: str = ""  # which articles are missing from the corpus
    passage_format: str = ""  # runs over passages of different formats cannot be compared

    @property
    def groups(self) -> list[int]:
        """Numbers of the articles that the questions are about."""
        return sorted({question.group for question in self.questions})


def leave_out(loaded: EvalSet, *, every: int, offset: int | None = None) -> EvalSet:
    """A SQuAD-format set with every n-th article missing from the corpus, its questions unanswerable.

    Raises EvalSetError if the set has no articles, or too few. `every`: n; 2 leaves out one half. `offset`: 0 ≤ offset
    < n; None: the last of each n.
    """
    if loaded.kind is not SetKind.SQUAD:
        raise EvalSetError(f"{loaded.path}: --leave-out needs a set of articles; use one in SQuAD format.")
    if len(loaded.groups) < every:
        raise EvalSetError(f"{loaded.path}: has {len(loaded.groups)} articles; --leave-out {every} needs as many.")
    rest = every - 1 if offset is None else offset
    return replace(
        loaded,
        passages=tuple(passage for passage in loaded.passages if passage.group % every != rest),
        questions=tuple(
            replace(question, answerable=False, targets={}) if question.group % every == rest else question
            for question in loaded.questions
        ),
        left_out=f"{rest + 1} of {every}",
    )


def translate_questions(loaded: EvalSet, asked: EvalSet) -> EvalSet:
    """The passages of a set with the questions of its translation, as far as it has them.

    Ids may begin with a language: "en-01-1-1" and "es-01-1-1" are one question.

    Raises:
        EvalSetError: the sets have no ids in common.
    """
    texts = {_without_language(question.key): question.text for question in asked.questions}
    questions = tuple(
        replace(question, text=texts[key])
        for question in loaded.questions
        if (key := _without_language(question.key)) in texts
    )
    if not questions:
        raise EvalSetError(f"{loaded.path} and {asked.path} are no translations: their questions have different ids.")
    return replace(loaded, name=f"{asked.name} on {loaded.name}", questions=questions)


def translate_sets(sets: Sequence[EvalSet]) -> list[EvalSet]:
    """The questions of each set over the passages of each of the others that is a translation of it.

    Raises:
        EvalSetError: none is a translation of another.
    """
    keys = [{_without_language(question.key) for question in some.questions} for some in sets]
    pairs = [(one, other) for one, other in permutations(range(len(sets)), 2) if not keys[one].isdisjoint(keys[other])]
    if not pairs:
        raise EvalSetError("None of these sets is a translation of another: their questions have different ids.")
    return [translate_questions(sets[one], sets[other]) for one, other in pairs]


def _without_language(key: str) -> str:
    return re.sub(r"\A[a-z]{2}-", "", key)


def leave_passages_out(loaded: EvalSet, *, half: int) -> EvalSet:
    """The questions of a SQuAD-format set whose passages are missing, over the other passages of the same articles.

    `half`: 0 leaves out the passages at even positions, 1 those at odd ones.
    """
    missing = {passage.key for passage in loaded.passages[half::2]}
    return replace(
        loaded,
        passages=loaded.passages[1 - half :: 2],
        questions=tuple(
            replace(question, answerable=False, targets={})
            for question in loaded.questions
            if question.answerable and missing >= question.targets.keys()
        ),
        left_out=f"passages, half {half + 1}",
    )
