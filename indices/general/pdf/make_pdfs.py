"""Renders the two PDF samples from their JSON sources: `python indices/general/pdf/make_pdfs.py`.

Run it after editing a source; the PDFs are committed, so that a first run needs no PDF writer.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from fpdf import FPDF

HERE = Path(__file__).parent
DOCUMENTS = HERE.parent / "documents"


def render(source: Path) -> Path:
    """One PDF: a page per entry, heading and paragraphs."""
    content = json.loads(source.read_text(encoding="utf-8"))
    pdf = FPDF(format="A4")
    pdf.set_creation_date(datetime(2025, 4, 15, tzinfo=UTC))  # the same bytes at every run
    pdf.set_title(content["title"])
    pdf.set_lang(content["language"])
    for number, page in enumerate(content["pages"], start=1):
        pdf.add_page()
        if number == 1:
            pdf.set_font("Helvetica", "B", 20)
            pdf.multi_cell(0, 12, _latin(content["title"]), new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", "B", 14)
        pdf.multi_cell(0, 10, _latin(page["heading"]), new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", size=11)
        for paragraph in page["paragraphs"]:
            pdf.multi_cell(0, 6, _latin(paragraph), new_x="LMARGIN", new_y="NEXT")
            pdf.ln(3)
        pdf.set_auto_page_break(False)  # the page number stands below the margin
        pdf.set_y(-20)
        pdf.set_font("Helvetica", size=9)
        pdf.cell(0, 10, str(number), align="C")
        pdf.set_auto_page_break(True, margin=25)
    target = DOCUMENTS / content["file_name"]
    pdf.output(str(target))
    return target


def _latin(text: str) -> str:
    """Typographic signs that the built-in fonts lack, as their plain forms."""
    plain = {
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "–": "-",
        "—": "-",
        "…": "...",
        "€": "EUR",
        "œ": "oe",
        "\u202f": " ",
    }
    for sign, replacement in plain.items():
        text = text.replace(sign, replacement)
    return text.encode("latin-1", "replace").decode("latin-1")


if __name__ == "__main__":
    for source in sorted(HERE.glob("*.json")):
        print(render(source))  # noqa: T201 - a script
