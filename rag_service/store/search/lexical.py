"""Lexical search: BM25 over postings and statistics that are exact at every moment.

BM25 follows Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009). N, df and the
average length are those of the corpora in scope, so that no other tenant's text moves a score.

PostgreSQL finds the postings, under row-level security and the question's filters, and joins each term's to one value;
the sum over tens of thousands of them is numpy's, in a tenth of the time that SQL arithmetic takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_service.store.database import BigIntegers, Connection
from rag_service.store.search.postings import (
    ENTRY_BYTES,
    TermPostings,
    WeightedTerms,
    read_postings,
    split_by_rarity,
    unpack,
)
from rag_service.store.search.scope import SearchScope, chunk_conditions

RESCORED = 300  # candidates scored again with every term
_TYPED_AT_ONCE = 500  # candidates whose type is looked up together


@dataclass(frozen=True, kw_only=True)
class Rated:
    """What the words of a question find in chunks; parallel arrays, an element for each chunk."""

    ids: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]  # BM25; 0 where a chunk holds none of the words
    # Share of the question, 0..1, that a chunk holds: BM25 without the length, divided by the maximum for the question.
    # What a chunk holds is the same however long it is, and the other documents are; only its rank is not.
    coverage: npt.NDArray[np.float64]


class _Sums(NamedTuple):
    """What terms add to chunks; parallel arrays."""

    ids: npt.NDArray[np.int64]  # ascending and each once, but as they are read from postings
    scores: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]  # of the question that they cover, times its ceiling

    def of(self, ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(scores, shares) of given chunks in their order, 0 for those that are not here."""
        if not len(self.ids):
            return np.zeros(len(ids)), np.zeros(len(ids))
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        known = self.ids[places] == ids
        return self.scores[places] * known, self.shares[places] * known


_NOTHING = _Sums(ids=np.empty(0, dtype=np.int64), scores=np.empty(0), shares=np.empty(0))
NONE_FOUND = Rated(ids=_NOTHING.ids, scores=_NOTHING.scores, coverage=_NOTHING.shares)


class LexicalSearch:
    """BM25 of one question over one scope.

    `search` finds the best chunks, once what `read` gives was added; `score` rates chunks that were found
    otherwise. What has been read is kept, so that the second asks the database only for what is missing.
    """

    def __init__(self, scope: SearchScope, terms: WeightedTerms, *, best: int, k1: float, b: float):
        """Finds the `best` chunks; `k1` is the saturation of term frequency, `b` the weight of the length, 0..1."""
        self._scope = scope
        self._terms = terms
        self._wanted = self._candidates = best  # more candidates than are wanted where they will be rescored
        self._k1, self._b = k1, b
        self._mean_length = max(scope.mean_length, 1.0)
        # Terms that find candidates, and those that only rescore them: none where all postings came with the terms.
        self._rare, self._common = split_by_rarity(terms) if terms.postings is None else ([], [])
        self._pending = set(terms.ranking.weights)  # terms that `_whole` does not hold
        self._whole = _NOTHING  # of the other terms, for every chunk
        self._ranked: npt.NDArray[np.int64] = np.empty(0, np.int64)  # places in `_whole`, best first
        self._rest = _NOTHING  # of the pending terms, for the chunks that were asked for

    async def read(self, connection: Connection) -> Sequence[TermPostings]:
        """The postings that find candidates, for `add`."""
        if self._terms.postings is not None:
            return self._terms.postings
        where, parameters = chunk_conditions(self._scope, "p", with_type=False)
        if not self._rare:
            return ()
        return await read_postings(connection, where, parameters, self._rare, prepare=self._scope.prepare)

    def add(self, postings: Sequence[TermPostings] | None) -> None:
        """Sum up and rank what `read` gave, before `search`; None: nothing was read."""
        if postings is None:
            return
        if postings:
            parts = self._take_apart(postings)
            lowest = int(np.min(parts.ids))
            if int(np.max(parts.ids)) - lowest <= 16 * len(parts.ids) + 100_000:
                places = parts.ids - lowest  # a place for every id between: no sorting
                totals = _add_up(places, parts.scores)
                held = np.flatnonzero(totals)
                self._whole = _Sums(held + lowest, totals[held], _add_up(places, parts.shares)[held])
            else:
                ids, places = np.unique(parts.ids, return_inverse=True)
                self._whole = _Sums(ids, _add_up(places, parts.scores), _add_up(places, parts.shares))
        self._pending = set(self._common)
        self._candidates = max(self._wanted, RESCORED) if self._pending else self._wanted
        scores = self._whole.scores
        self._ranked = _largest(scores, len(scores) if self._scope.filters.chunk_types else self._candidates)

    async def search(self, connection: Connection) -> Rated:
        """Best chunks by BM25, best first, of those in what was added; each holds some word.

        Candidates come from the rarest terms (`split_by_rarity`); the best `RESCORED` of them are scored with every
        term. Where no term is left for that, as in any corpus of some ten thousand chunks, the ranking is exact.
        """
        best = await self._of_type(connection) if self._scope.filters.chunk_types else self._ranked
        if not self._pending:  # the sums are whole
            return self._rate(self._whole.ids[best], self._whole.scores[best], self._whole.shares[best])
        rated = await self.score(connection, self._whole.ids[np.sort(best)])
        best = _largest(rated.scores, self._wanted)
        return Rated(ids=rated.ids[best], scores=rated.scores[best], coverage=rated.coverage[best])

    async def score(self, connection: Connection, chunk_ids: npt.NDArray[np.int64]) -> Rated:
        """BM25 of given chunks of the scope, in their order."""
        scores, shares = self._whole.of(chunk_ids)
        if self._pending:
            await self._read_pending(connection, chunk_ids)
            more_scores, more_shares = self._rest.of(chunk_ids)
            scores, shares = scores + more_scores, shares + more_shares
        return self._rate(chunk_ids, scores, shares)

    def _rate(
        self, ids: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], shares: npt.NDArray[np.float64]
    ) -> Rated:
        ceiling = self._terms.coverage.ceiling
        coverage = np.minimum(shares / ceiling, 1.0) if ceiling > 0 else np.zeros(len(ids))
        return Rated(ids=ids, scores=scores, coverage=coverage)

    async def _read_pending(self, connection: Connection, chunk_ids: npt.NDArray[np.int64]) -> None:
        """Add to `_rest` what it lacks of some chunks."""
        asked = np.setdiff1d(chunk_ids, self._rest.ids)
        if not len(asked):
            return
        # Postings are found by document, of which the statement asks the chunks.
        where = (
            "p.corpus_id = ANY(%(corpora)s) AND p.document_id = ANY(ARRAY("
            "SELECT DISTINCT c.document_id FROM data_chunks c WHERE c.id = ANY(%(chunks)s)))"
        )
        parameters = {"corpora": list(self._scope.corpus_ids), "chunks": BigIntegers(asked)}
        parts = self._take_apart(await read_postings(connection, where, parameters, sorted(self._pending)))
        places = np.minimum(np.searchsorted(asked, parts.ids), len(asked) - 1)
        wanted = asked[places] == parts.ids
        ids = np.concatenate([self._rest.ids, asked])
        scores = np.concatenate([self._rest.scores, _add_up(places[wanted], parts.scores[wanted], len(asked))])
        shares = np.concatenate([self._rest.shares, _add_up(places[wanted], parts.shares[wanted], len(asked))])
        ascending = np.argsort(ids)
        self._rest = _Sums(ids=ids[ascending], scores=scores[ascending], shares=shares[ascending])

    def _take_apart(self, read: Sequence[TermPostings]) -> _Sums:
        """All terms in one go, a chunk as often as it holds some of them."""
        ranking, coverage = self._terms.ranking.weights, self._terms.coverage.weights
        packed, counts, weights, shares = [], [], [], []
        for term, entries in read:
            packed.append(entries)
            counts.append(len(entries) // ENTRY_BYTES)
            weights.append(ranking.get(term, 0.0) * (self._k1 + 1))
            shares.append(coverage.get(term, 0.0) * (self._k1 + 1))
        postings = unpack(b"".join(packed))
        norm = self._k1 * (1 - self._b + self._b / self._mean_length * postings.lengths)
        return _Sums(
            ids=postings.ids,
            scores=np.repeat(weights, counts) * (postings.frequencies / (postings.frequencies + norm)),
            shares=np.repeat(shares, counts) * (postings.frequencies / (postings.frequencies + self._k1)),
        )

    async def _of_type(self, connection: Connection) -> npt.NDArray[np.int64]:
        """Of what is ranked the best chunks that are of the types which the filter names."""
        found: list[npt.NDArray[np.int64]] = [self._ranked[:0]]
        for start in range(0, len(self._ranked), _TYPED_AT_ONCE):
            part = self._ranked[start : start + _TYPED_AT_ONCE]
            ids = self._whole.ids[part]
            cursor = await connection.execute(
                "SELECT id FROM data_chunks WHERE id = ANY(%s) AND chunk_type = ANY(%s)",
                [BigIntegers(ids), list(self._scope.filters.chunk_types)],
            )
            of_type = [row[0] for row in await cursor.fetchall()]
            found.append(part[np.isin(ids, of_type)])
            if sum(map(len, found)) >= self._candidates:
                break
        return np.concatenate(found)[: self._candidates]


def _add_up(places: npt.NDArray[np.int64], values: npt.NDArray[np.float64], count: int = 0) -> npt.NDArray[np.float64]:
    """The sum of the values of each place, from 0 to the last, or of so many at least."""
    return np.bincount(places, values, count).astype(np.float64, copy=False)


def _largest(values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """Places of the largest values, best first; the earlier place wins a tie."""
    if len(values) <= count:
        return np.argsort(-values, kind="stable")
    places = np.flatnonzero(values >= np.partition(values, len(values) - count)[len(values) - count])
    return places[np.argsort(-values[places], kind="stable")][:count]
