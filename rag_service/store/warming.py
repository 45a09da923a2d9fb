"""What searches touch, brought into the embedded server's buffers when it starts."""

from __future__ import annotations

from contextlib import suppress
from typing import LiteralString

import psycopg
from psycopg import sql

from rag_service.store.embedded import EmbeddedServer

# What searches read, the most useful first, and statements that pass over it.
_SEARCHED: dict[str, LiteralString] = {
    "term_statistics": "SELECT count(chunk_frequency) FROM rag.term_statistics",
    "term_statistics_pkey": "SELECT count(*) FROM (SELECT FROM rag.term_statistics ORDER BY corpus_id, term) AS all_",
    "postings_term": "SELECT sum(length(entries)) FROM rag.postings",
    "data_chunks": "SELECT count(length) FROM rag.data_chunks WHERE id > 0",
    # Walks through the graph that begin in a hundred places come by nearly all of it.
    "data_chunks_embedding": """SELECT count(near.id)
        FROM (SELECT embedding FROM rag.data_chunks
              WHERE id % (SELECT 1 + max(id) / 100 FROM rag.data_chunks) = 0) start,
             LATERAL (SELECT c.id FROM rag.data_chunks c ORDER BY c.embedding <=> start.embedding LIMIT 40) near""",
    # Most texts lie outside of their rows.
    "texts": "SELECT sum(length(text)) FROM rag.data_chunks WHERE id > 0",
}
_SIZES = """SELECT relname, pg_relation_size(oid) FROM pg_class
            WHERE relnamespace = 'rag'::regnamespace AND relname = ANY(%s)
            UNION ALL
            SELECT 'texts', pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'rag.data_chunks'::regclass"""
_MOST_WARMED = "SELECT setting::bigint * 8192 * 3 / 4 FROM pg_settings WHERE name = 'shared_buffers'"
_SMALL = 64_000_000  # bytes that need no warming


def warm_buffers(server: EmbeddedServer) -> int:
    """Bring into PostgreSQL's buffers what searches touch, so that the first ones do not wait for the disk.

    Right after a start each search of 100,000 chunks would read hundreds of pages in no order, 200 ms and more.
    Read in order they take seconds, once. Whatever does not fit is left out. Returns the bytes that were asked
    for; 0 where all of it is small.
    """
    asked = 0
    with suppress(psycopg.Error), psycopg.connect(server.owner_conninfo, autocommit=True) as connection:
        # A long sequential scan keeps out of the buffers. Others may want the second core.
        for setting in (
            "enable_seqscan = off",
            "enable_sort = off",
            "max_parallel_workers_per_gather = 0",
            "jit = off",
        ):
            connection.execute(sql.SQL("SET {}").format(sql.SQL(setting)))
        (left,) = connection.execute(_MOST_WARMED).fetchone() or (0,)
        sizes: dict[str, int] = dict(connection.execute(_SIZES, [list(_SEARCHED)]).fetchall())
        if sum(sizes.values()) < _SMALL:
            return 0
        for relation, statement in _SEARCHED.items():
            if sizes.get(relation, 0) <= left:
                connection.execute(statement)
                left -= sizes.get(relation, 0)
                asked += sizes.get(relation, 0)
    return asked
