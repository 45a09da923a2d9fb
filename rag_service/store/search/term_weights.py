"""What the words of a question weigh: how rare each is in the scope, and which of them find candidates.

The idf is Lucene's, ln(1 + (N - df + 0.5) / (df + 0.5)), N and df being those of the corpora in scope.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_service.store.search.postings import TermPostings, postings_statement
from rag_service.store.search.scope import SearchScope, chunk_conditions, corpora_condition
from rag_service.store.session import Connection

POSTINGS_BUDGET = 60_000  # entries read for candidates at most; rarer terms go first
READ_AT_ONCE = POSTINGS_BUDGET  # terms · chunks; up to here all entries are read with the terms' frequencies
LEAST_POSTINGS = 20_000  # so many are read in any case: it takes a few milliseconds
NEGLIGIBLE = 0.25  # share of the question's weight that alone makes no candidate
# The relevance of a passage was fitted on corpora of 120 chunks. In one of five, hardly a word is rare: what a passage
# holds of the question weighs next to nothing beside what it lacks, and one of five Spanish questions that it answers
# was refused. Coverage is therefore reckoned as if there were so many chunks at least, the others without these terms.
LEAST_CHUNKS = 120


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
    ranking = weigh(terms, found, scope.chunk_count, k1=k1)
    return WeightedTerms(
        ranking=ranking,
        coverage=ranking if scope.chunk_count >= LEAST_CHUNKS else weigh(terms, found, LEAST_CHUNKS, k1=k1),
        chunk_frequencies=found,
        postings=postings,
    )


def weigh(terms: Sequence[QueryTerm], found: Mapping[str, int], total: int, *, k1: float) -> Weights:
    """What terms weigh by how many chunks hold them.

    Args:
        terms: the question's.
        found: term → chunks that hold it; those that none holds are not there.
        total: all chunks.
        k1: BM25's saturation of term frequency.
    """
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
        statement += f" UNION ALL SELECT term, NULL, entries FROM ({postings_statement(where)}) AS read"  # noqa: S608 - fixed text
    cursor = await connection.execute(statement, {**parameters, "terms": list(terms)}, binary=True)
    rows = await cursor.fetchall()
    frequencies = {term: int(frequency) for term, frequency, _ in rows if frequency is not None}
    return frequencies, [(term, entries) for term, _, entries in rows if entries is not None] if small else None


def inverse_document_frequency(frequency: int, total: int) -> float:
    """ln(1 + (N - df + 0.5) / (df + 0.5)), never negative."""
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


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
        if number and read > LEAST_POSTINGS and (read > POSTINGS_BUDGET or left <= NEGLIGIBLE * total):
            return ordered[:number], ordered[number:]
        left -= weights[term]
    return ordered, []
