"""Tables in the database: written with their document in its transaction, found by the documents of passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID, uuid4

import msgspec

from rag_service.domain import EncodedTable
from rag_service.store.database import Connection
from rag_service.store.rows import fetch_value
from rag_service.tables.encoding import TableDescription, read_batches, read_description
from rag_service.tables.model import Column, StoredTable

MAX_TABLES = 20  # that one question looks at
_MAX_VALUES = 1_000  # values that share a word with the question; with more, the question names none
_EXAMPLES = 3  # rows that a chat model is shown of a table


async def write_tables(
    connection: Connection, document_id: UUID, corpus_id: UUID, tables: Sequence[EncodedTable]
) -> None:
    """Write the tables of a document that was just stored, inside the caller's transaction."""
    for encoded in tables:
        table_id = await write_table(connection, document_id, corpus_id, read_description(encoded))
        for batch in read_batches(encoded):
            await write_rows(connection, table_id, corpus_id, batch)


async def write_table(connection: Connection, document_id: UUID, corpus_id: UUID, table: TableDescription) -> UUID:
    """Write a table of a document without its rows; returns its id."""
    table_id, columns = uuid4(), msgspec.json.encode(table.columns).decode()
    await connection.execute(
        """INSERT INTO tables
               (id, document_id, corpus_id, number, sheet, caption, columns, row_count, unit, by_period, page)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)""",
        (
            *(table_id, document_id, corpus_id, table.number, table.sheet, table.caption, columns),
            *(table.row_count, table.unit, table.by_period, table.page),
        ),
    )
    for place, texts in enumerate(table.texts):
        await connection.execute(
            "INSERT INTO table_texts (table_id, corpus_id, place, keys, texts) VALUES (%b, %b, %b, %b, %b)",
            [table_id, corpus_id, place, *((None, None) if texts is None else (list(texts), list(texts.values())))],
        )
    return table_id


async def write_rows(connection: Connection, table_id: UUID, corpus_id: UUID, batch: bytes) -> None:
    """Write rows of a table, as `read_batches` gives them."""
    # PostgreSQL refuses COPY under row-level security.
    await connection.execute(
        """INSERT INTO table_rows (table_id, corpus_id, number, is_data, is_heading, section, page, cells)
           SELECT %b, %b, (r ->> 0)::int, (r ->> 1)::bool, (r ->> 2)::bool, r ->> 3, (r ->> 4)::int, r -> 5
           FROM jsonb_array_elements(%b::text::jsonb) AS t(r)""",
        [table_id, corpus_id, batch.decode()],
    )


async def read_tables(connection: Connection, document_id: UUID) -> list[tuple[UUID, TableDescription]]:
    """The tables of a document, as they were written; `read_rows` has their rows."""
    cursor = await connection.execute(
        """SELECT t.id, t.number, t.sheet, t.caption, t.columns, t.row_count, t.unit, t.by_period, t.page,
                  array(SELECT to_jsonb(x) FROM table_texts x WHERE x.table_id = t.id ORDER BY x.place)
           FROM tables t WHERE t.document_id = %s ORDER BY t.number""",
        [document_id],
    )
    found = []
    for table_id, number, sheet, caption, columns, row_count, unit, by_period, page, texts in await cursor.fetchall():
        description = TableDescription(
            number=number,
            sheet=sheet,
            caption=caption,
            columns=msgspec.convert(columns, tuple[Column, ...]),
            row_count=row_count,
            unit=unit,
            by_period=by_period,
            page=page,
            texts=tuple(
                None if one["keys"] is None else dict(zip(one["keys"], one["texts"], strict=True)) for one in texts
            ),
        )
        found.append((table_id, description))
    return found


async def read_rows(connection: Connection, table_id: UUID, *, after: int, limit: int) -> tuple[bytes, int, int]:
    """(a batch as `write_rows` takes it, how many rows it has, number of the last one): rows behind number `after`."""
    cursor = await connection.execute(
        """SELECT number, jsonb_build_array(number, is_data, is_heading, section, page, cells)::text
           FROM table_rows WHERE table_id = %s AND number > %s ORDER BY number LIMIT %s""",
        [table_id, after, limit],
    )
    rows = await cursor.fetchall()
    return f"[{','.join(row for _, row in rows)}]".encode(), len(rows), rows[-1][0] if rows else after


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


async def has_long_tables(connection: Connection, corpus_ids: Iterable[UUID]) -> bool:
    """Whether these corpora have rows with names that may not be in any text."""
    query = "SELECT EXISTS (SELECT FROM table_texts WHERE keys IS NULL AND corpus_id = ANY(%s::uuid[]))"
    return bool(await fetch_value(connection, query, [list(corpus_ids)]))


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


async def find_first_rows(connection: Connection, table_ids: Sequence[UUID]) -> dict[UUID, dict[int, str]]:
    """The texts of the first row of each table, by column; empty cells are left out."""
    cursor = await connection.execute(
        """SELECT wanted.id, r.cells FROM unnest(%b::uuid[]) AS wanted(id), LATERAL (
               SELECT cells FROM table_rows WHERE table_id = wanted.id AND is_data ORDER BY number LIMIT 1) AS r""",
        [list(table_ids)],
    )
    return {
        table_id: {place: cell[0] for place, cell in enumerate(cells) if cell is not None}
        for table_id, cells in await cursor.fetchall()
    }


async def find_values(
    connection: Connection, table_ids: Sequence[UUID], words: Sequence[str], *, whole: Sequence[str]
) -> dict[UUID, dict[int, dict[str, str]]]:
    """The values that hold one of these folded words, by table and column: {key: text}.

    Of more than 1,000 in a table only those that are one of `whole`. Columns with more different texts than are kept
    together are searched row by row, each until it has more.
    """
    cursor = await connection.execute(
        """WITH searched AS (SELECT * FROM table_texts WHERE table_id = ANY(%(tables)s::uuid[]))
           SELECT t.table_id, t.place, v.key, v.text, v.key = ANY(%(whole)s::text[])
           FROM searched t, unnest(t.keys, t.texts) AS v(key, text)
           WHERE string_to_array(v.key, ' ') && %(words)s::text[]
           UNION
           SELECT t.table_id, t.place, v.key, v.text, v.is_whole FROM searched t, LATERAL (
               (SELECT r.cells -> t.place ->> 1 AS key, r.cells -> t.place ->> 0 AS text, false AS is_whole
                FROM table_rows r
                WHERE r.table_id = t.table_id AND r.is_data AND r.cells -> t.place ->> 2 IS NULL
                  AND string_to_array(r.cells -> t.place ->> 1, ' ') && %(words)s::text[] LIMIT %(limit)s)
               UNION ALL
               (SELECT r.cells -> t.place ->> 1, min(r.cells -> t.place ->> 0), true
                FROM table_rows r
                WHERE r.table_id = t.table_id AND r.is_data AND r.cells -> t.place ->> 2 IS NULL
                  AND r.cells -> t.place ->> 1 = ANY(%(whole)s::text[]) GROUP BY 1)) AS v
           WHERE t.keys IS NULL""",
        {"tables": list(table_ids), "words": list(words), "whole": list(whole), "limit": _MAX_VALUES + 1},
    )
    rows: list[tuple[Any, ...]] = await cursor.fetchall()
    counts = Counter(table_id for table_id, *_ in rows)
    values: dict[UUID, dict[int, dict[str, str]]] = {}
    for table_id, place, key, text, is_whole in rows:
        if is_whole or counts[table_id] <= _MAX_VALUES:
            values.setdefault(table_id, {}).setdefault(place, {})[key] = text
    return values
