"""Pages and images without text: recognised lines, laid out as those of other pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium

from rag_service.domain import Box
from rag_service.readers.ocr.lines import ReadLine
from rag_service.readers.ocr.recognition import LOW_SCORE, WORTHLESS_SCORE, recognise
from rag_service.readers.pdf.layout import Line, lay_out
from rag_service.readers.pdf.words import Word

_DPI = 200
_MAX_SIDE = 3_000  # pixels; larger pages are made smaller
_FEW_LETTERS = 20  # an image with fewer is not turned
STAMP_CHARACTERS = 100  # a scanned page may have as many typed ones: a stamp, a page number


@dataclass(frozen=True)
class Scan:
    """What was recognised on a page or image."""

    lines: Sequence[tuple[Line, Box | None]]  # without text: no box
    unsure: int  # lines with a low score


def may_be_scanned(page: Any, *, typed: bool) -> bool:
    """Whether a page of PDFium may show text that is not typed: anything, or a large picture where some is `typed`."""
    if not typed:
        return int(pdfium.FPDFPage_CountObjects(page.raw)) > 0
    width, height = page.get_size()
    boxes = (found.get_bounds() for found in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=2))
    return any((right - left) * (top - bottom) > width * height / 2 for left, bottom, right, top in boxes)


def read_scanned_page(page: Any) -> Scan:
    """Recognise a page of PDFium."""
    scale = min(_DPI / 72, _MAX_SIDE / max(*page.get_size(), 1))
    return read_scan(
        page.render(scale=scale, rev_byteorder=False, force_bitmap_format=pdfium.FPDFBitmap_BGR).to_numpy()
    )


def read_scan(image: Any) -> Scan:
    """Recognise an image: a numpy array of height, width and three colours."""
    turns, found = _read_upright(image)
    height, width = image.shape[:2] if turns % 2 == 0 else image.shape[1::-1]
    words = [word for line in found if line.score >= WORTHLESS_SCORE for word in _words(line, height)]
    words = [word._replace(number=number, at=number) for number, word in enumerate(words)]
    lines = [
        (line, _turn_back(_box([words[at] for at in line.ends], width, height), turns) if line.text else None)
        for line in lay_out(words)
    ]
    return Scan(lines, sum(line.score < LOW_SCORE for line in found))


def _read_upright(image: Any) -> tuple[int, list[ReadLine]]:
    """(quarter turns to the left after which the image was read best, its lines)."""
    best, lines, most = 0, list[ReadLine](), -1.0
    for turns in range(4):
        found = [line for line in recognise(image if turns == 0 else _turned(image, turns)) if line.text.strip()]
        letters = sum(len(line.text) for line in found)
        certain = sum(len(line.text) * line.score for line in found if line.right - line.left > line.bottom - line.top)
        if certain > most:
            best, lines, most = turns, found, certain
        if letters < _FEW_LETTERS or certain >= LOW_SCORE * letters:
            break
    return best, lines


def _turned(image: Any, turns: int) -> Any:
    import numpy

    return numpy.ascontiguousarray(numpy.rot90(image, turns))


def _turn_back(box: Box, turns: int) -> Box:
    """A box of the turned image in the image as it was."""
    for _ in range(turns):
        left, top, right, bottom = box
        box = (1000 - bottom, left, 1000 - top, right)
    return box


def _box(words: Sequence[Word], width: float, height: float) -> Box:
    """Around a line, given its first and last word."""
    left, right = min(word.left for word in words), max(word.right for word in words)
    top = height - max(word.middle + word.height / 2 for word in words)
    bottom = height - min(word.middle - word.height / 2 for word in words)
    return (
        round(1000 * left / width),
        round(1000 * top / height),
        round(1000 * right / width),
        round(1000 * bottom / height),
    )


def _words(line: ReadLine, page_height: float) -> Iterator[Word]:
    """The words of a line, whose places follow from their letters; upwards is more, as in PDF."""
    texts = line.text.split()
    unit = (line.right - line.left) / max(sum(map(len, texts)) + len(texts) - 1, 1)
    left = line.left
    for number, text in enumerate(texts):
        right = left + unit * len(text)
        middle = page_height - (line.top + line.bottom) / 2
        yield Word(text, 0, number > 0, 0, left, right, middle, line.bottom - line.top)
        left = right + unit


def warn_of(unsure: int, page: int | None = None) -> str:
    """A warning that lines were hard to recognise."""
    where = "" if page is None else f"Page {page}: "
    return f"{where}{unsure} lines were recognised with low confidence or not at all; compare them with the original."
