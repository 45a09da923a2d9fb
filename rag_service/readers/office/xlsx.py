"""Excel workbooks: each sheet as labelled rows, each value with its cell."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from lxml import etree
from openpyxl import load_workbook
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.utils import get_column_letter
from openpyxl.worksheet._reader import COL_TAG, FORMULA_TAG, HEADER_TAG, MERGE_TAG, ROW_TAG, WorkSheetParser
from openpyxl.worksheet.cell_range import CellRange
from openpyxl.worksheet.header_footer import HeaderFooter
from openpyxl.worksheet.merge import MergeCells
from openpyxl.xml.constants import SHEET_MAIN_NS

from rag_service.domain import EncodedTable, Location, ParsedDocument
from rag_service.errors import TooLargeError
from rag_service.readers.common.archive import check_members, open_archive
from rag_service.readers.common.builder import (
    HIDDEN,
    MAX_SPANS,
    STRUCK_OUT,
    TextBuilder,
    hidden_but_read,
    one_line,
    rows_and_columns,
)
from rag_service.readers.common.cells import Cell, Row
from rag_service.readers.common.embedded_files import Parts
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.common.tables import LONG_TABLE_TEXT_ROWS, is_heading, places_on, too_many_rows, write_table
from rag_service.readers.common.xml import (
    Element,
    parse_xml,
    parts_lost,
    read_member,
    read_part,
    read_xml,
    relations_of,
)
from rag_service.readers.office.cell_values import hides, render
from rag_service.readers.office.drawings import CHART, embedded, paragraphs
from rag_service.readers.office.package import read_properties, without_decoration
from rag_service.readers.office.pictures import Pictures

if TYPE_CHECKING:
    from rag_service.tables.reading.lines import Line, PlainRows

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
Sheet = Any  # openpyxl's ReadOnlyWorksheet, whose private attributes are needed
_RUN, _LOOK, _TEXT = (f"{{{SHEET_MAIN_NS}}}{tag}" for tag in ("r", "rPr", "t"))
_STRIKE, _SCRIPT, _INLINE = (f"{{{SHEET_MAIN_NS}}}{tag}" for tag in ("strike", "vertAlign", "is"))
_CHART_TITLE = "{http://schemas.openxmlformats.org/drawingml/2006/chart}title"  # of the chart or an axis
_ON = ("1", "true")
_MAX_CELLS = 2_000_000  # of the workbook, some 500 MB
_MAX_MERGES = 5_000  # per sheet; others are ignored
_MAX_SPANNED = 200  # columns named by a wide merged header
# In a page header: fonts, colours, the date, the name of the file.
_EDGE_CODE = re.compile(r'&(?:"[^"]*"|K(?:[0-9A-Fa-f]{6}|\d\d[+-]\d{3})|[A-Za-z]|\d+)')
_PAGE_NUMBER = re.compile("&[PN]")


class _Formula(str):
    """A formula without a stored value."""

    __slots__ = ()


class _SheetParser(WorkSheetParser):
    """Reads values, or formulas without a stored value; texts in a cell without what is struck out."""

    has_struck = False
    HeaderFooter: Any = None

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.hidden_rows: set[int] = set()
        self.hidden_columns: list[tuple[int, int]] = []  # first and last

    def parse(self) -> Generator[Any, None, None]:
        """Read with lxml what is needed of a sheet; openpyxl reads all of it with a parser written in Python.

        `check_members` has refused documents that declare types or entities.
        """
        found = etree.iterparse(
            self.source,
            tag=(COL_TAG, ROW_TAG, MERGE_TAG, HEADER_TAG),
            resolve_entities=False,
            no_network=True,
            remove_comments=True,
            remove_pis=True,
        )
        for _, element in found:
            if element.tag == ROW_TAG:
                yield self.parse_row(element)
                while element.getprevious() is not None:
                    del element.getparent()[0]
            elif element.tag == COL_TAG:
                self.parse_column_dimensions(element)
            elif element.tag == MERGE_TAG:
                self.merged_cells = MergeCells.from_tree(element)
            else:
                self.HeaderFooter = HeaderFooter.from_tree(element)
            element.clear(keep_tail=False)

    def parse_row(self, row: Any) -> Any:
        found = super().parse_row(row)
        if row.get("hidden") in _ON:
            self.hidden_rows.add(found[0])
        return found

    def parse_column_dimensions(self, col: Any) -> None:
        super().parse_column_dimensions(col)
        if col.get("hidden") in _ON:
            self.hidden_columns.append((int(col.get("min")), int(col.get("max"))))

    def parse_cell(self, element: Any) -> dict[str, Any]:
        cell: dict[str, Any] = super().parse_cell(element)
        inline = element.find(_INLINE) if element.get("t") == "inlineStr" else None
        if inline is not None and inline.find(_RUN) is not None:
            cell["value"] = _rich_text(inline)
            self.has_struck = self.has_struck or any(map(_is_struck, inline.iter(_LOOK)))
        # A formula whose value is an empty text has the type "str".
        if cell["value"] is None and element.get("t", "n") != "str" and element.find(FORMULA_TAG) is not None:
            parse: Any = self.parse_formula  # openpyxl is untyped
            formula = parse(element) if element.get("r") else None
            text = getattr(formula, "text", formula)  # of an array formula
            cell["value"] = _Formula(text) if isinstance(text, str) and len(text) > 1 else None
        return cell


def parse_xlsx(data: bytes, *, name: str, parts: Parts) -> ParsedDocument:
    """Read all worksheets, including hidden ones, with their comments, text boxes and diagrams, and titles of charts.

    Values are normalised: 12 for 12.0, 15% for 0.15 in a percent format, 349.50 € in a currency format, ISO dates, TRUE
    and FALSE. Formulas give their stored value, or the formula itself in workbooks no spreadsheet program saved.
    Each value is a span with `sheet`, `cell` and `row`; the first label of a line has the row's range.

    If the rows are too many for the text, it has the first ones of each sheet, and tables have all. Raises
    DocumentError: damaged or hostile. TooLargeError: unpacks to too much, or too many cells.
    """
    archive = open_archive(data, name)
    check_members(archive, name)
    workbook = _load(data, archive, name)
    has_struck = _settle_shared_strings(archive, workbook, name)
    has_hidden = False
    cells_left, formulas, hidden = _MAX_CELLS, 0, list[str]()
    edges: set[tuple[str, str]] = set()  # page headers and footers; most sheets repeat them
    sheets: list[_Sheet] = []
    lost: list[str] = []  # names of damaged members
    pictures = Pictures(archive, name, parts)
    for sheet in workbook.worksheets:
        title = one_line(str(sheet.title))
        rows, told = _read_rows(sheet, name, cells_left)
        has_struck, has_hidden = has_struck or told.has_struck, has_hidden or told.has_hidden
        cells_left -= sum(len(row.cells) for row in rows)
        formulas += told.formulas
        if rows and sheet.sheet_state != "visible":
            hidden.append(f'sheet "{title}"')
        elif told.hidden_rows or told.hidden_columns:
            hidden.append(rows_and_columns(told.hidden_rows, told.hidden_columns, title))
        path = _member_of(sheet)
        remarks = [_Remark(None, part, text) for part, text in told.edges if (part, text) not in edges]
        edges.update(told.edges)
        remarks += [
            *_read_comments(archive, path, name, lost),
            *_read_drawings(archive, path, title, name, pictures, lost),
        ]
        sheets.append(_Sheet(title=title, rows=rows, remarks=remarks))
    for title, path in _chart_sheets(archive, name):
        sheets.append(
            _Sheet(title=title, rows=[], remarks=[*_read_drawings(archive, path, title, name, pictures, lost)])
        )
    properties = read_properties(archive, name)
    try:
        document = _build(sheets, workbook, name, pictures, properties)
    except TooLargeError:
        long = _build_long(sheets, workbook, name, pictures, properties)
        if long is None:
            raise
        document = long
    warnings = [
        *([STRUCK_OUT] if has_struck else []),
        *([HIDDEN] if has_hidden else []),
        *([hidden_but_read(hidden)] if hidden else []),
        *([_not_calculated(formulas)] if formulas else []),
        *([parts_lost(lost)] if lost else []),
    ]
    return replace(document, warnings=(*document.warnings, *warnings))


def _load(data: bytes, archive: zipfile.ZipFile, name: str) -> Any:
    """The workbook; without its properties and what of its styles is not needed if openpyxl cannot read them."""
    try:
        return load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # as for an attribute that it does not know
        bare = io.BytesIO(without_decoration(archive, name))
        return load_workbook(bare, read_only=True, data_only=True, keep_links=False)


def _not_calculated(count: int) -> str:
    told = (
        "1 formula has no stored value and was read as a formula."
        if count == 1
        else f"{count:,} formulas have no stored value and were read as formulas."
    )
    return f"{told} Open the file in a spreadsheet program, save it and upload it again."


def _settle_shared_strings(archive: zipfile.ZipFile, workbook: Any, name: str) -> bool:
    """Write raised and lowered runs of shared texts as all readers do, and drop struck-out ones; whether any was."""
    main = next((path for kind, path in relations_of(archive, "", name).values() if kind == "officeDocument"), "")
    files = [path for kind, path in relations_of(archive, main, name).values() if kind == "sharedStrings"]
    data = b"".join(read_member(archive, path, name) or b"" for path in files[:1])
    sheets = workbook.worksheets
    if not sheets or not (b"vertAlign" in data or b"strike" in data):
        return False
    strings = sheets[0]._shared_strings  # one list for all sheets
    root = parse_xml(data, name)
    for number, shared in enumerate(root.iterchildren(f"{{{SHEET_MAIN_NS}}}si")):
        if shared.find(f"{_RUN}/{_LOOK}") is not None and number < len(strings):
            strings[number] = _rich_text(shared)
    return any(map(_is_struck, root.iter(_LOOK)))


def _rich_text(text: Element) -> str:
    return "".join(_run_text(run) for run in text if run.tag in (_RUN, _TEXT))


def _run_text(run: Element) -> str:
    text = (run.text if run.tag == _TEXT else run.findtext(_TEXT)) or ""
    look = run.find(_LOOK)
    if look is None:
        return text
    script = look.find(_SCRIPT)
    return "" if _is_struck(look) else _place(text, None if script is None else script.get("val"))


def _is_struck(look: Element) -> bool:
    strike = look.find(_STRIKE)
    return strike is not None and strike.get("val", "1") not in ("0", "false")


def _place(text: str, script: str | None) -> str:
    return {"superscript": raise_run, "subscript": lower_run}.get(script or "", str)(text)


class _Remark(NamedTuple):
    """A comment, or the text of a drawing."""

    cell: str | None
    part: str
    text: str


@dataclass(kw_only=True)
class _Sheet:
    title: str
    rows: list[Row]
    remarks: list[_Remark]
    names: Mapping[int, str] = field(default_factory=dict)  # of the columns, once written
    max_rows: int | None = None  # in the text

    @property
    def is_long(self) -> bool:
        return self.max_rows is not None and len(self.rows) > self.max_rows


def _build(
    sheets: Sequence[_Sheet], workbook: Any, name: str, pictures: Pictures, properties: Mapping[str, str]
) -> ParsedDocument:
    builder = TextBuilder(name)
    for sheet in sheets:
        builder.write("\n" if len(builder) else "")
        builder.write(f"Sheet: {sheet.title}\n", Location(sheet=sheet.title))
        sheet.names = write_table(builder, sheet.rows[: sheet.max_rows], place=places_on(sheet.title))
        if sheet.is_long:
            builder.warn(too_many_rows(sheet.title))
        for cell, part, text in sheet.remarks:
            builder.write(text, Location(sheet=sheet.title, cell=cell, part=part))
            builder.write("\n")
    if not any(sheet.rows or sheet.remarks for sheet in sheets):
        builder = TextBuilder(name)  # names of empty sheets do not count as text
    pictures.warn(builder)
    return builder.build(
        title=choose_title(name, properties.get("title")),
        media_type=MEDIA_TYPE,
        language=language_of(properties.get("language")),
        metadata={"sheets": [one_line(str(sheet)) for sheet in workbook.sheetnames]},
    )


def _build_long(
    sheets: Sequence[_Sheet], workbook: Any, name: str, pictures: Pictures, properties: Mapping[str, str]
) -> ParsedDocument | None:
    """A workbook with the first rows of each sheet as text; None if a sheet with more is not one table."""
    from rag_service.tables.reading.extract import MAX_TABLES, extract_long_table  # rarely needed, and slow to load

    for sheet in sheets:
        sheet.max_rows = LONG_TABLE_TEXT_ROWS
    document = _build(sheets, workbook, name, pictures, properties)
    tables: list[EncodedTable] = []
    for sheet in sheets:
        if not sheet.is_long:
            continue
        spans = [one for one in document.spans if one.location.sheet == sheet.title and one.location.part is None]
        number = MAX_TABLES + len(tables)
        table = extract_long_table(document.text, spans, sheet.names, partial(_further, sheet), number=number)
        if table is None:
            return None
        tables.append(table)
    return replace(document, long_tables=tuple(tables))


def _further(sheet: _Sheet) -> Iterator[Line | PlainRows]:
    """The rows that are not in the text; those that follow each other together."""
    from rag_service.tables.reading.lines import Line, PlainRows

    places = count()

    def kind_of(row: Row) -> tuple[bool, int]:
        """Whether it is a sub-heading, and a number that is the same for rows without a gap."""
        return len(row.values) == 1 and is_heading(row.values[0], sheet.names), row.number - next(places)

    for (is_alone, _), group in groupby((row for row in sheet.rows[sheet.max_rows :] if row.values), key=kind_of):
        rows = list(group)
        texts: list[dict[int, str]] = [{cell.column: cell.text for cell in row.values} for row in rows]
        if is_alone:
            for row in rows:
                (cell,) = row.values
                yield Line(sheet=sheet.title, number=row.number, values={cell.column: (cell.text, None)})
        else:
            columns = sorted(set().union(*texts))
            yield PlainRows(rows[0].number, {column: [row.get(column, "") for row in texts] for column in columns})


def _member_of(sheet: Sheet) -> str:
    return str(sheet._worksheet_path)


def _chart_sheets(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[str, str]]:
    """(title, member) of the sheets that are a chart."""
    main = next((path for kind, path in relations_of(archive, "", name).values() if kind == "officeDocument"), "")
    related, book = relations_of(archive, main, name), read_xml(archive, main, name)
    for sheet in () if book is None else book.iter("{*}sheet"):
        kind, path = next((related[key] for key in sheet.attrib.values() if key in related), ("", ""))
        if kind == "chartsheet":
            yield one_line(sheet.get("name") or ""), path


def _read_comments(archive: zipfile.ZipFile, path: str, name: str, lost: list[str]) -> Iterator[_Remark]:
    """The comments of a sheet; a thread of comments stands in them as one."""
    for kind, target in relations_of(archive, path, name).values():
        root = read_part(archive, target, name, lost) if kind == "comments" else None
        for comment in () if root is None else root.iter(f"{{{SHEET_MAIN_NS}}}comment"):
            text = one_line("".join(part.text or "" for part in comment.iter(f"{{{SHEET_MAIN_NS}}}t")))
            text = text.partition(" Comment: ")[2] if text.startswith("[Threaded comment]") else text
            if text:
                yield _Remark(comment.get("ref") or None, "comment", text)


def _read_drawings(
    archive: zipfile.ZipFile, path: str, title: str, name: str, pictures: Pictures, lost: list[str]
) -> Iterator[_Remark]:
    """The texts of shapes and diagrams of a sheet, titles of charts, and recognised pictures, also of its page header.

    The values of a chart are those of cells.
    """
    for kind, drawing in relations_of(archive, path, name).values():
        root = read_part(archive, drawing, name, lost) if kind in ("drawing", "vmlDrawing") else None
        related = relations_of(archive, drawing, name)
        for anchor in () if root is None else root:
            cell = _cell_of(anchor)
            texts = [("text box", list(paragraphs(anchor)))]
            for what, member in embedded(anchor, related):
                shown = read_part(archive, member, name, lost)
                titles = () if shown is None else shown.iter(_CHART_TITLE) if what == CHART else (shown,)
                texts.append((what, [line for part in titles for line in paragraphs(part)]))
            yield from (_Remark(cell, part, "\n".join(lines)) for part, lines in texts if lines)
            for part, text in pictures.read(anchor, related, place=f"{title}!{cell}" if cell else title):
                yield _Remark(cell, part, text)


def _cell_of(anchor: Element) -> str | None:
    """The cell below the upper left corner of a drawing."""
    column, row = (anchor.findtext(f"{{*}}from/{{*}}{part}") or "" for part in ("col", "row"))
    is_place = column.isdecimal() and row.isdecimal() and len(column) < 6 and len(row) < 8
    return f"{get_column_letter(min(int(column), 16_383) + 1)}{int(row) + 1}" if is_place else None


class _Told(NamedTuple):
    """What the user is told about a sheet."""

    has_struck: bool  # cells that were left out
    has_hidden: bool  # cells that were left out
    hidden_rows: int  # with values
    hidden_columns: int
    formulas: int  # without a stored value
    edges: list[tuple[str, str]]  # (part, text) of the page header and footer


def _read_rows(sheet: Sheet, name: str, max_cells: int) -> tuple[list[Row], _Told]:
    """The rows of a sheet, and what is told about them.

    Reads existing cells only; `sheet.iter_rows` would generate the 17 billion from A1 to XFD1048576.
    """
    workbook: Any = sheet.parent
    grid: dict[int, dict[int, Cell]] = {}
    formats: dict[int, _Format] = {}
    texts: dict[str, str] = {}
    count = formulas = 0
    has_hidden = False
    with sheet._get_source() as source:
        parser = _SheetParser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=workbook.epoch,
            date_formats=workbook._date_formats,
            timedelta_formats=workbook._timedelta_formats,
        )
        for _, cells in parser.parse():
            for raw in cells:
                cell = _cell(sheet, raw, formats, texts)
                if cell is None:
                    has_hidden = has_hidden or (
                        raw["value"] is not None and formats[raw["style_id"]].hides(raw["value"])
                    )
                    continue
                grid.setdefault(raw["row"], {})[cell.column] = cell
                count += 1
                formulas += isinstance(raw["value"], _Formula)
                if count > max_cells:
                    raise TooLargeError(
                        f'"{name}" has more than {_MAX_CELLS:,} filled cells. Split it into smaller workbooks.'
                    )
    if parser.merged_cells is not None:
        _spread_merged(grid, parser.merged_cells.mergeCell[:_MAX_MERGES])
    rows = [Row(number, [columns[column] for column in sorted(columns)]) for number, columns in sorted(grid.items())]
    used = {column for columns in grid.values() for column in columns} if parser.hidden_columns else set()
    return rows, _Told(
        has_hidden=has_hidden,
        has_struck=parser.has_struck or any(format.is_struck for format in formats.values()),
        hidden_rows=len(parser.hidden_rows & grid.keys()),
        hidden_columns=sum(any(first <= one <= last for first, last in parser.hidden_columns) for one in used),
        formulas=formulas,
        edges=list(dict.fromkeys(_page_edges(parser.HeaderFooter))),
    )


def _page_edges(edges: Any) -> Iterator[tuple[str, str]]:
    """(part, text) of what is printed above and below each page, without page numbers."""
    if edges is None:
        return
    for part, found in (
        ("page header", (edges.firstHeader, edges.oddHeader, edges.evenHeader)),
        ("page footer", (edges.firstFooter, edges.oddFooter, edges.evenFooter)),
    ):
        for text in (place.text or "" for edge in found for place in (edge.left, edge.center, edge.right)):
            shown = one_line(_EDGE_CODE.sub("", text))
            if any(map(str.isalpha, shown)) and not _PAGE_NUMBER.search(text):
                yield part, shown


@dataclass(frozen=True, kw_only=True)
class _Format:
    """What the style of a cell says about its value."""

    number: str
    is_strong: bool
    is_struck: bool
    script: str | None  # superscript, subscript
    is_white: bool  # on no ground

    def hides(self, value: object) -> bool:
        """Whether nobody sees a value: its format shows nothing, or it is white as the sheet."""
        return self.is_white or hides(value, self.number)


def _cell(sheet: Sheet, raw: dict[str, Any], formats: dict[int, _Format], texts: dict[str, str]) -> Cell | None:
    """The cell, unless it is empty; `formats` and `texts` keep what was made of styles and texts that cells share."""
    value, style = raw["value"], raw["style_id"]
    if value is None:
        return None
    if style not in formats:
        cell = ReadOnlyCell(sheet, **raw)
        formats[style] = _Format(
            number=str(cell.number_format),
            is_strong=bool(cell.font.bold) or getattr(cell.fill, "patternType", None) == "solid",
            is_struck=bool(cell.font.strike),
            script=cell.font.vertAlign,
            is_white=_is_white(cell.font.color) and getattr(cell.fill, "patternType", None) is None,
        )
    format = formats[style]
    if format.is_struck or format.hides(value):
        text = ""
    elif not isinstance(value, str):
        text = render(value, format.number)
    else:
        if value not in texts:
            texts[value] = render(value)
        text = texts[value]
    is_text = isinstance(value, str) and not isinstance(value, _Formula)
    if is_text and format.script:
        text = one_line(_place(text, format.script))
    return Cell(raw["column"], text, is_text, is_strong=format.is_strong) if text else None


def _is_white(colour: Any) -> bool:
    """Whether a colour of openpyxl is white; in a theme, the first is that of the sheet."""
    if colour is None or colour.tint:
        return False
    return (colour.type == "rgb" and str(colour.rgb)[-6:].upper() == "FFFFFF") or (
        colour.type == "theme" and colour.theme == 0
    )


def _spread_merged(grid: dict[int, dict[int, Cell]], merges: Sequence[CellRange]) -> None:
    """Repeat tall merged cells in each of their rows, and wide ones in each of their columns."""
    budget = MAX_SPANS
    for merge in merges:
        anchor = grid.get(merge.min_row, {}).get(merge.min_col)
        if anchor is None:
            continue
        anchor = replace(anchor, address=merge.coord)
        grid[merge.min_row][merge.min_col] = anchor
        if merge.max_col > merge.min_col:
            for column in range(merge.min_col + 1, min(merge.max_col, merge.min_col + _MAX_SPANNED) + 1):
                grid[merge.min_row].setdefault(column, Cell(column, anchor.text, anchor.is_text, is_spanned=True))
            continue
        height = min(merge.max_row - merge.min_row, budget)
        budget -= height
        for number in range(merge.min_row + 1, merge.min_row + height + 1):
            if number in grid:  # rows without cells of their own are left out
                grid[number].setdefault(merge.min_col, anchor)
