"""Watches the statements of a search and asks PostgreSQL how it runs them, as the role that runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from rag_service.domain import Identity
from rag_service.store.database import Connection, Database

LARGE_TABLES = frozenset({"data_chunks", "postings", "table_rows"})  # what no request may read from end to end


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement with its parameters."""

    query: str
    parameters: Any


class _Watched:
    """A connection that notes what is executed on it."""

    def __init__(self, connection: Connection, seen: list[Statement]):
        self._connection = connection
        self._seen = seen

    async def execute(self, query: str, parameters: Any = None, **options: Any) -> Any:
        self._seen.append(Statement(query=query, parameters=parameters))
        return await self._connection.execute(query, parameters, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class WatchedDatabase(Database):
    """Another database's pool, its statements noted in `seen`."""

    def __init__(self, database: Database):
        self._watched = database
        self.seen: list[Statement] = []

    @asynccontextmanager
    async def transaction(self, identity: Identity | None, *, limited: bool = False) -> AsyncIterator[Connection]:
        async with self._watched.transaction(identity, limited=limited) as connection:
            yield _Watched(connection, self.seen)  # type: ignore[misc]  # stands in for what a search calls


async def find_seq_scans(
    database: Database, identity: Identity, statements: Iterable[Statement], *, tables: frozenset[str] = LARGE_TABLES
) -> list[str]:
    """ "table: statement" for each plan of these statements that reads a large table from end to end."""
    found = []
    async with database.transaction(identity) as connection:
        for statement in statements:
            if statement.query.lstrip().upper().startswith("SELECT SET_CONFIG"):
                await connection.execute(statement.query, statement.parameters)  # the search's planner settings
                continue
            cursor = await connection.execute(f"EXPLAIN (FORMAT JSON) {statement.query}", statement.parameters)
            row = await cursor.fetchone()
            plan: Mapping[str, Any] = row[0][0]["Plan"] if row is not None else {}
            found += [
                f"{node['Relation Name']}: {' '.join(statement.query.split())[:100]}"
                for node in _nodes(plan)
                if node.get("Node Type") == "Seq Scan" and node.get("Relation Name") in tables
            ]
    return found


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)
