"""The lexical index: for each term of a document the chunks that hold it, packed.

An entry is 8 bytes, as PostgreSQL's int8send() writes them: chunk id << 24 | frequency << 16 | length
of the chunk. SQL gathers the entries of a term; numpy takes them apart.

Terms weigh Lucene's idf, ln(1 + (N - df + 0.5) / (df + 0.5)), N and df being those of the corpora in scope.
"""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from rag_service.store.database import BigIntegers, Connection
from rag_service.store.search.scope import SearchScope, chunk_conditions, corpora_condition

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

    Ids are below 2^39; `counts` says how often each term occurs in each chunk.
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
    connection: Connection, corpus_id: UUID, documents: Mapping[UUID, Mapping[str, bytes]]
) -> None:
    """Write the postings of documents inside the caller's transaction.

    In one statement: each counts its terms in rows that all documents of the corpus share.
    """
    if not any(documents.values()):
        return
    places, terms, packed = await asyncio.to_thread(_make_rows, list(documents.values()))
    # A document has thousands of terms. As lines they cost psycopg nothing; no term holds a line's end.
    await connection.execute(
        """INSERT INTO postings (corpus_id, document_id, term, entries)
           SELECT %s::uuid, (%b::uuid[])[place], term, entries
           FROM unnest(%b::bigint[], string_to_array(%s, E'\n'), %b::bytea[]) AS t(place, term, entries)""",
        [corpus_id, list(documents), places, terms, packed],
    )


def _make_rows(documents: Sequence[Mapping[str, bytes]]) -> tuple[BigIntegers, str, list[bytes]]:
    """Rows as columns: the place of the document from 1, term, entries."""
    size = ENTRIES_A_ROW * ENTRY_BYTES
    rows = [
        (place, term, entries[start : start + size])
        for place, postings in enumerate(documents, 1)
        for term, entries in sorted(postings.items())
        for start in range(0, len(entries), size)
    ]
    places, terms, packed = zip(*rows, strict=True)
    return BigIntegers(places), "\n".join(terms), list(packed)


async def read_postings(
    connection: Connection,
    where: str,
    parameters: Mapping[str, Any],
    terms: Sequence[str],
    *,
    prepare: bool | None = None,
) -> list[TermPostings]:
    """Postings `p` of terms under a condition; terms without any are left out. `prepare` as for `execute`."""
    parameters = {**parameters, "terms": list(terms)}
    cursor = await connection.execute(postings_statement(where), parameters, binary=True, prepare=prepare)
    return await cursor.fetchall()


def postings_statement(where: str) -> str:
    # Grouped in the order of the index, which spares sorting thousands of rows.
    return (
        "SELECT p.term, string_agg(p.entries, ''::bytea) AS entries FROM postings p"  # noqa: S608 - fixed text
        f" WHERE {where} AND p.term = ANY(%(terms)s) GROUP BY p.corpus_id, p.term"
    )


POSTINGS_BUDGET = 60_000  # entries read for candidates at most; rarer terms go first
READ_AT_ONCE = POSTINGS_BUDGET  # terms · chunks; up to here all entries are read with the terms' frequencies
MIN_POSTINGS = 20_000  # so many are read in any case: it takes a few milliseconds
NEGLIGIBLE = 0.25  # share of the question's weight that alone makes no candidate
# The relevance of a passage was fitted on corpora of 120 chunks. In one of five, hardly a word is rare: what a passage
# holds of the question weighs next to nothing beside what it lacks, and one of five Spanish questions that it answers
# was refused. Coverage is therefore reckoned as if there were so many chunks at least, the others without these terms.
MIN_CHUNKS = 120


@dataclass(frozen=True, kw_only=True)
class QueryTerm:
    """An index term of the question."""

    term: str
    weight: float = 1.0  # less than 1 for synonyms and other languages' stems
    group: int = 0  # terms of one group stand for one word of the question


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What each term gives to a match, and all of the question together."""

    weights: Mapping[str, float]  # term → idf · weight
    ceiling: float  # most that the question's words could give


@dataclass(frozen=True, kw_only=True)
class WeightedTerms:
    """The question's terms that the scope holds, with the weight each gives to a match."""

    ranking: Weights
    coverage: Weights  # the same for a scope of `MIN_CHUNKS`, where there are fewer
    chunk_frequencies: Mapping[str, int]  # term → chunks in scope that hold it
    postings: Sequence[TermPostings] | None = None  # of every term, where they came with the frequencies


async def weigh_terms(
    connection: Connection, scope: SearchScope, terms: Sequence[QueryTerm], *, k1: float
) -> WeightedTerms:
    """Look up how rare the question's terms are in the scope.

    Each word of the question (a group of terms) counts once in the ceiling: with its own term, or,
    where the scope lacks that, with the best of what stands in for it.
    """
    # In small corpora, whose postings are all read in any case, one statement asks for frequencies and postings.
    asked = sorted({term.term for term in terms})
    within, parameters = corpora_condition("corpus_id", scope.corpus_ids)
    statement = (
        "SELECT term, sum(chunk_frequency), NULL::bytea FROM term_statistics"  # noqa: S608 - fixed text
        f" WHERE {within} AND term = ANY(%(terms)s) GROUP BY term"
    )
    small = len(asked) * scope.chunk_count <= READ_AT_ONCE
    if small:
        where, values = chunk_conditions(scope, "p", with_type=False)
        parameters |= values
        statement += f" UNION ALL SELECT term, NULL, entries FROM ({postings_statement(where)}) AS read"  # noqa: S608 - fixed text
    parameters["terms"] = asked
    cursor = await connection.execute(statement, parameters, binary=True, prepare=scope.prepare)
    found: dict[str, int] = {}
    postings: list[TermPostings] = []
    for term, frequency, entries in await cursor.fetchall():
        if frequency is not None:
            found[term] = int(frequency)
        if entries is not None:
            postings.append((term, entries))
    ranking = weigh(terms, found, scope.chunk_count, k1=k1)
    return WeightedTerms(
        ranking=ranking,
        coverage=ranking if scope.chunk_count >= MIN_CHUNKS else weigh(terms, found, MIN_CHUNKS, k1=k1),
        chunk_frequencies=found,
        postings=postings if small else None,
    )


def weigh(terms: Sequence[QueryTerm], found: Mapping[str, int], total: int, *, k1: float) -> Weights:
    """What terms weigh by how many chunks hold them.

    `found` is the number of chunks with each term, `total` the number of all chunks.
    """
    weights: dict[str, float] = {}
    own: dict[int, tuple[str, float]] = {}  # group → the question's own term and its idf
    stand_in: dict[int, float] = {}
    for term in terms:
        frequency = found.get(term.term, 0)
        rarity = math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))  # never negative
        weight = term.weight * rarity
        if term.weight == 1.0:
            own[term.group] = term.term, rarity
        elif frequency:
            stand_in[term.group] = max(stand_in.get(term.group, 0.0), weight)
        if frequency:
            weights[term.term] = max(weights.get(term.term, 0.0), weight)
    ceiling = 0.0
    for group, (name, rarity) in own.items():
        ceiling += rarity if name in found else stand_in.get(group, rarity)
    return Weights(weights=weights, ceiling=(k1 + 1) * ceiling)


def split_by_rarity(terms: WeightedTerms) -> tuple[list[str], list[str]]:
    """(terms whose chunks become candidates, terms that only rescore them), rarest first.

    What a term can add to a score is bounded by its weight. Once the terms left could give a chunk
    no more than `NEGLIGIBLE` of what all could, chunks that hold none but those are not looked for.
    """
    weights = terms.ranking.weights
    ordered = sorted(weights, key=lambda term: (terms.chunk_frequencies[term], term))
    if sum(terms.chunk_frequencies[term] for term in ordered) <= POSTINGS_BUDGET:
        return ordered, []
    left = total = sum(weights.values())
    read = 0
    for number, term in enumerate(ordered):
        read += terms.chunk_frequencies[term]
        if number and read > MIN_POSTINGS and (read > POSTINGS_BUDGET or left <= NEGLIGIBLE * total):
            return ordered[:number], ordered[number:]
        left -= weights[term]
    return ordered, []
