"""Word: order of the document, heading paths, labelled table rows, nothing from outside the body."""

from __future__ import annotations

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from rag_service.domain import Location, ParsedDocument
from rag_service.readers.parse import parse
from tests.unit.readers.samples import at, saved


@pytest.fixture(scope="module")
def manual() -> ParsedDocument:
    document = docx.Document()
    document.core_properties.language = "en-GB"
    document.sections[0].header.paragraphs[0].text = "Running header"
    document.add_heading("Maintenance manual", 0)
    document.add_heading("Spare parts", 1)
    document.add_paragraph("")
    document.add_paragraph("See the table.")
    table = document.add_table(3, 2)
    for row, values in enumerate([("Product", "Stock"), ("Valve", "12"), ("Pump\nlarge", "7")]):
        for column, value in enumerate(values):
            table.cell(row, column).text = value
    document.add_heading("Orders", 2)
    document.add_paragraph("After the table.")
    document.add_heading("Safety", 1)
    document.add_paragraph("Wear gloves.")
    return parse(saved(document), file_name="m.docx")


def test_body_is_read_in_order_without_headers(manual: ParsedDocument) -> None:
    lines = [line for line in manual.text.splitlines() if line]
    assert lines == [
        "Maintenance manual",
        "Spare parts",
        "See the table.",
        "Product: Valve | Stock: 12",
        "Product: Pump large | Stock: 7",
        "Orders",
        "After the table.",
        "Safety",
        "Wear gloves.",
    ]
    assert (manual.title, manual.language) == ("Maintenance manual", "en")


def test_paragraphs_carry_number_and_heading_path(manual: ParsedDocument) -> None:
    assert at(manual, "See the table.") == Location(headings=("Spare parts",), paragraph=3)
    assert at(manual, "After the table.") == Location(headings=("Spare parts", "Orders"), paragraph=5)
    assert at(manual, "Wear gloves.").headings == ("Safety",)


def test_table_row_is_one_span_with_its_row(manual: ParsedDocument) -> None:
    assert at(manual, "Product: Valve | Stock: 12") == Location(headings=("Spare parts",), paragraph=3, row=2)


def test_merged_cells_are_repeated_downwards_and_not_sideways() -> None:
    document = docx.Document()
    table = document.add_table(4, 3)
    values = [("Region", "Product", "Stock"), ("North", "Bolt", "1"), ("", "Nut", "2"), ("Total of all", "", "3")]
    for row, texts in enumerate(values):
        for column, value in enumerate(texts):
            table.cell(row, column).text = value
    table.cell(1, 0).merge(table.cell(2, 0))
    table.cell(3, 0).merge(table.cell(3, 1))
    text = parse(saved(document), file_name="m.docx").text
    assert "Region: North | Product: Nut | Stock: 2" in text
    assert "Region / Product: Total of all | Stock: 3" in text


def test_content_controls_and_insertions_are_read_and_deletions_are_not() -> None:
    document = docx.Document()
    document.add_paragraph("Start.")
    control = parse_xml(
        f"<w:sdt {nsdecls('w')}><w:sdtContent><w:p><w:r><w:t>In a control.</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    )
    tracked = parse_xml(
        f"<w:p {nsdecls('w')}><w:ins><w:r><w:t>Inserted.</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>Deleted.</w:delText></w:r></w:del></w:p>"
    )
    body = document.element.body
    body.insert(1, control)
    body.insert(2, tracked)
    text = parse(saved(document), file_name="m.docx").text
    assert text.split("\n\n")[:3] == ["Start.", "In a control.", "Inserted."]


def test_styles_based_on_a_heading_are_headings() -> None:
    document = docx.Document()
    style = document.styles.add_style("Company chapter", docx.enum.style.WD_STYLE_TYPE.PARAGRAPH)
    style.base_style = document.styles["Heading 1"]
    document.add_paragraph("Own style", style="Company chapter")
    document.add_paragraph("Body.")
    assert at(parse(saved(document), file_name="m.docx"), "Body.").headings == ("Own style",)
