"""Questions that a document asks itself and answers, as lists of frequent questions do.

Such a question holds the words of whoever asks it, and answers nothing: what follows it does. It is known by its
question mark or by its label ("Q:", "P:", "Question :", "Pregunta:").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_S = r"[ \t\u00a0\u202f]"
_DECORATION = rf"(?:[-*+•>]{_S}|\d{{1,3}}[.)]{_S}|[*_]{{1,3}}+)*+"
_COLON = rf"{_S}?(?:\d{{1,3}})?{_S}?[*_]{{0,3}}:[*_]{{0,3}}{_S}*+"  # also "Q1:", "**Q**:" and "Q :"
_ASKS = re.compile(rf"{_DECORATION}(?:(?P<sure>q|question|pregunta)|p){_COLON}", re.IGNORECASE)
_ANSWERS = re.compile(rf"{_DECORATION}(?:a|r|answer|respuesta|r[ée]ponse){_COLON}", re.IGNORECASE)
_ANSWER_FOLLOWS = re.compile(rf"\s*+{_ANSWERS.pattern}", re.IGNORECASE)
_LABELLED_LINE = re.compile(rf"\n[ \t]*+(?={_ASKS.pattern}|{_ANSWERS.pattern})", re.IGNORECASE)
_LABELLED_LENGTH = 160  # characters of a line that asks without a question mark and without a labelled answer
_CLOSES = "*_ \t\r\u00a0\u202f"
_QUOTES = {'"': '"', "“": "”", "«": "»", "(": ")"}
_BLANK_LINE = re.compile(r"\n[ \t\r]*+\n")
_MARKED_LINE = re.compile(r"^[^\n|?]{1,160}\?", re.MULTILINE)
_FIRST_PERSON = re.compile(
    r"\b(?:i|i['’]m|i['’]ve|my|mis?|tengo|estoy|quiero|necesito|je|mon|ma|mes)\b|\bj['’]|\bhe \w+[aio]do\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A sentence of a passage, and its place among the questions there."""

    start: int  # characters of the passage, [start, end)
    end: int
    is_question: bool = False
    question: str = ""  # that it answers
    follows: int = 0  # sentences between it and that question


def mark_questions(text: str, bounds: Sequence[tuple[int, int]]) -> list[Part]:
    """Tells the questions among the sentences of a passage from what answers them.

    A question is answered by what stands behind it in its paragraph, or else by the next paragraph.

    Args:
        bounds: the sentences of the passage, as `split_sentences` gives them; those that run over a label are cut.
    """
    parts: list[Part] = []
    leads = _leads_to_questions(text)
    question, follows, previous = "", 0, 0
    is_open = False  # whether a question has begun on this line that no question mark has ended yet
    for start, end in _cut_at_labels(text, bounds):
        sentence, between = text[start:end], text[previous:start]
        is_row = sentence.startswith("|") or " | " in sentence
        goes_on = is_open and "\n" not in between and not _ANSWERS.match(sentence)
        begins = start in leads or _has_label(text, start, end)
        ends = _ends_in_question_mark(sentence)
        is_question = not is_row and (goes_on or begins or ends)
        if is_question:
            is_continued = parts and parts[-1].is_question and not begins and not _BLANK_LINE.search(between)
            question, follows = f"{question} {sentence}" if is_continued else sentence, 0
        elif sentence.startswith("#") or (follows and _BLANK_LINE.search(between)):
            question, follows = "", 0
        parts.append(
            Part(
                start=start, end=end, is_question=is_question, question="" if is_question else question, follows=follows
            )
        )
        is_open = is_question and not ends
        follows += not is_question and not _ANSWERS.fullmatch(sentence)
        previous = end
    return parts


def without_label(part: str) -> str:
    """A question without its "Q:", an answer without its "A:"."""
    label = _ANSWERS.match(part) or _ASKS.match(part)
    return part[label.end() :] if label else part


def _cut_at_labels(text: str, bounds: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """A long question without a mark reads as one sentence with the answer on the next line."""
    for start, end in bounds:
        for line in _LABELLED_LINE.finditer(text, start, end):
            yield start, start + len(text[start : line.start()].rstrip())
            start = line.end()
        yield start, end


def _has_label(text: str, start: int, end: int) -> bool:
    """Whether a sentence is labelled as a question; "P: present" in a legend is none."""
    label = _ASKS.match(text, start, end)
    if label is None:
        return False
    newline = text.find("\n", end)
    line_end = newline if newline >= 0 else len(text)
    if "?" in text[start : min(line_end, start + 1000)] or _ANSWER_FOLLOWS.match(text, line_end):
        return True
    return label["sure"] is not None and line_end - start <= _LABELLED_LENGTH


def _leads_to_questions(text: str) -> frozenset[int]:
    """Where lines begin that end in a question and lead to it in the first person: "I lost my badge. What now?".

    In no other: "Call 4499. Any questions?" is an answer.
    """
    leads = set()
    for line in _MARKED_LINE.finditer(text):
        newline = text.find("\n", line.end())
        rest = text[line.end() : newline if newline >= 0 else len(text)].strip(_CLOSES)
        if rest in ("", "?") and _FIRST_PERSON.search(line[0]):
            leads.add(line.start() + len(line[0]) - len(line[0].lstrip()))
    return frozenset(leads)


def _ends_in_question_mark(sentence: str) -> bool:
    shown = sentence.strip(_CLOSES)
    if shown and _QUOTES.get(shown[0]) == shown[-1]:
        shown = shown[1:-1].rstrip(_CLOSES)
    return shown.endswith(("?", "？"))
