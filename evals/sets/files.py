"""The files of a set: as they lie in its folder, or made from a description.

Office and PDF files are described in YAML beside the others: `stock.xlsx.yaml` becomes `stock.xlsx`. A workbook has
`sheets` (title → rows) and `formats` (number format by column letter of the first sheet); a Word file a `heading` or a
`paragraph` and a `table` (rows); a PDF `pages` (lines: texts, or a label with its figures), or a `heading` and a
`table` with rules.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import docx
import yaml
from fpdf import FPDF
from openpyxl import Workbook

Rows = Sequence[Sequence[Any]]
Line = str | Sequence[str]  # a text across the page, or a label and its figures

_DESCRIBED = ".yaml"  # the ending of a description
_LEFT, _FIRST, _STEP = 20, 110, 26  # millimetres: labels, the first column of figures, between columns


def file_names(folder: Path) -> list[str]:
    """The names of the files, without making any."""
    return sorted(path.stem if path.suffix == _DESCRIBED else path.name for path in folder.iterdir())


def read_file(folder: Path, name: str) -> bytes:
    """The content of a file."""
    described = folder / f"{name}{_DESCRIBED}"
    if not described.exists():
        return (folder / name).read_bytes()
    return _MAKERS[Path(name).suffix](read_description(described))


def read_description(path: Path) -> dict[str, Any]:
    """What a file is made of."""
    described: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return described


def make_workbook(sheets: Mapping[str, Rows], *, formats: Mapping[str, str] | None = None) -> bytes:
    """An XLSX file; `formats` are number formats by column letter of the first sheet."""
    book = Workbook()
    book.remove(book.active)  # type: ignore[arg-type]  # a new workbook has a sheet
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    for letter, number_format in (formats or {}).items():
        for cell in book.worksheets[0][letter][1:]:
            cell.number_format = number_format
    return _written(book.save)


def make_document(table: Rows, *, heading: str | None = None, paragraph: str | None = None) -> bytes:
    """A DOCX file with one table below a heading, whose cells have rules, or below a paragraph."""
    document = docx.Document()
    if heading is not None:
        document.add_heading(heading, level=1)
    if paragraph is not None:
        document.add_paragraph(paragraph)
    added = document.add_table(len(table), len(table[0]), style="Table Grid" if heading is not None else None)
    for row, texts in zip(added.rows, table, strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    return _written(document.save)


def make_pdf(pages: Sequence[Sequence[Line]], *, font: str = "Helvetica") -> bytes:
    """A PDF with one text line below the other; figures of a line stand in columns."""
    file = FPDF()
    file.set_font(font, size=10)
    for lines in pages:
        file.add_page()
        height = 20.0
        for line in lines:
            height += 6
            cells = [line] if isinstance(line, str) else line
            for number, text in enumerate(cells):
                text = text.replace("\u2014", "-").replace("€", "$")  # the built-in fonts know neither
                file.text(_LEFT if number == 0 else _FIRST + _STEP * (number - 1), height, text)
    return bytes(file.output())


def make_ruled_pdf(heading: str, table: Rows) -> bytes:
    """A PDF with one table whose cells have rules."""
    file = FPDF(orientation="landscape")
    file.add_page()
    file.set_font("Helvetica", size=14)
    file.cell(text=heading, new_x="LMARGIN", new_y="NEXT")
    file.set_font("Helvetica", size=9)
    with file.table() as drawn:
        for texts in table:
            row = drawn.row()
            for text in texts:
                row.cell(text.replace("€", "EUR"))
    return bytes(file.output())


def _make_any_pdf(described: Mapping[str, Any]) -> bytes:
    return make_pdf(described["pages"]) if "pages" in described else make_ruled_pdf(**described)


_MAKERS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    ".xlsx": lambda described: make_workbook(**described),
    ".docx": lambda described: make_document(**described),
    ".pdf": _make_any_pdf,
}


def _written(save: Callable[[io.BytesIO], None]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()
