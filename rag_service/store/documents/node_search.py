"""The query modes of a LlamaIndex vector store: by vectors, by words, by both, and by vectors far from each other."""

from __future__ import annotations

from typing import Any

from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from rag_service.domain import Filters
from rag_service.errors import InputError
from rag_service.indices import QueryDefinition
from rag_service.language.detection import detect_language
from rag_service.language.languages import language_codes
from rag_service.language.words import index_term, words
from rag_service.store.database import Connection, HalfVector
from rag_service.store.search.dense import search_dense
from rag_service.store.search.lexical import LexicalSearch
from rag_service.store.search.postings import QueryTerm, weigh_terms
from rag_service.store.search.scope import resolve_scope

# What a caller may search: nothing expired, nothing deactivated. Row-level security does the rest.
READABLE = (
    "data_chunks c JOIN documents d ON d.id = c.document_id JOIN corpora r ON r.id = d.corpus_id"
    " WHERE r.active AND (d.expires_at IS NULL OR d.expires_at > now())"
)

Found = list[tuple[int, float]]  # (chunk id, score), best first
Where = tuple[str, dict[str, Any]]  # a condition on chunks `c` and documents `d`, with its parameters


async def find_chunks(
    connection: Connection, query: VectorStoreQuery, where: Where | None, *, rules: QueryDefinition, candidates: int
) -> Found:
    """Chunks in the order of the query's mode.

    As in PGVectorStore, `hybrid` puts what the words find after what the vector finds. With an `alpha` both are ranked
    together: by `alpha` times the cosine and the rest times the share of the words.

    Args:
        where: None for all that the identity may read.
        rules: with the saturation of BM25.
        candidates: among which MMR chooses.

    Raises InputError if the query lacks what its mode needs, or is of another mode.
    """
    match query.mode:
        case VectorStoreQueryMode.DEFAULT:
            return await _by_vector(connection, query, where, query.similarity_top_k)
        case VectorStoreQueryMode.MMR:
            return await _far_apart(connection, query, await _by_vector(connection, query, where, candidates))
        case VectorStoreQueryMode.SPARSE | VectorStoreQueryMode.TEXT_SEARCH:
            return await _by_words(connection, query, where, rules)
        case VectorStoreQueryMode.HYBRID:
            by_words = await _by_words(connection, query, where, rules)
            by_vector = await _by_vector(connection, query, where, query.similarity_top_k)
            return _combine(by_vector, by_words, query.alpha)[: query.hybrid_top_k]
        case _:
            raise InputError(f"The store does not support queries of mode {query.mode.value!r}.")


def _combine(by_vector: Found, by_words: Found, alpha: float | None) -> Found:
    cosines, scores = dict(by_vector), dict(by_words)
    if alpha is None:
        return list((cosines | {key: score for key, score in scores.items() if key not in cosines}).items())
    ranked = {key: alpha * cosines.get(key, 0.0) + (1 - alpha) * scores.get(key, 0.0) for key in cosines | scores}
    return sorted(ranked.items(), key=lambda item: -item[1])


async def _by_vector(connection: Connection, query: VectorStoreQuery, where: Where | None, limit: int) -> Found:
    if query.query_embedding is None:
        raise InputError(f"A query of mode {query.mode.value!r} needs a query_embedding.")
    if where is None:
        return await search_dense(connection, query.query_embedding, limit=limit)
    condition, parameters = where
    cursor = await connection.execute(
        f"""WITH found AS MATERIALIZED (
                SELECT c.id, c.embedding FROM {READABLE} AND {condition} AND c.embedding IS NOT NULL)
            SELECT id, 1 - (embedding <=> %(vector)s::halfvec) FROM found
            ORDER BY embedding <=> %(vector)s::halfvec, id LIMIT %(limit)s""",  # noqa: S608 - fixed text
        parameters | {"vector": HalfVector(query.query_embedding), "limit": limit},
        prepare=False,
    )
    return await cursor.fetchall()


async def _by_words(
    connection: Connection, query: VectorStoreQuery, where: Where | None, rules: QueryDefinition
) -> Found:
    """By the share of the query's words that a chunk holds, 0..1: BM25 without the length, as PGVectorStore ranks."""
    if not query.query_str:
        raise InputError(f"A query of mode {query.mode.value!r} needs a query_str.")
    limit = query.sparse_top_k or query.similarity_top_k
    terms, scope = _terms(query.query_str), await resolve_scope(connection, Filters())
    if not terms or not scope.chunk_count:
        return []
    weighted = await weigh_terms(connection, scope, terms, k1=rules.bm25_k1)
    best = limit if where is None else scope.chunk_count
    search = LexicalSearch(scope, weighted, best=best, k1=rules.bm25_k1, b=0.0)
    search.add(await search.read(connection))
    rated = await search.search(connection)
    found: Found = list(zip(rated.ids.tolist(), rated.coverage.tolist(), strict=True))
    if where is not None:
        condition, parameters = where
        cursor = await connection.execute(
            f"SELECT c.id FROM {READABLE} AND {condition} AND c.id = ANY(%(found)s)",  # noqa: S608 - fixed text
            parameters | {"found": [chunk_id for chunk_id, _ in found]},
            prepare=False,
        )
        kept = {row[0] for row in await cursor.fetchall()}
        found = [item for item in found if item[0] in kept]
    return found[:limit]


def _terms(question: str) -> list[QueryTerm]:
    """The words of a question with their stems in every language: a node may be in another one than the question."""
    language = detect_language(question) or ""
    terms: dict[str, QueryTerm] = {}
    for group, word in enumerate(dict.fromkeys(words(question))):
        if index_term(word, language) is not None:
            for term in (*(index_term(word, code) for code in language_codes()), word):
                if term is not None:
                    terms.setdefault(term, QueryTerm(term=term, group=group))
    return list(terms.values())


async def _far_apart(connection: Connection, query: VectorStoreQuery, nearest: Found) -> Found:
    """Maximal marginal relevance: each near the query and far from those before it."""
    cursor = await connection.execute(
        "SELECT id, embedding::vector::real[] FROM data_chunks WHERE id = ANY(%s)", [[item[0] for item in nearest]]
    )
    vectors = dict(await cursor.fetchall())
    ids = [chunk_id for chunk_id, _ in nearest if chunk_id in vectors]
    if not ids:
        return []
    scores, chosen = get_top_k_mmr_embeddings(
        query.query_embedding or [],
        [vectors[chunk_id] for chunk_id in ids],
        similarity_top_k=query.similarity_top_k,
        embedding_ids=ids,
        mmr_threshold=query.mmr_threshold,
    )
    return list(zip(chosen, scores, strict=True))
