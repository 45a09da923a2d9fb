"""Lists in slices: `offset` and `limit` in, items and their total out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rag_service.store.session import Connection

T = TypeVar("T")

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


async def read_page(
    connection: Connection,
    query: str,
    part: Slice,
    build: Callable[[Sequence[Any]], T],
    parameters: Mapping[str, Any] | None = None,
    *,
    counted: str | None = None,
) -> Page[T]:
    """Run an ordered query for one slice.

    Args:
        connection: whose identity decides what the list holds.
        query: fixed text with named parameters, ordered, without limit.
        part: what is asked for.
        build: makes an item of a row.
        parameters: values of the query.
        counted: a query with as many rows that is cheaper to count; None: the query itself.
    """
    values = dict(parameters or {})
    cursor = await connection.execute(f"SELECT count(*) FROM ({counted or query}) AS listed", values)  # noqa: S608 - fixed text
    row = await cursor.fetchone()
    cursor = await connection.execute(
        f"{query} LIMIT %(limit)s OFFSET %(offset)s", {**values, "limit": part.limit, "offset": part.offset}
    )
    items = tuple(build(row) for row in await cursor.fetchall())
    return Page(items=items, total=0 if row is None else int(row[0]))
