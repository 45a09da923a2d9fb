"""PowerPoint presentations: title, text, tables, charts and notes of each slide."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator

from rag_service.domain import ParsedDocument
from rag_service.readers.common.archive import check_members, damaged, open_archive
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import STRUCK_OUT, TextBuilder, hidden_but_read, one_line
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.common.xml import Element, local_name, read_xml, relations_of
from rag_service.readers.office.drawings import (
    CHART,
    chart_rows,
    chart_title,
    embedded,
    is_struck,
    numbered_paragraphs,
    paragraphs,
)
from rag_service.readers.office.package import read_properties
from rag_service.readers.office.pictures import Pictures, Relations

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_OFF = ("0", "false")
_DIGITS = re.compile(r"\d+")
_EDGES = {"hdr": "page header", "ftr": "page footer"}  # placeholders → their part
_FURNITURE = frozenset({*_EDGES, "dt", "sldNum", "sldImg"})  # and those of date, number, picture


def parse_pptx(data: bytes, *, name: str, parts: Parts) -> ParsedDocument:
    """Read all slides in their order, hidden ones included.

    `Location.slide` counts from 1; the title of a slide is its heading; notes, comments and recognised pictures,
    which `parts` reads, are the `part` of a slide.

    Raises DocumentError: damaged or hostile. TooLargeError: unpacks to too much, or too much text.
    """
    archive = open_archive(data, name)
    check_members(archive, name)
    main = next((path for kind, path in relations_of(archive, "", name).values() if kind == "officeDocument"), None)
    deck = None if main is None else read_xml(archive, main, name)
    if deck is None or main is None:
        raise damaged(name)
    files = relations_of(archive, main, name)
    writer = BlockWriter(TextBuilder(name))
    slides = [files[key][1] for slide in deck.iter(_P + "sldId") if (key := slide.get(_R + "id") or "") in files]
    pictures = Pictures(archive, name, parts)
    edges, hidden = set[str](), list[str]()
    for number, path in enumerate(slides, start=1):
        writer.begin(slide=number)
        if not _Slide(archive, path, name, writer, pictures, edges).write(number):
            hidden.append(f"slide {number}")
    if hidden:
        writer.builder.warn(hidden_but_read(hidden))
    pictures.warn(writer.builder)
    properties = read_properties(archive, name)
    author = properties.get("creator", "")
    return writer.builder.build(
        title=choose_title(name, properties.get("title"), writer.title),
        media_type=MEDIA_TYPE,
        language=language_of(properties.get("language")),
        metadata={"slides": len(slides), **({"author": author} if author else {})},
    )


class _Slide:
    def __init__(
        self,
        archive: zipfile.ZipFile,
        path: str,
        name: str,
        writer: BlockWriter,
        pictures: Pictures,
        edges: set[str],  # headers, footers and texts of layouts that are written; most slides repeat them
    ):
        self._archive, self._path, self._name, self._writer = archive, path, name, writer
        self._pictures, self._edges = pictures, edges

    def write(self, number: int) -> bool:
        """Write the slide; whether it is shown."""
        root = self._read(self._path)
        if root is None:
            return True
        related = relations_of(self._archive, self._path, self._name)
        shapes = list(_shapes(root))
        titles = [shape for shape in shapes if _placeholder(shape) in ("title", "ctrTitle")]
        for shape in titles[:1]:
            self._writer.write_heading(" ".join(paragraphs(shape)), 1)
        for shape in shapes:
            if shape not in titles[:1] and _placeholder(shape) not in _FURNITURE:
                self._write_shape(shape, related)
        for part, text in self._pictures.read(root, related, place=self._writer.where):
            self._writer.write_paragraph(text, part=part)
        self._write_edges(shapes, number)
        self._write_layout(root, list(related.values()))
        self._write_remarks(list(related.values()))
        return root.get("show") not in _OFF

    def _write_edges(self, shapes: list[Element], number: int) -> None:
        """Write headers and footers, each once, but no slide numbers."""
        for shape in shapes:
            text = " ".join(paragraphs(shape)) if _placeholder(shape) in _EDGES else ""
            is_number = not any(map(str.isalpha, text)) or str(number) in _DIGITS.findall(text)
            if not is_number and text not in self._edges:
                self._edges.add(text)
                self._writer.write_paragraph(text, part=_EDGES[_placeholder(shape)])

    def _write_layout(self, shown: Element, related: list[tuple[str, str]]) -> None:
        """Write what stands on the layout of a slide and on the master behind it, each text once; no placeholders."""
        for kind in ("slideLayout", "slideMaster"):
            path = next((path for found, path in related if found == kind), "")
            is_new = path not in self._edges and shown.get("showMasterSp") not in _OFF
            layout = self._read(path) if is_new else None
            if layout is None:
                return
            self._edges.add(path)
            for shape in _shapes(layout):
                text = "\n".join(paragraphs(shape)) if not _placeholder(shape) else ""
                if text and text not in self._edges:
                    self._edges.add(text)
                    self._writer.write_paragraph(text, part="layout")
            shown, related = layout, list(relations_of(self._archive, path, self._name).values())

    def _write_shape(self, shape: Element, related: Relations) -> None:
        table = shape.find(f".//{_A}tbl")
        if table is not None:
            self._writer.write_table(_rows(table))
            return
        for kind, path in embedded(shape, related):
            content = self._read(path)
            if content is None:
                continue
            if kind == CHART:
                self._writer.write_paragraph(chart_title(content))
                self._writer.write_table(chart_rows(content))
            else:
                self._write_lines(content)
        self._write_lines(shape)

    def _write_lines(self, shape: Element) -> None:
        """Several paragraphs of a shape are a list, as slides have it."""
        lines = list(numbered_paragraphs(shape))
        for line, number in lines:
            mark = number or "-" * (len(lines) > 1)
            self._writer.write_paragraph(f"{mark} {line}".strip(), ending="\n" if len(lines) > 1 else "\n\n")

    def _write_remarks(self, related: list[tuple[str, str]]) -> None:
        for kind, path in related:
            if kind == "notesSlide" and (notes := self._read(path)) is not None:
                for shape in _shapes(notes):
                    if _placeholder(shape) not in _FURNITURE:
                        for line in paragraphs(shape):
                            self._writer.write_paragraph(line, part="notes")
            elif kind == "comments" and (comments := self._read(path)) is not None:
                for text in [*comments.iter(_P + "text")]:
                    self._writer.write_paragraph(text.text or "", part="comment")
                for line in paragraphs(comments):
                    self._writer.write_paragraph(line, part="comment")

    def _read(self, path: str) -> Element | None:
        root = read_xml(self._archive, path, self._name) if path else None
        if root is not None and any(map(is_struck, root.iter(_A + "rPr"))):
            self._writer.builder.warn(STRUCK_OUT)
        return root


def _shapes(root: Element) -> Iterator[Element]:
    """Shapes with text, tables or charts, in the order of the file; members of groups one by one."""
    for shape in root.iter(_P + "sp", _P + "graphicFrame"):
        if not any(local_name(above) == "Fallback" for above in shape.iterancestors()):
            yield shape


def _placeholder(shape: Element) -> str:
    found = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return "" if found is None else found.get("type") or "body"


def _rows(table: Element) -> Iterator[Row]:
    properties = table.find(_A + "tblPr")
    has_header = properties is not None and properties.get("firstRow") in ("1", "true")
    above: dict[int, Cell] = {}
    for number, row in enumerate(table.iter(_A + "tr"), start=1):
        cells: list[Cell] = []
        for column, part in enumerate(row.iter(_A + "tc"), start=1):
            text = one_line(" ".join(paragraphs(part)))
            cell = Cell(column, text, not is_number_like(text), is_strong=_is_bold(part)) if text else None
            if part.get("vMerge") in ("1", "true"):
                cell = above.get(column)
            elif part.get("hMerge") in ("1", "true") and cells and cells[-1].column == column - 1:
                cell = Cell(column, cells[-1].text, cells[-1].is_text, is_spanned=True)
            above.pop(column, None)
            if cell is not None:
                above[column] = cell
                cells.append(cell)
        if cells:
            yield Row(number, cells, is_header=has_header and number == 1)


def _is_bold(cell: Element) -> bool:
    runs = [run for run in cell.iter(_A + "r") if (run.findtext(_A + "t") or "").strip()]
    marks = [run.find(_A + "rPr") for run in runs]
    return bool(marks) and all(mark is not None and mark.get("b") in ("1", "true") for mark in marks)
