"""The lexical index: for each term of a document the chunks that hold it, packed.

An entry is 8 bytes, as PostgreSQL's int8send() writes them: chunk id << 24 | frequency << 16 | length
of the chunk. SQL gathers the entries of a term; numpy takes them apart.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from rag_service.store.session import Connection

ENTRIES_A_ROW = 200  # what the index holds beside its key must stay below 2,700 bytes
_MAX_FREQUENCY, _MAX_LENGTH = 0xFF, 0xFFFF
_ENTRY = np.dtype(">i8")
ENTRY_BYTES = _ENTRY.itemsize

TermPostings = tuple[str, bytes]  # a term and entries of it, packed


@dataclass(frozen=True, kw_only=True)
class Postings:
    """Chunks that hold terms; parallel arrays, an element for each term of a chunk."""

    ids: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.float64]  # of the chunks, in index terms


def unpack(entries: bytes) -> Postings:
    """The inverse of packing, over any number of rows joined."""
    packed = np.frombuffer(entries, dtype=_ENTRY).astype(np.int64)
    return Postings(
        ids=packed >> 24,
        frequencies=(packed >> 16 & _MAX_FREQUENCY).astype(np.float64),
        lengths=(packed & _MAX_LENGTH).astype(np.float64),
    )


def pack(chunk_ids: Sequence[int], counts: Sequence[Mapping[str, int]]) -> dict[str, bytes]:
    """Entries of every term of some chunks.

    Args:
        chunk_ids: ids of the chunks, below 2^39.
        counts: for each chunk, how often each term stands in it.
    """
    packed: dict[str, list[int]] = {}
    for chunk_id, counter in zip(chunk_ids, counts, strict=True):
        place = chunk_id << 24 | min(sum(counter.values()), _MAX_LENGTH)
        for term, frequency in counter.items():
            entry = place | min(frequency, _MAX_FREQUENCY) << 16
            held = packed.get(term)
            if held is None:
                packed[term] = [entry]
            else:
                held.append(entry)
    # Most terms have one or two entries, for which an array would cost ten times as much.
    return {term: struct.pack(f">{len(entries)}q", *entries) for term, entries in packed.items()}


async def insert_postings(
    connection: Connection, corpus_id: UUID, document_id: UUID, postings: Mapping[str, bytes]
) -> None:
    """Write the postings of a document inside the caller's transaction."""
    size = ENTRIES_A_ROW * ENTRY_BYTES
    rows = [
        (term, entries[start : start + size])
        for term, entries in sorted(postings.items())
        for start in range(0, len(entries), size)
    ]
    if not rows:
        return
    # A document has thousands of terms. As lines they cost psycopg nothing; no term holds a line's end.
    await connection.execute(
        """INSERT INTO postings (corpus_id, document_id, term, entries)
           SELECT %s::uuid, %s::uuid, term, entries
           FROM unnest(string_to_array(%s, E'\n'), %b::bytea[]) AS t(term, entries)""",
        [corpus_id, document_id, "\n".join([term for term, _ in rows]), [entries for _, entries in rows]],
    )


async def read_postings(
    connection: Connection, where: str, parameters: Mapping[str, Any], terms: Sequence[str]
) -> list[TermPostings]:
    """Postings `p` of terms under a condition; terms without any are left out."""
    cursor = await connection.execute(postings_statement(where), {**parameters, "terms": list(terms)}, binary=True)
    return await cursor.fetchall()


def postings_statement(where: str) -> str:
    # Grouped in the order of the index, which spares sorting thousands of rows.
    return (
        "SELECT p.term, string_agg(p.entries, ''::bytea) AS entries FROM postings p"  # noqa: S608 - fixed text
        f" WHERE {where} AND p.term = ANY(%(terms)s) GROUP BY p.corpus_id, p.term"
    )
