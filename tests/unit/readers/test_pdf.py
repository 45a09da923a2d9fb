"""PDF: pages as places, rows of tables kept together, and honest refusals."""

from __future__ import annotations

import pytest
from fpdf import FPDF

from rag_service.domain import Location
from rag_service.errors import DocumentError, TooLargeError
from rag_service.readers.common.builder import HIDDEN
from rag_service.readers.parse import parse
from rag_service.readers.pdf.headings import PageLine
from rag_service.readers.pdf.reader import MAX_PAGES, tidy
from tests.unit.readers import samples


def test_each_page_is_a_span_with_its_number() -> None:
    document = parse(samples.pdf("First page", "", "Third page"), file_name="report.pdf")
    assert document.text == "First page\n\nThird page"
    assert [(document.text[s.start : s.end], s.location.page) for s in document.spans] == [
        ("First page", 1),
        ("Third page", 3),
    ]
    assert document.metadata == {"pages": 3, "pages_without_text": [2]}
    assert document.warnings == ("Pages without text, empty or scanned: 2 of 3.",)


@pytest.mark.parametrize(
    ("declared", "title"),
    [
        ("Annual Report 2023", "Annual Report 2023"),
        ("Microsoft Word - final2.docx", "report"),
        ("untitled", "report"),
        ("(anonymous)", "report"),
        ("", "report"),
    ],
)
def test_declared_title_is_used_only_when_sensible(declared: str, title: str) -> None:
    assert parse(samples.pdf("x", title=declared), file_name="report.pdf").title == title


def test_figures_of_a_table_row_stay_on_the_line_of_their_label() -> None:
    file = FPDF()
    file.add_page()
    file.set_font("Helvetica", size=10)
    for y, row in enumerate([("", "2023", "2022"), ("Net income", "$ 1,058", "(815)"), ("Goodwill", "7", "9")]):
        for x in (2, 1, 0):  # drawn right to left, as some programs do
            file.text(10 + 60 * x, 20 + 5 * y, row[x])
    assert "Net income  $ 1,058  (815)\nGoodwill  7  9" in parse(bytes(file.output()), file_name="a.pdf").text


def test_spacing_is_tidied_without_touching_words() -> None:
    lines = ["", "   A   b", "", " ", "", "$      5      (3)", "co-", "op  ", ""]
    assert [line.text for line in tidy([PageLine(line) for line in lines])] == ["A  b", "", "$ 5  (3)", "co-", "op"]


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_a_table_on_a_turned_page_keeps_its_rows(angle: int) -> None:
    file = FPDF()
    file.add_page()
    file.set_font("Helvetica", size=12)
    with file.rotation(angle, x=100, y=150):
        for y, row in enumerate([("Sideways words", "2023"), ("Net income", "1,058")]):
            for x in (1, 0):
                file.text(60 + 60 * x, 150 + 5 * y, row[x])
    assert parse(bytes(file.output()), file_name="a.pdf").text == "Sideways words  2023\nNet income  1,058"


def test_empty_user_password_opens() -> None:
    data = samples.pdf("Readable", password="owner")
    assert parse(data, file_name="a.pdf").text == "Readable"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (samples.pdf("Secret", password="owner", user_password="user"), "protected by a password"),
        (samples.pdf("", ""), "text recognition"),
        (samples.pdf("Text")[:-30], "cut off"),
        (b"%PDF-1.7\nnothing\n%%EOF", "damaged"),
        (samples.pdf_with_stream(b"[" * 200_000), r"no text|damaged"),
    ],
)
def test_unreadable_pdf_is_refused_with_its_reason(data: bytes, says: str) -> None:
    with pytest.raises(DocumentError, match=says):
        parse(data, file_name="a.pdf")


def pages(count: int, *objects: bytes, trailer: bytes = b"") -> bytes:
    kids = b"4 0 R " * count
    tree = b"<</Type/Pages/Kids[3 0 R %s]/Count %d/MediaBox[0 0 200 200]>>" % (kids, count + 1)
    font = b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
    return samples.pdf_of_objects(
        b"<</Type/Catalog/Pages 2 0 R/Lang(es-MX)>>",
        tree,
        b"<</Type/Page/Parent 2 0 R/Contents 5 0 R/Resources %s>>" % font,
        *(objects or (b"<</Type/Page/Parent 2 0 R>>",)),
        samples.stream(b"BT /F1 9 Tf 20 100 Td (Readable) Tj ET"),
        trailer=trailer,
    )


def test_a_damaged_page_leaves_the_others_readable() -> None:
    document = parse(pages(2, b"<</Type/Nothing"), file_name="a.pdf")
    assert document.text == "Readable"
    assert document.metadata["pages_without_text"] == [2, 3]


def test_the_declared_language_is_kept() -> None:
    assert parse(pages(0), file_name="a.pdf").language == "es"


def test_an_encryption_of_an_unknown_kind_is_said() -> None:
    data = pages(0, trailer=b"/Encrypt<</Filter/Unheard>>/ID[<00><00>]")
    with pytest.raises(DocumentError, match="encrypted in a way that this service cannot open"):
        parse(data, file_name="a.pdf")


@pytest.mark.parametrize("count", [MAX_PAGES, 1_000_000])
def test_too_many_pages_are_refused(count: int) -> None:
    with pytest.raises(TooLargeError, match=f"has {count + 1:,} pages"):
        parse(pages(count), file_name="a.pdf")


def test_a_page_of_more_characters_than_any_page_holds_is_refused() -> None:
    data = samples.pdf_with_stream(b"BT /F1 9 Tf 20 100 Td " + b"(%s) Tj " % (b"word " * 6_000) * 40 + b"ET")
    with pytest.raises(TooLargeError, match=r'Page 1 of "a\.pdf" unpacks to far more data'):
        parse(data, file_name="a.pdf")


@pytest.mark.parametrize(
    ("value", "text", "warnings"),
    [
        (b"/V(Gomez)", "Application\n\nname: Gomez", ()),
        (
            b"",
            "Application",
            ("The document is a dynamic form (XFA), whose values cannot be read. Print it to a PDF.",),
        ),
    ],
)
def test_a_form_of_both_kinds_is_read_by_its_old_fields(value: bytes, text: str, warnings: tuple[str, ...]) -> None:
    document = parse(
        samples.pdf_of_objects(
            b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[6 0 R]/XFA 7 0 R>>>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>"
            b"/Annots[6 0 R]>>",
            samples.stream(b"BT /F1 9 Tf 10 100 Td (Application) Tj ET"),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Type/Annot/Subtype/Widget/Rect[10 10 60 20]/P 3 0 R/FT/Tx/T(name)%s>>" % value,
            samples.stream(b"<xdp/>"),
        ),
        file_name="form.pdf",
    )
    assert (document.text, document.warnings) == (text, warnings)


def test_values_of_forms_and_comments_are_read() -> None:
    field = b"<</Type/Annot/Subtype/Widget/Rect[10 10 60 20]/P 3 0 R%s>>"
    document = parse(
        samples.pdf_of_objects(
            b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[6 0 R 7 0 R 8 0 R 9 0 R]>>>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>"
            b"/Annots[6 0 R 7 0 R 8 0 R 9 0 R 10 0 R]>>",
            samples.stream(b"BT /F1 9 Tf 10 100 Td (Application) Tj ET"),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            field % b"/FT/Tx/T(surname)/TU(Family name)/V(G\xf3mez)",
            field % b"/FT/Btn/T(resident)/V/Yes/AS/Yes/AP<</N<</Yes 11 0 R/Off 11 0 R>>>>",
            field % b"/FT/Btn/T(married)/V/Off/AS/Off/AP<</N<</Yes 11 0 R/Off 11 0 R>>>>",
            field % b"/FT/Tx/T(empty)",
            b"<</Type/Annot/Subtype/Text/Contents(Check this date)/Rect[10 70 20 80]/P 3 0 R>>",
            samples.stream(b"", keys="/Type/XObject/Subtype/Form/BBox[0 0 1 1]"),
        ),
        file_name="form.pdf",
    )
    assert document.text == "Application\n\nFamily name: Gómez\n☒ resident\nCheck this date"
    assert samples.at(document, "Family name: Gómez") == Location(page=1, part="form")
    assert samples.at(document, "☒ resident") == Location(page=1, part="form")
    assert samples.at(document, "Check this date") == Location(page=1, part="comment")


def test_a_field_is_named_by_what_is_printed_beside_it_and_not_by_its_tooltip() -> None:
    """A tooltip may be an instruction with figures that are not on the page. What a field hides is left out."""
    field = b"<</Type/Annot/Subtype/Widget/P 3 0 R/FT/Tx/Rect[%s]/TU(Value from 40 to 250)%s>>"
    document = parse(
        samples.pdf_of_objects(
            b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[6 0 R 7 0 R 8 0 R 9 0 R 10 0 R]>>>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>"
            b"/Annots[6 0 R 7 0 R 8 0 R 9 0 R 10 0 R]>>",
            samples.stream(
                b"BT /F1 9 Tf 10 150 Td (Weight \\(kg\\):) Tj 0 -30 Td (7) Tj 0 -20 Td (Height:) Tj ET "
                b"BT /F1 9 Tf 130 80 Td (Smoker) Tj ET"
            ),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            field % (b"80 146 120 160", b"/T(a)/V(71)"),
            field % (b"10 80 50 96", b"/T(b)/V(180)"),
            field.replace(b"/FT/Tx", b"/FT/Btn") % (b"115 79 125 89", b"/T(c)/V/Yes/AS/Yes/AP<</N<</Yes 11 0 R>>>>"),
            field % (b"80 20 120 40", b"/T(d)/V(hidden)/F 2"),
            field % (b"80 40 120 60", b"/T(e)/V(password)/Ff 8192"),
            samples.stream(b"", keys="/Type/XObject/Subtype/Form/BBox[0 0 1 1]"),
        ),
        file_name="form.pdf",
    )
    assert document.text.split("\n\n")[-1].split("\n") == ["Weight (kg): 71", "Height: 180", "☒ Smoker"]
    assert document.warnings == (HIDDEN,)
