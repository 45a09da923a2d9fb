"""Places that a person can open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_service.domain import Location, describe_place
from tests.unit.api.samples import DOCUMENT


@pytest.mark.parametrize(
    ("file_name", "location", "place"),
    [
        ("rapport.pdf", Location(page=3), "rapport.pdf, page 3"),
        ("production.xlsx", Location(sheet="Stocks", cell="C12", row=12), "production.xlsx, sheet Stocks, cell C12"),
        ("production.xlsx", Location(sheet="Stocks", cell="A12:F12"), "production.xlsx, sheet Stocks, cells A12:F12"),
        ("envíos.csv", Location(row=7), "envíos.csv, row 7"),
        ("guía.md", Location(headings=("Ayudas", "Requisitos")), "guía.md, section Ayudas > Requisitos"),
        ("contrato.docx", Location(headings=("Pagos",), paragraph=4), "contrato.docx, section Pagos, paragraph 4"),
        ("contrato.docx", Location(paragraph=4, row=2), "contrato.docx, row 2 of the table after paragraph 4"),
        ("nota.txt", Location(), "nota.txt"),
        ("deck.pptx", Location(slide=2, headings=("Rates",), part="notes"), "deck.pptx, notes, slide 2, section Rates"),
        ("rapport.pdf", Location(page=3, last_page=4), "rapport.pdf, pages 3–4"),
        ("mail.eml", Location(part="offer.pdf", page=3), "mail.eml, offer.pdf, page 3"),
        ("orders.jsonl", Location(row=4, path="lines[0].sku"), "orders.jsonl, row 4, lines[0].sku"),
        ("talk.vtt", Location(time="00:01:02"), "talk.vtt, at 00:01:02"),
        ("nota.txt", None, "nota.txt"),
        (None, Location(page=1), "Production, page 1"),
    ],
)
def test_place_names_the_file_and_every_part_from_wide_to_narrow(
    file_name: str | None, location: Location | None, place: str
) -> None:
    assert describe_place(replace(DOCUMENT, file_name=file_name), location) == place
