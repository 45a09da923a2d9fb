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
