"""Schemas of answers: what is read of them, and what is refused with its place."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from rag_service.errors import InputError
from rag_service.retrieval.answer_schema import MAX_FIELDS, ListShape, ObjectShape, ValueShape, read_schema

TEXT = {"type": "string"}


class Status(StrEnum):
    PAID = "bezahlt"
    OPEN = "offen"


class Line(BaseModel):
    name: str
    price: Decimal | None


class Address(BaseModel):
    city: str


class Invoice(BaseModel):
    """An invoice."""

    number: str | None = Field(description="Number of the invoice. Not of the order!")
    total_amount: float
    status: Status | None
    kind: Literal["invoice", "reminder"] = "invoice"
    lines: list[Line]
    billing: Address | None


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_a_pydantic_class_is_read_with_all_that_it_refers_to() -> None:
    schema = read_schema(Invoice.model_json_schema())
    number, total, status, kind, lines, billing = schema.root.properties.values()
    assert isinstance(number, ValueShape) and (number.types, number.nullable) == (("string",), True)
    assert number.label == "number (Number of the invoice Not of the order)"
    assert isinstance(total, ValueShape) and (total.label, total.types) == ("total amount", ("number",))
    assert isinstance(status, ValueShape) and (status.choices, status.nullable) == (("bezahlt", "offen"), True)
    assert isinstance(kind, ValueShape) and kind.choices == ("invoice", "reminder")
    assert isinstance(lines, ListShape) and isinstance(lines.items, ObjectShape)
    price = lines.items.properties["price"]
    assert isinstance(price, ValueShape) and (price.types, price.nullable) == (("number", "string"), True)
    assert isinstance(billing, ObjectShape) and billing.nullable
    assert "kind" not in schema.root.required and "lines" in schema.root.required


def test_the_reply_has_words_and_passage_beside_each_value() -> None:
    schema = read_schema(obj(paid={"type": "boolean"}, tags={"type": "array", "items": TEXT})).reply_schema()
    assert list(schema["properties"]["paid"]["properties"]) == ["words", "passage", "value"]
    assert schema["properties"]["paid"]["properties"]["value"] == {"type": ["boolean", "null"]}
    assert schema["properties"]["tags"]["items"]["required"] == ["words", "passage", "value"]
    assert (schema["required"], schema["additionalProperties"]) == (["paid", "tags"], False)


def test_a_value_is_of_its_type_and_choices() -> None:
    shapes = read_schema(obj(whole={"type": "integer"}, part={"type": "number"}, one={"enum": ["a", None]})).root
    whole, part, one = shapes.properties.values()
    assert isinstance(whole, ValueShape) and isinstance(part, ValueShape) and isinstance(one, ValueShape)
    assert (whole.read(12.0), part.read(12), one.read("a"), one.nullable) == (12, 12, "a", True)
    assert (whole.read("12"), part.read("1250.50")) == (12, 1250.5)
    assert [type(read) for read in (whole.read("12"), part.read("12"))] == [int, int]
    for shape, wrong in ((whole, 1.5), (whole, True), (part, "1.250,50"), (part, "twelve"), (one, "b"), (one, ["a"])):
        with pytest.raises(ValueError, match="The model gave no"):
            shape.read(wrong)


def deep(levels: int) -> dict[str, Any]:
    return TEXT if not levels else obj(inner=deep(levels - 1))


RECURSIVE = {"$ref": "#/$defs/Node", "$defs": {"Node": obj(name=TEXT, next={"$ref": "#/$defs/Node"})}}
BOMB = {
    **obj(**{f"a{n}": {"$ref": "#/$defs/L1"} for n in range(30)}),
    "$defs": {
        **{f"L{k}": obj(**{f"x{n}": {"$ref": f"#/$defs/L{k + 1}"} for n in range(30)}) for k in range(1, 5)},
        "L5": TEXT,
    },
}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "array", "items": TEXT}, "schema", "type 'object'"),
    (TEXT, "schema", "type 'object'"),
    ({}, "schema.type", "must be object"),
    ({"type": "object"}, "schema.properties", "name the fields"),
    ({"type": "object", "additionalProperties": TEXT}, "schema.properties", "name the fields"),
    (obj(a={}), "schema.properties.a.type", "must be object"),
    (obj(a={"type": "null"}), "schema.properties.a.type", "must be object"),
    (obj(a={"type": ["object", "string"]}), "schema.properties.a.type", "must be object"),
    (obj(a={"type": 7}), "schema.properties.a.type", "must be object"),
    (obj(a=True), "schema.properties.a", "an object with a type"),
    (obj(a={"type": "array"}), "schema.properties.a.items", "what its items are"),
    (obj(a={"anyOf": [obj(b=TEXT), obj(c=TEXT)]}), "schema.properties.a.anyOf", "unions of objects"),
    (obj(a={"anyOf": []}), "schema.properties.a.anyOf", "list of schemas"),
    (obj(a={"enum": [{"b": 1}]}), "schema.properties.a.enum", "single values"),
    (obj(a={"enum": "b", "type": "string"}), "schema.properties.a.enum", "single values"),
    (obj(a={"enum": [None], "type": ["string", "null"]}), "schema.properties.a.enum", "not null"),
    (obj(a={"not": TEXT}), "schema.properties.a.not", "not supported"),
    (obj(a={"$ref": "#/$defs/None"}), "schema.properties.a.$ref", "not in the schema"),
    (obj(a={"$ref": "https://example.org/a.json"}), "schema.properties.a.$ref", "same schema"),
    (obj(a={"$ref": 7}), "schema.properties.a.$ref", "not in the schema"),
    ({**obj(a=TEXT), "required": "a"}, "schema.required", "list of names"),
    (obj(**{f"field{n}": TEXT for n in range(2 * MAX_FIELDS)}), "schema.properties.field100", "at most 100 fields"),
    (BOMB, "schema.properties.a0", "at most 100 fields"),
    (RECURSIVE, "schema.properties.next", "refer to itself"),
    ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "schema", "refer to itself"),
    (deep(10), "schema.properties.inner", "6 levels"),
    (deep(900), "schema", "levels"),
    (obj(a={**TEXT, "description": "x" * 1_000_000}), "schema", "at most 50,000 characters"),
]


@pytest.mark.parametrize(("schema", "place", "advice"), REFUSED)
def test_what_cannot_be_answered_is_refused_with_its_place(schema: dict[str, Any], place: str, advice: str) -> None:
    with pytest.raises(InputError) as refused:
        read_schema(schema)
    assert (refused.value.field or "").startswith(place)
    assert advice in refused.value.message


def test_each_field_is_searched_for_by_its_name_and_description() -> None:
    schema = read_schema(obj(dueDate={**TEXT, "description": "Last day for payment"}, iban=TEXT))
    assert schema.search_texts("Fill in the fields.") == [
        "Fill in the fields.\ndue date (last day for payment)", "Fill in the fields.\niban"
    ]  # fmt: skip


def test_fields_without_a_name_are_searched_for_by_the_question() -> None:
    assert read_schema(obj(**{"": TEXT})).search_texts("Who signed?") == ["Who signed?\n"]


def test_many_fields_are_searched_for_together() -> None:
    schema = read_schema(obj(**{f"field{number}": TEXT for number in range(90)}))
    texts = schema.search_texts("?")
    assert len(texts) == 18  # five fields each
    assert all(f"field{number}" in " ".join(texts).split() for number in range(90))
