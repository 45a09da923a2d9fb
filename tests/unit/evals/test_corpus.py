"""The generated corpus: the same everywhere, and shaped as it says."""

from __future__ import annotations

import numpy as np
import pytest

from evals.benchmarks.corpus import (
    CHUNKS_PER_DOCUMENT,
    EVERYTHING,
    SHARES,
    BenchCorpus,
    cut_documents,
    generate_corpus,
    generate_queries,
)

COUNT = 2_000


@pytest.fixture(scope="module")
def corpus() -> BenchCorpus:
    return generate_corpus(COUNT, dimension=16)


@pytest.mark.slow
def test_two_runs_make_the_same_corpus(corpus: BenchCorpus) -> None:
    again = generate_corpus(COUNT, dimension=16)
    assert again.texts == corpus.texts
    assert again.tenants == corpus.tenants
    np.testing.assert_array_equal(again.vectors, corpus.vectors)


def test_another_seed_makes_another_corpus(corpus: BenchCorpus) -> None:
    assert generate_corpus(COUNT, dimension=16, seed=1).texts != corpus.texts


def test_tenants_have_their_shares_and_divide_the_rest(corpus: BenchCorpus) -> None:
    for name, share in SHARES.items():
        assert corpus.tenants.count(name) == share * COUNT
    assert len(corpus.tenants) == COUNT
    assert len(corpus.members(EVERYTHING)) == COUNT


def test_chunks_have_words_and_vectors_of_length_one(corpus: BenchCorpus) -> None:
    lengths = [len(text.split()) for text in corpus.texts]
    assert 40 <= min(lengths) <= max(lengths) <= 200
    np.testing.assert_allclose(np.linalg.norm(corpus.vectors, axis=1), 1, atol=0.01)


def test_documents_hold_each_chunk_once_and_belong_to_one_tenant(corpus: BenchCorpus) -> None:
    documents = list(cut_documents(corpus.tenants))
    assert [number for _, chunks in documents for number in chunks] == list(range(COUNT))
    assert max(len(chunks) for _, chunks in documents) == CHUNKS_PER_DOCUMENT
    assert all({corpus.tenants[number] for number in chunks} == {tenant} for tenant, chunks in documents)


def test_questions_are_words_of_reachable_chunks_and_the_same_at_every_run(corpus: BenchCorpus) -> None:
    first, second = (generate_queries(corpus, 5, words=6, selectivity="1 %") for _ in range(2))
    assert [query.text for query in first] == [query.text for query in second]
    reachable = [set(corpus.texts[number].split()) for number in corpus.members("1 %")]
    assert all(any(set(query.text.split()) <= words for words in reachable) for query in first)
