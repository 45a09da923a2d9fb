"""Required data: the declared table, and what of it is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_service.advisor.required_data import find_missing, read_required_fields
from rag_service.domain import Hit
from rag_service.readers.parse import parse
from tests.unit.answering.proof.answers import make_hit

TABLE = """## Required data

| Field | Group | Description | Why needed | Type | Required |
|---|:--|---|---|---|---|
| Vested balance | participant | Value at close | Sets the maximum | currency | yes |
| Date of birth | participant | | Age | date | yes |
| Loans allowed | plan | Whether loans are permitted | Some plans have none | boolean | no |
| Notes | other | | | prose | yes |
"""


def chunk(text: str, index: int = 0, kind: str = "required_data") -> Hit:
    """A chunk of a Markdown document, as its reader writes it."""
    hit = make_hit(parse(text.encode(), file_name="article.md").text, 1)
    return replace(hit, chunk=replace(hit.chunk, type=kind, index=index, id=f"chunk-{index}"))


def test_the_table_is_read_row_by_row() -> None:
    fields = read_required_fields([chunk(TABLE)])
    assert [(f.field, f.group, f.data_type, f.required) for f in fields] == [
        ("Vested balance", "participant", "currency", True),
        ("Date of birth", "participant", "date", True),
        ("Loans allowed", "plan", "boolean", False),
        ("Notes", "participant", "text", True),
    ]
    assert (fields[0].description, fields[0].why_needed) == ("Value at close", "Sets the maximum")


def test_a_table_cut_over_two_chunks_is_one() -> None:
    whole = chunk(TABLE)
    lines = whole.chunk.text.splitlines()
    halves = [
        replace(whole, chunk=replace(whole.chunk, text="\n".join(part), index=index))
        for index, part in enumerate((lines[:4], lines[4:]))
    ]
    assert read_required_fields(halves[::-1]) == read_required_fields([whole])


@pytest.mark.parametrize(
    "header",
    [
        "Campo | Grupo | Descripción | Por qué | Tipo | Obligatorio",
        "Champ | Groupe | Description | Pourquoi | Type | Obligatoire",
        "Campo | Grupo | Descrição | Por quê | Tipo | Obrigatório",
    ],
)
def test_columns_may_be_named_in_any_language(header: str) -> None:
    (field,) = read_required_fields(
        [chunk(f"| {header} |\n|--|--|--|--|--|--|\n| Edad | plan | a | b | número | sí |")]
    )
    assert (field.field, field.group, field.data_type, field.required) == ("Edad", "plan", "number", True)


def test_other_chunks_and_other_tables_give_none() -> None:
    assert read_required_fields([chunk(TABLE, kind="fees"), chunk("| Fee | Amount |\n|--|--|\n| a | 3 |")]) == ()


def test_every_shipped_article_declares_its_data(checkout: Path) -> None:
    files = sorted(checkout.glob("indices/retirement/documents/*.md"))
    assert len(files) >= 15
    for file in files:
        fields = read_required_fields([chunk(file.read_text(encoding="utf-8"))])
        assert len(fields) >= 4, file.name
        assert {field.group for field in fields} == {"participant", "plan"}, file.name
        assert all(field.description and field.why_needed for field in fields), file.name


@pytest.mark.parametrize(
    ("collected", "missing"),
    [
        ({}, ["Vested balance", "Date of birth", "Notes"]),
        ({"vestedBalance": 0, "date_of_birth": "1980-01-01", "notes": False}, []),
        ({"participantData": {"Vested Balance": 1, "Date of birth": "x"}, "planData": {"NOTES": "y"}}, []),
        ({"vestedBalance": None, "dateOfBirth": " ", "notes": []}, ["Vested balance", "Date of birth", "Notes"]),
    ],
)
def test_missing_is_what_has_no_value(collected: dict[str, Any], missing: list[str]) -> None:
    fields = read_required_fields([chunk(TABLE)])
    assert [field.field for field in find_missing(fields, collected)] == missing
