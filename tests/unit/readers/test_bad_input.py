"""Files that are far larger in one way than people make them are read to the end, well within the limits."""

from __future__ import annotations

import io
from collections.abc import Callable
from copy import deepcopy

import docx
import pytest
from docx.oxml import OxmlElement
from fpdf import FPDF
from openpyxl import Workbook

from rag_service.readers.parse import parse
from rag_service.readers.sandbox import ParseLimits
from tests.timing import seconds_of
from tests.unit.readers.samples import saved

COLUMNS, HEADERS, WORDS = 10_000, 300, 100_000


def wide_csv() -> bytes:
    names = ",".join(f"Name {column}" for column in range(COLUMNS))
    row = ",".join(str(column) for column in range(COLUMNS))
    return "\n".join([names, *[row] * 20]).encode()


def wide_xlsx() -> bytes:
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append([f"Name {column}" for column in range(COLUMNS)])
    for _ in range(4):
        sheet.append(range(COLUMNS))
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def wide_html() -> bytes:
    names = "".join(f"<th>Name {column}</th>" for column in range(COLUMNS))
    cells = "".join(f"<td>{column}</td>" for column in range(COLUMNS))
    return f"<html><body><table><tr>{names}</tr>{f'<tr>{cells}</tr>' * 4}</table></body></html>".encode()


def many_headers_docx() -> bytes:
    document = docx.Document()
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ("Term", "Fee", "Autumn", "9999"), strict=True):
        cell.text = text
    header = table.rows[0]._tr
    header.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    for _ in range(HEADERS - 1):
        header.addnext(deepcopy(header))
    return saved(document)


def many_headers_html() -> bytes:
    head = "".join(f"<tr><th>Term {row}</th><th colspan=2>Fee {row}</th></tr>" for row in range(HEADERS))
    return f"<html><body><table><thead>{head}</thead><tr><td>A<td>1<td>9999</table></body></html>".encode()


def full_page() -> bytes:
    file = FPDF(format=(3000, 3000))
    file.add_page()
    file.set_font("Helvetica", size=6)
    file.multi_cell(0, 3, "word " * (WORDS - 1) + "9999")
    return bytes(file.output())


def table_in_a_cell_in_a_table() -> bytes:
    document = docx.Document()
    inner = document.add_table(1, 2).cell(0, 1).add_table(1, 2)
    inner.cell(0, 1).add_table(1, 2).cell(0, 1).text = "9999"
    return saved(document)


def long_style_sheet() -> bytes:
    rules = "".join(f"div p .c{number} > b {{ vertical-align: super }}\n" for number in range(120_000))
    body = "".join(f"<div><p>Fee <i class=c{number}><b>1</b></i></p></div>" for number in range(2_000))
    return f"<html><head><style>{rules}</style></head><body>{body}<p>9999</p></body></html>".encode()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        pytest.param(wide_csv, "a.csv", id="10,000 columns, CSV"),
        pytest.param(wide_xlsx, "a.xlsx", id="10,000 columns, Excel", marks=pytest.mark.slow),
        pytest.param(wide_html, "a.html", id="10,000 columns, web page"),
        pytest.param(many_headers_docx, "a.docx", id="300 header rows, Word"),
        pytest.param(many_headers_html, "a.html", id="300 header rows, web page"),
        pytest.param(full_page, "a.pdf", id="100,000 words on a page", marks=pytest.mark.slow),
        pytest.param(table_in_a_cell_in_a_table, "a.docx", id="a table in a cell in a table"),
        pytest.param(long_style_sheet, "a.html", id="a style sheet of 5 MB"),
    ],
)
def test_it_is_read_to_its_end_in_a_part_of_the_time_that_a_reader_has(make: Callable[[], bytes], name: str) -> None:
    data = make()
    texts: list[str] = []
    spent = seconds_of(lambda: texts.append(parse(data, file_name=name).text))
    assert "9999" in texts[0]
    assert spent < ParseLimits().cpu_seconds / 3
