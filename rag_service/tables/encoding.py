"""Tables in the form in which they are stored: a description, and batches of rows as JSON.

A million rows as objects would take a gigabyte. Rows are encoded one by one where the file is read, and nobody decodes
them before the database does.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from rag_service.domain import EncodedTable
from rag_service.tables.model import Column, Kind, Table, TableRow

_BATCH = 5_000  # rows
_MAX_TEXTS = 10_000  # different texts of a column that are kept together; of more, the rows are searched
_NAMES = (Kind.ORDER, Kind.DURATION)  # whose texts a question may say: "1st", "1:23:45"


class TableDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A table without its rows."""

    number: int
    sheet: str | None
    caption: str
    columns: tuple[Column, ...]
    row_count: int  # without totals and headings
    unit: str
    by_period: bool
    page: int | None
    # The different texts of each column, key → text; figures and dates left out. None: too many.
    texts: tuple[dict[str, str] | None, ...]


def encode_table(table: Table, rows: Iterable[TableRow] | None = None) -> EncodedTable:
    """A table as it is stored, with the numbers of values of its columns.

    `rows`: consumed once; None: those of the table.
    """
    counts = _Counts(table.columns)
    batches = tuple(_encode(counts.counted(table.rows if rows is None else rows)))
    description = TableDescription(
        number=table.number,
        sheet=table.sheet,
        caption=table.caption,
        columns=counts.columns(),
        row_count=counts.rows,
        unit=table.unit,
        by_period=table.by_period,
        page=table.page,
        texts=tuple(counts.texts),
    )
    return EncodedTable(description=msgspec.json.encode(description), batches=batches)


def read_description(table: EncodedTable) -> TableDescription:
    return msgspec.json.decode(table.description, type=TableDescription)


def read_batches(table: EncodedTable) -> Iterator[bytes]:
    """The rows in batches of a JSON array each: [number, is_data, is_heading, section, page, cells].

    A cell is [text, key, number, start], or null if it is empty.
    """
    return map(zlib.decompress, table.batches)


def _encode(rows: Iterable[TableRow]) -> Iterator[bytes]:
    batch: list[Any] = []
    for row in rows:
        is_data = not (row.is_total or row.is_heading)
        batch.append((row.number, is_data, row.is_heading, row.section, row.page, row.cells))
        if len(batch) == _BATCH:
            yield zlib.compress(msgspec.json.encode(batch), level=1)
            batch = []
    if batch:
        yield zlib.compress(msgspec.json.encode(batch), level=1)


class _Counts:
    """Counts the values of each column; totals and headings have none."""

    def __init__(self, columns: tuple[Column, ...]):
        self._columns = columns
        self._keys: list[set[int]] = [set() for _ in columns]  # hashes, which are smaller
        self._filled = [0] * len(columns)
        self.texts: list[dict[str, str] | None] = [{} for _ in columns]
        self.rows = 0

    def counted(self, rows: Iterable[TableRow]) -> Iterator[TableRow]:
        """The rows, each counted as it passes."""
        for row in rows:
            if not (row.is_total or row.is_heading):
                self._count(row)
            yield row

    def _count(self, row: TableRow) -> None:
        self.rows += 1
        for place, cell in enumerate(row.cells):
            if cell is None:
                continue
            self._keys[place].add(hash(cell.key))
            self._filled[place] += 1
            texts = self.texts[place]
            if texts is None or cell.key in texts:
                continue
            if cell.number is None or (self._columns[place].kind in _NAMES and not cell.text.isdigit()):
                texts[cell.key] = cell.text
                if len(texts) > _MAX_TEXTS:
                    self.texts[place] = None

    def columns(self) -> tuple[Column, ...]:
        """The columns with their numbers of values."""
        counts = zip(self._columns, self._keys, self._filled, strict=True)
        return tuple(replace(column, distinct=len(keys), filled=filled) for column, keys, filled in counts)
