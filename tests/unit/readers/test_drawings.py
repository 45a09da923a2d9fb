"""What charts, diagrams and text boxes of Word and Excel say is read; web pages within Word documents, too."""

from __future__ import annotations

import codecs
import io
import zipfile

import docx
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference

from rag_service.readers.parse import parse
from tests.unit.readers.office_samples import chart
from tests.unit.readers.samples import at, saved, with_members

_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
_NAMES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    f'xmlns:c="{_DRAWING}/chart" xmlns:dgm="{_DRAWING}/diagram" xmlns:a="{_DRAWING}/main" '
    f'xmlns:xdr="{_DRAWING}/spreadsheetDrawing"'
)
_DIAGRAM = (
    f"<dgm:dataModel {_NAMES}><a:p><a:r><a:t>Plan</a:t></a:r></a:p><a:p><a:r><a:t>Build</a:t></a:r></a:p>"
    "</dgm:dataModel>"
)


def _word_with(block: str, content: bytes, *, name: str, kind: str, media_type: str) -> bytes:
    """A heading, a block that shows the part `rIdX` of the package, a paragraph."""
    document = docx.Document()
    document.add_heading("Sales", 1)
    part = Part(PackURI(f"/word/{name}"), media_type, content, document.part.package)
    relation = document.part.relate_to(part, kind)
    document.element.body.insert(1, parse_xml(block.replace("rIdX", relation)))
    document.add_paragraph("Afterwards.")
    return saved(document)


def test_a_chart_in_word_is_a_table_at_its_place() -> None:
    read = parse(
        _word_with(
            f'<w:p {_NAMES}><w:r><w:drawing><c:chart r:id="rIdX"/></w:drawing></w:r></w:p>',
            chart("Sales by year", ["2024", "2025"], {"Bolts": ["5", "7"], "Nuts": ["1", "2"]}).encode(),
            name="charts/chart1.xml",
            kind=RELATIONSHIP_TYPE.CHART,
            media_type="application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
        ),
        file_name="a.docx",
    )
    assert at(read, "Sales by year").headings == ("Sales",)
    assert "2025 | Bolts: 7 | Nuts: 2" in read.text
    assert read.text.index("Nuts: 2") < read.text.index("Afterwards.")


def test_a_diagram_in_word_is_a_list() -> None:
    data = _word_with(
        f'<w:p {_NAMES}><w:r><w:drawing><dgm:relIds r:dm="rIdX"/></w:drawing></w:r></w:p>',
        _DIAGRAM.encode(),
        name="diagrams/data1.xml",
        kind=f"{_DRAWING}/diagramData",
        media_type="application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml",
    )
    assert "- Plan\n- Build\n" in parse(data, file_name="a.docx").text


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_a_web_page_in_a_word_document_is_read_at_its_place(mark: bytes) -> None:
    read = parse(
        _word_with(
            f'<w:altChunk {_NAMES} r:id="rIdX"/>',
            mark + b"<!DOCTYPE html><html><body><h2>Terms</h2><p>Payment within 30 days.<br></p></body></html>",
            name="page.html",
            kind=RELATIONSHIP_TYPE.A_F_CHUNK,
            media_type="text/html",
        ),
        file_name="a.docx",
    )
    place = at(read, "Payment within 30 days.")
    assert (place.part, place.headings) == ("page.html", ("Terms",))
    assert read.text.index("30 days") < read.text.index("Afterwards.")


def test_text_boxes_and_titles_of_charts_are_remarks_of_their_cell() -> None:
    book = Workbook()
    for row in (("Year", "Bolts"), (2024, 5), (2025, 7)):
        book.active.append(row)
    bars = BarChart()
    bars.title, bars.x_axis.title = "Bolts sold", "Year of sale"
    bars.add_data(Reference(book.active, min_col=2, min_row=1, max_row=3))
    book.active.add_chart(bars, "D2")
    shape = (
        f"<xdr:twoCellAnchor {_NAMES}><xdr:from><xdr:col>1</xdr:col><xdr:row>6</xdr:row></xdr:from>"
        "<xdr:sp><xdr:txBody><a:p><a:r><a:t>Without spare parts</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
        "</xdr:twoCellAnchor>"
    )
    data = saved(book)
    drawing = zipfile.ZipFile(io.BytesIO(data)).read("xl/drawings/drawing1.xml").decode()
    end = drawing.rindex("</")
    read = parse(
        with_members(data, {"xl/drawings/drawing1.xml": f"{drawing[:end]}{shape}{drawing[end:]}".encode()}),
        file_name="a.xlsx",
    )
    box, title = at(read, "Without spare parts"), at(read, "Bolts sold\nYear of sale")
    assert (box.sheet, box.cell, box.part) == ("Sheet", "B7", "text box")
    assert (title.cell, title.part) == ("D2", "chart")


def test_broken_data_of_a_program_in_a_workbook_does_not_matter() -> None:
    book = Workbook()
    book.active.append(("Valve", 12))
    program = '<?xml version="1.0" encoding="utf-8"?><SET/>'.encode("utf-16-le")  # not what it declares
    data = with_members(saved(book), {"xl/customProperty1.bin": program, "xl/customProperty2.bin": b"<SET"})
    assert "Valve" in parse(data, file_name="a.xlsx").text
