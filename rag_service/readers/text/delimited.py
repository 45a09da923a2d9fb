"""CSV and TSV files: one labelled line per record, with its row and cells."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, groupby, islice

from rag_service.domain import Location, ParsedDocument
from rag_service.errors import DocumentError, TooLargeError
from rag_service.readers.common.builder import MAX_CHARACTERS, TextBuilder, clean, one_line, too_large
from rag_service.readers.common.cells import Records, Row, row_of
from rag_service.readers.common.names import choose_title
from rag_service.readers.common.superscripts import has_raised
from rag_service.readers.common.tables import LONG_TABLE_TEXT_ROWS, is_heading, too_many_rows, write_table

_DELIMITERS = (";", "\t", "|", ",")  # comma last: decimal commas split records unevenly
_SAMPLE_RECORDS = 50
_EXCEL_HINT = re.compile(r"\A\ufeff?\"?sep=.\"?\n")  # a first line for Excel, which does not count it
_SAMPLE_CHARACTERS = 100_000
_BATCH = 1_000  # records that are looked at together
_CHUNK = 50_000  # characters that are split into lines together


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
                return _build(name, _rows(text, delimiter))[0]
            raise too_large(name)
        except TooLargeError:
            document = _parse_long(name, lambda: _rows(text, delimiter))
            if document is None:
                raise
            return document
    except csv.Error as error:
        raise DocumentError(
            f'"{name}" has a table cell that never ends. A quotation mark (") is probably missing; '
            "correct it, or save the table again from your spreadsheet program."
        ) from error


def _build(name: str, rows: Iterable[Row | Records], *, warning: str = "") -> tuple[ParsedDocument, Mapping[int, str]]:
    """The document, and the names of its columns."""
    builder = TextBuilder(name)
    names = write_table(builder, rows, place=lambda row, cell: Location(row=row, cell=cell))
    if warning:
        builder.warn(warning)
    return builder.build(title=choose_title(name), media_type="text/csv"), names


def _parse_long(name: str, rows: Callable[[], Iterator[Row | Records]]) -> ParsedDocument | None:
    """A file with the first rows as text and all of them as a table; None if it is not one table."""
    # Rarely needed, and slow to load.
    from rag_service.tables.reading.extract import extract_long_table
    from rag_service.tables.reading.lines import Line, PlainRows

    document, names = _build(name, _first(rows(), LONG_TABLE_TEXT_ROWS), warning=too_many_rows())

    def further() -> Iterator[Line | PlainRows]:
        for row in _after(rows(), LONG_TABLE_TEXT_ROWS):
            if isinstance(row, Records):
                yield PlainRows(row.number, dict(enumerate(zip(*row.rows, strict=True), start=1)))
            elif len(row.cells) == 1 and is_heading(row.cells[0], names):
                yield Line(sheet=None, number=row.number, values={row.cells[0].column: (row.cells[0].text, None)})
            else:
                yield PlainRows(row.number, {cell.column: [cell.text] for cell in row.cells})

    table = extract_long_table(document.text, document.spans, names, further, number=0)
    return None if table is None else replace(document, long_tables=(table,))


def _first(rows: Iterable[Row | Records], count: int) -> Iterator[Row | Records]:
    """The first rows."""
    for row in rows:
        found = row.cut(0, count) if isinstance(row, Records) else row
        yield found
        count -= _size(found)
        if not count:
            return


def _after(rows: Iterable[Row | Records], count: int) -> Iterator[Row | Records]:
    """The rows after the first ones."""
    for row in rows:
        skipped = min(count, _size(row))
        count -= skipped
        if skipped < _size(row):
            yield row.cut(skipped) if isinstance(row, Records) else row


def _size(row: Row | Records) -> int:
    return len(row.rows) if isinstance(row, Records) else 1


def _rows(text: str, delimiter: str) -> Iterator[Row | Records]:
    """The rows that are not blank; those with a text in the first column and in another as records."""
    reader = csv.reader(_lines(text), delimiter=delimiter)
    is_settled = not has_raised(text)
    number = 1
    while batch := list(islice(reader, _BATCH)):
        joined = "\0".join(chain([""], chain.from_iterable(batch), [""]))  # a cleaned text does not hold it
        rows = batch if is_settled and _is_tidy(joined) else [list(map(_value, record)) for record in batch]
        if rows is batch and "\0\0" not in joined and min(map(len, batch)) > 1:
            yield Records(number, _padded(batch))
        else:
            yield from _by_kind(number, rows)
        number += len(batch)


def _by_kind(number: int, rows: Iterable[list[str]]) -> Iterator[Row | Records]:
    for is_record, group in groupby(rows, key=_is_record):
        found = list(group)
        if is_record:
            yield Records(number, _padded(found))
        else:
            yield from (row_of(at, texts) for at, texts in enumerate(found, start=number) if any(texts))
        number += len(found)


def _is_record(texts: Sequence[str]) -> bool:
    return len(texts) > 1 and texts[0] != "" and any(texts[1:])


def _padded(rows: list[list[str]]) -> list[list[str]]:
    """Rows of the same width."""
    width = max(map(len, rows))
    return rows if width == min(map(len, rows)) else [[*row, *[""] * (width - len(row))] for row in rows]


def _is_tidy(joined: str) -> bool:
    """Whether `one_line` would change no field: a look at all at once, since most are so."""
    if " \0" in joined or "\0 " in joined:
        return False
    if joined.isascii():
        return "  " not in joined and "\n" not in joined and "\t" not in joined
    return " ".join(joined.split()) == joined


_value = lru_cache(maxsize=10_000)(one_line)


def _lines(text: str) -> Iterator[str]:
    """Lines of a cleaned text with their ends, without copying the whole text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _CHUNK) + 1 or len(text)
        yield from text[start:end].splitlines(keepends=True)
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
