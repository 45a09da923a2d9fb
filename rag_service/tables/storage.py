"""Tables in the database: written with their document in its transaction, found by the documents of passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID, uuid4

import msgspec

from rag_service.store.session import Connection
from rag_service.tables.model import Column, StoredTable, Table, TableRow

MAX_TABLES = 20  # that one question looks at
_MAX_VALUES = 1_000  # values that share a word with the question; with more, the question names none
_EXAMPLES = 3  # rows that a chat model is shown of a table
_BATCH = 5_000  # rows of one statement


async def write_tables(connection: Connection, document_id: UUID, corpus_id: UUID, tables: Sequence[Table]) -> None:
    """Replace the tables of a document inside the caller's transaction."""
    await connection.execute("DELETE FROM tables WHERE document_id = %s", [document_id])
    for table in tables:
        table_id = uuid4()
        count = sum(not (row.is_total or row.is_heading) for row in table.rows)
        columns = msgspec.json.encode(table.columns).decode()
        await connection.execute(
            """INSERT INTO tables
                   (id, document_id, corpus_id, number, sheet, caption, columns, row_count, unit, by_period, page)
               VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)""",
            (
                *(table_id, document_id, corpus_id, table.number, table.sheet, table.caption, columns, count),
                *(table.unit, table.by_period, table.page),
            ),
        )
        for start in range(0, len(table.rows), _BATCH):
            rows = table.rows[start : start + _BATCH]
            # One statement, its values as parallel arrays: PostgreSQL refuses COPY under row-level security.
            await connection.execute(
                """INSERT INTO table_rows (table_id, corpus_id, number, is_data, is_heading, section, cells, page)
                   SELECT %b, %b, number, is_data, is_heading, section, cells::jsonb, page
                   FROM unnest(%b::int[], %b::bool[], %b::bool[], %b::text[], %b::text[], %b::int[])
                        AS t(number, is_data, is_heading, section, cells, page)""",
                [
                    table_id,
                    corpus_id,
                    [row.number for row in rows],
                    [not (row.is_total or row.is_heading) for row in rows],
                    [row.is_heading for row in rows],
                    [row.section for row in rows],
                    [_write_cells(row) for row in rows],
                    [row.page for row in rows],
                ],
            )


def _write_cells(row: TableRow) -> str:
    cells = [None if cell is None else (cell.text, cell.key, cell.number, cell.start) for cell in row.cells]
    return msgspec.json.encode(cells).decode()


async def find_tables(connection: Connection, document_ids: Iterable[UUID]) -> list[StoredTable]:
    """The tables of documents, in the order of the ids; at most `MAX_TABLES`, and no statements of reports."""
    cursor = await connection.execute(
        """SELECT t.id, t.document_id, coalesce(d.file_name, d.title), t.sheet, t.caption, t.columns, t.row_count,
                  t.page, t.unit
           FROM unnest(%b::uuid[]) WITH ORDINALITY AS wanted(id, place)
           JOIN tables t ON t.document_id = wanted.id AND NOT (t.by_period AND t.page IS NOT NULL)
           JOIN documents d ON d.id = t.document_id AND (d.expires_at IS NULL OR d.expires_at > now())
           ORDER BY wanted.place, t.number LIMIT %b""",
        [list(document_ids), MAX_TABLES],
    )
    return [
        StoredTable(
            id=table_id,
            document_id=document_id,
            document=document,
            sheet=sheet,
            caption=caption,
            columns=tuple(msgspec.convert(columns, list[Column])),
            row_count=row_count,
            page=page,
            unit=unit,
        )
        for table_id, document_id, document, sheet, caption, columns, row_count, page, unit in await cursor.fetchall()
    ]


async def find_examples(connection: Connection, table_ids: Sequence[UUID]) -> dict[UUID, dict[int, dict[str, str]]]:
    """The cells of the first rows, by table and column: {key: text}."""
    cursor = await connection.execute(
        """SELECT r.table_id, r.cells FROM unnest(%b::uuid[]) AS wanted(id), LATERAL (
               SELECT table_id, cells FROM table_rows
               WHERE table_id = wanted.id AND is_data ORDER BY number LIMIT %b) AS r""",
        [list(table_ids), _EXAMPLES],
    )
    found: dict[UUID, dict[int, dict[str, str]]] = {}
    for table_id, cells in await cursor.fetchall():
        for place, cell in enumerate(cells):
            if cell is not None:
                found.setdefault(table_id, {}).setdefault(place, {})[cell[1]] = cell[0]
    return found


async def find_values(
    connection: Connection, table_ids: Sequence[UUID], words: Sequence[str], *, whole: Sequence[str]
) -> dict[UUID, dict[int, dict[str, str]]]:
    """The values that hold one of these folded words, by table and column: {key: text}.

    Of more than 1,000 in a table only those that are one of `whole`.
    """
    cursor = await connection.execute(
        """SELECT found.table_id, found.place, found.key, min(found.text), found.key = ANY(%b::text[]) FROM (
               SELECT r.table_id, c.place::int - 1 AS place, c.cell ->> 1 AS key, c.cell ->> 0 AS text
               FROM table_rows r, jsonb_array_elements(r.cells) WITH ORDINALITY AS c(cell, place)
               WHERE r.table_id = ANY(%b::uuid[]) AND r.is_data AND jsonb_typeof(c.cell) = 'array'
                 AND c.cell ->> 2 IS NULL AND string_to_array(c.cell ->> 1, ' ') && %b::text[]) AS found
           GROUP BY found.table_id, found.place, found.key ORDER BY 5 DESC LIMIT %b""",
        [list(whole), list(table_ids), list(words), _MAX_VALUES * len(table_ids) + 1],
    )
    values: dict[UUID, dict[int, dict[str, str]]] = {}
    counts: dict[UUID, int] = {}
    rows: list[tuple[Any, ...]] = await cursor.fetchall()
    for table_id, *_ in rows:
        counts[table_id] = counts.get(table_id, 0) + 1
    for table_id, place, key, text, is_whole in rows:
        if is_whole or (counts[table_id] <= _MAX_VALUES and len(rows) <= _MAX_VALUES * len(table_ids)):
            values.setdefault(table_id, {}).setdefault(place, {})[key] = text
    return values
