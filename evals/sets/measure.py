"""Asks the questions of a set and counts the replies: right, quoted, green."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from uuid import UUID

from evals.sets.questions import HALVES, Question, QuestionSet
from rag_service.answering.quoting.quotes import SHOWN_PLACES
from rag_service.client.results import CitedAnswer
from rag_service.client.service import Service
from rag_service.domain import Decision, ProofMethod
from rag_service.language.words import count_words

_MARK = re.compile(r" ?\[C\d+\]")
_SPACE = re.compile(r"\s+")
_FIRST_UNSPACED = "\u2e80"  # from here on Chinese and Japanese characters, between which no word ends
_THOUSANDS = re.compile(r"(?<=\d) (?=\d{3}\b)")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A question of a set and what the service replied."""

    question: Question
    text: str
    is_right: bool  # it says a right answer; a computed one takes it from the right cells
    is_computed: bool
    is_green: bool  # its decision is `can_proceed`
    reasons: tuple[str, ...] = ()  # codes of why it is not, what weighs most first
    kind: str = "answer"  # answer, places or nothing
    in_six: bool = False  # as `is_right`, among all places, of which the text has three
    words: int = 0  # of the answer or the three places
    confidence: float = 0.0

    @property
    def is_answerable(self) -> bool:
        return bool(self.question.answers)

    @property
    def is_false(self) -> bool:
        """Whether it proceeds although it must not."""
        return self.is_green and (not self.is_right or self.question.certain is False)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Counts of replies."""

    questions: int = 0
    right: int = 0
    quoted: int = 0  # right, by quotes alone: a small number may stand in a quoted row by chance
    green: int = 0  # of all
    green_right: int = 0
    green_wrong: int = 0  # although the files answer the question
    green_doubtful: int = 0  # right, but what the answer takes for granted has to be told
    unanswerable: int = 0
    unanswerable_green: int = 0
    places: int = 0  # replies to answerable questions that show places
    in_six: int = 0  # answerable, and a right answer is in the reply or among six places
    words: int = 0  # median of the words of replies with places


def ingest_set(service: Service, asked: QuestionSet, *, corpus: str) -> UUID:
    """Ingest the files of a set into a corpus of its own, and return its id."""
    with tempfile.TemporaryDirectory() as folder:
        for file_name in asked.file_names:
            (Path(folder) / file_name).write_bytes(asked.read_file(file_name))
        report = service.sync(folder, corpus=corpus)
    if report.left:
        raise ValueError(f"{corpus}: {report}")
    corpus_id: UUID = service.corpora()[corpus].info.id
    return corpus_id


def ask_set(service: Service, asked: QuestionSet, *, second: bool = False, corpus: str | None = None) -> list[Reply]:
    """Ingest the files of a set into a corpus of its own and ask its questions there.

    Args:
        second: each in a conversation, after a question of the same language about other files.
        corpus: its name, which is new; None: that of the set.
    """
    corpus_id = ingest_set(service, asked, corpus=corpus or asked.name)
    draw = random.Random(asked.name)  # noqa: S311 - the same in every run

    def say_before(question: Question) -> list[dict[str, str]]:
        others = [
            other.text
            for other in asked.questions
            if other.language == question.language and not set(other.documents) & set(question.documents)
        ]
        if not (second and others):
            return []
        before = draw.choice(others)
        reply = service.ask(before, corpus_ids=[corpus_id]).text
        return [{"role": "user", "content": before}, {"role": "assistant", "content": reply}]

    return [
        judge_reply(question, service.ask(question.text, corpus_ids=[corpus_id], messages=say_before(question)))
        for question in asked.questions
    ]


def count(replies: Iterable[Reply]) -> Figures:
    """The figures of replies."""
    replies = list(replies)
    answered = [reply for reply in replies if reply.is_answerable]
    right = [reply for reply in answered if reply.is_right]
    green = [reply for reply in answered if reply.is_green]
    unanswerable_green = sum(reply.is_green for reply in replies if not reply.is_answerable)
    return Figures(
        questions=len(replies),
        right=len(right),
        quoted=sum(not reply.is_computed for reply in right),
        green=len(green) + unanswerable_green,
        green_right=sum(reply.is_right for reply in green),
        green_wrong=sum(not reply.is_right for reply in green),
        green_doubtful=sum(reply.is_right and reply.question.certain is False for reply in green),
        unanswerable=len(replies) - len(answered),
        unanswerable_green=unanswerable_green,
        places=sum(reply.kind == "places" for reply in answered),
        in_six=sum(reply.is_right or reply.in_six for reply in answered),
        words=round(median([reply.words for reply in replies if reply.kind == "places"] or [0])),
    )


def by_half(replies: Iterable[Reply]) -> Iterator[tuple[str, list[Reply]]]:
    """The replies of each half that a set has."""
    replies = list(replies)
    for half in HALVES:
        if found := [reply for reply in replies if reply.question.half == half]:
            yield half, found


def is_said(question: Question, text: str) -> bool:
    """Whether a text says a right answer, with all its parts."""
    return any(all(says(text, part) for part in parts) for parts in question.answers)


def says(text: str, part: str) -> bool:
    """Whether a text holds a value as whole words or as a whole number, however it is spaced."""
    plain, wanted = (_THOUSANDS.sub("", _SPACE.sub(" ", _MARK.sub("", one))) for one in (text, part))
    if wanted >= _FIRST_UNSPACED:
        return wanted in plain
    return re.search(rf"(?<![\w.,-]){re.escape(wanted)}(?![\w-]|[.,]\d)", plain, re.IGNORECASE) is not None


def judge_reply(question: Question, answer: CitedAnswer) -> Reply:
    """Return what the reply to a question of a set is worth."""
    is_computed = any(citation.method == ProofMethod.COMPUTED for citation in answer.citations)
    is_placed = question.cells is None or _is_taken_from(question.cells, answer, is_computed)
    shown = answer.text if answer.kind != "places" else " ".join(place.text for place in answer.places[:SHOWN_PLACES])
    return Reply(
        question=question,
        text=answer.text,
        is_right=is_said(question, shown) and is_placed,
        kind=answer.kind,
        in_six=is_said(question, " ".join(place.text for place in answer.places)) and is_placed,
        words=count_words(shown),
        is_computed=is_computed,
        confidence=answer.confidence,
        is_green=answer.decision == Decision.CAN_PROCEED,
        reasons=tuple(reason.code for reason in answer.body.reasons),
    )


def _is_taken_from(cells: str, answer: CitedAnswer, is_computed: bool) -> bool:
    """Whether the first citation is of these cells, or a quote of their row, or a place is."""
    cited, places = answer.citations[:1], answer.places
    locations = [one.location for one in cited if one.location] + [one.location for one in places if one.location]
    row = int(re.sub(r"\A\D+|\D.*", "", cells))
    return any(one.cell == cells if is_computed else cells == one.cell or one.row == row for one in locations)
