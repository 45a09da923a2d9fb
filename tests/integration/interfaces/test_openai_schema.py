"""Answers as JSON, as the official OpenAI client asks for them with a Pydantic class and with a schema."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import openai
import pytest
from pydantic import BaseModel, Field

from rag_service.answering.drafts.events import AnswerComplete
from rag_service.domain import CitationStatus, ExtractedValue, Extraction
from tests.integration.interfaces.openai_service import ASKED, Serve, Served, serve, shared
from tests.unit.api.samples import ANSWER, CITATION, DOCUMENT, EVENTS, QUESTION, Script

__all__ = ["serve", "shared"]


class Stock(BaseModel):
    """What is in stock."""

    city: str | None = Field(description="Where")
    units: int | None


EXTRACTION = Extraction(
    data={"city": None, "units": 42},
    values=(
        ExtractedValue(pointer="/city", value="Paris", status=CitationStatus.NOT_FOUND, reason="Nowhere."),
        ExtractedValue(pointer="/units", value=42, status=CitationStatus.VERIFIED, citation=CITATION),
    ),
)
PLAYED = (*EVENTS[:-1], AnswerComplete(answer=replace(ANSWER, extraction=EXTRACTION)))
SCHEMA = {"type": "object", "properties": {"units": {"type": "integer"}}, "required": ["units"]}


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(Script(events=PLAYED))


def test_a_chat_completion_is_parsed_into_a_pydantic_class(served: Served) -> None:
    reply: Any = served.client.chat.completions.parse(model="rag-service", messages=ASKED, response_format=Stock)
    message = reply.choices[0].message
    assert message.parsed == Stock(city=None, units=42)
    assert json.loads(message.content) == {"city": None, "units": 42}
    assert [(one["pointer"], one["status"]) for one in reply.rag["values"]] == [
        ("/city", "not_found"),
        ("/units", "verified"),
    ]
    assert reply.rag["values"][1]["citation"]["quote"] == CITATION.quote
    (query,) = served.script.queries
    assert query.schema is not None
    assert list(query.schema.root.properties) == ["city", "units"]


def test_a_streamed_completion_is_json_alone(served: Served) -> None:
    with served.client.chat.completions.stream(model="rag-service", messages=ASKED, response_format=Stock) as stream:
        final: Any = stream.get_final_completion()
    assert final.choices[0].message.parsed == Stock(city=None, units=42)
    assert final.choices[0].message.content == '{"city":null,"units":42}'


def test_a_response_is_parsed_and_has_annotations(served: Served) -> None:
    response: Any = served.client.responses.parse(model="rag-service", input=QUESTION, text_format=Stock)
    assert response.output_parsed == Stock(city=None, units=42)
    annotation = response.output[0].content[0].annotations[0]
    assert (annotation.file_id, annotation.index) == (str(DOCUMENT.id), len(response.output_text))
    assert [one["pointer"] for one in response.rag["values"]] == ["/city", "/units"]


def test_a_streamed_response_is_json_alone(served: Served) -> None:
    with served.client.responses.stream(model="rag-service", input=QUESTION, text_format=Stock) as stream:
        deltas = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final: Any = stream.get_final_response()
    assert deltas == final.output_text == '{"city":null,"units":42}'
    assert final.output_parsed == Stock(city=None, units=42)


def test_a_plain_schema_is_taken_and_strict_has_no_effect(served: Served) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "stock", "strict": True, "schema": SCHEMA}}
    reply = served.ask(response_format=form)
    assert json.loads(reply.choices[0].message.content)["units"] == 42
    assert reply.rag["ignored"] == []


@pytest.mark.parametrize(
    ("form", "param", "advice"),
    [
        ({"type": "json_object"}, "response_format.type", "'text' or 'json_schema'"),
        ({"type": "json_schema"}, "response_format.json_schema", "JSON schema"),
        ({"type": "json_schema", "json_schema": {"name": "x"}}, "response_format.json_schema", "schema"),
        (
            {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array"}}},
            "response_format.json_schema.schema.items",
            "items",
        ),
    ],
)
def test_a_form_that_cannot_be_followed_is_refused_by_name(
    shared: Served, form: dict[str, Any], param: str, advice: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=advice) as refused:
        shared.ask(response_format=form)
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("form", "param"),
    [
        ({"type": "json_object"}, "text.format.type"),
        ({"type": "json_schema", "name": "x"}, "text.format.schema"),
        ({"type": "json_schema", "name": "x", "schema": {"type": "object"}}, "text.format.schema.properties"),
    ],
)
def test_a_text_format_that_cannot_be_followed_is_refused_by_name(
    shared: Served, form: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        shared.client.responses.create(model="rag-service", input=QUESTION, text={"format": form})  # type: ignore[arg-type, misc]
    assert refused.value.param == param
