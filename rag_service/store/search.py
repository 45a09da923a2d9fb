"""The SQL of retrieval: scope, BM25, dense search, and reading hits.

Everything runs inside the caller's transaction, as the unprivileged role under row-level security.
Every value is a bound parameter. Filters restrict before anything is ranked, and expired documents
are excluded by the query itself.

BM25 follows Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
(2009), with the idf of Lucene, ln(1 + (N - df + 0.5) / (df + 0.5)). N, df and the average length are
those of the corpora in scope, so that no other tenant's text moves a score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from rag_service.domain import Chunk, DocumentRef, Filters, Location, Span
from rag_service.store.session import Connection

EXACT_SCAN_LIMIT = 20_000  # chunks; up to here an exact scan beats HNSW in time and recall (see `bench retrieval`)
POSTINGS_BUDGET = 20_000  # chunk entries read for candidates at most; rarer terms go first
LEAST_POSTINGS = 3_000  # so many are read in any case: it takes a few milliseconds
NEGLIGIBLE = 0.25  # share of the question's weight that alone makes no candidate
RESCORED = 300  # candidates scored again with every term
_LISTED_DOCUMENTS = 2_000  # up to here a filter's documents are passed by id: the planner then knows their number
_HNSW_EF_SEARCH = 200
_HNSW_MAX_SCAN_TUPLES = 200_000
WILDCARD = "any"  # a filter field with this value matches every request, as does a missing one


@dataclass(frozen=True, kw_only=True)
class SearchScope:
    """What a search may look at, resolved against the database."""

    corpus_ids: tuple[UUID, ...]  # active corpora that the identity may read and the request names
    index_names: tuple[str, ...]  # definitions that rule them
    chunk_count: int  # N of BM25: chunks of these corpora
    mean_length: float  # mean chunk length of these corpora, in index terms
    reachable: int  # chunks left after the document filters
    document_ids: tuple[UUID, ...] | None  # the documents left, when a filter names few; None: not listed
    expired: tuple[UUID, ...]  # documents to leave out
    filters: Filters


@dataclass(frozen=True, kw_only=True)
class QueryTerm:
    """An index term of the question."""

    term: str
    weight: float = 1.0  # less than 1 for synonyms and other languages' stems
    group: int = 0  # terms of one group stand for one word of the question


@dataclass(frozen=True, kw_only=True)
class WeightedTerms:
    """The question's terms that the scope holds, with the weight each gives to a match."""

    weights: Mapping[str, float]  # term → idf · weight
    chunk_frequencies: Mapping[str, int]  # term → chunks in scope that hold it
    ceiling: float  # most that the question's words could give; the base of coverage


def document_conditions(filters: Filters) -> tuple[list[str], dict[str, Any]]:
    """Conditions on `documents d` for the filters, with their parameters."""
    conditions: list[str] = []
    parameters: dict[str, Any] = {}

    def add(condition: str, **values: Any) -> None:
        conditions.append(condition)
        parameters.update(values)

    if filters.document_ids:
        add("d.id = ANY(%(document_ids)s)", document_ids=list(filters.document_ids))
    if filters.file_name is not None:
        add("d.file_key = %(file_key)s", file_key=filters.file_name.lower())
    if filters.source is not None:
        add("d.source = %(source)s", source=filters.source)
    if filters.tags:
        add("d.tags @> %(tags)s::text[]", tags=list(filters.tags))
    if filters.territory is not None:
        add("(d.territory IS NULL OR d.territory = %(territory)s)", territory=filters.territory)
    for number, (key, value) in enumerate(filters.fields.items()):
        add(
            f"coalesce(d.fields ->> %(key{number})s, %(wildcard)s) IN (%(value{number})s, %(wildcard)s)",
            **{f"key{number}": key, f"value{number}": value, "wildcard": WILDCARD},
        )
    return conditions, parameters


async def resolve_scope(connection: Connection, filters: Filters) -> SearchScope:
    """Find out which corpora and documents a search may look at."""
    cursor = await connection.execute(
        """SELECT c.id, c.index_name, coalesce(s.chunk_count, 0), coalesce(s.term_count, 0)
           FROM corpora c LEFT JOIN corpus_statistics s ON s.corpus_id = c.id
           WHERE c.active AND (%(all)s OR c.id = ANY(%(corpora)s))""",
        {"all": not filters.corpus_ids, "corpora": list(filters.corpus_ids)},
    )
    rows = await cursor.fetchall()
    corpora = [row[0] for row in rows]
    chunk_count = int(sum(row[2] for row in rows))
    term_count = int(sum(row[3] for row in rows))
    cursor = await connection.execute(
        "SELECT id FROM documents WHERE corpus_id = ANY(%s) AND expires_at <= now()", [corpora]
    )
    expired = [row[0] for row in await cursor.fetchall()]
    reachable, listed = chunk_count, None
    conditions, parameters = document_conditions(filters)
    if conditions:
        cursor = await connection.execute(
            f"""SELECT count(*), coalesce(sum(d.chunk_count), 0),
                       (array_agg(d.id))[1:{_LISTED_DOCUMENTS + 1}]
                FROM documents d WHERE d.corpus_id = ANY(%(corpora)s) AND {" AND ".join(conditions)}""",  # noqa: S608 - fixed text
            {**parameters, "corpora": corpora},
        )
        row = await cursor.fetchone()
        documents, reachable, ids = row if row is not None else (0, 0, None)
        listed = tuple(ids or ()) if documents <= _LISTED_DOCUMENTS else None
    return SearchScope(
        corpus_ids=tuple(corpora),
        index_names=tuple(sorted({row[1] for row in rows})),
        chunk_count=chunk_count,
        mean_length=term_count / chunk_count if chunk_count else 0.0,
        reachable=int(reachable),
        document_ids=listed,
        expired=tuple(expired),
        filters=filters,
    )


async def find_documents_by_name(connection: Connection, scope: SearchScope, names: Sequence[str]) -> tuple[UUID, ...]:
    """Documents in scope whose file is called one of the names (lower case, with or without extension)."""
    cursor = await connection.execute(
        "SELECT id FROM documents WHERE corpus_id = ANY(%(corpora)s) AND file_key = ANY(%(names)s)"
        " UNION SELECT id FROM documents WHERE corpus_id = ANY(%(corpora)s) AND file_stem = ANY(%(names)s)",
        {"corpora": list(scope.corpus_ids), "names": list(names)},
    )
    return tuple(row[0] for row in await cursor.fetchall())


def _chunk_conditions(scope: SearchScope, alias: str, *, with_type: bool) -> tuple[str, dict[str, Any]]:
    """Conditions on a table with corpus_id and document_id that keep a search inside its scope."""
    conditions = [f"{alias}.corpus_id = ANY(%(corpora)s)"]
    parameters: dict[str, Any] = {"corpora": list(scope.corpus_ids)}
    if scope.document_ids is not None:
        conditions.append(f"{alias}.document_id = ANY(%(documents)s)")
        parameters["documents"] = list(scope.document_ids)
    else:
        document, values = document_conditions(scope.filters)
        if document:
            parameters.update(values)
            conditions.append(
                f"{alias}.document_id IN (SELECT d.id FROM documents d"  # noqa: S608 - fixed text
                f" WHERE d.corpus_id = ANY(%(corpora)s) AND {' AND '.join(document)})"
            )
    if scope.expired:
        conditions.append(f"{alias}.document_id <> ALL(%(expired)s)")
        parameters["expired"] = list(scope.expired)
    if with_type and scope.filters.chunk_types:
        conditions.append(f"{alias}.chunk_type = ANY(%(chunk_types)s)")
        parameters["chunk_types"] = list(scope.filters.chunk_types)
    return " AND ".join(conditions), parameters


async def weigh_terms(
    connection: Connection, scope: SearchScope, terms: Sequence[QueryTerm], *, k1: float
) -> WeightedTerms:
    """Look up how rare the question's terms are in the scope.

    Each word of the question (a group of terms) counts once in the ceiling: with its own term, or,
    where the scope lacks that, with the best of what stands in for it.
    """
    cursor = await connection.execute(
        "SELECT term, sum(chunk_frequency) FROM term_statistics"
        " WHERE corpus_id = ANY(%s) AND term = ANY(%s) GROUP BY term",
        [list(scope.corpus_ids), sorted({term.term for term in terms})],
    )
    found = {term: int(frequency) for term, frequency in await cursor.fetchall()}
    weights: dict[str, float] = {}
    own: dict[int, QueryTerm] = {}
    stand_in: dict[int, float] = {}
    for term in terms:
        weight = term.weight * inverse_document_frequency(found.get(term.term, 0), scope.chunk_count)
        if term.weight == 1.0:
            own[term.group] = term
        elif term.term in found:
            stand_in[term.group] = max(stand_in.get(term.group, 0.0), weight)
        if term.term in found:
            weights[term.term] = max(weights.get(term.term, 0.0), weight)
    ceiling = 0.0
    for group, term in own.items():
        rarity = inverse_document_frequency(found.get(term.term, 0), scope.chunk_count)
        ceiling += stand_in.get(group, rarity) if term.term not in found else rarity
    return WeightedTerms(weights=weights, chunk_frequencies=found, ceiling=(k1 + 1) * ceiling)


def inverse_document_frequency(frequency: int, total: int) -> float:
    """ln(1 + (N - df + 0.5) / (df + 0.5)), never negative."""
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


# Of a row (weight, tf, len). The arrays of a posting are unnested in a select list, side by side: as a
# lateral function each of the thousands of rows would start a function scan (25 ms → 16 ms, 11,000 entries).
_PART = "(u.weight * u.tf * (%(k1)s + 1) / (u.tf + %(k1)s * (1 - %(b)s + %(b)s * u.len / %(mean)s)))"


async def search_lexical(
    connection: Connection, scope: SearchScope, terms: WeightedTerms, *, k1: float, b: float, limit: int
) -> dict[int, float]:
    """Best chunks by BM25: chunk id → score, best first.

    Candidates come from the rarest terms (`_split_by_rarity`); the best `RESCORED` of them are scored
    with every term. Where no term is left for that, as in any corpus of a few thousand chunks, the
    ranking is exact.
    """
    if not terms.weights or not scope.corpus_ids:
        return {}
    rare, common = _split_by_rarity(terms)
    where, parameters = _chunk_conditions(scope, "p", with_type=False)
    of_type = ""
    if scope.filters.chunk_types:
        of_type = "WHERE u.chunk_id IN (SELECT t.id FROM data_chunks t WHERE t.corpus_id = ANY(%(corpora)s)"
        of_type += " AND t.chunk_type = ANY(%(chunk_types)s))"
        parameters["chunk_types"] = list(scope.filters.chunk_types)
    parameters |= {
        "k1": k1, "b": b, "mean": max(scope.mean_length, 1.0),
        "rare": rare, "rare_weights": [terms.weights[term] for term in rare],
        "limit": max(limit, RESCORED) if common else limit,
    }  # fmt: skip
    cursor = await connection.execute(
        f"""SELECT u.chunk_id, sum({_PART}) AS score, u.document_id
            FROM (SELECT q.weight, p.document_id, unnest(p.chunk_ids) AS chunk_id,
                         unnest(p.frequencies) AS tf, unnest(p.lengths) AS len
                  FROM unnest(%(rare)s::text[], %(rare_weights)s::float8[]) AS q(term, weight)
                  JOIN postings p ON p.term = q.term
                  WHERE {where}) u
            {of_type} GROUP BY u.chunk_id, u.document_id ORDER BY score DESC, u.chunk_id LIMIT %(limit)s""",  # noqa: S608 - fixed text
        parameters,
    )
    rows = await cursor.fetchall()
    scores = {row[0]: float(row[1]) for row in rows}
    if common and rows:
        more = await score_lexical(
            connection, scope, {term: terms.weights[term] for term in common},
            chunks={row[0]: row[2] for row in rows}, k1=k1, b=b,
        )  # fmt: skip
        for chunk_id, score in more.items():
            scores[chunk_id] += score
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return dict(best[:limit])


def _split_by_rarity(terms: WeightedTerms) -> tuple[list[str], list[str]]:
    """(terms whose chunks become candidates, terms that only rescore them), rarest first.

    What a term can add to a score is bounded by its weight. Once the terms left could give a chunk
    no more than `NEGLIGIBLE` of what all could, chunks that hold none but those are not looked for.
    """
    ordered = sorted(terms.weights, key=lambda term: (terms.chunk_frequencies[term], term))
    left = total = sum(terms.weights.values())
    read = 0
    for number, term in enumerate(ordered):
        read += terms.chunk_frequencies[term]
        if number and read > LEAST_POSTINGS and (read > POSTINGS_BUDGET or left <= NEGLIGIBLE * total):
            return ordered[:number], ordered[number:]
        left -= terms.weights[term]
    return ordered, []


async def score_lexical(
    connection: Connection,
    scope: SearchScope,
    weights: Mapping[str, float],
    *,
    chunks: Mapping[int, UUID],
    k1: float,
    b: float,
) -> dict[int, float]:
    """BM25 of given chunks (id → document id) over given terms; chunks that hold none are left out."""
    if not weights or not chunks:
        return {}
    cursor = await connection.execute(
        f"""SELECT u.chunk_id, sum({_PART})
            FROM (SELECT q.weight, unnest(p.chunk_ids) AS chunk_id,
                         unnest(p.frequencies) AS tf, unnest(p.lengths) AS len
                  FROM unnest(%(terms)s::text[], %(weights)s::float8[]) AS q(term, weight)
                  JOIN postings p ON p.term = q.term AND p.corpus_id = ANY(%(corpora)s)
                                 AND p.document_id = ANY(%(chunk_documents)s)) u
            WHERE u.chunk_id = ANY(%(chunks)s) GROUP BY u.chunk_id""",  # noqa: S608 - fixed text
        {
            "k1": k1, "b": b, "mean": max(scope.mean_length, 1.0),
            "terms": list(weights), "weights": list(weights.values()),
            "corpora": list(scope.corpus_ids), "chunks": list(chunks),
            "chunk_documents": sorted(set(chunks.values())),
        },
    )  # fmt: skip
    return {row[0]: float(row[1]) for row in await cursor.fetchall()}


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
    if not scope.corpus_ids or not scope.reachable:
        return []
    where, parameters = _chunk_conditions(scope, "c", with_type=True)
    parameters |= {"vector": vector_literal(vector), "limit": limit}
    distance = "c.embedding <=> %(vector)s::halfvec"
    if scope.reachable <= EXACT_SCAN_LIMIT:
        order = f"({distance}) + 0"  # an expression that the HNSW index does not serve
        # A scope of a third of the table would be read by passing over the whole of it.
        await connection.execute("SELECT set_config('enable_seqscan', 'off', true)")
    else:
        order = distance
        await connection.execute(
            "SELECT set_config('enable_seqscan', 'off', true),"
            " set_config('hnsw.iterative_scan', 'relaxed_order', true),"
            " set_config('hnsw.ef_search', %s, true), set_config('hnsw.max_scan_tuples', %s, true)",
            [str(max(_HNSW_EF_SEARCH, limit)), str(_HNSW_MAX_SCAN_TUPLES)],
        )
    cursor = await connection.execute(
        f"SELECT c.id, 1 - ({distance}) FROM data_chunks c WHERE {where} ORDER BY {order} LIMIT %(limit)s",  # noqa: S608 - fixed text
        parameters,
    )
    found = [(row[0], float(row[1])) for row in await cursor.fetchall()]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))


async def read_candidates(
    connection: Connection, chunk_ids: Sequence[int], vector: Sequence[float] | None
) -> tuple[dict[int, UUID], dict[int, float]]:
    """Documents and cosines of chunks by id: ({id: document id}, {id: cosine})."""
    cursor = await connection.execute(
        "SELECT c.id, c.document_id, 1 - (c.embedding <=> %(vector)s::halfvec)"
        " FROM data_chunks c WHERE c.id = ANY(%(ids)s)",
        {"ids": list(chunk_ids), "vector": None if vector is None else vector_literal(vector)},
    )
    rows = await cursor.fetchall()
    documents = {row[0]: row[1] for row in rows}
    return documents, {row[0]: float(row[2]) for row in rows if row[2] is not None}


async def read_chunks(connection: Connection, chunk_ids: Sequence[int]) -> dict[int, Chunk]:
    """Chunks by id with the documents they belong to; expired ones are left out."""
    cursor = await connection.execute(
        """SELECT c.id, c.node_id, c.chunk_index, c.text, c.char_start, c.char_end, c.chunk_type,
                  c.spans, d.id, d.corpus_id, d.title, d.file_name, d.source, d.tags,
                  d.content_hash, d.updated_at, d.fields
           FROM data_chunks c JOIN documents d ON d.id = c.document_id
           WHERE c.id = ANY(%s) AND (d.expires_at IS NULL OR d.expires_at > now())""",
        [list(chunk_ids)],
    )
    return {row[0]: _to_chunk(row[1:]) for row in await cursor.fetchall()}


def _to_chunk(row: Sequence[Any]) -> Chunk:
    node_id, index, text, start, end, chunk_type, spans, document_id, corpus_id, *rest = row
    title, file_name, source, tags, content_hash, updated_at, fields = rest
    return Chunk(
        id=node_id,
        document=DocumentRef(
            id=document_id, corpus_id=corpus_id, title=title, file_name=file_name, source=source,
            tags=tuple(tags), content_hash=content_hash, updated_at=updated_at,
        ),
        index=index, text=text, start=start, end=end, spans=tuple(read_span(span) for span in spans or ()),
        type=chunk_type, metadata=fields or {},
    )  # fmt: skip


def write_span(span: Span) -> list[Any]:
    """A span as stored in a node's metadata: [start, end, {the location's fields that are set}]."""
    location = span.location
    fields = {
        "page": location.page, "headings": list(location.headings), "sheet": location.sheet,
        "cell": location.cell, "row": location.row, "paragraph": location.paragraph,
    }  # fmt: skip
    return [span.start, span.end, {key: value for key, value in fields.items() if value}]


def read_span(stored: Sequence[Any]) -> Span:
    """The inverse of `write_span`."""
    start, end, fields = stored
    headings = tuple(fields.get("headings", ()))
    location = Location(**{**fields, "headings": headings})
    return Span(start=start, end=end, location=location)


def vector_literal(vector: Sequence[float]) -> str:
    """A vector as pgvector's text form; half precision holds no more than five digits."""
    values = np.asarray(vector, dtype=np.float32).tolist()
    return "[" + ",".join(["%.5g" % value for value in values]) + "]"  # noqa: UP031 - twice as fast as format()
