"""What a page or a file hides, and that hostile files of this kind take a bounded time."""

from __future__ import annotations

import pytest
from fpdf import FPDF
from PIL import Image

from rag_service.readers.mail.compressed_rtf import read_compressed_rtf
from rag_service.readers.parse import parse
from tests.timing import seconds_of
from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus import messy_word as word


@pytest.mark.parametrize(
    ("style", "mark", "is_shown"),
    [
        (".a { display: none }", "class='a'", False),
        ("p { display: none } .a { display: block }", "class='a'", True),  # the more specific one holds
        (".a.b { display: none }", "class='a'", True),
        ("#a, .c { visibility: hidden }", "id='a'", False),
        (".a { display: none }", "class='a' style='display: block'", True),
        (".a { display: none !important }", "class='a' style='display: block'", False),
        ("@media print { .a { display: none } }", "class='a'", True),
        ("@media screen { .a { display: none } }", "class='a'", False),
        ("/* .a { display: none } */", "class='a'", True),
        (".menu .a { display: none }", "class='a'", True),  # more than the element itself: hides nothing
        (".a { display: none } :checked ~ .a { display: block }", "class='a'", True),  # and may show something
        ("", "hidden", False),
        (".a { display: none", "class='a'", True),  # cut off
        ("div.tip { p { display: none } }", "", True),  # within another rule
        (".a { display: none; &.open { display: block } }", "class='a open'", True),
        (".a { color: red; .b { color: red } display: none }", "class='a'", False),
        (":is(.x, p, .y) .z, .z:not(.x, p, .y), :where(h1, p):empty { display: none }", "", True),
        ("[data-x='a, p, b'] { display: none }", "", True),
        ("@media print { .x::before { content: '}' } .a { display: none } }", "class='a'", True),
        ("/* don't */ .a { display: none } /* don't */", "class='a'", False),
        ("html { visibility: hidden } body { display: none }", "", True),  # until its script shows it
        ("", "hidden='until-found'", True),  # opens where a search finds it
    ],
)
def test_a_rule_for_tags_classes_and_ids_hides_text(style: str, mark: str, is_shown: bool) -> None:
    document = parse(f"<style>{style}</style><div>Kept.</div><p {mark}>Seen.</p>".encode(), file_name="a.html")
    assert ("Seen." in document.text) is is_shown
    assert document.warnings == (() if is_shown else ("Hidden text was not read.",))


def test_hidden_furniture_of_a_page_is_no_news() -> None:
    page = "<nav><p hidden>Menu</p></nav><p>Text.<span aria-hidden=true>#</span></p><script hidden>x()</script>"
    assert parse(page.encode(), file_name="a.html").warnings == ()


def test_a_picture_of_a_page_of_some_metres_is_no_proof_that_small_letters_are_hidden() -> None:
    file = FPDF(unit="pt", format=(14_400, 14_400))
    file.add_page()
    file.set_font("Helvetica", size=6)
    file.text(100, 100, "Kept.")
    file.image(Image.new("RGB", (2, 2), (20, 20, 60)), x=0, y=2_000, w=4_000, h=4_000)
    file.set_text_color(255, 255, 255)
    for number in range(20):
        file.text(200, 3_000 + 9.7 * number, f"Line {number}")
    text = parse(bytes(file.output()), file_name="a.pdf").text
    assert text.count("Line") == 20


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("braces.html", b"<style>" + b"@media screen{" * 50_000 + b"</style><p>x"),
        ("no_braces.html", b"<style>" + b"a" * 1_000_000 + b"</style><p>x"),
        ("combinators.html", b"<style>" + b" >" * 200_000 + b"{display:none}</style><p>x"),
        ("conditions.html", b"<style>" + b":a(" * 200_000 + b"{display:none}</style><p>x"),
        ("brackets.html", b"<style>" + b"[" * 200_000 + b":" * 200_000 + b"{display:none}</style><p>x"),
        ("quotes.html", b"<style>" + b'"\\' * 200_000 + b"{display:none}</style><p>x"),
        ("blanks.html", b"<p style='display:none" + b" " * 200_000 + b"!x'>x"),
        (
            "repeated.ods",
            office.odf(
                "spreadsheet",
                "<table:table>"
                + '<table:table-column table:visibility="collapse" table:number-columns-repeated="99999999"/>' * 100
                + f"<table:table-row>{office.odf_cell('x')}</table:table-row></table:table>",
            ),
        ),
        (
            "ends.docx",
            word.document(
                "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>" * 20_000, word.par("x")
            ),
        ),
    ],
)
def test_hostile_files_take_a_bounded_time(name: str, data: bytes) -> None:
    texts: list[str] = []
    assert seconds_of(lambda: texts.append(parse(data, file_name=name).text)) < 5
    assert "x" in texts[0]


def test_a_compressed_body_that_is_cut_off_ends_early() -> None:
    # [MS-OXRTFCP], section 4.1.2: a reference that runs into what it writes.
    whole = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")
    text = read_compressed_rtf(whole)
    assert text == rb"{\rtf1 WXYZWXYZWXYZWXYZWXYZ}"
    assert all((read_compressed_rtf(whole[:end]) or b"") in text for end in range(len(whole)))
