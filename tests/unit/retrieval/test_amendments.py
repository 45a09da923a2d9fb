"""Amendments: passages of another document that change what was found."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from rag_service.domain import Hit
from rag_service.retrieval.versions import amends, find_amendments
from tests.unit.answering.proof.answers import make_hit


def document(text: str, title: str, number: int, dated: date | None = None) -> Hit:
    hit = make_hit(text, number)
    of = replace(hit.chunk.document, id=type(hit.chunk.document.id)(int=number), title=title, dated=dated)
    return replace(hit, chunk=replace(hit.chunk, document=of))


RULE = document("Article 4. A claim is filed within 180 days.", "Regulation 12 on deposits", 1, date(2021, 4, 1))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("In article 4, the words “180 days” are replaced by “270 days”.", "Amendment 3 to Regulation 12"),
        ("Regulation 12 is changed. The 180 days become 270.", "Notice"),
    ],
)
def test_a_document_that_names_another_and_one_of_its_figures_changes_it(text: str, title: str) -> None:
    later = document(text, title, 2, date(2025, 9, 1))
    assert find_amendments([RULE], [RULE, later]) == (later,)
    assert not amends(RULE.chunk, later.chunk)


def test_a_document_without_a_number_is_named_by_its_title() -> None:
    old = document("A bus may stay for 90 minutes at most.", "Rules for the charging hall", 1, date(2024, 9, 2))
    later = document(
        "“90 minutes” is replaced.", "Change no. 1 to the Rules for the charging hall", 2, date(2025, 1, 1)
    )
    assert find_amendments([old], [old, later]) == (later,)
    assert not amends(document("From 90 minutes on.", "Parking hall", 3).chunk, old.chunk)


@pytest.mark.parametrize(
    ("text", "title", "dated"),
    [
        ("In article 4, the words “180 days” are replaced.", "Amendment 3 to Regulation 13", date(2025, 9, 1)),
        ("Article 9 of Regulation 12 is repealed.", "Amendment 4", date(2025, 9, 1)),
        ("Regulation 12 of 180 days is being drafted.", "Minutes", date(2020, 9, 1)),
    ],
)
def test_other_documents_change_nothing(text: str, title: str, dated: date) -> None:
    assert find_amendments([RULE], [document(text, title, 2, dated)]) == ()
