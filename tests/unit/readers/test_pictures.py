"""Pictures in Office files: recognised where text recognition is on, else told in one warning with their places."""

from __future__ import annotations

import io
from collections.abc import Iterator

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl import Workbook
from openpyxl.drawing.image import Image as SheetImage
from PIL import Image

from rag_service.domain import Location
from rag_service.readers.ocr import recognition
from rag_service.readers.ocr.lines import ReadLine
from rag_service.readers.ocr.recognition import HOW_TO_INSTALL, NeedsOcrError, OcrMode, ocr_mode
from rag_service.readers.office import pictures
from rag_service.readers.parse import parse
from rag_service.readers.pdf import scans
from tests.unit.readers.office_samples import pptx, shape
from tests.unit.readers.samples import at, saved, with_members

WIDE = docx.shared.Inches(2)


def png(number: int, width: int = 120, height: int = 40) -> io.BytesIO:
    """A picture of one grey, so that each number is another file."""
    buffer = io.BytesIO()
    Image.new("L", (width, height), number % 256).save(buffer, "PNG")
    buffer.seek(0)
    return buffer


def deck_with_picture() -> bytes:
    picture = (
        '<p:pic><p:blipFill><a:blip r:embed="rIdP"/></p:blipFill><p:spPr><a:xfrm><a:ext cx="914400" cy="914400"/>'
        "</a:xfrm></p:spPr></p:pic>"
    )
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rIdP" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="../media/a.png"/>'
        "</Relationships>"
    )
    changes = {"ppt/slides/_rels/slide2.xml.rels": relations.encode(), "ppt/media/a.png": png(1).read()}
    return with_members(pptx([shape("Plan", kind="title")], [shape("Yard", kind="title"), picture]), changes)


def book_with_picture() -> bytes:
    book = Workbook()
    book.active.title = "Yard"
    book.active["A1"] = "North"
    book.active.add_image(SheetImage(png(1)), "C3")
    book.active.add_image(SheetImage(png(2, 16, 16)), "D3")
    return saved(book)


@pytest.fixture
def recognised(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Text recognition is on, and reads "Code 4471" in dark pictures and nothing in others."""

    def read(image: object) -> list[ReadLine]:
        is_dark = image.mean() < 100  # type: ignore[attr-defined]
        return [ReadLine("Code 4471", 0.99, 5, 110, 5, 30)] if is_dark else []

    monkeypatch.setattr(scans, "recognise", read)
    with ocr_mode(OcrMode.ON):
        yield


def test_pictures_of_a_document_are_told_once_with_their_places_and_icons_are_not() -> None:
    document = docx.Document()
    document.add_picture(png(1), WIDE)
    document.add_heading("Yard", 1)
    document.add_paragraph("Map:")
    for number in (2, 3, 2):
        document.add_picture(png(number), WIDE)
    document.add_picture(png(4), docx.shared.Pt(12))  # shown as an icon
    document.add_picture(png(5, 31, 31), WIDE)  # a spot made large
    document.sections[0].header.paragraphs[0].add_run().add_picture(png(6), WIDE)
    deleted = parse_xml(f"<w:del {nsdecls('w')}/>")
    document.add_picture(png(7), WIDE)
    deleted.append(document.paragraphs[-1].runs[0]._r)
    document.paragraphs[-1]._p.append(deleted)
    warnings = parse(saved(document), file_name="m.docx").warnings
    assert warnings[0] == '4 pictures were not read: paragraph 1, section "Yard" (2), page header.'


def test_pictures_of_sheets_and_slides_are_told_with_cell_and_slide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "is_installed", lambda: False)
    assert parse(book_with_picture(), file_name="b.xlsx").warnings == (
        f"1 picture was not read: Yard!C3. {HOW_TO_INSTALL}",
    )
    assert parse(deck_with_picture(), file_name="d.pptx").warnings == (
        f"1 picture was not read: slide 2. {HOW_TO_INSTALL}",
    )


def test_pictures_of_old_drawings_are_told_without_icons() -> None:
    names = "xmlns:v='urn:schemas-microsoft-com:vml'"
    old = (
        f"<w:p {nsdecls('w', 'r')} {names}><w:r><w:t>Plan</w:t><w:pict><v:shape style='width:{{0}}pt;height:{{0}}pt'>"
        "<v:imagedata r:id='rId99'/></v:shape></w:pict></w:r></w:p>"
    )
    document = docx.Document()
    for size in (12, 150):
        document.element.body.insert(0, parse_xml(old.format(size)))
    (warning,) = parse(saved(document), file_name="m.docx").warnings
    assert warning.startswith("1 picture was not read: paragraph 1.")


def test_recognised_pictures_are_read_where_they_stand(recognised: None) -> None:
    document = docx.Document()
    document.add_heading("Yard", 1)
    document.add_picture(png(200), WIDE)  # without text
    document.add_picture(png(1), WIDE)
    document.add_paragraph("Ask the porter.")
    document.sections[0].header.paragraphs[0].add_run().add_picture(png(2), WIDE)
    read = parse(saved(document), file_name="m.docx")
    assert read.text.split("\n\n")[:4] == ["Yard", "Code 4471", "Ask the porter.", "Code 4471"]
    places = [span.location for span in read.spans if read.text[span.start : span.end] == "Code 4471"]
    assert places == [Location(headings=("Yard",), part="picture 1"), Location(part="page header")]
    assert read.warnings == ()
    book = parse(book_with_picture(), file_name="b.xlsx")
    assert at(book, "Code 4471") == Location(sheet="Yard", cell="C3", part="picture 1")
    deck = parse(deck_with_picture(), file_name="d.pptx")
    assert at(deck, "Code 4471") == Location(slide=2, headings=("Yard",), part="picture 1")


def test_a_document_with_pictures_asks_for_recognition_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "is_installed", lambda: True)
    with ocr_mode(OcrMode.ASK), pytest.raises(NeedsOcrError):
        parse(book_with_picture(), file_name="b.xlsx")


def test_pictures_that_are_damaged_or_outside_the_file_are_told(recognised: None) -> None:
    document = docx.Document()
    document.add_paragraph("Text.")
    document.add_picture(png(1), WIDE)
    blip = document.element.body.findall(".//" + docx.oxml.ns.qn("a:blip"))[0]
    data = with_members(saved(document), {"word/media/image1.png": png(1).read()[:40]})
    assert "1 picture was not read: paragraph 1." in parse(data, file_name="m.docx").warnings
    blip.attrib[docx.oxml.ns.qn("r:link")] = blip.attrib.pop(docx.oxml.ns.qn("r:embed")) + "0"
    assert "1 picture was not read: paragraph 1." in parse(saved(document), file_name="m.docx").warnings


def test_thousands_of_pictures_make_one_short_warning() -> None:
    document = docx.Document()
    outside = '<w:drawing><a:blip r:link="rId99"/></w:drawing>'
    paragraph = f"<w:p><w:r><w:t>Text.</w:t>{outside * 10}</w:r></w:p>"
    document.element.body.insert(0, parse_xml(f"<w:sdt {nsdecls('w', 'a', 'r')}>{paragraph * 500}</w:sdt>"))
    (warning,) = parse(saved(document), file_name="m.docx").warnings
    assert warning.startswith("5,000 pictures were not read: paragraph 1 (10), paragraph 2 (10), ")
    assert warning.removesuffix(HOW_TO_INSTALL).rstrip(". ").endswith(", …")
    assert len(warning) < 500
