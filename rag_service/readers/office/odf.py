"""OpenDocument: texts (.odt), spreadsheets (.ods) and presentations (.odp)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError, ProtectedError, TooLargeError
from rag_service.readers.common.archive import damaged, open_archive
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import (
    HIDDEN,
    STRUCK_OUT,
    TextBuilder,
    hidden_but_read,
    one_line,
    pictures_not_read,
    rows_and_columns,
)
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.common.tables import places_on, write_table
from rag_service.readers.common.xml import Element, local_name, read_xml, whole_number
from rag_service.readers.office.odf_numbering import MARK, Numbering

_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TEXT, _TABLE, _DRAW, _PRESENTATION, _STYLE = (
    f"{{{_ODF}{part}:1.0}}" for part in ("office", "text", "table", "drawing", "presentation", "style")
)
_MEDIA_TYPE = "application/vnd.oasis.opendocument."
_SKIPPED = frozenset({"tracked-changes", "annotation", "annotation-end", "note", "forms", "sequence-decls"})
_STYLED = {  # element → family of its style
    _TEXT + "span": "text", _TEXT + "a": "text", _TEXT + "p": "paragraph", _TEXT + "h": "paragraph",
    _TABLE + "table-cell": "table-cell",
}  # fmt: skip
_CONDITIONAL = tuple(  # the last is in its paragraph
    _TEXT + tag
    for tag in (
        "hidden-text", "section", "variable-set", "variable-get", "user-field-get", "user-field-input", "sequence",
        "expression", "conditional-text", "hidden-paragraph",
    )
)  # fmt: skip
_COLUMN_GROUPS = ("table-columns", "table-header-columns", "table-column-group")
_MAX_REPEATED = 200  # cells or rows written out; spreadsheets repeat empty ones a million times
_MAX_CELLS = 300_000


def parse_odf(data: bytes, *, name: str) -> ParsedDocument:
    """Read a text, spreadsheet or presentation, with foot- and endnotes, comments and slide notes.

    Places are those of DOCX, XLSX and PPTX. Raises DocumentError: damaged, hostile or encrypted. TooLargeError.
    """
    archive = open_archive(data, name)
    manifest = archive.NameToInfo.get("META-INF/manifest.xml")
    if manifest is not None and manifest.file_size < 4_000_000 and b"encryption-data" in archive.read(manifest):
        raise ProtectedError(f'"{name}" is protected by a password. Save a copy without it and upload that.')
    content = read_xml(archive, "content.xml", name)
    body = None if content is None else content.find(_OFFICE + "body")
    if body is None or not len(body):
        raise damaged(name)
    kind = local_name(body[0])
    builder = TextBuilder(name)
    styles = read_xml(archive, "styles.xml", name)
    for warning in _settle_characters(body, _looks_of_styles(content, styles)):
        builder.warn(warning)
    Numbering(content, styles).settle(body)
    writer, hidden = BlockWriter(builder), list[str]()
    if kind == "spreadsheet":
        hidden = _write_sheets(builder, body[0], _hidden_styles(content, "table"))
    elif kind == "presentation":
        hidden = _write_slides(writer, body[0], _hidden_styles(content, "drawing-page"))
        _write_masters(writer, body[0], styles)
    elif kind == "text":
        _Writer(writer).write_blocks(body[0])
        _write_page_edges(writer, styles)
    else:
        raise DocumentError(f'"{name}" is an OpenDocument {kind}, which is not read. Export it as a PDF.')
    if hidden:
        builder.warn(hidden_but_read(hidden))
    if pictures := sum(map(_is_picture, body.iter(_DRAW + "image"))):
        builder.warn(pictures_not_read(pictures))
    title, author, language = _properties(read_xml(archive, "meta.xml", name))
    return builder.build(
        title=choose_title(name, title, writer.title),
        media_type=_MEDIA_TYPE + kind,
        language=language_of(language),
        metadata={"author": author[:500]} if author else {},
    )


class _Writer:
    """Writes paragraphs, lists and tables; notes and comments follow the paragraph that they belong to."""

    def __init__(self, writer: BlockWriter):
        self._writer = writer
        self._notes = 0

    def write_blocks(self, parent: Element, *, is_list: bool = False, part: str | None = None) -> None:
        for block in parent:
            tag = local_name(block)
            if tag == "h" and part is None:
                level = block.get(_TEXT + "outline-level") or "1"
                self._writer.write_heading(_text(block), int(level) if level.isdecimal() else 1)
                self._write_notes(block)
            elif tag in ("p", "h"):
                text, mark = _text(block), block.get(MARK)
                self._writer.write_paragraph(
                    f"{mark} {text}" if mark and text else text, part=part, ending="\n" if is_list else "\n\n"
                )
                for box in block.iter(_DRAW + "text-box"):
                    self.write_blocks(box, part=part)
                self._write_notes(block)
            elif tag == "table":
                self._write_table(block, part=part)
                self._write_notes(block)
            elif tag in ("list", "list-item", "list-header"):
                self.write_blocks(block, is_list=True, part=part)
            elif tag not in _SKIPPED and tag != "notes":
                self.write_blocks(block, is_list=is_list, part=part)

    def _write_table(self, table: Element, *, part: str | None) -> None:
        """Write a table, then those inside its cells."""
        self._writer.write_table(_rows(table), part=part)
        for inner in list(table.iter(_TABLE + "table")):
            if next(inner.iterancestors(_TABLE + "table"), None) is table:
                self._write_table(inner, part=part)

    def _write_notes(self, block: Element) -> None:
        for note in block.iter(_TEXT + "note", _OFFICE + "annotation"):
            if local_name(note) == "annotation":
                self._writer.write_paragraph(_words(note, "p"), part="comment")
                continue
            self._notes += 1
            number = one_line(note.findtext(_TEXT + "note-citation") or "") or str(self._notes)
            kind = "endnote" if note.get(_TEXT + "note-class") == "endnote" else "footnote"
            self._writer.write_paragraph(_words(note, "p"), part=f"{kind} {number}")


def _write_page_edges(writer: BlockWriter, styles: Element | None) -> None:
    """Write the page headers and footers, each text once; those without words are page numbers."""
    writer.begin()
    written: set[str] = set()
    for page in [] if styles is None else styles.iter(_STYLE + "master-page"):
        for edge in page:
            kind = local_name(edge).partition("-")[0]
            for paragraph in edge.iter(_TEXT + "p", _TEXT + "h") if kind in ("header", "footer") else ():
                text = one_line(_text(paragraph))
                if text not in written and any(map(str.isalpha, text)):
                    written.add(text)
                    writer.write_paragraph(text, part=f"page {kind}")


def _is_picture(image: Element) -> bool:
    """Whether an image is not only the look of an embedded object, such as a chart or a formula."""
    return all(local_name(beside) not in ("object", "object-ole", "plugin") for beside in image.getparent())


def _hidden_styles(content: Element, family: str) -> frozenset[str]:
    """The names of the styles of sheets or slides that are not shown."""
    styles = [style for style in content.iter(_STYLE + "style") if style.get(_STYLE + "family") == family]
    shown = [
        (style, {key.rpartition("}")[2]: value for part in style for key, value in part.items()}) for style in styles
    ]
    return frozenset(
        style.get(_STYLE + "name") or ""
        for style, values in shown
        if values.get("display") == "false" or values.get("visibility") == "hidden"
    )


def _write_slides(writer: BlockWriter, deck: Element, hiding: frozenset[str]) -> list[str]:
    """Write all slides. Returns the hidden ones, for `hidden_but_read`."""
    hidden = []
    for number, page in enumerate(deck.iter(_DRAW + "page"), start=1):
        writer.begin(slide=number)
        if page.get(_DRAW + "style-name") in hiding:
            hidden.append(f"slide {number}")
        frames = [frame for frame in page if local_name(frame) not in ("notes", "forms")]
        titles = [frame for frame in frames if frame.get(_PRESENTATION + "class") == "title"]
        for frame in titles[:1]:
            writer.write_heading(_words(frame, "p"), 1)
        for frame in frames:
            if frame not in titles[:1]:
                _Writer(writer).write_blocks(frame)
        for notes in page.iter(_PRESENTATION + "notes"):
            _Writer(writer).write_blocks(notes, part="notes")
    writer.begin()
    for edge in deck.iter(_PRESENTATION + "header-decl", _PRESENTATION + "footer-decl"):
        writer.write_paragraph(one_line(edge.text or ""), part=f"page {local_name(edge).partition('-')[0]}")
    return hidden


def _write_masters(writer: BlockWriter, deck: Element, styles: Element | None) -> None:
    """Write what stands on the masters of the slides, once each; no placeholders, dates and footers."""
    used = {page.get(_DRAW + "master-page-name") for page in deck.iter(_DRAW + "page")}
    for master in [] if styles is None else styles.iter(_STYLE + "master-page"):
        frames = [frame for frame in master if frame.get(_PRESENTATION + "class") is None]
        for frame in frames if master.get(_STYLE + "name") in used else ():
            if local_name(frame) not in ("notes", "forms") and frame.find(f".//{_TEXT}page-number") is None:
                _Writer(writer).write_blocks(frame, part="layout")


def _write_sheets(builder: TextBuilder, book: Element, hiding: frozenset[str]) -> list[str]:
    """Write all sheets. Returns what is hidden of them, for `hidden_but_read`."""
    hidden = []
    for table in book.iterchildren(_TABLE + "table"):
        sheet = one_line(table.get(_TABLE + "name") or "")
        rows = list(_rows(table))
        if not rows:
            continue
        if table.get(_TABLE + "style-name") in hiding:
            hidden.append(f'sheet "{sheet}"')
        elif told := rows_and_columns(*_hidden_counts(table, rows), sheet):
            hidden.append(told)
        builder.write("\n" if len(builder) else "")
        builder.write(f"Sheet: {sheet}\n", Location(sheet=sheet))
        write_table(builder, rows, place=places_on(sheet))
        for note in table.iter(_OFFICE + "annotation"):
            builder.write(_words(note, "p"), Location(sheet=sheet, part="comment"))
            builder.write("\n")
    return hidden


def _hidden_counts(table: Element, rows: Sequence[Row]) -> tuple[int, int]:
    """The numbers of hidden rows and columns with text."""
    columns = {cell.column for row in rows for cell in row.cells}
    return _count_hidden(table, "row", {row.number for row in rows}), _count_hidden(table, "column", columns)


def _count_hidden(table: Element, kind: str, used: Set[int]) -> int:
    count, number, last = 0, 1, max(used, default=0)
    for part in _of_table(table, f"table-{kind}"):
        if number > last:
            break
        end = number + _number(part, f"number-{kind}s-repeated")
        if part.get(_TABLE + "visibility") in ("collapse", "filter"):
            count += sum(number <= one < end for one in used) if end > number + 1 else number in used
        number = end
    return count


def _rows(table: Element) -> Iterator[Row]:
    """Rows with text; cells merged downwards are repeated, those over several columns name them all."""
    merged: dict[int, tuple[int, Cell]] = {}  # column → (rows left, cell)
    number = 1
    count = 0
    for row in _of_table(table, "table-row"):
        repeat = _number(row, "number-rows-repeated")
        cells: list[Cell] = []
        below: dict[int, tuple[int, Cell]] = {}
        column = 1
        for part in row:
            if local_name(part) not in ("table-cell", "covered-table-cell"):
                continue
            times = _number(part, "number-columns-repeated")
            text = _cell_text(part) if local_name(part) == "table-cell" else ""
            width, height = _number(part, "number-columns-spanned"), _number(part, "number-rows-spanned")
            for place in range(column, column + (min(max(times, width), _MAX_REPEATED) if text else 0)):
                cell = Cell(place, text, not is_number_like(text), is_spanned=width > 1 and place > column)
                cells.append(cell)
                if height > 1:
                    below[place] = (height - 1, cell)
            column += times
        taken = {cell.column: cell for cell in cells}
        for place, (left, cell) in merged.items():
            if place not in taken:
                taken[place] = cell
            if left > 1:
                below.setdefault(place, (left - 1, cell))
        merged = below
        is_header = local_name(row.getparent()) == "table-header-rows"
        for offset in range(min(repeat, _MAX_REPEATED) if taken else 0):
            count += len(taken)
            if count > _MAX_CELLS:
                raise TooLargeError(f"A table of the document has more than {_MAX_CELLS:,} cells. Split the file.")
            yield Row(number + offset, [taken[place] for place in sorted(taken)], is_header=is_header)
        number += repeat


def _of_table(parent: Element, tag: str) -> Iterator[Element]:
    """Rows of a table in groups and header rows, without those of nested tables."""
    for child in parent:
        found = local_name(child)
        if found == tag:
            yield child
        elif found in ("table-header-rows", "table-rows", "table-row-group", *_COLUMN_GROUPS):
            yield from _of_table(child, tag)


def _cell_text(cell: Element) -> str:
    """The text of a cell without comments and tables inside it."""
    others = {
        paragraph
        for other in cell.iter(_OFFICE + "annotation", _TABLE + "table")
        for paragraph in other.iter(_TEXT + "p", _TEXT + "h")
    }
    paragraphs = (paragraph for paragraph in cell.iter(_TEXT + "p", _TEXT + "h") if paragraph not in others)
    return one_line(" ".join(map(_text, paragraphs)))


def _looks_of_styles(*files: Element | None) -> Mapping[tuple[str, str], str]:
    """(family, name) of a style → what it makes of characters: super, sub, struck, hidden."""
    own: dict[tuple[str, str], str] = {}
    parents: dict[tuple[str, str], str] = {}
    for style in (style for file in files if file is not None for style in file.iter(_STYLE + "style")):
        family = style.get(_STYLE + "family") or ""
        name = family, style.get(_STYLE + "name") or ""
        properties = style.find(_STYLE + "text-properties")
        values = {} if properties is None else {key.rpartition("}")[2]: value for key, value in properties.items()}
        line = values.get("text-line-through-style") or values.get("text-line-through-type") or "none"
        place = (values.get("text-position") or "0%").split()[0]
        if values.get("display") == "none":
            own[name] = "hidden"
        elif line != "none":
            own[name] = "struck"
        elif place in ("super", "sub"):
            own[name] = place
        elif place.strip("-0%"):
            own[name] = "sub" if place.startswith("-") else "super"
        parents[name] = style.get(_STYLE + "parent-style-name") or ""
    for name in [name for name in parents if name not in own]:
        above = name
        for _ in range(20):  # styles may refer to each other in a circle
            above = above[0], parents.get(above, "")
            if above in own:
                own[name] = own[above]
                break
    return own


def _settle_characters(body: Element, looks: Mapping[tuple[str, str], str]) -> list[str]:
    """Drop what is struck out or hidden, write what is raised or lowered; warnings of what was dropped."""
    warnings = dict.fromkeys([STRUCK_OUT] if next(body.iter(_TEXT + "deletion"), None) is not None else [])
    for element in list(body.iter(*_STYLED)):
        family = _STYLED[element.tag]
        key = _TABLE if family == "table-cell" else _TEXT
        look = looks.get((family, element.get(key + "style-name") or ""))
        if look in ("struck", "hidden"):
            warnings[STRUCK_OUT if look == "struck" else HIDDEN] = None
            element[:] = []
            element.text = ""
        elif look in ("super", "sub"):
            _change_texts(element, raise_run if look == "super" else lower_run)
    for mark in [one for one in body.iter(*_CONDITIONAL) if _is_hidden(one)]:
        warnings[HIDDEN] = None
        whole = mark.getparent() if mark.tag == _TEXT + "hidden-paragraph" else mark
        whole[:] = []
        whole.text = ""
    return list(warnings)


def _is_hidden(element: Element) -> bool:
    return bool(element.get(_TEXT + "is-hidden") == "true" or element.get(_TEXT + "display") == "none")


def _change_texts(element: Element, change: Callable[[str], str]) -> None:
    element.text = change(element.text or "")
    for child in element:
        if local_name(child) not in _SKIPPED:
            _change_texts(child, change)
        child.tail = change(child.tail or "")


def _number(element: Element, attribute: str) -> int:
    return max(whole_number(element.get(_TABLE + attribute), usual=1, digits=8), 1)


def _words(element: Element, tag: str) -> str:
    return " ".join(filter(None, (one_line(_text(part)) for part in element.iter(_TEXT + tag))))


def _text(paragraph: Element) -> str:
    """The text of a paragraph without notes, comments and text boxes."""
    pieces = [paragraph.text or ""]
    for child in paragraph:
        tag = local_name(child)
        if tag == "s":
            pieces.append(" " * min(whole_number(child.get(_TEXT + "c"), usual=1, digits=4), 100))
        elif tag in ("tab", "line-break"):
            pieces.append("\t" if tag == "tab" else "\n")
        elif tag == "ruby-text":
            pieces.append(f"({_text(child)})")  # signs for the sound of the words before it
        elif tag not in _SKIPPED and tag != "frame":
            pieces.append(_text(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


def _properties(meta: Element | None) -> tuple[str, str, str]:
    """Title, author, language."""
    found = {local_name(part): one_line(part.text or "") for part in ([] if meta is None else meta.iter())}
    return found.get("title", ""), found.get("creator") or found.get("initial-creator", ""), found.get("language", "")
