"""CSV and TSV files: one labelled line per record, with its row and cells."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.names import choose_title
from rag_service.readers.common.tables import write_table

_DELIMITERS = (";", "\t", "|", ",")  # comma last: decimal commas split records unevenly
_SAMPLE_RECORDS = 50
_EXCEL_HINT = re.compile(r"\A\ufeff?\"?sep=.\"?\n")  # a first line for Excel, which does not count it
_SAMPLE_CHARACTERS = 100_000


def parse_delimited(text: str, *, name: str) -> ParsedDocument:
    """Read a delimited file. `Location.row` counts records from 1, header and blank lines included; `cell` is its
    column letter and row.

    Raises DocumentError for a field above 131,072 characters, as after an unclosed quotation mark, and TooLargeError.
    """
    text = _EXCEL_HINT.sub("", clean(text).lstrip("\n"))
    builder = TextBuilder(name)
    try:
        write_table(builder, _rows(text, _sniff_delimiter(text)), place=lambda row, cell: Location(row=row, cell=cell))
    except csv.Error as error:
        raise DocumentError(
            f'"{name}" has a table cell that never ends. A quotation mark (") is probably missing; '
            "correct it, or save the table again from your spreadsheet program."
        ) from error
    return builder.build(title=choose_title(name), media_type="text/csv")


def _rows(text: str, delimiter: str) -> Iterator[Row]:
    for number, record in enumerate(csv.reader(_lines(text), delimiter=delimiter), start=1):
        cells = []
        for column, field in enumerate(record, start=1):
            value = one_line(field)
            if value:
                cells.append(Cell(column, value, not is_number_like(value)))
        if cells:
            yield Row(number, cells)


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends, without copying the whole text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _sniff_delimiter(text: str) -> str:
    """The delimiter whose first records are widest and most uniform.

    `csv.Sniffer` mistakes letters for delimiters and fails on decimal commas. The score is the share of records of
    the most common width, which must be at least two.
    """
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        widths, is_sound = _widths(text[:_SAMPLE_CHARACTERS], delimiter)
        if not widths:
            continue
        width, count = Counter(widths).most_common(1)[0]
        # The header has no decimal commas: its width should agree.
        agrees = 1.0 if widths[0] == width else 0.5
        score = count / len(widths) * agrees * (1.0 if is_sound else 0.5) if width > 1 else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _widths(sample: str, delimiter: str) -> tuple[list[int], bool]:
    """Widths of the first records, and whether quotation marks fit this delimiter."""
    widths: list[int] = []
    try:
        for record in csv.reader(_lines(sample), delimiter=delimiter, strict=True):
            if any(field.strip() for field in record):
                widths.append(len(record))
            if len(widths) == _SAMPLE_RECORDS:
                break
    except csv.Error:
        # Cut off within quotes at the end of the sample, or the wrong delimiter.
        return widths, len(widths) > 1
    return widths, True
