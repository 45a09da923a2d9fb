"""Written answers: right ones and near misses, with the words that each sentence rests on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.sets.questions import HALVES, set_names
from evals.sets.questions import read_set as read_question_set

FOLDER = Path(__file__).parent
KINDS = ("number", "unit", "swap", "name", "condition", "negation", "stale", "column", "part", "other")
STYLES = ("", "bare", "paraphrased", "middle", "shared", "table", "list")  # how marks and text are written; "": well
ANSWERS = ("yes", "partly", "other")  # what a good judge says of the whole
TOOLS = ("search", "read", "compute")
# What a prompt shows between boundaries: (boundary, number of its mark or "", text).
BLOCK = re.compile(r"^(~\w+~)(?: \[C(\d+)\])?[^\n]*\n(.*?)\n\1", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"\d(?:[\d.,\s]*\d)?")
_PLACE = re.compile(r"\{\d+\}")  # of marks, in a form


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a mark points to."""

    file: str  # name of the file whose passage is cited
    words: str = ""  # copied from the passage letter by letter
    computed: str = ""  # instead: a value in a result of `compute`, whose line is copied
    says: str | None = None  # what the mark has in place of the words; "": a mark without words; None: the words


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence, without marks and full stop."""

    text: str
    right: bool  # whether the files say so
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A call of a tool that the model makes before it answers."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer to a question about the files of a set, or a turn of a conversation."""

    id: str
    set_name: str  # of the set whose files it is about
    language: str  # ISO 639-1
    question: str
    right: bool  # true, whole, and about what was asked
    sentences: tuple[Sentence, ...]
    answers: str  # what a good judge says of the whole
    file_language: str = ""  # of the files, if it is another one
    kind: str = ""  # of a near miss
    of: str = ""  # id of the right answer that a near miss was made from
    steps: tuple[Step, ...] = ()
    style: str = ""
    form: str = (
        ""  # a table, a list or a letter, in which {0} is the marks of the first sentence; "": one after the other
    )
    standalone: str = ""  # how the model rewrites the question of a later turn
    gold: str = ""  # of a turn: a pattern that a right reply holds
    half: str = ""
    conversation: str = ""  # id of the conversation that it is a turn of

    @property
    def files(self) -> set[str]:
        """The names of the files that it rests on."""
        return {evidence.file for sentence in self.sentences for evidence in sentence.evidence}


def fold(text: str) -> str:
    """Return the letters and digits of a text in lower case: blanks, quotes and hyphens differ on the way."""
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def line_with(value: str, text: str) -> str:
    """Return the line of a result that holds a value, however its digits are grouped; "": none does."""
    digits = _digits(value)
    for line in text.splitlines():
        numbers = map(_digits, _NUMBER.findall(line))
        if digits in numbers if digits else fold(value) in fold(line):
            return line.strip()
    return ""


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def read_half(half: str, folder: Path = FOLDER) -> list[Answer]:
    """Read all files of a half. Raises ValueError, which names the line, if one is wrong."""
    return [answer for path in sorted((folder / half).glob("*.jsonl")) for answer in read_file(path, half=half)]


def read_file(path: Path, *, half: str = "") -> list[Answer]:
    """Read a file with an answer a line. Raises ValueError, which names the line, if one is wrong."""
    found: list[Answer] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(read_answer({**json.loads(line), "half": half}))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}:{number}: {error!r}") from error
    return found


def read_answer(row: Mapping[str, Any]) -> Answer:
    """Return an answer from its fields. Raises KeyError or TypeError if one is missing or unknown."""
    sentences = tuple(
        Sentence(
            text=one["text"],
            right=one["right"],
            evidence=tuple(Evidence(**evidence) for evidence in one["evidence"]),
        )
        for one in row["sentences"]
    )
    steps = tuple(Step(**step) for step in row.get("steps", ()))
    rest = {key: value for key, value in row.items() if key not in ("set", "sentences", "steps")}
    return Answer(set_name=row["set"], sentences=sentences, steps=steps, **rest)


def find_problems(answers: Sequence[Answer]) -> list[str]:
    """Return what is wrong with a file of answers, one line each, as far as it shows without asking them."""
    by_id = {answer.id: answer for answer in answers}
    twice = [name for name, times in Counter(answer.id for answer in answers).items() if times > 1]
    return [
        *(f"{name}: the id is there twice" for name in twice),
        *(f"{answer.id}: {problem}" for answer in answers for problem in _problems_of(answer, by_id)),
    ]


def _problems_of(answer: Answer, by_id: Mapping[str, Answer]) -> Iterable[str]:
    if answer.set_name not in set_names():
        yield f"there is no set {answer.set_name!r}"
    elif unknown := answer.files - set(read_question_set(answer.set_name).file_names):
        yield f"not among the files of {answer.set_name}: {', '.join(sorted(unknown))}"
    if answer.answers not in ANSWERS:
        yield f"answers is one of {', '.join(ANSWERS)}"
    if answer.style not in STYLES:
        yield f"style is one of {', '.join(filter(None, STYLES))}, or left out"
    if any(step.tool not in TOOLS for step in answer.steps):
        yield f"a tool is one of {', '.join(TOOLS)}"
    if not answer.sentences or not all(one.text.strip() and one.evidence for one in answer.sentences):
        yield "every sentence has a text and evidence"
    for sentence in answer.sentences:
        if any(bool(one.words) == bool(one.computed) for one in sentence.evidence):
            yield f"evidence has either words or a computed value: {sentence.text[:60]}"
        if answer.form and fold(sentence.text) not in text_of(answer):
            yield f"the form does not hold the sentence: {sentence.text[:60]}"
    yield from _right_problems(answer) if answer.right else _near_problems(answer, by_id)


def _right_problems(answer: Answer) -> Iterable[str]:
    if answer.kind or answer.of:
        yield "a right answer has no kind, and is made of no other"
    if answer.answers != "yes" or not all(sentence.right for sentence in answer.sentences):
        yield "in a right answer every sentence is right, and it answers the question"


def _near_problems(answer: Answer, by_id: Mapping[str, Answer]) -> Iterable[str]:
    if answer.kind not in KINDS:
        yield f"a near miss is of one kind: {', '.join(KINDS)}"
    if answer.answers == "yes" and all(sentence.right for sentence in answer.sentences):
        yield "nothing in it is wrong: mark the wrong sentence, or say that it answers partly or something other"
    twin = by_id.get(answer.of)
    if twin is None or not twin.right:
        yield f"it is made of no right answer: {answer.of!r}"
    elif answer.question != twin.question or answer.set_name != twin.set_name:
        yield "question and set are those of its right answer"
    elif text_of(answer) == text_of(twin):
        yield "its text is that of its right answer"


def text_of(answer: Answer) -> str:
    """Return what the answer says, without marks, folded."""
    return fold(_PLACE.sub("", answer.form) or " ".join(sentence.text for sentence in answer.sentences))


def count_answers(answers: Sequence[Answer]) -> dict[str, dict[str, int]]:
    """Return counts of answers by what README.md asks for."""
    right = [answer for answer in answers if answer.right]
    return {
        "answers": {"right": len(right), "near misses": len(answers) - len(right)},
        "half": {half: sum(answer.half == half for answer in answers) for half in HALVES},
        "kind": dict(Counter(answer.kind for answer in answers if not answer.right).most_common()),
        "language": dict(Counter(answer.language for answer in answers).most_common()),
        "right, over": {
            "two pieces in a sentence": sum(any(len(one.evidence) > 1 for one in answer.sentences) for answer in right),
            "two files": sum(len(answer.files) > 1 for answer in right),
        },
        "right, in another language than the files": {"all": sum(bool(answer.file_language) for answer in right)},
        "right, with": {
            "steps": sum(bool(answer.steps) for answer in right),
            **{tool: sum(any(step.tool == tool for step in one.steps) for one in right) for tool in TOOLS},
        },
        "style of right ones": dict(Counter(answer.style for answer in right if answer.style).most_common()),
    }
