"""The questions that an answer suggests: of sections that were found and not cited."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_service.answering import examples
from rag_service.answering.examples import MAX_FOLLOW_UPS, find_follow_ups
from rag_service.domain import Answer, Hit, Location, Span
from tests.unit.api.samples import ANSWER, HIT

SECTIONS = 4  # of each passage


def passage(number: int) -> Hit:
    """A passage with sections that no other has."""
    spans = tuple(
        Span(start=place, end=place + 1, location=Location(headings=("Handbook", f"Chapter {number} part {place}")))
        for place in range(SECTIONS)
    )
    return replace(HIT, chunk=replace(HIT.chunk, id=f"other-{number}", spans=spans))


def answer_with(*sources: Hit) -> Answer:
    return replace(ANSWER, sources=sources, language="en")


def test_they_are_of_the_first_sections_that_are_not_cited() -> None:
    found = find_follow_ups(answer_with(HIT, passage(1), passage(2)))
    assert len(found) == MAX_FOLLOW_UPS
    assert all(f"Chapter 1 part {place}" in question for place, question in enumerate(found))


def test_the_question_itself_is_none_of_them() -> None:
    first, *others = find_follow_ups(answer_with(passage(1)))
    again = find_follow_ups(replace(answer_with(passage(1)), question=first))
    assert first not in again and again[: len(others)] == others


def test_passages_beyond_those_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(examples, "find_injections", lambda text: read.append(text))
    find_follow_ups(answer_with(*map(passage, range(1, 9))))
    assert len(read) == SECTIONS + 1  # of the first passage, and its file's name
