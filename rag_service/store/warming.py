"""Reads what searches need into the embedded server's buffers when it starts."""

from __future__ import annotations

from contextlib import suppress
from typing import LiteralString

import psycopg

from rag_service.store.embedded import EmbeddedServer

# What searches read, the most useful first, and statements that read all of it.
_SEARCHED: dict[str, LiteralString] = {
    "term_statistics": "SELECT count(chunk_frequency) FROM rag.term_statistics",
    "term_statistics_pkey": "SELECT count(*) FROM (SELECT FROM rag.term_statistics ORDER BY corpus_id, term) AS all_",
    "postings_term": "SELECT sum(length(entries)) FROM rag.postings",
    "data_chunks": "SELECT count(length) FROM rag.data_chunks WHERE id > 0",
    # Graph searches from a hundred places reach nearly all of it.
    "data_chunks_embedding": """SELECT count(near.id)
        FROM (SELECT embedding FROM rag.data_chunks
              WHERE embedding IS NOT NULL AND id % (SELECT 1 + max(id) / 100 FROM rag.data_chunks) = 0) start,
             LATERAL (SELECT c.id FROM rag.data_chunks c ORDER BY c.embedding <=> start.embedding LIMIT 40) near""",
    # Most texts are stored outside their rows.
    "texts": "SELECT sum(length(text)) FROM rag.data_chunks WHERE id > 0",
}
_SIZES = """SELECT relname, pg_relation_size(oid) FROM pg_class
            WHERE relnamespace = 'rag'::regnamespace AND relname = ANY(%s)
            UNION ALL
            SELECT 'texts', pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'rag.data_chunks'::regclass"""
_MAX_WARMED = "SELECT setting::bigint * 8192 * 3 / 4 FROM pg_settings WHERE name = 'shared_buffers'"
_SMALL = 64_000_000  # bytes that need no warming


def warm_buffers(server: EmbeddedServer) -> int:
    """Read what searches need into PostgreSQL's buffers; returns the number of bytes, 0 for a small database.

    Otherwise each of the first searches of 100,000 chunks reads hundreds of pages in random order: 200 ms or more.
    """
    asked = 0
    with suppress(psycopg.Error), psycopg.connect(server.owner_conninfo, autocommit=True) as connection:
        # A long sequential scan bypasses the buffers. The second core is left to others.
        connection.execute(
            "SET enable_seqscan = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0; SET jit = off"
        )
        (left,) = connection.execute(_MAX_WARMED).fetchone() or (0,)
        sizes: dict[str, int] = dict(connection.execute(_SIZES, [list(_SEARCHED)]).fetchall())
        if sum(sizes.values()) < _SMALL:
            return 0
        for relation, statement in _SEARCHED.items():
            if sizes.get(relation, 0) <= left:
                connection.execute(statement)
                left -= sizes.get(relation, 0)
                asked += sizes.get(relation, 0)
    return asked
