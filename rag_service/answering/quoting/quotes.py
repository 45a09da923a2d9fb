"""What quotes are chosen from, what was chosen, and the places where an answer that is not certain may stand.

A place is a window of whole sentences around a good one, or a row with the names of its columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from rag_service.answering.quoting.sentences import Sentence
from rag_service.domain import Hit
from rag_service.language.normalise import replace_unstorable
from rag_service.language.words import find_words, fold, is_stop_word, word_forms

SHOWN_PLACES = 3  # at first; the others are one step away
MAX_PLACES = 6
_WINDOW = 45  # words of a place
_CELL = 25  # words of a cell; what is longer is cut around the words of the question
_ROW = 90  # words of a row, whose first cells and last ones may be what is asked for
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]+)(?<=\S)\1(?!\w)")  # of Markdown
_CELLS = re.compile(r"\s*(?<!\\)\|\s*")


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A part of a passage."""

    mark: int  # of its passage, from 1
    start: int  # in the passage
    end: int
    text: str  # on one line; "…" stands for what is left out


def cut_places(
    ranked: Sequence[Sentence], every: Sequence[Sentence], hits: Sequence[Hit], question: str, language: str
) -> list[Excerpt]:
    """Return at most `MAX_PLACES` windows of passages, best first, none of which repeats another.

    Args:
        ranked: sentences of the passages, best first.
        every: all sentences of the passages, in their order.
        hits: the passages, in the order of the marks.
        question: its words are what long sentences and cells are cut around.
        language: of the question.
    """
    asked = asked_forms(question, language)
    at = {(sentence.mark, sentence.start): number for number, sentence in enumerate(every)}
    windows: list[Excerpt] = []
    for sentence in ranked:
        if len(windows) == MAX_PLACES:
            break
        if any(one.mark == sentence.mark and one.start < sentence.end and sentence.start < one.end for one in windows):
            continue
        window = _cut_excerpt(sentence, every, at[sentence.mark, sentence.start], hits, asked)
        if all(window.text != one.text for one in windows):
            windows.append(window)
    return windows


def cut_openings(hits: Sequence[Hit], question: str, language: str) -> Iterator[Excerpt]:
    """Yield a window of each passage, at most `MAX_PLACES`: of passages that hold no sentence to quote.

    Args:
        hits: the passages, in the order of the marks.
        question: its words are what the windows are cut around.
        language: of the question.
    """
    asked = asked_forms(question, language)
    told = ((mark, hit.chunk.text) for mark, hit in enumerate(hits, start=1) if hit.chunk.text.strip())
    for mark, text in islice(told, MAX_PLACES):
        yield Excerpt(mark=mark, start=0, end=len(text), text=cut_around(" ".join(text.split()), _WINDOW, asked))


def _cut_excerpt(
    sentence: Sentence, every: Sequence[Sentence], number: int, hits: Sequence[Hit], asked: Collection[str]
) -> Excerpt:
    if sentence.is_row:
        text = _write_row(sentence, asked)
        return Excerpt(mark=sentence.mark, start=sentence.start, end=sentence.end, text=text)
    first = last = number
    room = _WINDOW - len(find_words(sentence.text))
    for step in (1, -1):  # what follows explains more often than what goes before
        at = number + step
        while 0 <= at < len(every) and _belongs(every, min(at, at - step), max(at, at - step)):
            room -= len(find_words(every[at].text))
            if room < 0:
                break
            first, last = min(first, at), max(last, at)
            at += step
        room = _WINDOW - sum(len(find_words(one.text)) for one in every[first : last + 1])
    start, end = every[first].start, every[last].end
    whole = hits[sentence.mark - 1].chunk.text[start:end] if first < last else sentence.text
    text = cut_around(_EMPHASIS.sub(r"\2", " ".join(whole.split())), _WINDOW, asked)
    return Excerpt(mark=sentence.mark, start=start, end=end, text=text)


def _belongs(every: Sequence[Sentence], before: int, after: int) -> bool:
    """Return whether a sentence goes on from the one before it."""
    one, other = every[before], every[after]
    is_next = one.mark == other.mark and one.position + 1 == other.position
    return is_next and other.continues and not (one.is_row or other.is_row)


def _write_row(sentence: Sentence, asked: Collection[str]) -> str:
    row, header = (_EMPHASIS.sub(r"\2", text).strip() for text in (sentence.text, sentence.header))
    cells = [cell for cell in _CELLS.split(row.strip("| \n")) if cell.strip()]
    if header:
        names = _CELLS.split(header.splitlines()[0].strip("| "))
        values = _CELLS.split(row.removeprefix("|").removesuffix("|"))
        named = ((name.strip(), value.strip()) for name, value in zip(names, values, strict=False))
        cells = [f"{name}: {value}" for name, value in named if value]
    return cut_around(" | ".join(cut_around(cell.strip(), _CELL, asked) for cell in cells), _ROW, asked)


def cut_around(text: str, most: int, asked: Collection[str]) -> str:
    """Return at most so many words of a text in a row, those with most of the words of a question."""
    places = find_words(text)
    if len(places) <= most:
        return text
    held = [not word_forms(text[start:end]).isdisjoint(asked) for start, end in places]
    counts = [sum(held[first : first + most]) for first in range(len(places) - most + 1)]
    highest = max(counts)
    best = [first for first, count in enumerate(counts) if count == highest]
    first = 0 if best[0] == 0 else best[len(best) // 2]  # in the middle of those that hold as many
    start, end = places[first][0], places[first + most - 1][1]
    start, end = (0 if first == 0 else start), (len(text) if first + most == len(places) else end)
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"


def asked_forms(question: str, language: str) -> frozenset[str]:
    """Return the forms of the content words of a question."""
    return frozenset(
        form
        for start, end in find_words(question)
        if not is_stop_word(fold(question[start:end]), language)
        for form in word_forms(question[start:end])
    )


def find_marked(text: str, asked: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield where the words of a question are in a text."""
    for start, end in find_words(text):
        if not word_forms(text[start:end]).isdisjoint(asked):
            yield start, end


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What quotes are chosen from."""

    question: str
    language: str
    hits: tuple[Hit, ...]  # [C1] first
    # Index term → idf in the searched corpora, and → the word of the question that it stands for.
    weights: Mapping[str, float] = field(default_factory=dict)
    equivalents: Mapping[str, int] = field(default_factory=dict)
    refusal: str = ""  # the reply when nothing fits
    preface: str = ""  # what the service says before an answer
    by_document: bool = False  # whether each document is quoted, as for a comparison of files


@dataclass(frozen=True, kw_only=True)
class Quotes:
    """The sentences that answer best, and what their choice says about the answer."""

    evidence: Evidence  # that they were chosen from
    sentences: tuple[Sentence, ...] = ()  # empty: nothing fits
    places: tuple[Excerpt, ...] = ()  # best first; also where no sentence can be quoted
    lead: float | None = None  # probability that the first sentence is the best of all; None: not known
    unmatched: float | None = None  # what its surroundings leave open of the question, see rating.py
    is_degraded: bool = False  # words alone chose, because the embedding model failed

    @property
    def pieces(self) -> list[str]:
        """The text as it is streamed: a paragraph for each sentence, with its citation mark; else the refusal."""
        if not self.sentences:
            return [self.evidence.refusal]
        pieces: list[str] = []
        previous: Sentence | None = None
        for sentence in self.sentences:
            if previous is not None and sentence.header and sentence.header == previous.header:
                pieces.append("\n" + sentence.text)  # one more row below the same header
            else:
                quote = f"{sentence.header}\n{sentence.text}" if sentence.header else sentence.text
                pieces.append(f"\n\n{quote}" if previous else quote)
            pieces.append(f" [C{sentence.mark}]")
            previous = sentence
        return list(map(replace_unstorable, pieces))
