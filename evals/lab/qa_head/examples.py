"""Published questions as a model reads them: word pieces of the question, and windows of its passage.

What is measured elsewhere is never learnt from: passages that share more than a line with a measured set are left out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from evals.lab.qa_head.published import Passage, Question

_WINDOW, _SENTENCE, _QUESTION = 120, 100, 40  # word pieces of a window, a sentence and a question; more are cut off
_WORD = re.compile(r"\w+")
_SHINGLE, _SHARED = 8, 2  # words of a shingle; shingles that two texts may share by chance
_BLOCK = 12  # questions of an article that stay together, so that its windows are read once
_WITHOUT = 0.55  # share of the answered questions that are also shown where they are not answered
_BEGIN, _END = 0, 2  # pieces that mark a text


@dataclass(frozen=True, eq=False)
class Window:
    """Sentences of a passage that are read at once."""

    pieces: tuple[int, ...]
    sentence_of: tuple[int, ...]  # number of the sentence in the window of each piece; -1: special pieces
    first: int  # number of its first sentence in the passage
    places: tuple[tuple[int, int], ...]  # where each piece begins and ends in the passage


@dataclass(frozen=True)
class Example:
    """A question and a window that answers it or does not."""

    question: tuple[int, ...]  # word pieces
    window: Window
    right: frozenset[int] = frozenset()  # numbers of the sentences in the window
    answer: frozenset[int] = frozenset()  # numbers of the pieces of the answer, if they are known
    hidden: frozenset[int] = frozenset()  # sentences that are left out


def shingles(text: str) -> set[int]:
    """What a text shares with another only if one was copied from the other."""
    words = _WORD.findall(text.lower())
    return {hash(tuple(words[place : place + _SHINGLE])) for place in range(len(words) - _SHINGLE + 1)}


def is_measured(passage: Passage, measured: set[int]) -> bool:
    """Whether a passage stands in a measured set too, given the shingles of those."""
    return len(shingles(passage.text) & measured) > _SHARED


class Tokenizer(Protocol):
    """Cuts texts into word pieces."""

    def encode(self, text: str) -> Sequence[int]:
        """Numbers of the pieces, with those that mark beginning and end."""

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Where each piece of the text begins and ends."""


class Cutter:
    """Makes examples of questions."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._before_question, self._before_passage = self._pieces("query:"), self._pieces("passage:")

    def _pieces(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text))[1:-1]

    def question(self, text: str) -> tuple[int, ...]:
        """The pieces of a question with its prefix."""
        return (*(_BEGIN, *self._before_question, *self._pieces(text))[:_QUESTION], _END)

    def windows(self, passage: Passage) -> list[Window]:
        """Whole sentences, as many as a window has room for."""
        cut: list[Window] = []
        pieces, sentence_of, places = self._empty()
        first = 0
        for number, (start, end) in enumerate(passage.sentences):
            own = self._pieces(passage.text[start:end])[:_SENTENCE]
            if len(pieces) > 1 + len(self._before_passage) and len(pieces) + len(own) > _WINDOW:
                cut.append(Window((*pieces, _END), (*sentence_of, -1), first, (*places, (0, 0))))
                pieces, sentence_of, places = self._empty()
                first = number
            pieces += own
            sentence_of += [number - first] * len(own)
            offsets = self._tokenizer.offsets(passage.text[start:end])
            places += [(start + begin, start + finish) for begin, finish in offsets[: len(own)]]
        cut.append(Window((*pieces, _END), (*sentence_of, -1), first, (*places, (0, 0))))
        return cut

    def _empty(self) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        pieces = [_BEGIN, *self._before_passage]
        return pieces, [-1] * len(pieces), [(0, 0)] * len(pieces)

    def examples(self, questions: Sequence[Question], *, seed: int) -> list[list[Example]]:
        """The examples of each question, in an order in which articles are mixed.

        A question comes with the window that answers it, and about every other one also with one that does not: another
        of its passage, or the same without the sentence that answers. Unanswered questions come with the window that
        seems to answer.
        """
        chance = random.Random(seed)  # noqa: S311 - no secret
        blocks: list[list[Question]] = []
        for _, ours in groupby(
            sorted(questions, key=lambda each: each.passage.source), key=attrgetter("passage.source")
        ):
            of_article = list(ours)
            blocks += [of_article[start : start + _BLOCK] for start in range(0, len(of_article), _BLOCK)]
        chance.shuffle(blocks)
        made: list[list[Example]] = []
        cut: dict[Passage, list[Window]] = {}
        for block in blocks:
            for question in block:
                if question.passage not in cut:
                    cut[question.passage] = self.windows(question.passage)
                made.append(self._examples(question, cut[question.passage], chance))
        return [examples for examples in made if examples]

    def _examples(self, question: Question, windows: Sequence[Window], chance: random.Random) -> list[Example]:
        asked = self.question(question.text)
        if not question.right:
            return [Example(asked, [window for window in windows if window.first <= question.near][-1])]
        right_of = {window: _right_in(window, question.right) for window in windows}
        answering = next((window for window in windows if right_of[window]), None)
        if answering is None:
            return []
        right = right_of[answering]
        found = [Example(asked, answering, right, _answer_in(answering, question.answer))]
        if chance.random() < _WITHOUT:
            others = [window for window in windows if not right_of[window] and not _says(question, window)]
            if others and chance.random() < 0.5:
                found.append(Example(asked, chance.choice(others)))
            elif len(set(answering.sentence_of)) > 1 + len(right):
                found.append(Example(asked, answering, hidden=right))
        return found


def _right_in(window: Window, right: Iterable[int]) -> frozenset[int]:
    held = {number for number in window.sentence_of if number >= 0}
    return frozenset(number - window.first for number in right if number - window.first in held)


def _answer_in(window: Window, answer: tuple[int, int] | None) -> frozenset[int]:
    if answer is None:
        return frozenset()
    start, end = answer
    pieces = zip(window.sentence_of, window.places, strict=True)
    return frozenset(
        place
        for place, (number, (begin, finish)) in enumerate(pieces)
        if number >= 0 and begin < end and finish > start
    )


def _says(question: Question, window: Window) -> bool:
    """Whether a window holds the words of the answer, too."""
    if question.answer is None:
        return False
    inside = [place for number, place in zip(window.sentence_of, window.places, strict=True) if number >= 0]
    text = question.passage.text
    start, end = question.answer
    return bool(inside) and text[start:end].lower() in text[inside[0][0] : inside[-1][1]].lower()
