"""Scanned pages and images are read by text recognition (extra `ocr`), in the sandbox."""

from __future__ import annotations

import asyncio
import io
import struct
import zlib
from importlib.util import find_spec
from typing import Any

import pytest
from fpdf import FPDF
from PIL import Image, ImageFilter

from rag_service.domain import Box, Location, ParsedDocument
from rag_service.errors import DocumentError, TooLargeError, UnsupportedMediaError
from rag_service.readers import file_reader
from rag_service.readers.file_reader import FileReader
from rag_service.readers.ocr import recognition, tesseract
from rag_service.readers.ocr.recognition import NeedsOcrError, OcrMode, ocr_mode
from rag_service.readers.parse import parse
from rag_service.readers.sandbox import parse_in_sandbox
from rag_service.word_boxes import unpack
from tests.unit.readers.office_samples import zipped
from tests.unit.readers.samples import pdf
from tests.unit.readers.scans import page_image, saved, scanned

pytestmark = pytest.mark.slow

TEXTS = {
    "en": """The council of Solaria raises the ceiling for hotels to 140 euros from 1 March 2025.
Applications must be sent at least fourteen days before departure, with two quotes.
Night trains need no approval; flights under 600 kilometres are not reimbursed.""",
    "es": """El ayuntamiento eleva el límite de alojamiento a 140 euros desde el 1 de marzo de 2025.
Las solicitudes se presentarán al menos catorce días antes del viaje, con dos presupuestos.
¿Quién autoriza los trenes nocturnos? Nadie: no requieren aprobación del año anterior.""",
    "fr": """Le conseil relève le plafond de l'hébergement à 140 euros à partir du 1er mars 2025.
Les demandes doivent être déposées quatorze jours avant le départ, avec deux devis.
Les trains de nuit n'exigent aucun accord ; les vols très courts ne sont pas remboursés.""",
}


def png_header(width: int, height: int) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = b"IDAT" + zlib.compress(b"\0" * 1_000)
    parts = (struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in (head, body))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("language", TEXTS)
async def test_nine_words_of_ten_of_a_scan_are_right(language: str) -> None:
    text = TEXTS[language]
    document = await parse_in_sandbox(saved(scanned(page_image(text)), "PNG"), file_name="scan.png")
    wanted, read = text.split(), set(document.text.split())
    right = sum(word in read for word in wanted)
    assert right >= 0.9 * len(wanted), document.text
    lines = text.splitlines()
    marked = marked_lines(document)
    assert [line.count(" ") for line, _ in marked] == [line.count(" ") for line in lines]
    tops = [box[1] for _, box in marked]
    assert tops == sorted(tops)
    assert (document.media_type, document.warnings) == ("image/png", ())


async def test_scanned_pages_are_read_beside_typed_ones_and_empty_ones_are_told() -> None:
    file = FPDF()
    file.set_font("Helvetica", size=11)
    file.add_page()
    file.cell(0, 6, "A typed page.")
    file.add_page()
    file.image(io.BytesIO(saved(scanned(page_image(TEXTS["en"])), "JPEG", quality=70)), 0, 0, 210)
    file.add_page()
    document = await parse_in_sandbox(bytes(file.output()), file_name="mixed.pdf")
    typed, *recognised = document.spans
    assert (document.text[: typed.end], typed.location) == ("A typed page.", Location(page=1))
    assert "fourteen days before departure" in document.text[typed.end :]
    assert [span.location.page for span in recognised] == [2]
    assert len(marked_lines(document)) == len(["A", "typed", "page."]) + len(TEXTS["en"].splitlines())
    assert document.warnings == ("Pages without text, empty or scanned: 3 of 3.",)


async def test_pages_of_a_tiff_and_images_in_archives_have_their_places() -> None:
    first, second = page_image("The first page has 4711."), page_image("The second page has 4712.")
    data = saved(first, "TIFF", save_all=True, append_images=[second])
    document = await parse_in_sandbox(zipped({"fax.tif": data, "note.txt": "Typed."}), file_name="all.zip")
    places = {document.text[span.start : span.end]: span.location for span in document.spans}
    second_page = places["The second page has 4712."]
    assert (second_page.page, second_page.part) == (2, "fax.tif")
    assert [line for line, _ in marked_lines(document)] == ["The first page has 4711.", "The second page has 4712."]
    assert places["Typed."] == Location(paragraph=1, part="note.txt")


async def test_lines_that_are_hard_to_read_are_told() -> None:
    blurred = page_image(TEXTS["en"], dpi=30).resize((1240, 580)).filter(ImageFilter.GaussianBlur(1))
    document = await parse_in_sandbox(saved(blurred, "PNG"), file_name="blurred.png")
    assert any("low confidence" in warning for warning in document.warnings)


async def test_a_webp_image_is_read_as_others_are() -> None:
    data = saved(page_image("The gate has 4711."), "WEBP")
    document = await parse_in_sandbox(data, file_name="photo.webp")
    assert (document.text.strip(), document.media_type) == ("The gate has 4711.", "image/webp")


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (png_header(30_000, 30_000), TooLargeError, "30,000 × 30,000"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), DocumentError, "damaged"),
        (b"II*\0" + b"\xff" * 200, DocumentError, "damaged"),
        (b"RIFF\xff\xff\xff\xffWEBPVP8 " + bytes(200), DocumentError, "damaged"),
        (saved(Image.new("L", (400, 400), 255), "PNG"), DocumentError, "contains no text"),
        (saved(Image.new("L", (1, 100_000)), "PNG"), DocumentError, "contains no text"),
        (saved(Image.new("L", (40_000, 100), 255), "PNG"), DocumentError, "contains no text"),
    ],
    ids=["huge", "damaged PNG", "damaged TIFF", "damaged WebP", "white", "line", "strip"],
)
async def test_bad_images_are_refused_with_a_reason(data: bytes, kind: type[DocumentError], says: str) -> None:
    with pytest.raises(kind, match=says):
        await parse_in_sandbox(data, file_name="a.png")


async def test_recognition_holds_up_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    recognising, go_on = asyncio.Event(), asyncio.Event()

    async def recognise_late(data: bytes, *, ocr: bool | None = None, **options: Any) -> ParsedDocument:
        if ocr:
            recognising.set()
            await go_on.wait()
        return await parse_in_sandbox(data, ocr=ocr, **options)

    monkeypatch.setattr(file_reader, "parse_in_sandbox", recognise_late)
    reader = FileReader(concurrency=1)
    scan = asyncio.create_task(reader.aload_data(saved(scanned(page_image(TEXTS["en"])), "PNG"), file_name="scan.png"))
    await recognising.wait()
    (beside,) = await reader.aload_data(b"A note.", file_name="note.txt")
    assert beside.text == "A note."
    go_on.set()
    assert "hotels" in (await scan)[0].text


def marked_lines(document: ParsedDocument) -> list[tuple[str, Box]]:
    """Each recognised line with its box, and each word of typed ones."""
    return [
        (document.text[span.start + start : span.start + end], box)
        for span in document.spans
        for start, end, box in unpack(span)
    ]


def turned_box(box: Box, turns: int) -> Box:
    """A box after quarter turns of its image to the left."""
    left, top, right, bottom = box
    return box if turns == 0 else turned_box((top, 1000 - right, bottom, 1000 - left), turns - 1)


@pytest.mark.parametrize("turns", [1, 2, 3])
async def test_a_page_that_lies_on_its_side_is_read_and_its_lines_are_marked_where_they_are(turns: int) -> None:
    page = scanned(page_image(TEXTS["es"], share=1.0))
    upright = await parse_in_sandbox(saved(page, "PNG"), file_name="scan.png")
    turned = await parse_in_sandbox(saved(page.rotate(90 * turns, expand=True), "PNG"), file_name="scan.png")
    assert len(set(turned.text.split()) & set(TEXTS["es"].split())) >= 0.9 * len(set(TEXTS["es"].split()))
    for (_, before), (_, after) in zip(marked_lines(upright), marked_lines(turned), strict=True):
        assert after == pytest.approx(turned_box(before, turns), abs=15)


async def test_a_scan_with_a_typed_stamp_is_read_and_a_typed_page_over_a_picture_stays() -> None:
    file = FPDF()
    file.set_font("Helvetica", size=11)
    for background in (scanned(page_image(TEXTS["en"], share=1.0)), Image.new("L", (600, 800), 230)):
        file.add_page()
        file.image(io.BytesIO(saved(background, "JPEG", quality=80)), 0, 0, 210)
        file.set_xy(120, 270)
        file.cell(0, 6, "Received on 12 March 2025, No. 4711")
    document = await parse_in_sandbox(bytes(file.output()), file_name="stamped.pdf")
    first, second = (
        [document.text[span.start : span.end] for span in document.spans if span.location.page == page]
        for page in (1, 2)
    )
    assert "fourteen days before departure" in " ".join(first) and "4711" in " ".join(first)
    assert [span.location for span in document.spans if span.location.page == 2] == [Location(page=2)]
    assert second == ["Received on 12 March 2025, No. 4711"]


@pytest.mark.skipif(tesseract.find_library() is None, reason="Tesseract is not installed")
@pytest.mark.parametrize("turns", [0, 1, 2])
def test_tesseract_takes_the_place_of_the_extra(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    monkeypatch.setattr(
        recognition.importlib.util, "find_spec", lambda name: None if name == "rapidocr" else find_spec(name)
    )
    page = scanned(page_image(TEXTS["en"], share=1.0)).rotate(90 * turns, expand=True)
    with ocr_mode(OcrMode.ON):
        document = parse(saved(page, "PNG"), file_name="scan.png")
    wanted = TEXTS["en"].split()
    assert sum(word in document.text.split() for word in wanted) >= 0.9 * len(wanted)
    assert len(marked_lines(document)) == len(TEXTS["en"].splitlines())


def test_without_the_extra_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    image = saved(page_image("Words"), "PNG")
    with ocr_mode(OcrMode.ASK), pytest.raises(NeedsOcrError):
        parse(image, file_name="a.png")
    monkeypatch.setattr(
        recognition.importlib.util, "find_spec", lambda name: None if name == "rapidocr" else find_spec(name)
    )
    monkeypatch.setattr(tesseract, "find_library", lambda: None)
    with ocr_mode(OcrMode.ASK):
        with pytest.raises(UnsupportedMediaError, match="extra `ocr`"):
            parse(image, file_name="a.png")
        (warning,) = parse(pdf("Typed", ""), file_name="a.pdf").warnings
    assert "2 of 2" in warning
    assert "rag-service[ocr]" in warning
