"""Rows as dataclasses, one by one or in pages. A query's column names are the names of the fields."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec
import psycopg

from rag_service.errors import InputError, NotFoundError
from rag_service.store.database import Connection

T = TypeVar("T")
Parameters = Mapping[str, Any] | Sequence[Any]

LIMIT_DEFAULT = 50
LIMIT_MAX = 500


@dataclass(frozen=True, kw_only=True)
class Slice:
    """The part of a list that is asked for."""

    offset: int = 0
    limit: int = LIMIT_DEFAULT


@dataclass(frozen=True, kw_only=True)
class Page(Generic[T]):
    """A slice of a list."""

    items: tuple[T, ...]
    total: int  # items of the whole list


async def fetch_all(connection: Connection, kind: type[T], query: str, parameters: Parameters) -> tuple[T, ...]:
    """The rows of a query as objects of `kind`."""
    cursor = await connection.execute(query, parameters)
    names = [column.name for column in cursor.description or ()]
    return tuple(msgspec.convert(dict(zip(names, row, strict=True)), kind) for row in await cursor.fetchall())


async def find_one(connection: Connection, kind: type[T], query: str, parameters: Parameters) -> T | None:
    """The first row of a query; None if there is none."""
    return next(iter(await fetch_all(connection, kind, query, parameters)), None)


async def fetch_one(connection: Connection, kind: type[T], query: str, parameters: Parameters, *, missing: str) -> T:
    """The first row of a query. Raises NotFoundError with the text `missing` if there is none."""
    found = await find_one(connection, kind, query, parameters)
    if found is None:
        raise NotFoundError(missing)
    return found


async def fetch_value(connection: Connection, query: str, parameters: Parameters = ()) -> Any:
    """The first column of the first row of a query; None if there is none."""
    row = await (await connection.execute(query, parameters)).fetchone()
    return None if row is None else row[0]


async def database_now(connection: Connection) -> datetime:
    """When the transaction began, by the database's clock, which all machines share: stored and due times follow it."""
    now: datetime = await fetch_value(connection, "SELECT now()")
    return now


async def clock_offset(connection: Connection) -> timedelta:
    """How far the database's clock is ahead of this machine's, for what was received while nobody could ask it.

    Of three tries the quickest counts. The error is at most its round trip, on the side of "earlier".
    """
    tries: list[tuple[float, timedelta]] = []
    for _ in range(3):
        asked = time.monotonic()
        there: datetime = await fetch_value(connection, "SELECT clock_timestamp()")
        tries.append((time.monotonic() - asked, there - datetime.now(UTC)))
    return min(tries)[1]


async def change_one(connection: Connection, statement: str, parameters: Sequence[Any], *, missing: str) -> None:
    """Update or delete one row. Raises NotFoundError with the text `missing` if there is no such row."""
    if (await connection.execute(statement, parameters)).rowcount == 0:
        raise NotFoundError(missing)


async def fetch_page(
    connection: Connection,
    kind: type[T],
    query: str,
    part: Slice,
    parameters: Mapping[str, Any] | None = None,
    *,
    counted: str | None = None,
) -> Page[T]:
    """One slice of an ordered query.

    `query` is ordered and has no limit; `counted` is a query with as many rows that is cheaper to count.
    """
    values = dict(parameters or {})
    total = await fetch_value(connection, f"SELECT count(*) FROM ({counted or query}) AS listed", values)  # noqa: S608 - fixed text
    values |= {"limit": part.limit, "offset": part.offset}
    items = await fetch_all(connection, kind, f"{query} LIMIT %(limit)s OFFSET %(offset)s", values)
    return Page(items=items, total=total)


def contains(words: str) -> str:
    """The pattern of LIKE for texts that contain `words`."""
    return "%" + re.sub(r"([\\%_])", r"\\\1", words) + "%"


class Table(Generic[T]):
    """A table whose rows are objects of one dataclass. All SQL that is passed in is fixed text; values are bound."""

    def __init__(self, name: str, kind: type[T], *, missing: str, columns: str = ""):
        """`missing` is the text of NotFoundError (`{id}`: the id); `columns` defaults to the fields of `kind`."""
        self._name = name
        self._kind = kind
        self._missing = missing
        self.columns = columns or ", ".join(field.name for field in fields(kind))  # type: ignore[arg-type]  # dataclass

    async def read(self, connection: Connection, row_id: UUID) -> T:
        """The row of an id. Raises NotFoundError if there is none that the identity may see."""
        missing = self._missing.format(id=row_id)
        return await fetch_one(connection, self._kind, self._select("WHERE id = %s"), [row_id], missing=missing)

    async def get(self, connection: Connection, rest: str, parameters: Parameters) -> T:
        """The first row by what follows FROM. Raises NotFoundError if there is none that the identity may see."""
        return await fetch_one(connection, self._kind, self._select(rest), parameters, missing=self._missing)

    async def select(self, connection: Connection, rest: str, parameters: Parameters) -> tuple[T, ...]:
        """Rows by what follows FROM: conditions, order, limit."""
        return await fetch_all(connection, self._kind, self._select(rest), parameters)

    async def page(
        self,
        connection: Connection,
        part: Slice,
        rest: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        counted: str | None = None,
    ) -> Page[T]:
        """One slice of the rows by what follows FROM: conditions and order. `counted` as for `fetch_page`."""
        return await fetch_page(connection, self._kind, self._select(rest), part, parameters, counted=counted)

    async def insert(self, connection: Connection, values: Mapping[str, Any]) -> T:
        """Insert a row by its columns; returns it as stored. Raises InputError if its name is empty or too long."""
        query = f"INSERT INTO {self._name} ({', '.join(values)})"
        query += f" VALUES ({', '.join(f'%({column})s' for column in values)}) RETURNING {self.columns}"
        try:
            return await fetch_one(connection, self._kind, query, values, missing=self._missing)
        except psycopg.errors.CheckViolation as error:
            if error.diag.constraint_name != f"{self._name}_name_check":
                raise
            raise InputError("A name must have 1 to 200 characters.", field="name") from error

    async def change(self, connection: Connection, changes: str, parameters: Parameters) -> T | None:
        """Update one row by what follows SET; None if there is none that the identity may change."""
        query = f"UPDATE {self._name} SET {changes} RETURNING {self.columns}"  # noqa: S608 - fixed text
        return await find_one(connection, self._kind, query, parameters)

    async def update(self, connection: Connection, changes: str, parameters: Parameters) -> T:
        """As `change`, but raises NotFoundError."""
        changed = await self.change(connection, changes, parameters)
        if changed is None:
            raise NotFoundError(self._missing)
        return changed

    async def delete(self, connection: Connection, row_id: UUID) -> None:
        """Delete the row of an id. Raises NotFoundError if there is none that the identity may delete."""
        await change_one(connection, f"DELETE FROM {self._name} WHERE id = %s", [row_id], missing=self._missing)  # noqa: S608 - fixed text

    def _select(self, rest: str) -> str:
        return f"SELECT {self.columns} FROM {self._name} {rest}"  # noqa: S608 - fixed text
