"""CSV and TSV files: one labelled line a record, with its row and cells."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError
from rag_service.ingest.parse.builder import TextBuilder, clean, one_line
from rag_service.ingest.parse.names import choose_title
from rag_service.ingest.parse.tables import Cell, Row, is_number_like, write_table

_DELIMITERS = (";", "\t", "|", ",")  # comma last: with decimal commas it splits every record, but unevenly
_SAMPLE_RECORDS = 50
_SAMPLE_CHARACTERS = 100_000


def parse_delimited(text: str, *, name: str) -> ParsedDocument:
    """Read a delimited file. `Location.row` counts records from 1, header and blank lines included;
    a quoted field may hold line breaks without upsetting the count. `cell` is column letter and row.

    Raises:
        DocumentError: a field is longer than 131,072 characters, as when a quotation mark is not closed.
        TooLargeError: more text than `MAX_CHARACTERS`.
    """
    text = clean(text).lstrip("\n")
    builder = TextBuilder(name)
    try:
        write_table(builder, _rows(text, _sniff_delimiter(text)), place=_place)
    except csv.Error as error:
        raise DocumentError(
            f'"{name}" has a table cell that never ends. A quotation mark (") is probably not closed; '
            "correct it, or save the table again from your spreadsheet program."
        ) from error
    return builder.build(title=choose_title(name), media_type="text/csv")


def _place(row: int, cell: str | None) -> Location:
    return Location(row=row, cell=cell)


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
    """Lines with their ends, without a second copy of a long text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _sniff_delimiter(text: str) -> str:
    """Return the delimiter under which the first records are widest and most alike.

    `csv.Sniffer` is not used: it takes letters for delimiters and fails on decimal commas. Here a
    delimiter scores by the share of records that have the commonest width, and must give two columns.
    """
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        widths, is_sound = _widths(text[:_SAMPLE_CHARACTERS], delimiter)
        if not widths:
            continue
        width, count = Counter(widths).most_common(1)[0]
        # The first record is the header and knows no decimal commas: its width must agree.
        agrees = 1.0 if widths[0] == width else 0.5
        score = count / len(widths) * agrees * (1.0 if is_sound else 0.5) if width > 1 else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _widths(sample: str, delimiter: str) -> tuple[list[int], bool]:
    """Widths of the first records, and whether quotation marks stand where this delimiter wants them."""
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
