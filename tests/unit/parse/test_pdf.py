"""PDF: pages as places, rows of tables kept together, and honest refusals."""

from __future__ import annotations

import zlib

import pytest
from fpdf import FPDF

from rag_service.errors import DocumentError, TooLargeError
from rag_service.ingest.parse import parse
from rag_service.ingest.parse.pdf import is_two_column, tidy
from tests.unit.parse import samples


def test_each_page_is_a_span_with_its_number() -> None:
    document = parse(samples.pdf("First page", "", "Third page"), file_name="report.pdf")
    assert document.text == "First page\n\nThird page"
    assert [(document.text[s.start : s.end], s.location.page) for s in document.spans] == [
        ("First page", 1),
        ("Third page", 3),
    ]
    assert document.metadata == {"pages": 3, "pages_without_text": [2]}


@pytest.mark.parametrize(
    ("declared", "title"),
    [
        ("Annual Report 2023", "Annual Report 2023"),
        ("Microsoft Word - final2.docx", "report"),
        ("untitled", "report"),
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


def test_two_columns_of_prose_are_not_interleaved() -> None:
    left = [f"Left column sentence number {word}" for word in ["one", "two", "three", "four", "five", "six"] * 3]
    right = [f"Right column sentence number {word}" for word in ["one", "two", "three", "four", "five", "six"] * 3]
    file = FPDF()
    file.add_page()
    file.set_font("Helvetica", size=9)
    for x, column in ((10, left), (110, right)):
        for y, line in enumerate(column):
            file.text(x, 20 + 6 * y, line)
    text = parse(bytes(file.output()), file_name="a.pdf").text
    assert text.index("Right column") > text.rindex("Left column")


def test_figures_beside_labels_are_not_taken_for_columns() -> None:
    assert not is_two_column("Net income of the whole group        1,058    815\n" * 20)


def test_spacing_is_tidied_without_touching_words() -> None:
    assert tidy("   A   b\n\n\n\n$      5      (3)\nco-\nop  ") == "A  b\n\n$ 5  (3)\nco-\nop"


def test_rotated_page_is_read() -> None:
    file = FPDF()
    file.add_page()
    file.set_font("Helvetica", size=12)
    with file.rotation(90, x=60, y=100):
        file.text(60, 100, "Sideways words")
    assert "Sideways words" in parse(bytes(file.output()), file_name="a.pdf").text


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


def test_stream_that_unpacks_beyond_the_limit_is_refused() -> None:
    bomb = zlib.compress(zlib.compress(bytes(300 * 2**20), 9), 9)
    data = samples.pdf_with_stream(bomb, filters="/Filter[/FlateDecode/FlateDecode]")
    assert len(data) < 100_000
    with pytest.raises(TooLargeError, match="unpacks to far more data"):
        parse(data, file_name="a.pdf")
