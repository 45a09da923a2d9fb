"""Ruling lines on a PDF page, from PDFium's path objects: they separate the cells of a table.

A rule may be drawn as a line, as the edge of a box, or as a box so thin that it looks like a line. Background fills do
not count: reports shade alternate rows, and columns that hold only a currency sign.
"""

from __future__ import annotations

import ctypes
import itertools
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

_Point = tuple[float, float]


class Rule(NamedTuple):
    """A horizontal or vertical line; lengths in points, in the page's coordinates."""

    is_level: bool
    at: float  # its height if horizontal, else its distance from the left
    start: float
    end: float


def _directly(function: Any, result: Any, *arguments: Any) -> Any:
    """A function of PDFium that takes pointers as numbers: wrapping those of thousands of objects takes longer."""
    return ctypes.PYFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)


_kind_of = _directly(pdfium.FPDFPageObj_GetType, ctypes.c_int, ctypes.c_void_p)
_on_page = _directly(pdfium.FPDFPage_GetObject, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_in_form = _directly(pdfium.FPDFFormObj_GetObject, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong)


class PageObjects:
    """The objects of a page by their kind, given its raw handle; also those of drawings within it."""

    def __init__(self, page: Any):
        self._page = page

    @cached_property
    def _kinds(self) -> list[int]:
        return _kinds(self._page, pdfium.FPDFPage_CountObjects(self._page), _on_page)

    def of_kind(self, kind: int) -> Iterator[tuple[Any, PdfMatrix]]:
        """Handles, each with the matrix from its coordinates to those of the page."""
        return self._walk(self._page, self._kinds, pdfium.FPDFPage_GetObject, kind, PdfMatrix(), depth=0)

    def _walk(
        self, parent: Any, kinds: Sequence[int], get: Any, wanted: int, matrix: PdfMatrix, *, depth: int
    ) -> Iterator[tuple[Any, PdfMatrix]]:
        for index, kind in enumerate(kinds):
            if kind == wanted:
                yield get(parent, index), matrix
            elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < _MAX_DEPTH:
                form = get(parent, index)
                inner = _kinds(form, pdfium.FPDFFormObj_CountObjects(form), _in_form)
                outer = _matrix_of(form).multiply(matrix)
                yield from self._walk(form, inner, pdfium.FPDFFormObj_GetObject, wanted, outer, depth=depth + 1)


def _kinds(parent: Any, count: int, get: Any) -> list[int]:
    address = ctypes.cast(parent, ctypes.c_void_p).value
    return [_kind_of(get(address, index)) for index in range(count)]


def read_rules(objects: PageObjects) -> list[Rule]:
    """Rules of a page; none if there are more than `_MAX_RULES`: that is a drawing."""
    reader = _Reader()
    found = (
        rule for path, matrix in objects.of_kind(pdfium.FPDF_PAGEOBJ_PATH) for rule in reader.of_path(path, matrix)
    )
    rules = list(itertools.islice(found, _MAX_RULES + 1))
    return rules if len(rules) <= _MAX_RULES else []


class _Reader:
    """Reuses its ctypes buffers: a page has thousands of objects, most without any line."""

    def __init__(self) -> None:
        self._sides = [ctypes.c_float() for _ in range(4)]
        self._side_references = [ctypes.byref(side) for side in self._sides]
        self._fill, self._stroke = ctypes.c_int(), ctypes.c_int()
        self._mode_references = ctypes.byref(self._fill), ctypes.byref(self._stroke)

    def of_path(self, path: Any, matrix: PdfMatrix) -> Iterator[Rule]:
        pdfium.FPDFPath_GetDrawMode(path, *self._mode_references)
        is_stroked = self._stroke.value != 0
        if not (is_stroked or self._fill.value):
            return
        pdfium.FPDFPageObj_GetBounds(path, *self._side_references)
        left, bottom, right, top = (side.value for side in self._sides)
        count = pdfium.FPDFPath_CountSegments(path)
        is_thin = right - left <= _THIN or top - bottom <= _THIN
        if is_thin and count <= _BOX_SEGMENTS:
            yield from _rule_of_box(*matrix.on_point(left, bottom), *matrix.on_point(right, top))
        elif count <= _MAX_SEGMENTS and (is_stroked or count > _BOX_SEGMENTS):
            for points in _outlines(path, count, _matrix_of(path).multiply(matrix)):
                if is_stroked:
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
