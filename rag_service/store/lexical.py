"""The lexical leg: BM25 over postings and statistics that are exact at every moment.

BM25 follows Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
(2009), with the idf of Lucene, ln(1 + (N - df + 0.5) / (df + 0.5)). N, df and the average length are
those of the corpora in scope, so that no other tenant's text moves a score.

PostgreSQL finds the postings, under row-level security and the question's filters, and joins each
term's to one value; the sum over tens of thousands of them is numpy's, in a tenth of the time that SQL
arithmetic takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_service.store.parameters import BigIntegers
from rag_service.store.postings import ENTRY_BYTES, unpack
from rag_service.store.scope import SearchScope, chunk_conditions, corpora_condition
from rag_service.store.session import Connection

POSTINGS_BUDGET = 60_000  # entries read for candidates at most; rarer terms go first
READ_AT_ONCE = POSTINGS_BUDGET  # terms · chunks; up to here all entries are read with the terms' frequencies
LEAST_POSTINGS = 20_000  # so many are read in any case: it takes a few milliseconds
NEGLIGIBLE = 0.25  # share of the question's weight that alone makes no candidate
RESCORED = 300  # candidates scored again with every term
# The relevance of a passage was fitted on corpora of 120 chunks. In one of five, hardly a word is rare: what a passage
# holds of the question weighs next to nothing beside what it lacks, and one of five Spanish questions that it answers
# was refused. Coverage is therefore reckoned as if there were so many chunks at least, the others without these terms.
LEAST_CHUNKS = 120
_TYPED_AT_ONCE = 500  # candidates whose type is looked up together


@dataclass(frozen=True, kw_only=True)
class QueryTerm:
    """An index term of the question."""

    term: str
    weight: float = 1.0  # less than 1 for synonyms and other languages' stems
    group: int = 0  # terms of one group stand for one word of the question


TermPostings = tuple[str, bytes]  # a term and entries of it, packed


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What each term gives to a match, and all of the question together."""

    weights: Mapping[str, float]  # term → idf · weight
    ceiling: float  # most that the question's words could give


@dataclass(frozen=True, kw_only=True)
class WeightedTerms:
    """The question's terms that the scope holds, with the weight each gives to a match."""

    ranking: Weights
    coverage: Weights  # the same for a scope of `LEAST_CHUNKS`, where there are fewer
    chunk_frequencies: Mapping[str, int]  # term → chunks in scope that hold it
    postings: Sequence[TermPostings] | None = None  # of every term, where they came with the frequencies


async def weigh_terms(
    connection: Connection, scope: SearchScope, terms: Sequence[QueryTerm], *, k1: float
) -> WeightedTerms:
    """Look up how rare the question's terms are in the scope.

    Each word of the question (a group of terms) counts once in the ceiling: with its own term, or,
    where the scope lacks that, with the best of what stands in for it.
    """
    asked = sorted({term.term for term in terms})
    found, postings = await _look_up(connection, scope, asked)
    ranking = _weigh(terms, found, scope.chunk_count, k1)
    return WeightedTerms(
        ranking=ranking,
        coverage=ranking if scope.chunk_count >= LEAST_CHUNKS else _weigh(terms, found, LEAST_CHUNKS, k1),
        chunk_frequencies=found,
        postings=postings,
    )


def _weigh(terms: Sequence[QueryTerm], found: Mapping[str, int], total: int, k1: float) -> Weights:
    """The weights of terms that `found` of `total` chunks hold."""
    weights: dict[str, float] = {}
    own: dict[int, QueryTerm] = {}
    stand_in: dict[int, float] = {}
    for term in terms:
        weight = term.weight * inverse_document_frequency(found.get(term.term, 0), total)
        if term.weight == 1.0:
            own[term.group] = term
        elif term.term in found:
            stand_in[term.group] = max(stand_in.get(term.group, 0.0), weight)
        if term.term in found:
            weights[term.term] = max(weights.get(term.term, 0.0), weight)
    ceiling = 0.0
    for group, term in own.items():
        rarity = inverse_document_frequency(found.get(term.term, 0), total)
        ceiling += stand_in.get(group, rarity) if term.term not in found else rarity
    return Weights(weights=weights, ceiling=(k1 + 1) * ceiling)


async def _look_up(
    connection: Connection, scope: SearchScope, terms: Sequence[str]
) -> tuple[dict[str, int], list[TermPostings] | None]:
    """(chunks of the scope's corpora that hold each term, postings in scope).

    In small corpora, whose postings are all read in any case, one statement asks for both.
    """
    within, parameters = corpora_condition("corpus_id", scope.corpus_ids)
    statement = (
        "SELECT term, sum(chunk_frequency), NULL::bytea FROM term_statistics"  # noqa: S608 - fixed text
        f" WHERE {within} AND term = ANY(%(terms)s) GROUP BY term"
    )
    small = len(terms) * scope.chunk_count <= READ_AT_ONCE
    if small:
        where, values = chunk_conditions(scope, "p", with_type=False)
        parameters |= values
        statement += f" UNION ALL SELECT term, NULL, entries FROM ({_postings_statement(where)}) AS read"  # noqa: S608 - fixed text
    cursor = await connection.execute(statement, {**parameters, "terms": list(terms)}, binary=True)
    rows = await cursor.fetchall()
    frequencies = {term: int(frequency) for term, frequency, _ in rows if frequency is not None}
    return frequencies, [(term, entries) for term, _, entries in rows if entries is not None] if small else None


def inverse_document_frequency(frequency: int, total: int) -> float:
    """ln(1 + (N - df + 0.5) / (df + 0.5)), never negative."""
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


class _Parts(NamedTuple):
    """What postings add to their chunks, one value for each."""

    ids: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]  # of the question that they cover, times its ceiling


class LexicalLeg:
    """BM25 of one question over one scope.

    `search` finds the best chunks, `score` rates chunks that were found otherwise. What has been read
    is kept, so that the second asks the database only for what is missing.
    """

    def __init__(self, scope: SearchScope, terms: WeightedTerms, *, k1: float, b: float):
        """
        Args:
            scope: where to look.
            terms: what to look for.
            k1: saturation of term frequency.
            b: weight of the chunk's length, 0..1.
        """
        self._scope = scope
        self._terms = terms
        self._k1, self._b = k1, b
        self._mean_length = max(scope.mean_length, 1.0)
        self._pending = set(terms.ranking.weights)  # terms that `_sums` does not hold
        self._ids: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)  # ascending
        self._sums: npt.NDArray[np.float64] = np.empty(0)  # of the terms read whole, for `_ids`
        self._shares: npt.NDArray[np.float64] = np.empty(0)  # likewise
        self._covered: dict[int, float] = {}  # chunk that was found or rated → its share, times the ceiling
        if terms.postings is not None:
            self._add(terms.postings)
            self._pending.clear()

    async def search(self, connection: Connection, *, limit: int) -> dict[int, float]:
        """Best chunks by BM25: chunk id → score, best first.

        Candidates come from the rarest terms (`_split_by_rarity`); the best `RESCORED` of them are
        scored with every term. Where no term is left for that, as in any corpus of some ten thousand
        chunks, the ranking is exact.
        """
        if not self._terms.ranking.weights or not self._scope.corpus_ids:
            return {}
        common: list[str] = []
        if self._pending:
            rare, common = _split_by_rarity(self._terms)
            where, parameters = chunk_conditions(self._scope, "p", with_type=False)
            self._add(await _read(connection, where, parameters, rare))
            self._pending = set(common)
        best = await self._best(connection, max(limit, RESCORED) if common else limit)
        ids = self._ids[best].tolist()
        if not common:  # the sums are whole
            self._covered.update(zip(ids, self._shares[best].tolist(), strict=True))
            return dict(zip(ids, self._sums[best].tolist(), strict=True))
        scores = await self.score(connection, ids)
        return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit])

    async def score(self, connection: Connection, chunk_ids: Iterable[int]) -> dict[int, float]:
        """BM25 of given chunks of the scope; those that hold no term are left out."""
        asked = np.fromiter(set(chunk_ids), dtype=np.int64)
        if not len(asked):
            return {}
        asked.sort()
        sums, shares = np.zeros(len(asked)), np.zeros(len(asked))
        if len(self._ids):
            places = np.minimum(np.searchsorted(self._ids, asked), len(self._ids) - 1)
            known = self._ids[places] == asked
            sums[known], shares[known] = self._sums[places[known]], self._shares[places[known]]
        if self._pending:
            # Postings are found by document, of which the statement asks the chunks.
            where = (
                "p.corpus_id = ANY(%(corpora)s) AND p.document_id = ANY(ARRAY("
                "SELECT DISTINCT c.document_id FROM data_chunks c WHERE c.id = ANY(%(chunks)s)))"
            )
            parameters = {"corpora": list(self._scope.corpus_ids), "chunks": BigIntegers(asked)}
            parts = self._take_apart(await _read(connection, where, parameters, sorted(self._pending)))
            places = np.minimum(np.searchsorted(asked, parts.ids), len(asked) - 1)
            wanted = asked[places] == parts.ids
            sums += np.bincount(places[wanted], parts.scores[wanted], len(asked))
            shares += np.bincount(places[wanted], parts.shares[wanted], len(asked))
        self._covered.update(zip(asked.tolist(), shares.tolist(), strict=True))
        return {chunk: total for chunk, total in zip(asked.tolist(), sums.tolist(), strict=True) if total > 0}

    def coverage(self) -> dict[int, float]:
        """Share of the question, 0..1, that each chunk found or rated holds.

        It is BM25 without the length over the most that the question could give. What a chunk holds is the same however
        long it is, and however long the other documents are; only its rank is not.
        """
        ceiling = self._terms.coverage.ceiling
        return {chunk: min(1.0, share / ceiling) for chunk, share in self._covered.items()} if ceiling > 0 else {}

    def _take_apart(self, read: Sequence[TermPostings]) -> _Parts:
        """All terms in one go."""
        postings = unpack(b"".join([entries for _, entries in read]))
        counts = np.array([len(entries) // ENTRY_BYTES for _, entries in read], dtype=np.int64)
        norm = self._k1 * (1 - self._b + self._b / self._mean_length * postings.lengths)
        saturated = postings.frequencies / (postings.frequencies + norm)
        held = postings.frequencies / (postings.frequencies + self._k1)
        return _Parts(
            ids=postings.ids,
            scores=np.repeat(self._weights_of(read, self._terms.ranking), counts) * saturated,
            shares=np.repeat(self._weights_of(read, self._terms.coverage), counts) * held,
        )

    def _weights_of(self, read: Sequence[TermPostings], weights: Weights) -> npt.NDArray[np.float64]:
        return np.array([weights.weights.get(term, 0.0) * (self._k1 + 1) for term, _ in read])

    def _add(self, read: Sequence[TermPostings]) -> None:
        """Sum up the scores of every chunk in what was read."""
        if not read:
            return
        parts = self._take_apart(read)
        lowest = int(parts.ids.min())
        if int(parts.ids.max()) - lowest <= 16 * len(parts.ids) + 100_000:
            places = parts.ids - lowest  # a place for every id between: no sorting
            totals = _sum_up(places, parts.scores)
            held = np.flatnonzero(totals)
            self._ids, self._sums = held + lowest, totals[held]
            self._shares = _sum_up(places, parts.shares)[held]
        else:
            self._ids, places = np.unique(parts.ids, return_inverse=True)
            self._sums = _sum_up(places, parts.scores)
            self._shares = _sum_up(places, parts.shares)

    async def _best(self, connection: Connection, limit: int) -> npt.NDArray[np.int64]:
        """Places of the best chunks by what is summed up, best first, of the types that the filter names."""
        if not self._scope.filters.chunk_types:
            return _largest(self._sums, limit)
        ordered = _largest(self._sums, len(self._sums))
        found: list[npt.NDArray[np.int64]] = [ordered[:0]]
        for start in range(0, len(ordered), _TYPED_AT_ONCE):
            part = ordered[start : start + _TYPED_AT_ONCE]
            cursor = await connection.execute(
                "SELECT id FROM data_chunks WHERE id = ANY(%s) AND chunk_type = ANY(%s)",
                [BigIntegers(self._ids[part]), list(self._scope.filters.chunk_types)],
            )
            of_type = [row[0] for row in await cursor.fetchall()]
            found.append(part[np.isin(self._ids[part], of_type)])
            if sum(map(len, found)) >= limit:
                break
        return np.concatenate(found)[:limit]


def _sum_up(places: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The sum of the values of each place, from 0 to the last."""
    return np.bincount(places, values).astype(np.float64, copy=False)


def _largest(values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """Places of the largest values, best first; the earlier place wins a tie."""
    places = np.arange(len(values))
    if len(values) > count:
        places = np.flatnonzero(values >= np.partition(values, len(values) - count)[len(values) - count])
    return places[np.lexsort((places, -values[places]))][:count]


async def _read(
    connection: Connection, where: str, parameters: Mapping[str, Any], terms: Sequence[str]
) -> list[TermPostings]:
    """Postings `p` of terms under a condition; terms without any are left out."""
    cursor = await connection.execute(_postings_statement(where), {**parameters, "terms": list(terms)}, binary=True)
    return await cursor.fetchall()


def _postings_statement(where: str) -> str:
    # Grouped in the order of the index, which spares sorting thousands of rows.
    return (
        "SELECT p.term, string_agg(p.entries, ''::bytea) AS entries FROM postings p"  # noqa: S608 - fixed text
        f" WHERE {where} AND p.term = ANY(%(terms)s) GROUP BY p.corpus_id, p.term"
    )


def _split_by_rarity(terms: WeightedTerms) -> tuple[list[str], list[str]]:
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
        if number and read > LEAST_POSTINGS and (read > POSTINGS_BUDGET or left <= NEGLIGIBLE * total):
            return ordered[:number], ordered[number:]
        left -= weights[term]
    return ordered, []
