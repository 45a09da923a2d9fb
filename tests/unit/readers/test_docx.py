"""Word: order of the document, heading paths, labelled table rows, page headers and footers once."""

from __future__ import annotations

import docx
import pytest
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls
from lxml import etree

from rag_service.domain import Location, ParsedDocument
from rag_service.readers.parse import parse
from tests.unit.readers.samples import add_word_table, at, saved, with_members


@pytest.fixture(scope="module")
def manual() -> ParsedDocument:
    document = docx.Document()
    document.core_properties.language = "en-GB"
    document.sections[0].header.paragraphs[0].text = "Running header"
    document.add_heading("Maintenance manual", 0)
    document.add_heading("Spare parts", 1)
    document.add_paragraph("")
    document.add_paragraph("See the table.")
    add_word_table(document, [("Product", "Stock"), ("Valve", "12"), ("Pump\nlarge", "7")])
    document.add_heading("Orders", 2)
    document.add_paragraph("After the table.")
    document.add_heading("Safety", 1)
    document.add_paragraph("Wear gloves.")
    return parse(saved(document), file_name="m.docx")


def test_body_is_read_in_order_before_the_page_header(manual: ParsedDocument) -> None:
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
        "Running header",
    ]
    assert (manual.title, manual.language) == ("Maintenance manual", "en")


def test_paragraphs_carry_number_and_heading_path(manual: ParsedDocument) -> None:
    assert at(manual, "See the table.") == Location(headings=("Spare parts",), paragraph=3)
    assert at(manual, "After the table.") == Location(headings=("Spare parts", "Orders"), paragraph=5)
    assert at(manual, "Wear gloves.").headings == ("Safety",)


def test_table_cells_carry_their_row_and_cell(manual: ParsedDocument) -> None:
    assert "Product: Valve | Stock: 12" in manual.text
    assert at(manual, "12") == Location(headings=("Spare parts",), paragraph=3, row=2, cell="B2")


def test_merged_cells_are_repeated_downwards_and_not_sideways() -> None:
    document = docx.Document()
    values = [("Region", "Product", "Stock"), ("North", "Bolt", "1"), ("", "Nut", "2"), ("Total of all", "", "3")]
    table = add_word_table(document, values)
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


def test_notes_comments_boxes_and_equations_are_read_where_they_belong() -> None:
    document = docx.Document()
    document.add_heading("Rules", 1)
    names = (
        f"{nsdecls('w')} xmlns:m='http://schemas.openxmlformats.org/officeDocument/2006/math'"
        " xmlns:v='urn:schemas-microsoft-com:vml'"
    )
    noted = parse_xml(
        f"<w:p {names}><w:r><w:t>Trains are free</w:t></w:r><w:r><w:footnoteReference w:id='2'/></w:r>"
        "<w:r><w:endnoteReference w:id='5'/></w:r><w:r><w:commentReference w:id='0'/></w:r></w:p>"
    )
    boxed = parse_xml(
        f"<w:p {names}><w:r><w:pict><v:textbox><w:txbxContent><w:p><w:r><w:t>In the box</w:t></w:r></w:p>"
        "</w:txbxContent></v:textbox></w:pict></w:r></w:p>"
    )
    equation = parse_xml(f"<w:p {names}><m:oMath><m:r><m:t>E=mc²</m:t></m:r></m:oMath></w:p>")
    for place, part in enumerate((noted, boxed, equation), start=1):
        document.element.body.insert(place, part)

    def notes(kind: str, *texts: str) -> bytes:
        first = f"<w:{kind} w:id='-1' w:type='separator'><w:p><w:r><w:t>line</w:t></w:r></w:p></w:{kind}>"
        parts = (
            f"<w:{kind} w:id='{n}'><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:{kind}>"
            for n, text in zip(("2", "5", "0"), texts, strict=True)
            if text
        )
        return f"<w:{kind}s {names}>{first}{''.join(parts)}</w:{kind}s>".encode()

    data = with_members(
        saved(document),
        {
            "word/footnotes.xml": notes("footnote", "Except in August.", "", ""),
            "word/endnotes.xml": notes("endnote", "", "Since 1999.", ""),
            "word/comments.xml": notes("comment", "", "", "Check with Berta."),
        },
    )
    read = parse(data, file_name="n.docx")
    under = {"headings": ("Rules",)}
    assert at(read, "Trains are free") == Location(**under, paragraph=2)
    assert at(read, "Except in August.") == Location(**under, part="footnote 1")
    assert at(read, "Since 1999.") == Location(**under, part="endnote 1")
    assert at(read, "Check with Berta.") == Location(**under, part="comment 1")
    assert at(read, "In the box") == Location(**under, paragraph=3)
    assert at(read, "E=mc²") == Location(**under, paragraph=4)
    assert "line" not in read.text


def test_a_cell_over_two_columns_has_the_names_of_both() -> None:
    document = docx.Document()
    table = add_word_table(document, [("Grade", "Hotel", ""), ("B", "160 EUR", "190 EUR"), ("C", "100 EUR", "")])
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(2, 1).merge(table.cell(2, 2))
    text = parse(saved(document), file_name="m.docx").text
    assert text.split("\n")[:2] == ["Grade: B | Hotel: 160 EUR | Hotel: 190 EUR", "Grade: C | Hotel: 100 EUR"]


def test_a_row_of_amounts_below_a_wide_name_is_no_header() -> None:
    document = docx.Document()
    table = add_word_table(document, [("Grade", "Hotel", ""), ("B", "160 EUR", "190 EUR"), ("C", "100", "110")])
    table.cell(0, 1).merge(table.cell(0, 2))
    text = parse(saved(document), file_name="m.docx").text
    assert text.split("\n")[:2] == ["Grade: B | Hotel: 160 EUR | Hotel: 190 EUR", "Grade: C | Hotel: 100 | Hotel: 110"]


def test_page_headers_and_footers_that_are_shown_are_read_once_as_sections_of_their_own() -> None:
    document = docx.Document()
    document.add_heading("Offer", 1)
    document.add_paragraph("Body.")
    first, second = document.sections[0], document.add_section()
    document.add_paragraph("Annex.")
    first.header.paragraphs[0].text = "Reference LX-2291"
    first.header.add_paragraph()._p.append(parse_xml(f"<w:fldSimple {nsdecls('w')} w:instr='PAGE'/>"))
    first.header.paragraphs[1]._p[0].append(parse_xml(f"<w:r {nsdecls('w')}><w:t>12</w:t></w:r>"))
    first.first_page_header.paragraphs[0].text = "Stale draft"  # not shown: the section has no first page of its own
    first.footer.paragraphs[0].text = "Confidential"
    second.different_first_page_header_footer = True
    second.first_page_header.paragraphs[0].text = "Annex A"
    second.footer.paragraphs[0].text = "Confidential"
    document.settings.odd_and_even_pages_header_footer = True
    add_word_table(first.even_page_header, [("Order", "Date"), ("88", "3 May")], width=docx.shared.Inches(4))
    read = parse(saved(document), file_name="m.docx")
    assert read.text.split("\n\n")[:5] == ["Offer", "Body.", "Annex.", "Reference LX-2291", "Order: 88 | Date: 3 May"]
    assert at(read, "Body.") == Location(headings=("Offer",), paragraph=2)
    assert at(read, "Reference LX-2291") == Location(part="page header")
    assert at(read, "Confidential") == Location(part="page footer")
    assert at(read, "Annex A") == Location(part="page header of section 2")
    assert "Stale draft" not in read.text
    assert "12" not in read.text


def test_a_header_that_includes_itself_or_is_missing_does_no_harm() -> None:
    document = docx.Document()
    document.add_paragraph("Body.")
    document.sections[0].header.paragraphs[0].text = "Once"
    missing = parse_xml(f"<w:footerReference {nsdecls('w', 'r')} w:type='default' r:id='rId999'/>")
    document.sections[0]._sectPr.insert(0, missing)
    with_itself = parse_xml(
        f"<w:hdr {nsdecls('w', 'r')}><w:p><w:pPr><w:sectPr><w:headerReference w:type='default' r:id='rId1'/>"
        "</w:sectPr></w:pPr><w:r><w:t>Once</w:t></w:r></w:p><w:altChunk r:id='rId1'/></w:hdr>"
    )
    relations = (
        "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='rId1' "
        "Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/header' Target='header1.xml'/>"
        "</Relationships>"
    )
    changes = {
        "word/header1.xml": etree.tostring(with_itself),
        "word/_rels/header1.xml.rels": relations.encode(),
    }
    read = parse(with_members(saved(document), changes), file_name="m.docx")
    assert read.text.split() == ["Body.", "Once"]


def test_a_document_whose_picture_is_lost_is_read() -> None:
    relations = (
        "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Id='rId1' "
        "Type='http://schemas.openxmlformats.org/officeDocument/2006/relationships/image' Target='../media/lost.png'/>"
        "</Relationships>"
    )
    document = docx.Document()
    document.add_paragraph("Plan of the hall.")
    document.sections[0].header.paragraphs[0].text = "Hall 4"
    data = with_members(saved(document), {"word/_rels/header1.xml.rels": relations.encode()})
    assert parse(data, file_name="m.docx").text.split("\n\n")[:2] == ["Plan of the hall.", "Hall 4"]


def test_subdocuments_of_a_master_document_are_told() -> None:
    document = docx.Document()
    document.add_paragraph("Master")
    document.element.body.append(OxmlElement("w:subDoc"))
    assert parse(saved(document), file_name="a.docx").warnings == (
        "Subdocuments, which are files of their own, were not read.",
    )
