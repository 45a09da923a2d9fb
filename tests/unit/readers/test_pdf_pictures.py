"""Pictures on PDF pages with text: told if they are not read; ornaments and backgrounds are not."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy
import pytest
from fpdf import FPDF
from PIL import Image

from rag_service.readers.ocr import recognition
from rag_service.readers.ocr.lines import ReadLine
from rag_service.readers.ocr.recognition import NeedsOcrError, OcrMode, ocr_mode
from rag_service.readers.parse import parse
from rag_service.readers.pdf import scans
from tests.timing import seconds_of
from tests.unit.readers.samples import at


def picture(number: int = 0, *, width: int = 60, height: int = 40) -> io.BytesIO:
    pixels = numpy.random.default_rng(number).integers(0, 255, (height, width), dtype="uint8")
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    buffer.seek(0)
    return buffer


def pdf_of(*pages: Callable[[FPDF], None]) -> bytes:
    file = FPDF()
    file.set_font("Helvetica", size=11)
    for draw in pages:
        file.add_page()
        draw(file)
        file.text(20, 20, "Ask the porter at weekends, and the guard at night.")
    return bytes(file.output())


def test_pictures_that_are_not_read_are_told_once_with_their_pages() -> None:
    def with_logo(*numbers: int) -> Callable[[FPDF], None]:
        def draw(file: FPDF) -> None:
            file.image(picture(99), 150, 5, 40, 12)  # the same on each page
            for number in numbers:
                file.image(picture(number), 20, 40 + 60 * number, 60, 40)

        return draw

    document = parse(pdf_of(with_logo(), with_logo(), with_logo(1, 2)), file_name="a.pdf")
    assert document.warnings == ("3 pictures were not read (pages 1, 3).",)


def test_the_way_to_read_them_is_told_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_service.readers.pdf.reader.is_installed", lambda: False)
    (warning,) = parse(pdf_of(lambda file: file.image(picture(), 20, 40, 60, 40)), file_name="a.pdf").warnings
    assert warning == f"1 picture was not read (page 1). {recognition.HOW_TO_INSTALL}"


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda file: file.image(picture(), 20, 40, 8, 8), id="ornament"),
        pytest.param(lambda file: file.image(picture(), 20, 40, 170, 2), id="line"),
        pytest.param(lambda file: file.image(picture(width=2, height=100), 20, 40, 100, 80), id="shade"),
        pytest.param(lambda file: file.image(picture(), 0, 0, 210, 297), id="page"),
        pytest.param(lambda file: file.image(picture(), 15, 14, 110, 10), id="behind words"),
    ],
)
def test_ornaments_and_backgrounds_are_no_pictures(draw: Callable[[FPDF], None]) -> None:
    assert parse(pdf_of(draw), file_name="a.pdf").warnings == ()


def test_strips_of_a_picture_are_one() -> None:
    def draw(file: FPDF) -> None:
        for number in range(10):
            file.image(picture(number), 20, 40 + 4 * number, 80, 4)

    assert parse(pdf_of(draw), file_name="a.pdf").warnings == ("1 picture was not read (page 1).",)


def test_thousands_of_pictures_take_a_fraction_of_a_second() -> None:
    def draw(file: FPDF) -> None:
        for number in range(5_000):
            file.image(image, 10 + 30 * (number % 6), 30 + 12 * (number // 6 % 20), 26, 8)

    image = Image.open(picture())
    data = pdf_of(draw)
    (warning,) = parse(data, file_name="a.pdf").warnings
    assert seconds_of(lambda: parse(data, file_name="a.pdf")) < 3
    assert warning == "120 pictures were not read (page 1)."


def test_text_recognition_reads_them_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def recognise(image: numpy.ndarray) -> list[ReadLine]:
        sizes.append(image.shape[1] / image.shape[0])
        return [ReadLine("The gate code is 4471", 0.99, 10, 200, 10, 30)]

    monkeypatch.setattr(scans, "recognise", recognise)
    data = pdf_of(lambda file: file.image(picture(), 20, 40, 60, 20))
    with ocr_mode(OcrMode.ON):
        document = parse(data, file_name="a.pdf")
    assert (at(document, "The gate code is 4471").page, at(document, "The gate code is 4471").part) == (1, "picture")
    assert (document.warnings, sizes) == ((), [pytest.approx(3, abs=0.1)])


def test_recognition_is_asked_for_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "is_installed", lambda: True)
    with ocr_mode(OcrMode.ASK), pytest.raises(NeedsOcrError):
        parse(pdf_of(lambda file: file.image(picture(), 20, 40, 60, 20)), file_name="a.pdf")
