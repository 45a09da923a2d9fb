"""The dense leg: nearest chunks by cosine over half-precision vectors, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from rag_service.domain import Filters
from rag_service.store.parameters import BigIntegers, HalfVector
from rag_service.store.scope import SearchScope, chunk_conditions, resolve_scope
from rag_service.store.session import SETTINGS, Connection

EXACT_SCAN_LIMIT = 20_000  # chunks; up to here an exact scan beats HNSW in time and recall (see `bench retrieval`)

# The graph misses more as it grows: recall at 10 with 200 neighbours in view is 1.00 at 100,000 chunks and 0.90 at
# a million; there 800 give 0.97, for 3 ms more (`bench growth`).
CHUNKS_A_NEIGHBOUR = 1_250
MOST_NEIGHBOURS = 1_000  # what pgvector allows


# Every chunk in scope is compared once, and those to be given besides come first. They are of the scope: what the
# lexical leg finds is under the same conditions. OFFSET 0 keeps the distances apart, which the HNSW index would serve.
_EXACT = """
SELECT near.id, 1 - near.distance
FROM (SELECT c.id, c.embedding <=> %(vector)s::halfvec AS distance FROM data_chunks c WHERE {where} OFFSET 0) AS near
ORDER BY near.id IN (SELECT unnest(%(besides)s)) DESC, near.distance LIMIT %(limit)s
"""
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
    cosines = await read_cosines(connection, vector, scope=scope, nearest=limit)
    return sorted(cosines.items(), key=lambda hit: (-hit[1], hit[0]))


async def read_cosines(
    connection: Connection,
    vector: Sequence[float],
    *,
    scope: SearchScope,
    nearest: int,
    besides: Collection[int] = (),
) -> dict[int, float]:
    """Cosines of the nearest chunks in scope, as `search_dense` finds them, and of given ones besides.

    Args:
        connection: inside a transaction.
        vector: the question's.
        scope: where to look.
        nearest: how many of the nearest, at least.
        besides: ids of chunks in scope that were found otherwise; those that are gone are left out.

    Returns:
        Chunk id → cosine, in no order.
    """
    if not scope.corpus_ids or not scope.reachable:
        return {}
    where, parameters = chunk_conditions(scope, "c", with_type=True)
    parameters |= {"vector": HalfVector(vector), "besides": BigIntegers(besides)}
    if scope.reachable <= EXACT_SCAN_LIMIT:
        parameters["limit"] = nearest + len(besides)
        cursor = await connection.execute(_EXACT.format(where=where), parameters, binary=True)
        return dict(await cursor.fetchall())
    parameters["limit"] = nearest
    looked_at = min(MOST_NEIGHBOURS, max(nearest, scope.reachable // CHUNKS_A_NEIGHBOUR))
    if looked_at > int(SETTINGS["hnsw.ef_search"]):
        await connection.execute("SELECT set_config('hnsw.ef_search', %s, true)", [str(looked_at)])
    # A plan for any corpora would be one for small ones, of which there are most: it would sort instead of using HNSW.
    cursor = await connection.execute(_BY_GRAPH.format(where=where), parameters, binary=True, prepare=False)
    return dict(await cursor.fetchall())


def vector_literal(vector: Sequence[float]) -> str:
    """A vector as pgvector's text form; half precision holds no more than five digits."""
    values = np.asarray(vector, dtype=np.float32).tolist()
    return "[" + ",".join(["%.5g" % value for value in values]) + "]"  # noqa: UP031 - twice as fast as format()
