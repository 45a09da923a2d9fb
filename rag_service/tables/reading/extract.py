"""Finds the tables of a document in its stored text.

Any reader whose places name a cell and a row gives typed tables, and each cell knows where it stands in the stored
text, which citations count in. Files whose rows are too many for the text are read by `long_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from rag_service.domain import EncodedTable, Span
from rag_service.tables.encoding import encode_table
from rag_service.tables.model import Table, TableRow
from rag_service.tables.reading.columns import ReadColumn, are_periods, read_columns, read_rows
from rag_service.tables.reading.lines import (
    Block,
    Line,
    PlainRows,
    read_blocks,
    read_lines,
    rows_of_pages,
    side_by_side,
)
from rag_service.tables.reading.page_lines import read_page_lines
from rag_service.tables.reading.statements import find_statements
from rag_service.tables.reading.values import find_unit

MAX_TABLES = 200  # of a document; a workbook with more is a template filled many times
MAX_COLUMNS = 200
_MIN_ROWS, _MIN_COLUMNS = 2, 2
_KNOWN = 100_000  # texts of a long table that are kept once


def extract_tables(text: str, spans: Sequence[Span]) -> tuple[Table, ...]:
    """The tables of a document with a header and at least two rows and columns.

    `text`: as stored. `spans`: places, sorted by start.
    """
    lines = list(read_page_lines(text, spans))
    tables: list[Table] = list(islice(find_statements(lines), MAX_TABLES))
    cells = (cell for table in tables for row in table.rows for cell in row.cells if cell is not None)
    used = {cell.start for cell in cells if cell.start is not None}
    for block in chain(read_blocks(read_lines(text, spans)), read_blocks(rows_of_pages(lines, used))):
        for columns in side_by_side(block.lines):
            table = _build(block, columns, number=len(tables))
            if table is not None and len(tables) < MAX_TABLES:
                tables.append(table)
    return tuple(tables)


def _build(block: Block, used: Sequence[int], *, number: int) -> Table | None:
    lines = [line for line in block.lines if set(line.values) & set(used)]
    full = [line for line in lines if line.labels]
    if len(full) < _MIN_ROWS or not _MIN_COLUMNS <= len(used) <= MAX_COLUMNS:
        return None
    texts = {column: [line.values[column][0] for line in full if column in line.values] for column in used}
    # Spreadsheets write their numbers with a point; the figures of a text file show it somewhere, or nowhere.
    columns = read_columns(texts, block.names, decimal="." if block.sheet is not None else None)
    return _describe(block, columns, tuple(read_rows(lines, columns)), number=number)


def _describe(block: Block, columns: Sequence[ReadColumn], rows: tuple[TableRow, ...], *, number: int) -> Table:
    described = tuple(one.column for one in columns)
    return Table(
        number=number,
        sheet=block.sheet,
        caption="\n".join(block.caption),
        columns=described,
        rows=rows,
        unit=next(filter(None, map(find_unit, (*reversed(block.above), described[0].name))), ""),
        by_period=are_periods(described),
        page=block.lines[0].page,
    )


def extract_long_table(
    text: str,
    spans: Sequence[Span],
    names: Mapping[int, str],
    further: Callable[[], Iterable[Line | PlainRows]],
    *,
    number: int,
) -> EncodedTable | None:
    """The table of a sheet or file whose first rows alone are in the text; None if they are not one table.

    Args:
        text: as stored, with the first rows.
        spans: places of the sheet or file, sorted by start.
        names: of the columns, by their place from 1.
        further: gives the rows after them, which is done twice; a line without names of columns is a sub-heading.
        number: of the table in the document; those of `extract_tables` are below `MAX_TABLES`.
    """
    blocks = list(read_blocks(read_lines(text, spans)))
    if len(blocks) != 1 or not _MIN_COLUMNS <= len(names) <= MAX_COLUMNS:
        return None
    (block,) = blocks

    texts: dict[int, list[str]] = {place: [] for place in sorted(names)}
    known: dict[str, str] = {}
    for line in chain(block.lines, further()):
        if isinstance(line, PlainRows):
            cells = line.columns
        else:
            cells = {place: [value] for place, (value, _) in line.values.items()} if line.labels else {}
        for place in cells.keys() & texts.keys():
            texts[place] += _shared(cells[place], known)
    decimal = "." if block.sheet is not None else None
    columns = read_columns({place: cells or [""] for place, cells in texts.items()}, names, decimal=decimal)
    del texts, known
    rows = read_rows(chain(block.lines, further()), columns)
    return encode_table(_describe(block, columns, (), number=number), rows)


def _shared(cells: Sequence[str], known: dict[str, str]) -> Iterator[str]:
    """The texts that are not empty; those seen before as the same object, so that it is kept once."""
    for text in filter(None, cells):
        yield known.setdefault(text, text) if len(known) < _KNOWN else known.get(text, text)
