"""Word documents: paragraphs and tables in the order of the document, with their heading paths."""

from __future__ import annotations

import io
import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from docx import Document
from docx.document import Document as WordDocument

from rag_service.domain import ParsedDocument
from rag_service.readers.common.archive import check_members, open_archive
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import TextBuilder, one_line
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.common.xml import (
    Element,
    parts_lost,
    read_member,
    read_part,
    read_xml,
    relations_of,
    whole_number,
)
from rag_service.readers.office.docx_characters import Characters, is_on
from rag_service.readers.office.docx_equations import write_structure
from rag_service.readers.office.docx_numbering import Numbering
from rag_service.readers.office.drawings import CHART, DIAGRAM, chart_rows, chart_title, embedded, paragraphs
from rag_service.readers.office.package import read_properties, without_lost_parts
from rag_service.readers.office.pictures import Pictures, Relations
from rag_service.readers.office.symbols import symbol

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH, _TABLE, _ROW, _CELL = _W + "p", _W + "tbl", _W + "tr", _W + "tc"
_FILE = _W + "altChunk"  # a web page or another document, which Word shows at this place
# Not text: deletions, moved originals, field codes, fallback drawings, properties. Text boxes are read at their anchor.
_SKIPPED = frozenset(
    {_W + tag for tag in ("del", "moveFrom", "instrText", "delText", "pPr", "rPr", "tblPr", "trPr", "tcPr", "sectPr")}
    | {"{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"}
)
_BOX = _W + "txbxContent"
_BREAKS = {_W + "tab": "\t", _W + "ptab": "\t", _W + "br": "\n", _W + "cr": "\n", _W + "noBreakHyphen": "-"}
_NOTE_MARKS = {_W + f"{kind}Reference": kind for kind in ("footnote", "endnote", "comment")}
_EDGES = {_W + f"{kind}Reference": f"page {kind}" for kind in ("header", "footer")}
_FIELDS = (_W + "fldChar", _W + "fldSimple")
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SYMBOL, _RUBY = _W + "sym", _W + "ruby"  # a character of a symbol font; signs for the sound above the words
_TEXTS = (_W + "t", _M + "t")
_MAX_SPAN = 200  # columns that a merged cell may cover


def parse_docx(data: bytes, *, name: str, parts: Parts) -> ParsedDocument:
    """Read the body of a document with its notes and comments, then its page headers and footers; no deleted text.

    `Location.paragraph` counts paragraphs with text, from 1; table rows have the number of the previous paragraph and
    their own `row`. `headings` is the path by Word's heading styles; headings, clauses and list items begin with the
    number that Word makes. A note or comment follows the paragraph or table that it belongs to, with its own `part`.
    Page headers and footers are a `part` too, each text once, and so are recognised pictures and documents within the
    document, which `parts` reads. Charts are tables, diagrams (SmartArt) lists.

    Raises DocumentError: damaged or hostile. TooLargeError: unpacks to too much, or too much text.
    """
    archive = open_archive(data, name)
    check_members(archive, name)
    document = Document(io.BytesIO(without_lost_parts(data, archive, name)))
    builder = TextBuilder(name)
    main = str(document.part.partname).lstrip("/")
    related = relations_of(archive, main, name)
    numbering = next((path for kind, path in related.values() if kind == "numbering"), "")
    characters = Characters(document.styles.element)
    for warning in characters.settle(document.element.body):
        builder.warn(warning)
    Numbering(read_xml(archive, numbering, name), document.styles.element).settle(document.element.body)
    pictures = Pictures(archive, name, parts)
    members = _Members(archive, name, parts, pictures, [])
    notes = _read_notes(members, characters)
    writer = _Writer(BlockWriter(builder), _outline_levels(document), notes, members)
    writer.write_blocks(document.element.body, related)
    for part, member in _page_edges(document, related):
        edge = read_part(archive, member, name, members.lost)
        if edge is not None:
            for warning in characters.settle(edge):
                builder.warn(warning)
            writer.write_page_edge(edge, part, relations_of(archive, member, name))
    pictures.warn(builder)
    if any(member.startswith("word/embeddings/") for member in archive.NameToInfo):
        builder.warn("Files embedded in the document were not read.")
    if next(document.element.body.iter(_W + "subDoc"), None) is not None:
        builder.warn("Subdocuments, which are files of their own, were not read.")
    if members.lost:
        builder.warn(parts_lost(members.lost))
    properties = read_properties(archive, name)
    author = properties.get("creator", "")
    return builder.build(
        title=choose_title(name, properties.get("title"), writer.blocks.title),
        media_type=MEDIA_TYPE,
        language=language_of(properties.get("language")),
        metadata={"author": author} if author else {},
    )


def _read_notes(members: _Members, characters: Characters) -> dict[tuple[str, str], str]:
    """(kind of note, its id) → its text."""
    notes: dict[tuple[str, str], str] = {}
    for kind in ("footnote", "endnote", "comment"):
        root = read_part(members.archive, f"word/{kind}s.xml", members.name, members.lost)
        if root is not None:
            characters.settle(root)
        for note in [] if root is None else root.iter(_W + kind):
            text = one_line("".join(_pieces(note)))
            if text and note.get(_W + "type") in (None, "normal"):
                notes[kind, note.get(_W + "id") or ""] = text
    return notes


def _page_edges(document: WordDocument, related: Relations) -> list[tuple[str, str]]:
    """(part, member) of the page headers and footers that are shown, section by section, each member once."""
    has_even = document.settings.odd_and_even_pages_header_footer
    sections = [one for one in document.element.body.iter(_W + "sectPr") if one.getparent().tag != _W + "sectPrChange"]
    held: dict[tuple[str, str], str] = {}  # a section without a header has that of the one before
    parts: dict[str, str] = {}
    for number, section in enumerate(sections, start=1):
        for reference in section.iterchildren(*_EDGES):
            kind = reference.get(_W + "type") or "default"
            held[reference.tag, kind] = related.get(reference.get(_ID) or "", ("", ""))[1]
        first = section.find(_W + "titlePg")
        has_first = first is not None and is_on(first)
        kinds = [*(["first"] if has_first else []), "default", *(["even"] if has_even else [])]
        for tag, part in _EDGES.items():
            for kind in kinds:
                parts.setdefault(held.get((tag, kind), ""), part if number == 1 else f"{part} of section {number}")
    return [(part, member) for member, part in parts.items()]


class _Members(NamedTuple):
    """Where the contents lie that a block only refers to."""

    archive: zipfile.ZipFile
    name: str
    parts: Parts
    pictures: Pictures
    lost: list[str]  # names of damaged members


class _Writer:
    """Walks the body, then the headers and footers."""

    def __init__(
        self, blocks: BlockWriter, levels: dict[str, int], notes: dict[tuple[str, str], str], members: _Members
    ):
        self.blocks = blocks
        self._members = members
        self._levels = levels
        self._notes = notes
        self._counts: Counter[str] = Counter()  # of notes written, by kind
        self._edges: set[str] = set()  # texts of page headers and footers

    def write_blocks(self, parent: Element, related: Relations) -> None:
        for block in _descend(parent, _PARAGRAPH, _TABLE, _FILE):
            if block.tag == _PARAGRAPH:
                self._write_paragraph(block)
            elif block.tag == _FILE:
                self._write_file(related.get(block.get(_ID) or "", ("", ""))[1])
            else:
                self._write_table(block)
            self._write_notes(block)
            self._write_drawings(block, related)
            for part, text in self._members.pictures.read(block, related, place=self.blocks.where):
                self.blocks.write_paragraph(text, part=part)

    def _write_file(self, member: str) -> None:
        archive, name, parts, *_ = self._members
        file = posixpath.basename(member)
        parts.write(self.blocks.builder, read_member(archive, member, name) or b"", path=file or "A linked document")
        self.blocks.builder.write("\n\n")

    def _write_drawings(self, block: Element, related: Relations) -> None:
        for kind, path in embedded(block, related):
            drawing = read_part(self._members.archive, path, self._members.name, self._members.lost)
            if drawing is None:
                continue
            if kind == CHART:
                self.blocks.write_paragraph(chart_title(drawing))
                self.blocks.write_table(chart_rows(drawing))
            for line in paragraphs(drawing) if kind == DIAGRAM else ():
                self.blocks.write_paragraph(f"- {line}", ending="\n")

    def write_page_edge(self, edge: Element, part: str, related: Relations) -> None:
        """Write the texts of a page header or footer that no other has; bare page numbers are none."""
        self.blocks.begin()
        for block in _descend(edge, _PARAGRAPH, _TABLE):
            text = one_line("".join(_pieces(block)))
            is_number = not any(map(str.isalpha, text)) and next(block.iter(*_FIELDS), None) is not None
            if text in self._edges or is_number:
                continue
            self._edges.add(text)
            if block.tag == _TABLE:
                self._write_table(block, part=part)
            else:
                self.blocks.write_paragraph(text, part=part)
        for _, text in self._members.pictures.read(edge, related, place=part):
            self.blocks.write_paragraph(text, part=part)

    def _write_paragraph(self, paragraph: Element) -> None:
        text = "".join(_pieces(paragraph))
        level = self._level(paragraph)
        if level is None:
            self.blocks.write_paragraph(text)
        else:
            self.blocks.write_heading(text, level)

    def _write_table(self, table: Element, *, part: str | None = None) -> None:
        """Write a table, then those in its cells, whose rows stay rows."""
        self.blocks.write_table(_rows(table), part=part)
        for row in _descend(table, _ROW):
            for cell in _descend(row, _CELL):
                for inner in _descend(cell, _TABLE):
                    self._write_table(inner, part=part)

    def _write_notes(self, block: Element) -> None:
        for mark in block.iter(*_NOTE_MARKS):
            kind = _NOTE_MARKS[mark.tag]
            text = self._notes.pop((kind, mark.get(_W + "id") or ""), None)
            if text is not None:
                self._counts[kind] += 1
                self.blocks.write_paragraph(text, part=f"{kind} {self._counts[kind]}")

    def _level(self, paragraph: Element) -> int | None:
        """Outline level of a heading from 1, 0 for the document's title, None for body text."""
        properties = paragraph.find(_W + "pPr")
        if properties is None:
            return None
        style, outline = properties.find(_W + "pStyle"), properties.find(_W + "outlineLvl")
        if outline is not None:
            return _heading_level(outline)
        return self._levels.get(style.get(_W + "val")) if style is not None else None


def _outline_levels(document: WordDocument) -> dict[str, int]:
    """Style id → heading level, inherited through `basedOn`; built-in names are English in every language."""
    own: dict[str, int] = {}
    based_on: dict[str, str] = {}
    for style in document.styles.element.iterchildren(_W + "style"):
        identifier = style.get(_W + "styleId")
        name = style.find(_W + "name")
        words = (name.get(_W + "val") or "").lower().split() if name is not None else []
        outline = style.find(f"{_W}pPr/{_W}outlineLvl")
        base = style.find(_W + "basedOn")
        if words == ["title"]:
            own[identifier] = 0
        elif len(words) == 2 and words[0] == "heading" and words[1].isdigit():
            own[identifier] = int(words[1])
        elif outline is not None and (level := _heading_level(outline)):
            own[identifier] = level
        if base is not None:
            based_on[identifier] = base.get(_W + "val")
    return {
        identifier: level
        for identifier in {*own, *based_on}
        if (level := _inherited(identifier, own, based_on)) is not None
    }


def _inherited(identifier: str | None, own: dict[str, int], based_on: dict[str, str]) -> int | None:
    for _ in range(20):  # styles may refer to each other in a circle
        if identifier is None or identifier in own:
            break
        identifier = based_on.get(identifier)
    return own.get(identifier) if identifier is not None else None


def _heading_level(outline: Element) -> int | None:
    value = outline.get(_W + "val") or ""
    return int(value) + 1 if value.isdigit() and int(value) < 9 else None  # 9 means body text


def _pieces(element: Element) -> Iterator[str]:
    for child in element.iterchildren():
        if child.tag in _TEXTS:
            yield child.text or ""
        elif child.tag in _BREAKS:
            yield _BREAKS[child.tag]
        elif child.tag == _SYMBOL:
            yield symbol(child.get(_W + "font") or "", child.get(_W + "char") or "")
        elif child.tag == _RUBY:
            base, above = ("".join(map(_text, child.iterchildren(_W + tag))) for tag in ("rubyBase", "rt"))
            yield f"{base}({above})" if above else base
        elif child.tag in _SKIPPED or not isinstance(child.tag, str):
            continue
        elif (structure := write_structure(child, _text)) is not None:
            yield structure
        else:
            if child.tag == _BOX:
                yield "\n"
            yield from _pieces(child)
            if child.tag in (_PARAGRAPH, _CELL):
                yield "\n"  # a paragraph of a text box or cell ends its line


def _text(element: Element) -> str:
    return "".join(_pieces(element))


def _rows(table: Element) -> Iterator[Row]:
    """Rows with text; vertically merged cells are repeated, and nested tables are left out."""
    above: dict[int, str] = {}
    for number, row in enumerate(_descend(table, _ROW), start=1):
        before = row.find(f"{_W}trPr/{_W}gridBefore")  # columns that a row leaves out
        skipped = 0 if before is None else whole_number(before.get(_W + "val"), usual=0, digits=5)
        cells, column = [], 1 + min(skipped, _MAX_SPAN)
        for cell in _descend(row, _CELL):
            width, continues = _merging(cell)
            text = above.get(column, "") if continues else _cell_text(cell)
            above[column] = text
            if text:
                is_text, is_strong = not is_number_like(text), _is_bold(cell)
                cells += [
                    Cell(place, text, is_text, is_spanned=place > column, is_strong=is_strong)
                    for place in range(column, column + width)
                ]
            column += width
        if cells:
            header = row.find(f"{_W}trPr/{_W}tblHeader")
            yield Row(number, cells, is_header=header is not None and is_on(header))


def _cell_text(cell: Element) -> str:
    return one_line("\n".join("".join(_pieces(paragraph)) for paragraph in _descend(cell, _PARAGRAPH)))


def _is_bold(cell: Element) -> bool:
    """Whether all text of a cell is bold by direct formatting; table styles say nothing about a single table."""
    runs = [run for run in cell.iter(_W + "r") if any((text.text or "").strip() for text in run.iter(_W + "t"))]
    marks = [run.find(f"{_W}rPr/{_W}b") for run in runs]
    return bool(marks) and all(mark is not None and is_on(mark) for mark in marks)


def _descend(parent: Element, *tags: str) -> Iterator[Element]:
    """Children with one of the tags, including those in content controls, which python-docx skips, and insertions."""
    for child in parent.iterchildren():
        if child.tag in tags:
            yield child
        elif isinstance(child.tag, str) and child.tag not in _SKIPPED and child.tag not in (_TABLE, _PARAGRAPH):
            yield from _descend(child, *tags)


def _merging(cell: Element) -> tuple[int, bool]:
    """(number of columns that a cell spans, whether it continues the cell above)."""
    properties = cell.find(_W + "tcPr")
    if properties is None:
        return 1, False
    span, merge = properties.find(_W + "gridSpan"), properties.find(_W + "vMerge")
    value = span.get(_W + "val") or "" if span is not None else ""
    width = min(int(value), _MAX_SPAN) if value.isdigit() else 1
    return max(width, 1), merge is not None and merge.get(_W + "val", "continue") == "continue"
