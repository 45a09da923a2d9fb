"""PDF: running headers and footers stay out of the text, and a sentence goes on over the page break."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pypdfium2
import pytest
from fpdf import FPDF

from rag_service.domain import ParsedDocument
from rag_service.language.sentences import split_sentences
from rag_service.readers.parse import parse
from rag_service.readers.pdf.page_breaks import PageLine, drop_running_lines

PROSE = [
    "The pump is stopped before its filter is opened. Wait until it is cold and",
    "the pressure has fallen below one bar. A filter that was taken out is never",
    "put back: it may be torn where nobody sees it, and the pump would draw air.",
    "Write the date into the log. The log is kept beside the pump and is shown to",
    "whoever inspects the plant. It is not taken home, and pages are not torn out of",
]
THINGS = ("it.", "the log.", "this book of the plant.", "the plan.", "any paper.", "a list.", "an annex.")


def book(
    count: int,
    *,
    head: Callable[[int], str] = lambda page: "",
    foot: Callable[[int], str] = lambda page: "",
    body: Callable[[int], Sequence[str]] = lambda page: [THINGS[page - 1], "", *PROSE],
    gap: float = 12,
    number: Callable[[int], str] = lambda page: "",
) -> ParsedDocument:
    """A document of `count` pages, with a number on the right of each header."""
    file = FPDF()
    file.set_auto_page_break(False)
    for page in range(1, count + 1):
        file.add_page()
        for size, y, text in ((9, 15, head(page)), (9, 285, foot(page))):
            file.set_font("Helvetica", size=size)
            file.text(20, y, text)
        file.text(180, 15, number(page))
        file.set_font("Helvetica", size=10)
        for row, line in enumerate(body(page)):
            for column, text in enumerate(line.split("\t")):
                file.text(20 + 50 * column, 15 + gap + 5 * row, text)
    return parse(bytes(file.output()), file_name="book.pdf")


def sentences(document: ParsedDocument) -> list[str]:
    return [" ".join(document.text[start:end].split()) for start, end in split_sentences(document.text, language="en")]


@pytest.mark.parametrize(
    "foot",
    [
        lambda page: f"Page {page} of 4",
        lambda page: f"- {page} -",
        lambda page: str(page + 1122),
        lambda page: f"14.03.2024   {page}/4",
        lambda page: "" if page == 1 else f"Página {page}",
    ],
)
def test_a_sentence_goes_on_where_headers_and_footers_stood(foot: Callable[[int], str]) -> None:
    document = book(4, head=lambda page: "HR-014 Policy of pumps", number=lambda page: f"{page}/4", foot=foot)
    for thing in THINGS[1:4]:
        assert f"It is not taken home, and pages are not torn out of {thing}" in sentences(document)
    assert document.text.startswith("HR-014 Policy of pumps\n\nit.\n\nThe pump")
    assert document.text.count("HR-014") == 1
    assert foot(3) not in document.text
    start = document.text.index("It is not taken home")
    end = document.text.index("the log.", start)
    assert [s.location.page for s in document.spans if s.start <= end and s.end > start] == [1, 2]


def test_headers_may_alternate_and_each_stays_once_with_its_page() -> None:
    document = book(
        7,
        head=lambda page: "" if page == 1 else "THERMALIS 240, rev. D, manual" if page % 2 else "Safety of the plant",
        foot=lambda page: f"{page}   Thermalis" if page % 2 else f"Thermalis   {page}",
    )
    places = {document.text[s.start : s.end]: s.location.page for s in document.spans}
    assert document.text.count("rev. D") == document.text.count("Safety of") == 1
    assert (places["THERMALIS 240, rev. D, manual"], places["Safety of the plant"]) == (3, 2)
    assert document.text.count("Thermalis") == document.text.count("\n\nThermalis\n\n") == 1


@pytest.mark.parametrize("number", [lambda page: "", lambda page: f"{page} / 2"])
def test_two_pages_have_a_running_header_and_footer(number: Callable[[int], str]) -> None:
    document = book(2, head=lambda page: "Our reference 2024/17", foot=lambda page: "Vigo Pumps Ltd", number=number)
    assert document.text.count("Our reference") == document.text.count("Vigo Pumps") == 1
    assert "It is not taken home, and pages are not torn out of the log." in sentences(document)


def test_in_two_pages_a_line_that_differs_or_stands_elsewhere_stays() -> None:
    document = book(2, head=lambda page: f"Invoice {page * 417}", foot=lambda page: "Page left blank" * (page - 1))
    assert all(document.text.count(line) == 1 for line in ("Invoice 417", "Invoice 834", "Page left blank"))
    file = FPDF()
    for size, y in ((10, 15), (10, 25), (14, 15), (14, 15)):
        file.add_page()
        file.set_font("Helvetica", size=size)
        file.text(20, y, "Applicant")
        file.set_font("Helvetica", size=10)
        for row, line in enumerate(PROSE):
            file.text(20, y + 20 + 5 * row, line)
    whole = bytes(file.output())
    for first in (0, 2):  # at another place; as a heading
        with pypdfium2.PdfDocument(whole) as source, pypdfium2.PdfDocument.new() as two:
            two.import_pages(source, [first, first + 1])
            data = io.BytesIO()
            two.save(data)
        assert parse(data.getvalue(), file_name="forms.pdf").text.count("Applicant") == 2


def test_a_word_broken_over_pages_is_whole() -> None:
    body = [*PROSE[:-1], "whoever inspects the plant. The owner decides about the inver-"]
    text = book(3, head=str, body=lambda page: ["sion of the flow.", "", *body] if page > 1 else body).text
    assert "about the inversion\nof the flow." in text


@pytest.mark.parametrize(
    ("head", "body", "gap"),
    [
        (lambda page: f"Day {page}", lambda page: PROSE, 12),  # a heading
        (lambda page: f"Total due: {page * page * 90} euros", lambda page: PROSE, 12),
        (
            lambda page: "Applicant",
            lambda page: [f"Person {page}", "Born in Vigo", *PROSE],
            5,
        ),  # one form after another
        (lambda page: "(in millions)", lambda page: PROSE, 12),
        (lambda page: "Not applicable.", lambda page: [*PROSE, "", "Not applicable.", "", *PROSE], 12),
        (lambda page: f"Slide {page}", lambda page: [], 12),
    ],
)
def test_body_text_at_the_edge_stays(
    head: Callable[[int], str], body: Callable[[int], Sequence[str]], gap: float
) -> None:
    text = book(4, head=head, body=body, gap=gap).text
    heads = [head(page) for page in range(1, 5)]
    assert [text.count(line) for line in heads] == [heads.count(line) * (2 if line in body(1) else 1) for line in heads]


def test_names_of_columns_on_every_page_of_a_table_stay() -> None:
    rows = [f"Bolt {size}\t{size * 12}\t{size}.50" for size in range(3, 40)]
    document = book(
        4,
        head=lambda page: "Stock of the depot in Vigo",
        number=lambda page: f"{page}/4",
        body=lambda page: ["Product\tStock\tPrice", "", *rows],
    )
    assert document.text.count("Product  Stock  Price") == 4
    assert document.text.count("Bolt 17  204  17.50") == 4
    assert document.text.count("Stock of the depot") == 1


def test_a_line_of_nothing_that_is_shown_is_no_header() -> None:
    lines = [PageLine("", 10, middle=800), PageLine("The body.", 10, middle=700), PageLine("It ends.", 10, middle=688)]
    kept, running = drop_running_lines([lines, lines])
    assert ([line.text for line in kept[0]], running) == (["The body.", "It ends."], {})
