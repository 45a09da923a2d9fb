"""Dense search: nearest chunks by cosine over half-precision vectors, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_service.domain import Filters
from rag_service.store.database import SETTINGS, BigIntegers, Connection, HalfVector
from rag_service.store.search.scope import SearchScope, chunk_conditions, resolve_scope

# Chunks up to which an exact scan beats HNSW in time and recall (`evals.benchmarks retrieval`).
EXACT_SCAN_LIMIT = 20_000

# The graph misses more as it grows: recall at 10 with 200 neighbours in view is 1.00 at 100,000 chunks and 0.90 at
# a million; there 800 give 0.95, for 3 ms more (`evals.benchmarks growth`).
CHUNKS_A_NEIGHBOUR = 1_250
MOST_NEIGHBOURS = 1_000  # what pgvector allows


# Every chunk in scope is compared once, and its distance given in one value with all others: rows of their own, and
# PostgreSQL's sorting of them, take 0.4 ms more for a thousand chunks, where this takes 1.
_EXACT = """
SELECT coalesce(string_agg(int8send(c.id) || float8send(coalesce(c.embedding <=> %(vector)s::halfvec, 'NaN')),
                           ''::bytea), ''::bytea)
FROM data_chunks c WHERE {where}
"""
_DISTANCE = np.dtype([("id", ">i8"), ("distance", ">f8")])  # as the statement above packs them
_BY_GRAPH = """
SELECT c.id, 1 - (c.embedding <=> %(vector)s::halfvec) FROM data_chunks c
WHERE {where} AND c.embedding IS NOT NULL ORDER BY c.embedding <=> %(vector)s::halfvec LIMIT %(limit)s
"""
_BY_ID = """
SELECT c.id, coalesce(1 - (c.embedding <=> %(vector)s::halfvec), 'NaN') FROM data_chunks c WHERE c.id = ANY(%(ids)s)
"""


@dataclass(frozen=True, kw_only=True)
class Cosines:
    """Cosines of chunks, each once, in no order; parallel arrays. Those of chunks without a vector are NaN."""

    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


_NO_IDS: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)


async def search_dense(
    connection: Connection,
    vector: Sequence[float],
    *,
    filters: Filters | None = None,
    scope: SearchScope | None = None,
    limit: int,
) -> list[tuple[int, float]]:
    """Nearest chunks by cosine: (chunk id, cosine), best first; those without a vector are left out."""
    if scope is None:
        scope = await resolve_scope(connection, filters or Filters())
    search = DenseSearch(scope, vector, nearest=limit)
    await search.read(connection)
    found = await search.cosines(connection)
    order = np.lexsort((found.ids, -found.values))[: np.count_nonzero(~np.isnan(found.values))]  # NaN is last
    return list(zip(found.ids[order].tolist(), found.values[order].tolist(), strict=True))


class DenseSearch:
    """The nearest chunks of one question in one scope.

    Up to `EXACT_SCAN_LIMIT` reachable chunks every one is compared; above, HNSW with an iterative scan fills the
    list in spite of the filters.
    """

    def __init__(self, scope: SearchScope, vector: Sequence[float], *, nearest: int):
        self._scope = scope
        self._vector = HalfVector(vector)
        self._nearest = nearest
        self._compares_all = scope.reachable <= EXACT_SCAN_LIMIT
        self._read = Cosines(ids=_NO_IDS, values=np.empty(0))  # of all chunks in scope, or of the nearest

    async def read(self, connection: Connection) -> None:
        """Ask the database for the nearest, inside a transaction: the longest statement of a search."""
        if not self._scope.corpus_ids or not self._scope.reachable:
            return
        if not self._compares_all:
            self._read = await self._by_graph(connection)
            return
        where, parameters = chunk_conditions(self._scope, "c", with_type=True, keep_plan=True)
        parameters["vector"] = self._vector
        statement = _EXACT.format(where=where)
        cursor = await connection.execute(statement, parameters, binary=True, prepare=self._scope.prepare)
        row = await cursor.fetchone()
        found = np.frombuffer(b"" if row is None else row[0], _DISTANCE)
        self._read = Cosines(ids=found["id"].astype(np.int64), values=1 - found["distance"].astype(np.float64))

    async def cosines(self, connection: Connection, besides: npt.NDArray[np.int64] = _NO_IDS) -> Cosines:
        """Cosines of the nearest chunks, and of given ones.

        `besides` are chunks in scope that were found otherwise; deleted ones are left out.
        """
        ids, values = self._read.ids, self._read.values
        if self._compares_all:
            if len(ids) <= self._nearest:
                return self._read
            chosen = _are_in(ids, besides)
            chosen[np.argpartition(-values, self._nearest)[: self._nearest]] = True
            return Cosines(ids=ids[chosen], values=values[chosen])
        missing = np.setdiff1d(besides, ids)
        if not len(missing):
            return self._read
        parameters = {"vector": self._vector, "ids": BigIntegers(missing)}
        cursor = await connection.execute(_BY_ID, parameters, binary=True)
        more = _to_cosines(await cursor.fetchall())
        return Cosines(ids=np.concatenate([ids, more.ids]), values=np.concatenate([values, more.values]))

    async def _by_graph(self, connection: Connection) -> Cosines:
        where, parameters = chunk_conditions(self._scope, "c", with_type=True)
        parameters |= {"vector": self._vector, "limit": self._nearest}
        looked_at = min(MOST_NEIGHBOURS, max(self._nearest, self._scope.reachable // CHUNKS_A_NEIGHBOUR))
        if looked_at > int(SETTINGS["hnsw.ef_search"]):
            await connection.execute("SELECT set_config('hnsw.ef_search', %s, true)", [str(looked_at)])
        # A plan for any corpora would be one for small ones, of which there are most: it would sort instead of using
        # HNSW.
        cursor = await connection.execute(_BY_GRAPH.format(where=where), parameters, binary=True, prepare=False)
        return _to_cosines(await cursor.fetchall())


def _to_cosines(rows: Sequence[tuple[int, float]]) -> Cosines:
    return Cosines(
        ids=np.fromiter((row[0] for row in rows), np.int64, len(rows)),
        values=np.fromiter((row[1] for row in rows), np.float64, len(rows)),
    )


def _are_in(ids: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each id is wanted; a fifth of the time of `np.isin` for a thousand ids and a hundred wanted."""
    if not len(wanted):
        return np.zeros(len(ids), dtype=np.bool_)
    ascending = np.sort(wanted)
    found: npt.NDArray[np.bool_] = ascending[np.minimum(np.searchsorted(ascending, ids), len(ascending) - 1)] == ids
    return found
