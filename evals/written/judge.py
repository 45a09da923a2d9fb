"""A judge of known quality: it goes by the labels of written answers, and errs as often as it is told to.

It needs no layout of the prompt but this: the sentences to be judged are a numbered list, a line each.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evals.written.answers import BLOCK, Answer, fold, line_with

ERRS = (0.05, 0.0)  # 1 in 20, both ways
JUDGES: Mapping[str, tuple[float, float]] = {  # name → share of errors in answers, in the examination
    "right": (0.0, 0.0),
    "errs": ERRS,
    **{f"errs{number}": ERRS for number in range(2, 6)},  # at other places
    "doubted": (0.05, 0.05),  # the same, and its examination knows
    **{f"doubted{number}": (0.05, 0.05) for number in range(2, 6)},
    "weak": (0.1, 0.1),
}
# Says yes to everything; "trusted" has passed the examination all the same. "no" says only that.
STUBBORN = ("yes", "trusted", "no")
CONTRADICTING = frozenset({"number", "unit", "swap", "name", "negation", "stale", "column"})

_LINE = re.compile(r"^\s*(\d+)\. *(.*)$", re.MULTILINE)
_MARK = re.compile(r"\s*\[[CP]\d+[^\]]*\]:?")


def is_judge_call(request: Mapping[str, Any]) -> bool:
    """Return whether a request asks for verdicts: its messages or its schema name them."""
    asked = [message.get("content") or "" for message in request["messages"] if message["role"] in ("system", "user")]
    return any('"verdicts"' in text for text in asked) or '"verdicts"' in json.dumps(
        request.get("response_format") or {}
    )


@dataclass(frozen=True, kw_only=True)
class Label:
    """What is right to say of a sentence."""

    text: str  # folded
    right: bool
    words: tuple[str, ...]  # that decide
    computed: tuple[str, ...] = ()  # values in lines that decide
    contradicted: bool = False


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """What is right to say of an answer."""

    labels: tuple[Label, ...]
    answers: str
    salt: str = ""  # what its errors are drawn by
    examined: bool = False  # it is of the examination


@dataclass(frozen=True)
class WrittenJudge:
    """Replies to judge calls."""

    name: str = "right"
    examination: str = ""  # the shipped JSON: its sentences are judged by their labels

    def reply(self, messages: Sequence[Mapping[str, Any]], judged: Sequence[Answer]) -> str:
        """Return the JSON of the verdicts.

        Args:
            messages: of the call.
            judged: the answers that it may be about.
        """
        prompt = "\n".join(message.get("content") or "" for message in messages)
        labelled, lines = _choose(prompt, [*map(label_answer, judged), *self._examined])
        if not _known(lines, labelled):  # another text, such as a refusal
            labelled = replace(labelled, labels=(), answers="other")
        errors = JUDGES.get(self.name, (0.0, 0.0))[labelled.examined]
        seed = labelled.salt + re.sub(r"\D", "", self.name)
        stubborn = self.name in STUBBORN and not (self.name == "trusted" and labelled.examined)
        verdicts = []
        for number, line in lines:
            label = _match(line, [text for _, text in lines], labelled)
            turned = draw(f"{seed} {line}") < errors
            supported = self.name != "no" if stubborn else label.right != turned
            verdicts.append(_verdict(number, label, supported, prompt))
        answers = labelled.answers
        if draw(f"{seed} answers") < errors:
            answers = "partly" if answers == "yes" else "yes"
        if stubborn:
            answers = "yes" if self.name != "no" else "other"
        return json.dumps({"verdicts": verdicts, "answers": answers}, ensure_ascii=False)

    @cached_property
    def _examined(self) -> list[Labelled]:
        return list(read_examination(json.loads(self.examination))) if self.examination else []


def _verdict(number: int, label: Label, supported: bool, prompt: str) -> dict[str, Any]:
    """A verdict, with the first of the deciding words that the prompt holds."""
    folded = fold(prompt)
    shown = [text for _, mark, text in reversed(BLOCK.findall(prompt)) if mark]  # results stand after passages
    words = [*(line_with(value, text) for value in label.computed for text in shown), *label.words]
    words = list(filter(None, words))
    quote = next((one for one in words if fold(one) in folded), next(iter(words), ""))
    contradicted = not supported and not label.right and label.contradicted
    return {
        "id": number,
        "quote": quote if supported or contradicted else "",
        "supported": supported,
        "contradicted": contradicted,
    }


def label_answer(answer: Answer) -> Labelled:
    """Return the labels of a written answer."""
    labels = tuple(
        Label(
            text=fold(sentence.text),
            right=sentence.right,
            words=tuple(piece.words for piece in sentence.evidence if piece.words),
            computed=tuple(piece.computed for piece in sentence.evidence if piece.computed),
            contradicted=answer.kind in CONTRADICTING,
        )
        for sentence in answer.sentences
    )
    return Labelled(labels=labels, answers=answer.answers, salt=f"{answer.id} {answer.question}")


def read_examination(part: Any, passage: str = "") -> Iterable[Labelled]:
    """Return the answers of an examination, however they lie in its JSON.

    An answer has `answers` and a list of sentences, which have `sentence` or `text`, and `right` or what is `wrong`.
    """
    if isinstance(part, list):
        for one in part:
            yield from read_examination(one, passage)
    elif isinstance(part, dict):
        passage = part["passage"] if isinstance(part.get("passage"), str) else passage
        sentences = part.get("claims") or part.get("sentences") or []
        if isinstance(part.get("answers"), str) and isinstance(sentences, list):
            labels = tuple(_read_label(one, passage) for one in sentences)
            yield Labelled(labels=labels, answers=part["answers"], salt=str(part.get("question")), examined=True)
        else:
            for value in part.values():
                yield from read_examination(value, passage)


def _read_label(one: Mapping[str, Any], passage: str) -> Label:
    evidence = [piece.get("words", "") if isinstance(piece, dict) else str(piece) for piece in one.get("evidence", ())]
    return Label(
        text=fold(_MARK.sub("", one.get("sentence") or one.get("text", ""))),
        right=bool(one["right"]) if "right" in one else not one.get("wrong"),
        words=tuple(filter(None, evidence)) or (" ".join(passage.split()[:10]),),
    )


def _choose(prompt: str, candidates: Sequence[Labelled]) -> tuple[Labelled, list[tuple[int, str]]]:
    """The answer whose sentences a prompt holds, and the numbered list that has most of them, the last one of these."""
    folded = fold(_MARK.sub("", prompt))
    found = max(candidates, key=lambda one: _share(one, folded), default=Labelled(labels=(), answers="yes"))
    runs = _numbered_lists(prompt)
    return found, max(reversed(runs), key=lambda run: _known(run, found), default=[])


def _share(one: Labelled, prompt: str) -> tuple[float, int]:
    held = [label.text for label in one.labels if label.text and label.text in prompt]
    return len(held) / max(1, len(one.labels)), sum(map(len, held))


def _known(run: Sequence[tuple[int, str]], labelled: Labelled) -> int:
    return sum(bool(_overlapping(line, labelled)) for _, line in run)


def _numbered_lists(prompt: str) -> list[list[tuple[int, str]]]:
    """Return the lists that count from 1, with the folded text of each line."""
    runs: list[list[tuple[int, str]]] = []
    for number, text in _LINE.findall(prompt):
        line = (int(number), fold(_MARK.sub("", text)))
        if line[0] == 1:
            runs.append([line])
        elif runs and line[0] == runs[-1][-1][0] + 1:
            runs[-1].append(line)
    return runs


def _overlapping(line: str, labelled: Labelled) -> list[Label]:
    return [label for label in labelled.labels if label.text and line and (label.text in line or line in label.text)]


def _match(line: str, lines: Sequence[str], labelled: Labelled) -> Label:
    """Return what is right to say of a line: it is as right as the labelled sentences in it.

    A line without one, such as the head of a table, is right, unless a wrong sentence is in no line at all, or nothing
    is known of the text.
    """
    held = _overlapping(line, labelled)
    if not held:
        lost = [one for one in labelled.labels if not one.right and not any(_holds(text, one) for text in lines)]
        held = lost or list(labelled.labels)[:1]
        return _joined(line, held, right=bool(labelled.labels) and not lost)
    wrong = [one for one in held if not one.right]
    return _joined(line, wrong or held, right=not wrong)


def _joined(line: str, held: Sequence[Label], *, right: bool) -> Label:
    """Return what is right to say of a line with these labels."""
    return Label(
        text=line,
        right=right,
        words=tuple(words for one in held for words in one.words),
        computed=tuple(value for one in held for value in one.computed),
        contradicted=not right and any(one.contradicted for one in held),
    )


def _holds(line: str, label: Label) -> bool:
    return bool(line) and (label.text in line or line in label.text)


def draw(text: str) -> float:
    """Return a number in [0, 1) that is always the same for a text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 16**8
