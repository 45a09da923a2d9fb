"""Plain text and Markdown: encodings, paragraphs, headings, front matter."""

from __future__ import annotations

import pytest

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import TooLargeError
from rag_service.readers.parse import parse
from tests.unit.readers.samples import at

SPANISH = "Año nuevo en España: ¿qué documentación necesita el señor Núñez?"


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"],
)
def test_text_is_read_in_any_common_encoding(encoding: str) -> None:
    assert parse(SPANISH.encode(encoding), file_name="a.txt").text == SPANISH


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("“Quoted” – for €5 … œuvre", "cp1252"),
        ("Привет, мир! Это проверка кодировки длинного русского текста.", "cp1251"),
        ("これは日本語のテキストです。文字コードの判定を確認します。", "shift_jis"),
    ],
)
def test_legacy_encodings_are_recognised(text: str, encoding: str) -> None:
    assert parse(text.encode(encoding), file_name="a.txt").text == text


def test_line_ends_controls_and_accents_are_normalised() -> None:
    text = parse("one\r\ntwo\rcafe\u0301\u2028th\x07ree\ufeff\0".encode(), file_name="a.txt").text
    assert text == "one\ntwo\ncafé\nthree"


def test_paragraphs_are_counted_from_one_over_any_number_of_blank_lines() -> None:
    document = parse(b"\n\nfirst\nstill first\n \n\n\nsecond\n", file_name="a.txt")
    assert at(document, "first\nstill first\n").paragraph == 1
    assert at(document, "second").paragraph == 2
    assert document.title == "a"


def test_text_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TooLargeError, match="too much text"):
        parse(b"word word\n" * 600_000, file_name="a.txt")


MARKDOWN = """---
title: Guía de valores
language: es-ES
tags: [bolsa, renta]
updated: 2024-05-01
---
# Primera *parte*

Un párrafo
de dos líneas.

## Tabla

| Producto | Stock |
|----------|-------|
| Tornillo | 120   |

- uno
  - dos

Segunda parte
=============

```python
# not a heading
```

[ref]: https://example.org "kept"
"""


@pytest.fixture(scope="module")
def guide() -> ParsedDocument:
    return parse(MARKDOWN.encode(), file_name="guia.md")


def test_front_matter_becomes_metadata_and_leaves_the_text(guide: ParsedDocument) -> None:
    assert (guide.title, guide.language) == ("Guía de valores", "es")
    assert guide.metadata["tags"] == ["bolsa", "renta"]
    assert guide.metadata["updated"] == "2024-05-01"
    source = "| Producto | Stock |\n|----------|-------|\n| Tornillo | 120   |"
    body = MARKDOWN.split("---\n", 2)[2].strip("\n")
    assert guide.text == body.replace(source, "Producto: Tornillo | Stock: 120")


def test_blocks_carry_their_heading_path(guide: ParsedDocument) -> None:
    assert at(guide, "Un párrafo\nde dos líneas.").headings == ("Primera parte",)
    assert at(guide, "120") == Location(headings=("Primera parte", "Tabla"), cell="B2", row=2)
    assert at(guide, "- uno\n  - dos").headings == ("Primera parte", "Tabla")
    assert at(guide, "```python\n# not a heading\n```").headings == ("Segunda parte",)


def test_title_falls_back_to_the_first_heading_and_then_to_the_file_name() -> None:
    assert parse(b"text\n\n# A **bold** [link](x) title\n", file_name="x.md").title == "A bold link title"
    assert parse(b"## only a second level\n", file_name="handbook.md").title == "handbook"


@pytest.mark.parametrize(
    "front",
    [
        "a: &x [1]\nb: *x",  # aliases unfold into gigabytes
        "- a list",
        "key: [unclosed",
        "a: !!python/object/apply:os.system [ls]",
        "[" * 5000,
    ],
)
def test_front_matter_that_is_no_plain_mapping_stays_text(front: str) -> None:
    document = parse(f"---\n{front}\n---\nBody".encode(), file_name="x.md")
    assert document.metadata == {}
    assert front.split("\n")[0] in document.text
    assert document.title == "x"


def test_deeply_nested_markdown_is_read() -> None:
    assert "end" in parse(b">" * 20_000 + b" end", file_name="x.md").text


def sections(text: str) -> list[tuple[str, ...]]:
    spans = parse(text.encode(), file_name="a.txt").spans
    return list(dict.fromkeys(span.location.headings for span in spans if span.location.headings))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "MINUTES\n1. Cleaning\nThe contract ends on 31 May.\n2. Parking:\nBays 4 to 9 are kept for visitors.\n",
            [("1. Cleaning",), ("2. Parking",)],
        ),
        (
            "1. General\nAll of this holds for you.\n1.1 Scope\nThe whole of the company.\n"
            "1.2 Time\nFrom May until June.\n2. Costs\n"
            "a) Travel\nTrains are paid in second class.\nb) Meals\nUp to 12 euros a day.\n",
            [
                ("1. General",),
                ("1. General", "1.1 Scope"),
                ("1. General", "1.2 Time"),
                ("2. Costs",),
                ("2. Costs", "a) Travel"),
                ("2. Costs", "b) Meals"),
            ],
        ),
        (
            "Artículo 5. Objeto\nEl contrato tiene por objeto un piso.\n\nArtículo 6\n\nEl precio es de 500 euros.\n",
            [("Artículo 5. Objeto",), ("Artículo 6",)],
        ),
        (
            "§ 3 Term\nThree months to the end of May.\n§ 4 Costs\nThe rent is 500 euros.\n",
            [("§ 3 Term",), ("§ 4 Costs",)],
        ),
        (
            "I. Keys\nThe keys are with Ana Gil.\n\nII. Bins\nThe bins stand in the yard.\n",
            [("I. Keys",), ("II. Bins",)],
        ),
    ],
)
def test_numbered_headings_are_sections(text: str, expected: list[tuple[str, ...]]) -> None:
    assert sections(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "To buy:\n1. Milk\n2. Bread\n3. Eggs\n\nWe meet in front of the shop at nine o'clock.\n",
        "1. Call the plumber.\n2. Ask Ana for the keys of the cellar.\n3. Pay.\n",
        "1. The contract begins on the first of May and ends on the last day of\nJune, unless Ana says otherwise.\n"
        "2. The rent is 500 euros and it is paid on the first day of each month by\nBank transfer to the owner.\n",
        "1. 555 0188 221\nAna, who is in the office.\n2. 555 0199 333\nLuis, who is in the workshop.\n",
        "1. print(x[0])\nthis prints the first of the values\n2. print(x[1], end='')\nthis prints the second of them\n",
        "Article 5 of the lease says that the rent is due on the first day, and\nAna agrees with that.\n",
    ],
)
def test_numbered_lists_are_no_sections(text: str) -> None:
    assert sections(text) == []
    assert parse(text.encode(), file_name="a.txt").text == text.rstrip()


def test_each_section_of_a_plain_text_is_a_paragraph() -> None:
    """Chunks are cut at sections only between paragraphs."""
    document = parse(b"1. Keys\nThe keys are with Ana Gil.\n2. Bins\nThe bins stand in the yard.", file_name="a.txt")
    assert document.text == "1. Keys\nThe keys are with Ana Gil.\n\n2. Bins\nThe bins stand in the yard."
    assert at(document, "2. Bins\nThe bins stand in the yard.") == Location(paragraph=2, headings=("2. Bins",))
