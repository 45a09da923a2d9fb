"""`records`: flat, of one shape, and only of results."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from rag_service.api.http.presenters import present_answer, present_hit
from rag_service.api.http.schemas import PassageBody, ValueBody
from rag_service.client import CitedAnswer, records, table
from rag_service.errors import InputError
from tests.unit.api.samples import ANSWER, HIT

PASSAGE = msgspec.structs.replace(
    present_hit(PassageBody, HIT), fields={"year": "2026"}, updated_at=datetime(2026, 1, 1, tzinfo=UTC)
)
BODY = present_answer(ANSWER)


def is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(is_plain(one) for one in value)
    if isinstance(value, dict):
        return all(is_plain(one) for one in value.values())
    return value is None or isinstance(value, str | int | float | bool | UUID | datetime)


def test_nested_values_have_the_names_of_what_holds_them() -> None:
    first, second = records([PASSAGE, msgspec.structs.replace(PASSAGE, fields={}, location=None)])
    assert list(first) == list(second)
    assert (first["fields.year"], second["fields.year"]) == ("2026", None)
    assert first["scores.relevance"] == PASSAGE.scores.relevance
    assert PASSAGE.location is not None
    assert (first["location.page"], second["location.page"]) == (PASSAGE.location.page, None)
    assert "location" not in first
    assert (first["document_id"], first["updated_at"]) == (PASSAGE.document_id, PASSAGE.updated_at)
    assert all(map(is_plain, first.values()))


def test_an_answer_is_what_one_compares_answers_by_and_citations_and_values_are_its_proof() -> None:
    filled = msgspec.structs.replace(BODY, data={"total": 80.0, "parties": [{"name": "Marlow"}]})
    plain, extracted = records([CitedAnswer(question="A?", body=BODY), CitedAnswer(question="B?", body=filled)])
    assert (plain["question"], plain["answer"], plain["decision"]) == ("A?", ANSWER.text, BODY.decision)
    assert (plain["citations"], plain["verified"]) == (
        len(BODY.citations), sum(citation.status == "verified" for citation in BODY.citations),
    )  # fmt: skip
    assert (plain["data.total"], extracted["data.total"]) == (None, 80.0)
    assert extracted["data.parties"] == [{"name": "Marlow"}]
    citation = BODY.citations[0]
    proved = ValueBody(pointer="/total", value=80.0, status="verified", reason=None, citation=citation)
    missing = ValueBody(pointer="/paid", value=None, status="missing", reason="None.", citation=None)
    values = records([proved, missing])
    assert list(records([missing])[0]) == list(values[0])  # the shape does not depend on what was found
    assert [(row["pointer"], row["citation.quote"]) for row in values] == [("/total", citation.quote), ("/paid", None)]
    assert all(is_plain(value) for row in [*values, *records(BODY.citations)] for value in row.values())


def test_nothing_has_no_records_and_what_is_no_result_is_named() -> None:
    assert records([]) == []
    with pytest.raises(InputError, match="no records of str"):
        records("passages")
    with pytest.raises(InputError, match="no records of int"):
        records([1])


def test_a_table_shows_the_named_columns_of_records() -> None:
    shown = table(("place", "scores.relevance", "source"), records([msgspec.structs.replace(PASSAGE, source=None)]))
    assert shown.rows == [(PASSAGE.place, PASSAGE.scores.relevance, "")]
    assert PASSAGE.place in shown._repr_html_()
    with pytest.raises(KeyError, match="score of it"):
        table(("score of it",), records([PASSAGE]))
