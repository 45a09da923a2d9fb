"""Pages and images without text, and pictures beside text: recognised lines, laid out as those of other pages."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from rag_service.domain import Box
from rag_service.readers.ocr.lines import ReadLine
from rag_service.readers.ocr.recognition import LOW_SCORE, WORTHLESS_SCORE, recognise
from rag_service.readers.pdf.layout import Line, lay_out
from rag_service.readers.pdf.rules import PageObjects
from rag_service.readers.pdf.words import Box as PageBox
from rag_service.readers.pdf.words import Word, turn

_DPI = 200
_MAX_SIDE = 3_000  # pixels; larger pages are made smaller
_FEW_LETTERS = 20  # an image with fewer is not turned
STAMP_CHARACTERS = 100  # a scanned page may have as many typed ones: a stamp, a page number
# Of pictures with text: a line of print with its margins is as high, and a few words are as wide.
_MIN_HEIGHT, _MIN_WIDTH = 18.0, 72.0  # points
_MIN_PIXELS = 1_000  # a short word has more
_IMAGE = re.compile(rb"/Subtype\s*/Image\b")
_MAX_INLINE = 4_096  # bytes; smaller images may stand within a page and not be among the file's streams
_TOUCHING = 1.0  # points between strips of one picture
_COVERED = 0.05  # of a picture by words: it is a background, or a scan with its text


class Picture(NamedTuple):
    """A picture on a page; one of the same place and size on another page is the same."""

    box: PageBox  # in points, in the page's coordinates, rounded
    size: int  # bytes


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


class PictureFinder:
    """Finds the pictures of a document page by page, each once."""

    def __init__(self, data: bytes):
        # Listing the objects of a page takes long: only as long as one is left.
        self._streams = len(_IMAGE.findall(data))
        self._seen = set[tuple[int, int]]()  # (bytes, pixels)
        self._found = set[Picture]()

    def find(self, page: Any, objects: PageObjects, words: Sequence[Word]) -> list[Picture]:
        """New pictures that may show text besides the words of a page: no ornaments, lines and backgrounds."""
        if len(self._seen) >= self._streams:
            return []
        width, height = page.get_size()
        joined: list[tuple[PageBox, int, int]] = []  # (box, bytes, pixels); strips drawn one after the other are one
        for box, size, pixels in _images(objects):
            if size > _MAX_INLINE:
                self._seen.add((size, pixels))
            if joined and _distance(joined[-1][0], box) <= _TOUCHING:
                (left, bottom, right, top), so_far, pixels_so_far = joined.pop()
                box = min(left, box[0]), min(bottom, box[1]), max(right, box[2]), max(top, box[3])
                size, pixels = size + so_far, pixels + pixels_so_far
            joined.append((box, size, pixels))
        new: list[Picture] = []
        for box, size, pixels in joined:
            sides = sorted((box[2] - box[0], box[3] - box[1]))
            is_small = sides[0] < _MIN_HEIGHT or sides[1] < _MIN_WIDTH or pixels < _MIN_PIXELS
            if is_small or sides[0] * sides[1] > width * height / 2:
                continue
            picture = Picture((round(box[0]), round(box[1]), round(box[2]), round(box[3])), size)
            if picture not in self._found and not _is_covered(box, words):
                self._found.add(picture)
                new.append(picture)
        return new


def _images(objects: PageObjects) -> Iterator[tuple[PageBox, int, int]]:
    """(box, bytes, pixels) of the images of a page."""
    across, down = ctypes.c_uint(), ctypes.c_uint()
    for item in objects.painted:
        if item.kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            image = ctypes.cast(item.address, pdfium.FPDF_PAGEOBJECT)
            pdfium.FPDFImageObj_GetImagePixelSize(image, ctypes.byref(across), ctypes.byref(down))
            size = pdfium.FPDFImageObj_GetImageDataRaw(image, None, 0)
            yield objects.box(item.place, item.sides), size, across.value * down.value


def _distance(one: PageBox, other: PageBox) -> float:
    """Between two boxes, horizontally or vertically, whichever is more."""
    return max(one[0] - other[2], other[0] - one[2], one[1] - other[3], other[1] - one[3])


def _is_covered(box: PageBox, words: Sequence[Word]) -> bool:
    area = 0.0
    boxes = [turn(box, turns) for turns in range(4)]
    for word in words:
        left, bottom, right, top = boxes[word.turns or 0]
        if bottom < word.middle < top and left < (word.left + word.right) / 2 < right:
            area += (word.right - word.left) * word.height
    return area >= _COVERED * (box[2] - box[0]) * (box[3] - box[1])


def read_scanned_page(page: Any) -> Scan:
    """Recognise a page of PDFium."""
    return read_scan(_render(page))


def read_picture(page: Any, picture: Picture) -> Scan:
    """Recognise a picture on a page of PDFium."""
    image = _render(page)
    height, width = image.shape[:2]
    x, y = ctypes.c_int(), ctypes.c_int()
    corners = []
    for across, up in (picture.box[:2], picture.box[2:]):
        pdfium.FPDF_PageToDevice(page.raw, 0, 0, width, height, 0, across, up, ctypes.byref(x), ctypes.byref(y))
        corners.append((min(max(x.value, 0), width), min(max(y.value, 0), height)))
    (left, right), (top, bottom) = map(sorted, zip(*corners, strict=True))
    return read_scan(image[top:bottom, left:right]) if left < right and top < bottom else Scan((), 0)


def _render(page: Any) -> Any:
    scale = min(_DPI / 72, _MAX_SIDE / max(*page.get_size(), 1))
    return page.render(scale=scale, rev_byteorder=False, force_bitmap_format=pdfium.FPDFBitmap_BGR).to_numpy()


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
