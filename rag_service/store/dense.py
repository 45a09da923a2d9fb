"""The dense leg: nearest chunks by cosine over half-precision vectors, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_service.domain import Filters
from rag_service.store.parameters import BigIntegers, HalfVector
from rag_service.store.scope import SearchScope, chunk_conditions, resolve_scope
from rag_service.store.session import SETTINGS, Connection

EXACT_SCAN_LIMIT = 20_000  # chunks; up to here an exact scan beats HNSW in time and recall (see `bench retrieval`)

# The graph misses more as it grows: recall at 10 with 200 neighbours in view is 1.00 at 100,000 chunks and 0.90 at
# a million; there 800 give 0.97, for 3 ms more (`bench growth`).
CHUNKS_A_NEIGHBOUR = 1_250
MOST_NEIGHBOURS = 1_000  # what pgvector allows


# Every chunk in scope is compared once, and its distance given in one value with all others: rows of their own, and
# PostgreSQL's sorting of them, take 0.4 ms more for a thousand chunks, where this takes 1.
_EXACT = """
SELECT coalesce(string_agg(int8send(c.id) || float8send(c.embedding <=> %(vector)s::halfvec), ''::bytea), ''::bytea)
FROM data_chunks c WHERE {where}
"""
_DISTANCE = np.dtype([("id", ">i8"), ("distance", ">f8")])  # as the statement above packs them
_BY_GRAPH = """
(SELECT c.id, 1 - (c.embedding <=> %(vector)s::halfvec) FROM data_chunks c
 WHERE {where} ORDER BY c.embedding <=> %(vector)s::halfvec LIMIT %(limit)s)
UNION ALL
SELECT c.id, 1 - (c.embedding <=> %(vector)s::halfvec) FROM data_chunks c WHERE c.id = ANY(%(besides)s)
"""


async def search_dense(
    connection: Connection,
    vector: Sequence[float],
    *,
    filters: Filters | None = None,
    scope: SearchScope | None = None,
    limit: int,
) -> list[tuple[int, float]]:
    """Nearest chunks by cosine: (chunk id, cosine), best first.

    Up to `EXACT_SCAN_LIMIT` reachable chunks every one is compared; above, HNSW with an iterative
    scan fills the list in spite of the filters.
    """
    if scope is None:
        scope = await resolve_scope(connection, filters or Filters())
    found = await read_cosines(connection, vector, scope=scope, nearest=limit)
    order = np.lexsort((found.ids, -found.values))
    return list(zip(found.ids[order].tolist(), found.values[order].tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class Cosines:
    """Cosines of chunks, each once, in no order; parallel arrays."""

    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]


_NO_IDS: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)


async def read_cosines(
    connection: Connection,
    vector: Sequence[float],
    *,
    scope: SearchScope,
    nearest: int,
    besides: npt.NDArray[np.int64] = _NO_IDS,
) -> Cosines:
    """Cosines of the nearest chunks in scope, as `search_dense` finds them, and of given ones besides.

    Args:
        connection: inside a transaction.
        vector: the question's.
        scope: where to look.
        nearest: how many of the nearest, at least.
        besides: ids of chunks in scope that were found otherwise; those that are gone are left out.
    """
    if not scope.corpus_ids or not scope.reachable:
        return Cosines(ids=_NO_IDS, values=np.empty(0))
    if is_compared_whole(scope):
        return (await measure_all(connection, vector, scope=scope)).nearest(nearest, besides)
    where, parameters = chunk_conditions(scope, "c", with_type=True)
    parameters["vector"] = HalfVector(vector)
    parameters["besides"] = BigIntegers(besides)
    parameters["limit"] = nearest
    looked_at = min(MOST_NEIGHBOURS, max(nearest, scope.reachable // CHUNKS_A_NEIGHBOUR))
    if looked_at > int(SETTINGS["hnsw.ef_search"]):
        await connection.execute("SELECT set_config('hnsw.ef_search', %s, true)", [str(looked_at)])
    # A plan for any corpora would be one for small ones, of which there are most: it would sort instead of using HNSW.
    cursor = await connection.execute(_BY_GRAPH.format(where=where), parameters, binary=True, prepare=False)
    found = dict(await cursor.fetchall())
    return Cosines(ids=np.fromiter(found, np.int64, len(found)), values=np.fromiter(found.values(), float, len(found)))


def is_compared_whole(scope: SearchScope) -> bool:
    """Whether every chunk in scope is compared with the question."""
    return scope.reachable <= EXACT_SCAN_LIMIT


@dataclass(frozen=True, kw_only=True)
class Distances:
    """Cosine distances of all chunks in a scope."""

    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    def nearest(self, count: int, besides: npt.NDArray[np.int64]) -> Cosines:
        """Of so many of the nearest, and of given chunks."""
        ids, values = self.ids, self.values
        if len(ids) > count:
            chosen = _are_in(ids, besides)
            chosen[np.argpartition(values, count)[:count]] = True
            ids, values = ids[chosen], values[chosen]
        return Cosines(ids=ids, values=1 - values)


async def measure_all(connection: Connection, vector: Sequence[float], *, scope: SearchScope) -> Distances:
    """Compare a question's vector with every chunk in scope."""
    where, parameters = chunk_conditions(scope, "c", with_type=True, keep_plan=True)
    parameters["vector"] = HalfVector(vector)
    cursor = await connection.execute(_EXACT.format(where=where), parameters, binary=True)
    row = await cursor.fetchone()
    found = np.frombuffer(b"" if row is None else row[0], _DISTANCE)
    return Distances(ids=found["id"].astype(np.int64), values=found["distance"].astype(np.float64))


def _are_in(ids: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each id is wanted; a fifth of the time of `np.isin` for a thousand ids and a hundred wanted."""
    if not len(wanted):
        return np.zeros(len(ids), dtype=np.bool_)
    ascending = np.sort(wanted)
    found: npt.NDArray[np.bool_] = ascending[np.minimum(np.searchsorted(ascending, ids), len(ascending) - 1)] == ids
    return found


def vector_literal(vector: Sequence[float]) -> str:
    """A vector as pgvector's text form; half precision holds no more than five digits."""
    values = np.asarray(vector, dtype=np.float32).tolist()
    return "[" + ",".join(["%.5g" % value for value in values]) + "]"  # noqa: UP031 - twice as fast as format()
