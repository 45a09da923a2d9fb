"""Lexical search is BM25: its scores and ranks are those of a reference, whatever was deleted or replaced."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from evals.benchmarks.exact import ExactBM25
from rag_service.domain import Filters
from rag_service.language.words import terms
from rag_service.store.database import Connection, Database
from rag_service.store.documents.documents import delete_document
from rag_service.store.search import postings
from rag_service.store.search.lexical import LexicalSearch, Rated
from rag_service.store.search.postings import (
    MIN_CHUNKS,
    QueryTerm,
    WeightedTerms,
    weigh_terms,
)
from rag_service.store.search.scope import SearchScope, resolve_scope
from tests.conftest import mostly_slow
from tests.integration.store.texts import ADMIN, make_corpus, store_texts

K1, B = 1.2, 0.75
WORDS = ["q" + first + second + "q" for first in "abcdefghij" for second in "uvwxyz"]


def inverse_document_frequency(frequency: int, total: int) -> float:
    """Lucene's: ln(1 + (N - df + 0.5) / (df + 0.5))."""
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def by_chunk(rated: Rated) -> dict[int, float]:
    """Chunk → BM25, in the order found."""
    return dict(zip(rated.ids.tolist(), rated.scores.tolist(), strict=True))


async def open_search(
    connection: Connection, scope: SearchScope, weighed: WeightedTerms, *, best: int
) -> LexicalSearch:
    """A search that is ready."""
    search = LexicalSearch(scope, weighed, best=best, k1=K1, b=B)
    search.add(await search.read(connection))
    return search


class Texts:
    """A random corpus in the database and beside it."""

    def __init__(self, database: Database, embedding: BaseEmbedding, seed: int):
        self.database, self.embedding, self.random = database, embedding, random.Random(seed)  # noqa: S311 - test data
        self.documents: dict[UUID, tuple[UUID, list[str]]] = {}  # document → its corpus and chunks

    def _chunks(self) -> list[str]:
        return [
            " ".join(self.random.choices(WORDS, [1 / (rank + 1) for rank in range(len(WORDS))], k=length))
            for length in self.random.choices(range(3, 60), k=self.random.randint(1, 5))
        ]

    async def add(self, corpus_id: UUID, document_id: UUID | None = None) -> None:
        chunks = self._chunks()
        stored = await store_texts(self.database, corpus_id, chunks, self.embedding, document_id=document_id)
        self.documents[stored] = (corpus_id, chunks)

    async def replace_one(self) -> None:
        document_id = self.random.choice(list(self.documents))
        await self.add(self.documents[document_id][0], document_id)

    async def delete_one(self) -> None:
        document_id = self.random.choice(list(self.documents))
        async with self.database.transaction(ADMIN) as connection:
            assert await delete_document(connection, document_id)
        del self.documents[document_id]

    def question(self) -> list[QueryTerm]:
        asked = self.random.sample(WORDS, self.random.randint(1, 8))
        return [QueryTerm(term=terms(word, "en")[0], group=group) for group, word in enumerate(asked)]

    async def check(self, corpora: Sequence[UUID]) -> None:
        """Scores of the best 20 for a random question over these corpora agree with the reference."""
        asked = self.question()
        async with self.database.transaction(ADMIN) as connection:
            scope = await resolve_scope(connection, Filters(corpus_ids=tuple(corpora)))
            weighed = await weigh_terms(connection, scope, asked, k1=K1)
            found = by_chunk(await (await open_search(connection, scope, weighed, best=20)).search(connection))
            cursor = await connection.execute(
                "SELECT id, text, document_id FROM data_chunks WHERE corpus_id = ANY(%s)", [list(corpora)]
            )
            rows = await cursor.fetchall()
            ids = np.array([row[0] for row in rows], dtype=np.int64)
            again = by_chunk(await LexicalSearch(scope, weighed, best=20, k1=K1, b=B).score(connection, ids))
        held = [text for corpus_id, chunks in self.documents.values() if corpus_id in corpora for text in chunks]
        assert sorted(row[1] for row in rows) == sorted(held)
        exact = ExactBM25([terms(row[1], "en") for row in rows], k1=K1, b=B)
        reference = exact.scores(np.arange(len(rows)), {term.term: 1.0 for term in asked})
        expected = {rows[number][0]: score for number, score in reference.items()}
        best = sorted(expected.values(), reverse=True)[:20]
        assert list(found.values()) == pytest.approx(best)
        assert all(score == pytest.approx(expected[chunk_id]) for chunk_id, score in found.items())
        assert again == pytest.approx({chunk_id: expected.get(chunk_id, 0.0) for chunk_id in ids.tolist()})


@pytest.mark.parametrize("read_at_once", [10_000, 0], ids=["one statement", "two statements"])
@pytest.mark.parametrize("seed", mostly_slow(range(4), fast=[0]))
async def test_scores_are_those_of_exact_bm25_also_after_deletes_and_updates(
    database: Database, fake_embedding: BaseEmbedding, monkeypatch: pytest.MonkeyPatch, seed: int, read_at_once: int
) -> None:
    monkeypatch.setattr(postings, "READ_AT_ONCE", read_at_once)
    first, second = await make_corpus(database, "first"), await make_corpus(database, "second")
    texts = Texts(database, fake_embedding, seed)
    for number in range(12):
        await texts.add(first if number % 3 else second)
    for _ in range(5):
        await texts.check([first])
        await texts.check([first, second])
        await texts.replace_one()
        await texts.delete_one()
    await texts.check([second])
    await texts.check([first, second])


@pytest.mark.slow
async def test_the_two_stage_search_finds_what_exact_bm25_finds_when_common_words_are_left_for_later(
    database: Database, fake_embedding: BaseEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a budget of a few entries the common words only rescore; the best passage holds rare ones."""
    corpus = await make_corpus(database)
    texts = Texts(database, fake_embedding, seed=99)
    for _ in range(25):
        await texts.add(corpus)
    monkeypatch.setattr(postings, "READ_AT_ONCE", 0)
    monkeypatch.setattr(postings, "MIN_POSTINGS", 0)
    monkeypatch.setattr(postings, "POSTINGS_BUDGET", 10)
    shared = []
    for _ in range(20):
        asked = texts.question()
        async with database.transaction(ADMIN) as connection:
            scope = await resolve_scope(connection, Filters())
            weighed = await weigh_terms(connection, scope, asked, k1=K1)
            found = by_chunk(await (await open_search(connection, scope, weighed, best=3)).search(connection))
            monkeypatch.setattr(postings, "POSTINGS_BUDGET", 10_000)
            exact = by_chunk(await (await open_search(connection, scope, weighed, best=3)).search(connection))
            monkeypatch.setattr(postings, "POSTINGS_BUDGET", 10)
        assert all(score == pytest.approx(exact[key]) for key, score in found.items() if key in exact)
        shared.append(len(found.keys() & exact.keys()) / max(1, len(exact)))
    assert sum(shared) / len(shared) > 0.6


async def test_statistics_of_other_corpora_move_no_score(database: Database, fake_embedding: BaseEmbedding) -> None:
    mine, other = await make_corpus(database, "mine"), await make_corpus(database, "other")
    await store_texts(database, mine, ["penalty for late delivery", "delivery by truck"], fake_embedding)

    async def score() -> dict[int, float]:
        async with database.transaction(ADMIN) as connection:
            scope = await resolve_scope(connection, Filters(corpus_ids=(mine,)))
            asked = [QueryTerm(term="delivery", group=0), QueryTerm(term="penalti", group=1)]
            weighed = await weigh_terms(connection, scope, asked, k1=K1)
            return by_chunk(await (await open_search(connection, scope, weighed, best=5)).search(connection))

    before = await score()
    await store_texts(database, other, ["penalty penalty penalty"] * 30, fake_embedding)
    assert before
    assert await score() == before


async def test_coverage_in_a_small_corpus_is_that_of_one_with_other_chunks(
    database: Database, fake_embedding: BaseEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = await make_corpus(database)
    await store_texts(database, corpus, ["quvaq quvbq", "quvaq quvcq", "quvaq quvdq"], fake_embedding)
    asked = [QueryTerm(term=term, group=group) for group, term in enumerate(["quvaq", "quvbq", "quvzq"])]

    async def coverage() -> list[float]:
        async with database.transaction(ADMIN) as connection:
            scope = await resolve_scope(connection, Filters())
            search = await open_search(connection, scope, await weigh_terms(connection, scope, asked, k1=K1), best=5)
            return sorted((await search.search(connection)).coverage.tolist(), reverse=True)

    def expected(chunks: int) -> list[float]:
        common, rare, missing = (inverse_document_frequency(frequency, chunks) for frequency in (3, 1, 0))
        # A term that stands once adds its weight, of the k1 + 1 that it could.
        ceiling = (K1 + 1) * (common + rare + missing)
        return pytest.approx([(common + rare) / ceiling, common / ceiling, common / ceiling])

    assert await coverage() == expected(MIN_CHUNKS)
    monkeypatch.setattr(postings, "MIN_CHUNKS", 3)
    assert await coverage() == expected(3)


async def test_coverage_does_not_fall_with_the_length_of_the_chunk_nor_of_others(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    corpus = await make_corpus(database)
    other_words = " ".join(f"word{number}x" for number in range(300))
    await store_texts(database, corpus, ["quvaq quvbq", f"quvaq quvbq {other_words}", "nothing"], fake_embedding)
    asked = [QueryTerm(term=term, group=group) for group, term in enumerate(["quvaq", "quvbq"])]
    async with database.transaction(ADMIN) as connection:
        scope = await resolve_scope(connection, Filters())
        search = await open_search(connection, scope, await weigh_terms(connection, scope, asked, k1=K1), best=5)
        rated = await search.search(connection)
    short, long = rated.coverage
    assert short == pytest.approx(long)
    assert len(set(rated.scores.tolist())) == 2  # ranks do tell them apart


@pytest.mark.parametrize("budget", [60_000, 10])
async def test_coverage_is_the_same_whether_terms_are_read_at_once_or_in_parts(
    database: Database, fake_embedding: BaseEmbedding, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    corpus = await make_corpus(database)
    texts = [f"quvaq {'quvbq ' * (number % 3)} {'quvcq' if number == 4 else ''}" for number in range(30)]
    await store_texts(database, corpus, texts, fake_embedding)
    asked = [QueryTerm(term=term, group=group) for group, term in enumerate(["quvaq", "quvbq", "quvcq"])]
    monkeypatch.setattr(postings, "READ_AT_ONCE", budget)
    monkeypatch.setattr(postings, "POSTINGS_BUDGET", budget)
    monkeypatch.setattr(postings, "MIN_POSTINGS", 0)
    async with database.transaction(ADMIN) as connection:
        scope = await resolve_scope(connection, Filters())
        search = await open_search(connection, scope, await weigh_terms(connection, scope, asked, k1=K1), best=5)
        cursor = await connection.execute("SELECT id, text FROM data_chunks")
        held = {row[0]: row[1] for row in await cursor.fetchall()}
        found = await search.search(connection)
        ids = np.array(list(held), dtype=np.int64)
        rated = await search.score(connection, ids)
    rarity = {"quvaq": 30, "quvbq": 20, "quvcq": 1}
    idf = {term: inverse_document_frequency(frequency, MIN_CHUNKS) for term, frequency in rarity.items()}
    ceiling = (K1 + 1) * sum(idf.values())
    coverage = dict(zip(rated.ids.tolist(), rated.coverage.tolist(), strict=True))
    assert {chunk: coverage[chunk] for chunk in found.ids.tolist()} == pytest.approx(
        dict(zip(found.ids.tolist(), found.coverage.tolist(), strict=True))
    )
    for chunk, share in coverage.items():
        counts = {term: held[chunk].split().count(term) for term in idf}
        expected = sum(idf[term] * (K1 + 1) * count / (count + K1) for term, count in counts.items())
        assert share == pytest.approx(expected / ceiling)
    assert len(coverage) == 30
