"""The sets on disk: questions with their right answers, and the files that they are about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.sets.files import file_names, read_file

FOLDER = Path(__file__).parent
HALVES = ("developed", "blind")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question with its right answers."""

    text: str
    language: str  # ISO 639-1
    documents: tuple[str, ...]  # names of the files that it is about; empty: of none
    answers: tuple[tuple[str, ...], ...]  # any is right, if all its parts are said; empty: the files do not answer it
    half: str  # "developed": looked at while the rules were made; "blind": not before they were done
    cells: str | None = None  # of a sheet, "D2:D9": where a computed answer takes its value from
    certain: bool | None = None  # whether the answer must be one that can proceed, or must not; None: not settled
    operation: Mapping[str, Any] | None = None  # what a chat model that understands proposes for a table


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """Questions about the files of a folder."""

    name: str
    folder: Path
    questions: tuple[Question, ...]

    @property
    def file_names(self) -> list[str]:
        return file_names(self.folder / "files")

    def read_file(self, name: str) -> bytes:
        """The content of a file of the set."""
        return read_file(self.folder / "files", name)


def set_names() -> list[str]:
    """The sets there are."""
    return sorted(path.parent.name for path in FOLDER.glob("*/questions.jsonl"))


def read_set(name: str) -> QuestionSet:
    """A set by the name of its folder. Raises ValueError, which names the line, if one is wrong."""
    folder = FOLDER / name
    read = QuestionSet(name=name, folder=folder, questions=tuple(_read_questions(folder / "questions.jsonl")))
    for question in read.questions:
        if missing := set(question.documents) - set(read.file_names):
            raise ValueError(f"{name}: {question.text!r} is about {', '.join(missing)}, which is not among its files.")
    return read


def _read_questions(path: Path) -> list[Question]:
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            questions.append(_read_question(json.loads(line)))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}:{number}: {error}") from error
    return questions


def _read_question(row: dict[str, Any]) -> Question:
    if row["half"] not in HALVES:
        raise ValueError(f"half must be one of {', '.join(HALVES)}")
    return Question(
        text=row.pop("question"),
        documents=tuple(row.pop("documents")),
        answers=tuple((one,) if isinstance(one, str) else tuple(one) for one in row.pop("answers")),
        **row,
    )
