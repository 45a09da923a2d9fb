"""Where quotes of a PDF stand on its pages: the characters under the boxes of a quote are those of the quote."""

from __future__ import annotations

import ctypes
import io
from collections import Counter
from collections.abc import Callable

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from fpdf import FPDF

from rag_service.answering.proof.analysis import analyse
from rag_service.answering.proof.passage import locate
from rag_service.domain import Location, Span
from rag_service.readers.parse import parse
from rag_service.word_boxes import pack, with_boxes
from tests.unit.answering.proof.answers import make_hit
from tests.unit.readers import samples

PROSE = (
    "The pump runs at 40 bar. It must be served by a qualified technician before the pump runs at 40 bar again, and "
    "the intercommunication of both control rooms is tested by the duty technician once a week, "
    "at the latest on Friday."
)
ROWS = (
    ("Part", "Cover", "Price"),
    ("Motor and controller of the pump", "3 years", "120 EUR"),
    ("Battery", "3 years", "120 EUR"),
)
QUOTES = [
    "must be served by a qualified technician",
    "before the pump runs at 40 bar again",  # the first one is another
    "tested by the duty technician once a week, at the latest on Friday.",
    "Battery",
    "Part: Battery | Cover: 3 years | Price: 120 EUR",
    "Part: Motor and controller of the pump | Cover: 3 years",
]


def make_pdf(change: Callable[[pypdfium2.PdfPage], None]) -> bytes:
    file = FPDF()
    file.set_font("Helvetica", size=11)
    file.add_page()
    file.multi_cell(90, 6, PROSE, new_x="LMARGIN", new_y="NEXT")
    file.ln(8)
    with file.table(ROWS, width=110, col_widths=(30, 40, 40), align="LEFT"):
        pass
    document = pypdfium2.PdfDocument(bytes(file.output()))
    change(document[0])
    return save(document)


@pytest.mark.parametrize("gap", ["", "20 0 Td "], ids=["in the word", "by itself"])
def test_a_mark_of_a_sign_of_another_font_does_not_reach_into_the_lines_beside_it(gap: str) -> None:
    """Symbols have frames of more than a line."""
    amount = f"/F1 16 Tf (_) Tj /F1 8 Tf {gap}(17.5) Tj"
    content = f"BT /F1 8 Tf 20 110 Td (Above) Tj 0 -10 Td {amount} ET BT 20 90 Td (Below) Tj ET".encode()
    parsed = parse(samples.pdf_with_stream(content, unicode={"_": "\u2212"}), file_name="a.pdf")

    def edges(first: str, last: str) -> tuple[int, int]:
        start, end = parsed.text.index(first), parsed.text.index(last) + len(last)
        boxes = with_boxes(parsed.spans[0].location, parsed.spans, start, end).boxes
        return min(box[1] for box in boxes), max(box[3] for box in boxes)

    (above, low), (top, bottom) = edges("Above", "Above"), edges("\u2212", "17.5")
    assert bottom - top <= low - above + 1, "as high as text of the same size; edges are rounded"


def save(document: pypdfium2.PdfDocument) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def under(page: pypdfium2.PdfPage, location: Location) -> str:
    """The characters of a page whose middle lies in a box."""
    text_page = page.get_textpage()
    found = ""
    for index in range(text_page.count_chars()):
        left, bottom, right, top = text_page.get_charbox(index, loose=True)
        x, y = ctypes.c_int(), ctypes.c_int()
        middle = (left + right) / 2, (bottom + top) / 2
        pdfium.FPDF_PageToDevice(page.raw, 0, 0, 1000, 1000, 0, *middle, ctypes.byref(x), ctypes.byref(y))
        if any(box[0] <= x.value <= box[2] and box[1] <= y.value <= box[3] for box in location.boxes):
            found += chr(pdfium.FPDFText_GetUnicode(text_page.raw, index))
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda page: None,
        lambda page: page.set_rotation(90),
        lambda page: page.set_cropbox(10, 300, 560, 830),
    ],
    ids=["plain", "rotated", "cropped"],
)
def test_a_mark_covers_exactly_the_words_of_a_quote(change: Callable[[pypdfium2.PdfPage], None]) -> None:
    data = make_pdf(change)
    parsed = parse(data, file_name="pump.pdf")
    page = pypdfium2.PdfDocument(data)[0]
    chunk = make_hit(parsed.text, spans=parsed.spans).chunk
    text = parsed.text.replace("\n", " ")
    for quote in QUOTES:
        start = text.index(quote)
        location = locate(chunk, start, start + len(quote), analyse(quote, "en"))
        assert location is not None
        wanted, shown = (Counter(filter(str.isalnum, one)) for one in (quote, under(page, location)))
        assert (shown, bool(location.boxes)) == (wanted, True), quote


def test_a_quote_over_a_page_break_names_both_pages_and_one_behind_it_its_own() -> None:
    file = FPDF()
    file.set_font("Helvetica", size=11)
    for line in ("The tenant may reduce the rent by", "eight per cent until the lift runs. Pets are allowed."):
        file.add_page()
        file.text(20, 20, line)
    parsed = parse(bytes(file.output()), file_name="lease.pdf")
    chunk = make_hit(parsed.text, spans=parsed.spans).chunk
    text = parsed.text.replace("\n", " ")

    def pages_of(quote: str) -> tuple[int | None, int | None]:
        start = text.index(quote)
        location = locate(chunk, start, start + len(quote), analyse(quote, "en"))
        assert location is not None
        return location.page, location.last_page

    assert pages_of("may reduce the rent by eight per cent until the lift runs") == (1, 2)
    assert pages_of("eight per cent until the lift runs") == (2, None)
    assert pages_of("The tenant may reduce the rent") == (1, None)
    assert chunk.location is not None and (chunk.location.page, chunk.location.last_page) == (1, 2)


def test_a_mark_leaves_out_what_stands_in_a_gap_between_its_words() -> None:
    words = [(0, 7, (46, 148, 100, 178)), (9, 12, (800, 148, 860, 178)), (13, 15, (865, 148, 880, 178))]
    span = Span(start=0, end=15, location=Location(page=1), words=pack(words))
    boxes = with_boxes(span.location, [span], 0, 15).boxes
    assert boxes == ((46, 148, 100, 178), (800, 148, 880, 178)), "a blank is bridged, a gap between columns is not"
