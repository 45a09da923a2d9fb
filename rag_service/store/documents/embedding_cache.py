"""The table of cached embeddings: one statement a batch, rows of one tenant closed to all others.

Keys are made by the caller (`rag_service.ingest.embedding_cache`); no text is stored here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np

from rag_service.store.session import Connection

PURGED_AT_ONCE = 1000  # rows; a purge holds its locks for some milliseconds


async def read_embeddings(connection: Connection, keys: Sequence[bytes]) -> dict[bytes, list[float]]:
    """Vectors by key, as far as they are there, not expired, and the identity may read them."""
    cursor = await connection.execute(
        "SELECT key, vector FROM embedding_cache WHERE key = ANY(%s::bytea[]) AND expires_at > now()", [list(keys)]
    )
    return {bytes(key): np.frombuffer(vector, dtype="<f4").tolist() for key, vector in await cursor.fetchall()}


async def write_embeddings(
    connection: Connection, vectors: Mapping[bytes, Sequence[float]], *, tenant: UUID | None, ttl_seconds: int
) -> None:
    """Store vectors by key for `ttl_seconds`; those that are there get the new vector and time.

    `tenant` is the user whose personal content this is; None is that of a global corpus, which only
    an administrator may write.
    """
    keys = sorted(vectors)  # one order for all writers, so that none waits for another in a circle
    await connection.execute(
        """INSERT INTO embedding_cache AS c (key, tenant_id, vector, expires_at)
           SELECT n.key, %(tenant)s, n.vector, now() + make_interval(secs => %(ttl)s)
           FROM unnest(%(keys)s::bytea[], %(vectors)s::bytea[]) AS n(key, vector)
           ON CONFLICT (key) DO UPDATE SET vector = excluded.vector, expires_at = excluded.expires_at""",
        {
            "tenant": tenant,
            "ttl": ttl_seconds,
            "keys": keys,
            "vectors": [np.asarray(vectors[key], dtype="<f4").tobytes() for key in keys],
        },
    )


async def purge_embeddings(connection: Connection) -> int:
    """Delete expired rows of all tenants, `PURGED_AT_ONCE` at most; returns how many."""
    cursor = await connection.execute("SELECT purge_embedding_cache(%s)", [PURGED_AT_ONCE])
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])
