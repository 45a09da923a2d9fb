# ruff: noqa: E501 - lines of files
"""Data, subtitles, archives and plain texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import Sample
from tests.unit.readers.samples import pdf


def _json() -> Iterator[Sample]:
    order = {
        "id": 7,
        "customer": {"name": "Ana", "city": "León"},
        "lines": [{"sku": "A1", "n": 2}, {"sku": "B2", "n": 1}],
    }
    text = json.dumps({"title": "Orders of May", "open": True, "orders": [order], "tags": ["x", "y"], "none": None})
    facts = {
        "Orders of May": {"path": "title"},
        "true": {"path": "open"},
        "orders id: 7": {"path": "orders[0].id"},
        "Ana": {"path": "orders[0].customer.name"},
        "León": {"path": "orders[0].customer.city"},
        "orders lines sku: A1": {"path": "orders[0].lines[0].sku"},
        "1": {"path": "orders[0].lines[1].n"},
        "x, y": {"path": "tags"},
    }
    yield Sample("json", "orders.json", text.encode(), facts, ("name: León", "city: Ana"))
    lines = '{"price": 1.10, "who": "Ana"}\n\n{"price": 12345678901234567890.5, "who": "Luis"}\n'
    numbers = {"price: 1.10": {"row": 1, "path": "price"}, "Ana": {"row": 1}, "Luis": {"row": 3, "path": "who"}}
    yield Sample("json", "log.jsonl", lines.encode(), {**numbers, "price: 12345678901234567890.5": {"row": 3}})


def _subtitles() -> Iterator[Sample]:
    talk = (
        "WEBVTT - Talk\n\nNOTE internal\n\n1\n00:00:01.000 --> 00:00:04.000 align:start\n<v Ana>Welcome to <b>Solaria</b>.\n\n"
        "00:00:04.500 --> 00:00:06.000\n<v Ana>The fee is 40 euros.\n\n01:01:04.500 --> 01:01:06.000\n<v Luis>Why &amp; when?\n"
    )
    facts = {
        "Ana: Welcome to Solaria.": {"time": "00:00:01"}, "The fee is 40 euros.": {"time": "00:00:04"},
        "Luis: Why & when?": {"time": "01:01:04"},
    }  # fmt: skip
    yield Sample("vtt", "talk.vtt", talk.encode(), facts, ("internal", "align", "-->", "Ana: Why"))
    srt = "1\r\n00:00:01,000 --> 00:00:04,000\r\nLa cuota es\r\n\r\n2\r\n00:00:04,000 --> 00:00:05,000\r\n<i>40 euros.</i>\r\n"
    yield Sample(
        "srt",
        "charla.srt",
        srt.encode("cp1252"),
        {"La cuota es": {"time": "00:00:01"}, "40 euros.": {"time": "00:00:04"}},
    )


def _archives() -> Iterator[Sample]:
    inner = office.zipped({"deep.txt": "The deepest word is Ostende."})
    members = {
        "docs/nota.txt": "La nota dice 4711.", "docs/deck.pptx": office.pptx([office.shape("Slide words", kind="title")]),
        "informe.pdf": pdf("First page.", "Second page has 88."), "inner.zip": inner, ".DS_Store": b"junk",
        "__MACOSX/docs/._nota.txt": b"junk", "photo.bin": bytes(400), "año.md": "# Año\n\nTexto del año.",
    }  # fmt: skip
    facts: dict[str, dict[str, Any]] = {
        "La nota dice 4711.": {"part": "docs/nota.txt", "paragraph": 1},
        "Slide words": {"part": "docs/deck.pptx", "slide": 1},
        "Second page has 88.": {"part": "informe.pdf", "page": 2},
        "The deepest word is Ostende.": {"part": "inner.zip > deep.txt"},
        "Texto del año.": {"part": "año.md", "headings": ("Año",)},
    }
    yield Sample("zip", "all.zip", office.zipped(members), facts, ("junk",))


def _others() -> Iterator[Sample]:
    yield Sample(
        "pdf", "a.pdf", pdf("The first page.", "The second page has 4711."), {"The second page has 4711.": {"page": 2}}
    )
    yield Sample(
        "csv",
        "a.csv",
        "Año;Total\n2024;1,5\n".encode("cp1252"),
        {"2024": {"cell": "A2"}, "1,5": {"cell": "B2", "row": 2}},
    )
    yield Sample("markdown", "a.md", b"# A\n\n## B\n\nText 7.\n", {"Text 7.": {"headings": ("A", "B")}})
    listed = b"To bring:\n\n- a card\n- a coat\n\n1. Pay\n2. Go\n"
    yield Sample("text", "a.txt", listed, {"- a card\n- a coat\n": {"paragraph": 2}, "1. Pay\n2. Go": {"paragraph": 3}})


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (
    _json,
    _subtitles,
    _archives,
    _others,
)
