"""Lines drawn on a PDF page, from PDFium's objects: the rules that part the cells of a table.

A program may draw a rule as a line, as the edge of a box, or as a box so thin that it looks like a line. Grounds part
rows, of which every other has one, but not cells: reports have them for columns that hold a lone currency sign.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

_THIN = 3.0  # points, of a filled box that is a line
_HIGHEST_GROUND = 200.0  # points, of a row
_LEVEL = 0.5  # points that a line may rise or fall
_SHORTEST = 4.0  # points; dashes and dots of charts are shorter
_OF_A_BOX = 5  # segments
_MOST_SEGMENTS = 400  # of one path; a drawing has more
MOST_RULES = 20_000  # on a page; a drawing has more
_DEEPEST = 3  # drawings within drawings


class Rule(NamedTuple):
    """A level or an upright line; lengths in points, as the page has them."""

    is_level: bool
    at: float  # its height where it is level, else its distance from the left
    start: float
    end: float
    is_ground: bool = False  # the upper or lower edge of a ground


class _Matrix(NamedTuple):
    """As PDF has it: x' = a x + c y + e, y' = b x + d y + f."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def place(self, x: float, y: float) -> _Point:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def within(self, outer: _Matrix) -> _Matrix:
        return _Matrix(
            outer.a * self.a + outer.c * self.b,
            outer.b * self.a + outer.d * self.b,
            outer.a * self.c + outer.c * self.d,
            outer.b * self.c + outer.d * self.d,
            *outer.place(self.e, self.f),
        )


_Point = tuple[float, float]
_PAGE = _Matrix()


def read_rules(page: Any) -> list[Rule]:
    """Rules of a page, given its raw handle; none of one that has more than `MOST_RULES`: that is a drawing."""
    found = _Reader().rules(page, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject, _PAGE)
    rules = list(itertools.islice(found, MOST_RULES + 1))
    return rules if len(rules) <= MOST_RULES else []


class _Reader:
    """Asks PDFium; a page has thousands of objects, and most are no lines or a single one."""

    def __init__(self) -> None:
        self._sides = [ctypes.c_float() for _ in range(4)]
        self._side_references = [ctypes.byref(side) for side in self._sides]
        self._fill, self._stroke = ctypes.c_int(), ctypes.c_int()
        self._mode_references = ctypes.byref(self._fill), ctypes.byref(self._stroke)

    def rules(self, holder: Any, count: Any, get: Any, matrix: _Matrix, depth: int = 0) -> Iterator[Rule]:
        kind_of = pdfium.FPDFPageObj_GetType
        for index in range(count(holder)):
            item = get(holder, index)
            kind = kind_of(item)
            if kind == pdfium.FPDF_PAGEOBJ_PATH:
                yield from self._of_path(item, matrix)
            elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < _DEEPEST:
                inner = _matrix_of(item).within(matrix)
                yield from self.rules(
                    item, pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject, inner, depth + 1
                )

    def _of_path(self, path: Any, matrix: _Matrix) -> Iterator[Rule]:
        pdfium.FPDFPath_GetDrawMode(path, *self._mode_references)
        is_drawn = self._stroke.value != 0
        if not (is_drawn or self._fill.value):
            return
        pdfium.FPDFPageObj_GetBounds(path, *self._side_references)
        left, bottom, right, top = (side.value for side in self._sides)
        count = pdfium.FPDFPath_CountSegments(path)
        is_thin = right - left <= _THIN or top - bottom <= _THIN
        if is_thin and count <= _OF_A_BOX:
            yield from _rule_of_box(*matrix.place(left, bottom), *matrix.place(right, top))
        elif not is_drawn and count <= _OF_A_BOX and top - bottom <= _HIGHEST_GROUND:
            for height in (bottom, top):
                for rule in _rule(*matrix.place(left, height), *matrix.place(right, height)):
                    yield rule._replace(is_ground=True)
        elif count <= _MOST_SEGMENTS and (is_drawn or count > _OF_A_BOX):
            for points in _lines_of_path(path, count, _matrix_of(path).within(matrix)):
                if is_drawn:
                    for one, other in itertools.pairwise(points):
                        yield from _rule(*one, *other)
                else:
                    xs, ys = [x for x, _ in points], [y for _, y in points]
                    yield from _rule_of_box(min(xs), min(ys), max(xs), max(ys))


def _matrix_of(item: Any) -> _Matrix:
    found = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(item, ctypes.byref(found)):
        return _PAGE
    return _Matrix(found.a, found.b, found.c, found.d, found.e, found.f)


def _rule_of_box(x: float, y: float, other_x: float, other_y: float) -> Iterator[Rule]:
    """The line that a thin box is."""
    if abs(other_y - y) <= _THIN < abs(other_x - x):
        yield from _rule(x, (y + other_y) / 2, other_x, (y + other_y) / 2)
    elif abs(other_x - x) <= _THIN < abs(other_y - y):
        yield from _rule((x + other_x) / 2, y, (x + other_x) / 2, other_y)


def _rule(x: float, y: float, other_x: float, other_y: float) -> Iterator[Rule]:
    if abs(y - other_y) <= _LEVEL and abs(x - other_x) >= _SHORTEST:
        yield Rule(True, (y + other_y) / 2, min(x, other_x), max(x, other_x))
    elif abs(x - other_x) <= _LEVEL and abs(y - other_y) >= _SHORTEST:
        yield Rule(False, (x + other_x) / 2, min(y, other_y), max(y, other_y))


def _lines_of_path(path: Any, count: int, matrix: _Matrix) -> Iterator[list[_Point]]:
    """Corners of each line or outline; what has curves is left out."""
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
        points.append(matrix.place(x.value, y.value))
        if pdfium.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if len(points) > 1:
        yield points
