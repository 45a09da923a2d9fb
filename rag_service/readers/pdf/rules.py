"""Ruling lines on a PDF page, from PDFium's path objects: they separate the cells of a table.

A rule may be drawn as a line, as the edge of a box, or as a box so thin that it looks like a line. Background fills do
not count: reports shade alternate rows, and columns that hold only a currency sign.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium
from pypdfium2 import PdfMatrix

_THIN = 3.0  # points: a filled box this thin is a line
_LEVEL = 0.5  # points that a line may rise or fall
_MIN_LENGTH = 4.0  # points; dashes and dots in charts are shorter
_BOX_SEGMENTS = 5
_MAX_SEGMENTS = 400  # of one path; a drawing has more
_MAX_RULES = 20_000  # per page; a drawing has more
_MAX_DEPTH = 3  # of nested drawings

SIDES = struct.Struct("4f")  # left, bottom, right, top: reading them at once is quicker

_Point = tuple[float, float]
_IDENTITY = PdfMatrix()


class Rule(NamedTuple):
    """A horizontal or vertical line; lengths in points, in the page's coordinates."""

    is_level: bool
    at: float  # its height if horizontal, else its distance from the left
    start: float
    end: float


def directly(function: Any, result: Any, *arguments: Any) -> Any:
    """A function of PDFium that takes pointers as numbers: wrapping those of thousands of objects takes longer."""
    return ctypes.PYFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)


_kind_of = directly(pdfium.FPDFPageObj_GetType, ctypes.c_int, ctypes.c_void_p)
_on_page = directly(pdfium.FPDFPage_GetObject, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_draw_mode_of = directly(pdfium.FPDFPath_GetDrawMode, ctypes.c_int, *[ctypes.c_void_p] * 3)
bounds_of = directly(pdfium.FPDFPageObj_GetBounds, ctypes.c_int, *[ctypes.c_void_p] * 5)
_in_form = directly(pdfium.FPDFFormObj_GetObject, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong)


class Painted(NamedTuple):
    """A path, image or shading of a page."""

    kind: int
    address: int
    place: int  # in the order in which the page is painted
    is_filled: bool
    is_stroked: bool
    sides: tuple[float, ...]  # left, bottom, right, top, in its own coordinates


class PageObjects:
    """The objects of a page, given its raw handle, in the order in which they are painted: later ones cover earlier.

    Those of a drawing within the page stand where the drawing does.
    """

    def __init__(self, page: Any):
        self._page = page
        self._matrices: dict[int, PdfMatrix] = {}  # of those in a drawing, by their place

    @cached_property
    def _listed(self) -> tuple[list[int], list[int]]:
        addresses, kinds = list[int](), list[int]()

        def add(parent: Any, count: int, get: Any, matrix: PdfMatrix, depth: int) -> None:
            place = ctypes.cast(parent, ctypes.c_void_p).value
            found = list(map(get, itertools.repeat(place), range(count)))
            kinds_found = list(map(_kind_of, found))
            while pdfium.FPDF_PAGEOBJ_FORM in kinds_found:
                index = kinds_found.index(pdfium.FPDF_PAGEOBJ_FORM)
                extend(found[:index], kinds_found[:index], matrix, depth)
                if depth < _MAX_DEPTH:
                    form = _handle(found[index])
                    inner = pdfium.FPDFFormObj_CountObjects(form)
                    add(form, inner, _in_form, _matrix_of(form).multiply(matrix), depth + 1)
                del found[: index + 1], kinds_found[: index + 1]
            extend(found, kinds_found, matrix, depth)

        def extend(found: Sequence[int], kinds_found: Sequence[int], matrix: PdfMatrix, depth: int) -> None:
            if depth:
                places = range(len(addresses), len(addresses) + len(found))
                self._matrices.update(dict.fromkeys(places, matrix))
            addresses.extend(found)
            kinds.extend(kinds_found)

        add(self._page, pdfium.FPDFPage_CountObjects(self._page), _on_page, PdfMatrix(), 0)
        return addresses, kinds

    @property
    def addresses(self) -> list[int]:
        """Where PDFium keeps each."""
        return self._listed[0]

    def of_page(self) -> Sequence[int]:
        """The addresses of those that are in no drawing."""
        addresses = self.addresses
        if not self._matrices:
            return addresses
        return [address for place, address in enumerate(addresses) if place not in self._matrices]

    def texts(self) -> Iterator[int]:
        """The addresses of the texts."""
        return (address for address, kind in zip(*self._listed, strict=True) if kind == pdfium.FPDF_PAGEOBJ_TEXT)

    @cached_property
    def painted(self) -> list[Painted]:
        """What is painted besides texts."""
        found: list[Painted] = []
        sides, modes = (ctypes.c_float * 4)(), (ctypes.c_int * 2)()
        start = ctypes.addressof(sides)
        sides_at = start, start + 4, start + 8, start + 12
        modes_at = ctypes.addressof(modes), ctypes.addressof(modes) + 4
        addresses, kinds = self._listed
        for place in [place for place, kind in enumerate(kinds) if kind != pdfium.FPDF_PAGEOBJ_TEXT]:
            address, kind = addresses[place], kinds[place]
            is_filled, is_stroked = True, False
            if kind == pdfium.FPDF_PAGEOBJ_PATH:
                _draw_mode_of(address, *modes_at)
                is_filled, is_stroked = modes[0] != 0, modes[1] != 0
                if not (is_filled or is_stroked):
                    continue
            bounds_of(address, *sides_at)
            found.append(Painted(kind, address, place, is_filled, is_stroked, SIDES.unpack(sides)))
        return found

    def matrix(self, place: int) -> PdfMatrix:
        """From the coordinates of one to those of the page."""
        return self._matrices.get(place, _IDENTITY)

    def box(self, place: int, sides: Sequence[float]) -> tuple[float, float, float, float]:
        """On the page, given left, bottom, right and top of one in its own coordinates."""
        left, bottom, right, top = sides
        matrix = self._matrices.get(place)
        return matrix.on_rect(left, bottom, right, top) if matrix else (left, bottom, right, top)


def _handle(address: int) -> Any:
    return ctypes.cast(address, pdfium.FPDF_PAGEOBJECT)


def read_rules(objects: PageObjects) -> list[Rule]:
    """Rules of a page; none if there are more than `_MAX_RULES`: that is a drawing."""
    found = (
        rule for path in objects.painted if path.kind == pdfium.FPDF_PAGEOBJ_PATH for rule in _of_path(path, objects)
    )
    rules = list(itertools.islice(found, _MAX_RULES + 1))
    return rules if len(rules) <= _MAX_RULES else []


def _of_path(path: Painted, objects: PageObjects) -> Iterator[Rule]:
    left, bottom, right, top = path.sides
    handle = _handle(path.address)
    count = pdfium.FPDFPath_CountSegments(handle)
    is_thin = right - left <= _THIN or top - bottom <= _THIN
    if is_thin and count <= _BOX_SEGMENTS:
        yield from _rule_of_box(*objects.box(path.place, path.sides))
    elif count <= _MAX_SEGMENTS and (path.is_stroked or count > _BOX_SEGMENTS):
        for points in _outlines(handle, count, _matrix_of(handle).multiply(objects.matrix(path.place))):
            if path.is_stroked:
                for one, other in itertools.pairwise(points):
                    yield from _rule(*one, *other)
            else:
                xs, ys = [x for x, _ in points], [y for _, y in points]
                yield from _rule_of_box(min(xs), min(ys), max(xs), max(ys))


def _matrix_of(item: Any) -> PdfMatrix:
    found = pdfium.FS_MATRIX()
    return PdfMatrix.from_raw(found) if pdfium.FPDFPageObj_GetMatrix(item, ctypes.byref(found)) else PdfMatrix()


def _rule_of_box(x: float, y: float, other_x: float, other_y: float) -> Iterator[Rule]:
    """The centre line of a thin box."""
    if abs(other_y - y) <= _THIN < abs(other_x - x):
        yield from _rule(x, (y + other_y) / 2, other_x, (y + other_y) / 2)
    elif abs(other_x - x) <= _THIN < abs(other_y - y):
        yield from _rule((x + other_x) / 2, y, (x + other_x) / 2, other_y)


def _rule(x: float, y: float, other_x: float, other_y: float) -> Iterator[Rule]:
    if abs(y - other_y) <= _LEVEL and abs(x - other_x) >= _MIN_LENGTH:
        yield Rule(True, (y + other_y) / 2, min(x, other_x), max(x, other_x))
    elif abs(x - other_x) <= _LEVEL and abs(y - other_y) >= _MIN_LENGTH:
        yield Rule(False, (x + other_x) / 2, min(y, other_y), max(y, other_y))


def _outlines(path: Any, count: int, matrix: PdfMatrix) -> Iterator[list[_Point]]:
    """Corners of each line or outline of a path, up to its first curve."""
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[_Point] = []
    for index in range(count):
        segment = pdfium.FPDFPath_GetPathSegment(path, index)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            if len(points) > 1:
                yield points
            points = []
        elif kind != pdfium.FPDF_SEGMENT_LINETO:
            return
        pdfium.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
        points.append(matrix.on_point(x.value, y.value))
        if pdfium.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if len(points) > 1:
        yield points
