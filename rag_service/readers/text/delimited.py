"""CSV and TSV files: one labelled line per record, with its row and cells."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.readers.common.builder import MAX_CHARACTERS, TextBuilder, clean, one_line, too_large
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.names import choose_title
from rag_service.readers.common.tables import LONG_TABLE_TEXT_ROWS, is_heading, too_many_rows, write_table

_DELIMITERS = (";", "\t", "|", ",")  # comma last: decimal commas split records unevenly
_SAMPLE_RECORDS = 50
_EXCEL_HINT = re.compile(r"\A\ufeff?\"?sep=.\"?\n")  # a first line for Excel, which does not count it
_SAMPLE_CHARACTERS = 100_000

Record = tuple[int, dict[int, str]]  # (number, column → value), both from 1; empty cells are left out


def parse_delimited(text: str, *, name: str) -> ParsedDocument:
    """Read a delimited file. `Location.row` counts records from 1, header and blank lines included; `cell` is its
    column letter and row. If the rows are too many for the text, it has the first ones, and a table has all.

    Raises DocumentError for a field above 131,072 characters, as after an unclosed quotation mark, and TooLargeError.
    """
    text = _EXCEL_HINT.sub("", clean(text).lstrip("\n"))
    delimiter = _sniff_delimiter(text)
    try:
        try:
            if len(text) <= MAX_CHARACTERS:
                return _build(name, _rows(_records(text, delimiter)))[0]
            raise too_large(name)
        except TooLargeError:
            document = _parse_long(name, lambda: _records(text, delimiter))
            if document is None:
                raise
            return document
    except csv.Error as error:
        raise DocumentError(
            f'"{name}" has a table cell that never ends. A quotation mark (") is probably missing; '
            "correct it, or save the table again from your spreadsheet program."
        ) from error


def _build(name: str, rows: Iterable[Row], *, warning: str = "") -> tuple[ParsedDocument, Mapping[int, str]]:
    """The document, and the names of its columns."""
    builder = TextBuilder(name)
    names = write_table(builder, rows, place=lambda row, cell: Location(row=row, cell=cell))
    if warning:
        builder.warn(warning)
    return builder.build(title=choose_title(name), media_type="text/csv"), names


def _parse_long(name: str, records: Callable[[], Iterator[Record]]) -> ParsedDocument | None:
    """A file with the first rows as text and all of them as a table; None if it is not one table."""
    from rag_service.tables.reading.extract import PlainRow, extract_long_table  # rarely needed, and slow to load

    document, names = _build(
        name,
        _rows(islice(records(), LONG_TABLE_TEXT_ROWS)),
        warning=too_many_rows(),
    )

    def further() -> Iterator[PlainRow]:
        for number, values in islice(records(), LONG_TABLE_TEXT_ROWS, None):
            yield number, values, len(values) == 1 and is_heading(_cells(values)[0], names)

    table = extract_long_table(document.text, document.spans, names, further, number=0)
    return None if table is None else replace(document, long_tables=(table,))


def _records(text: str, delimiter: str) -> Iterator[Record]:
    for number, record in enumerate(csv.reader(_lines(text), delimiter=delimiter), start=1):
        values = {column: value for column, field in enumerate(record, start=1) if (value := _value(field))}
        if values:
            yield number, values


_value = lru_cache(maxsize=10_000)(one_line)


def _rows(records: Iterable[Record]) -> Iterator[Row]:
    for number, values in records:
        yield Row(number, _cells(values))


def _cells(values: Mapping[int, str]) -> list[Cell]:
    return [Cell(column, value, not is_number_like(value)) for column, value in values.items()]


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
