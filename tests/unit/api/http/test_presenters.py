"""What the integration tests do not show of the conversions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_service.api.http.presenters import (
    SNIPPET_CHARS,
    present_answer,
    present_citation,
    present_context,
    present_hit,
)
from rag_service.api.http.queries import is_blank, read_question
from rag_service.api.http.schemas import PassageBody, SearchRequest
from rag_service.settings import Settings
from tests.unit.api.samples import ADMIN, ANSWER, CITATION, HIT


@pytest.mark.parametrize(("text", "blank"), [("", True), (" \n\u00a0", True), ("\u200b\ufeff\0", True), ("¿?", False)])
def test_blank(text: str, blank: bool) -> None:
    assert is_blank(text) is blank


def test_empty_filters_do_not_restrict() -> None:
    query = read_question(SearchRequest(query="a", source="", file_name=""), Settings(), ADMIN)
    assert (query.filters.source, query.filters.file_name) == (None, None)


def test_longest_query_is_taken() -> None:
    settings = Settings(query_max_chars=7)
    assert read_question(SearchRequest(query="a" * 7), settings, ADMIN).text == "a" * 7


def test_snippet_is_one_short_line() -> None:
    chunk = replace(HIT.chunk, text="palabra \n\n" * 200)
    snippet = present_context([replace(HIT, chunk=chunk)])[0].snippet
    assert len(snippet) <= SNIPPET_CHARS
    assert snippet.endswith("…") and "\n" not in snippet


def test_passage_without_spans_is_the_file() -> None:
    passage = present_hit(PassageBody, replace(HIT, chunk=replace(HIT.chunk, spans=())))
    assert (passage.location, passage.place) == (None, "production.xlsx")


def test_citation_of_a_passage_that_was_shown_but_is_no_source_has_its_place() -> None:
    body = present_answer(replace(ANSWER, sources=()))
    assert body.citations[0].place == "production.xlsx, sheet Stocks, cell C12"


def test_citation_of_an_unknown_document_has_no_title() -> None:
    citation = present_citation(CITATION, {})
    assert (citation.title, citation.place, citation.quote) == (None, None, "4200 unités")
