"""How PostgreSQL runs the statements of a search over 30,000 chunks, as the role and user that search."""

from __future__ import annotations

import random
from collections.abc import Iterator
from uuid import UUID

import numpy as np
import psycopg
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.domain import Filters
from rag_service.indices import load_index
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.retrieval.question import Mode, Question
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.search.postings import pack
from tests.integration.store.texts import ADMIN, make_corpus, store_texts
from tests.statements import WatchedDatabase, find_seq_scans

pytestmark = pytest.mark.slow

CHUNKS, PER_DOCUMENT, VOCABULARY = 30_000, 25, 3_000
SHARES = (0.01, 0.3, 0.69)  # of the corpora


def word(rank: int) -> str:
    """A word of letters only, which is one index term."""
    return "q" + "".join("abcdefghij"[int(digit)] for digit in str(rank)) + "q"


QUESTION = " ".join(word(rank) for rank in (1, 7, 40, 300, 2000))


def load_generated(owner_conninfo: str, corpora: list[UUID]) -> None:
    """Documents, chunks and postings by COPY as the owner; the triggers count them as ever.

    The vector index is built coarse: plans depend on its being there, not on how well it finds.
    """
    generator = random.Random(5)  # noqa: S311 - test data
    vectors = ["[" + ",".join(f"{value:.2f}" for value in row) + "]" for row in _random_rows()]
    owners = generator.choices(corpora, SHARES, k=CHUNKS // PER_DOCUMENT)
    documents = [(UUID(int=number + 1), owner) for number, owner in enumerate(owners)]
    with psycopg.connect(owner_conninfo) as connection, connection.cursor() as cursor:
        cursor.execute("DROP INDEX rag.data_chunks_embedding")
        with cursor.copy(
            "COPY rag.documents (id, corpus_id, name, title, file_name, source, tags, content_hash, fingerprint,"
            " territory, fields, chunk_count) FROM STDIN"
        ) as copy:
            for number, (document, owner) in enumerate(documents):
                described = (f"file{number}.txt", f"source {number % 50}", [f"tag{number % 20}"], "", "", None)
                copy.write_row(
                    (document, owner, str(number), "", *described, f'{{"topic": "t{number % 9}"}}', PER_DOCUMENT)
                )
        with cursor.copy(
            "COPY rag.data_chunks (id, text, node_id, embedding, corpus_id, document_id, chunk_index,"
            " char_start, char_end, length, metadata_) FROM STDIN"
        ) as copy:
            for chunk in range(CHUNKS):
                document, owner = documents[chunk // PER_DOCUMENT]
                text = f"chunk {chunk} " + "with some text " * 40
                copy.write_row(
                    (chunk + 1, text, f"n{chunk}", vectors[chunk % len(vectors)], owner, document,
                     chunk % PER_DOCUMENT, 0, len(text), 120, "{}")
                )  # fmt: skip
        with cursor.copy("COPY rag.postings (corpus_id, term, document_id, entries) FROM STDIN") as copy:
            for number, (document, owner) in enumerate(documents):
                for term, chunks in _postings_of(generator, number):
                    entries = pack(chunks, [{term: 1, "": 119}] * len(chunks))[term]
                    copy.write_row((owner, term, document, entries))
        cursor.execute(
            "CREATE INDEX data_chunks_embedding ON rag.data_chunks USING hnsw (embedding public.halfvec_cosine_ops)"
            " WITH (m = 4, ef_construction = 8)"
        )
    with psycopg.connect(owner_conninfo, autocommit=True) as connection:
        connection.execute("ANALYZE rag.documents, rag.data_chunks, rag.postings, rag.term_statistics, rag.corpora")


def _random_rows() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((1_000, 384))


def _postings_of(generator: random.Random, document: int) -> Iterator[tuple[str, list[int]]]:
    first = document * PER_DOCUMENT + 1
    ranks = {min(VOCABULARY - 1, int(generator.paretovariate(0.6))) for _ in range(120)}
    for rank in sorted(ranks):
        count = 1 + int(PER_DOCUMENT / (2 + rank))
        yield word(rank), sorted(generator.sample(range(first, first + PER_DOCUMENT), count))


@pytest.fixture
async def corpora(database: Database, database_server: EmbeddedServer) -> list[UUID]:
    made = [await make_corpus(database, f"corpus {number}") for number in range(len(SHARES))]
    load_generated(database_server.owner_conninfo, made)
    return made


async def test_no_search_reads_chunks_or_postings_from_end_to_end(
    database: Database, corpora: list[UUID], fake_embedding: BaseEmbedding
) -> None:
    watched = WatchedDatabase(database)
    retriever = HybridRetriever(watched, fake_embedding, {"general": load_index("general")}, default_index="general")
    everything = Filters()
    searches: list[tuple[Filters, Mode]] = [
        (everything, "hybrid"),
        (everything, "lexical"),
        (Filters(corpus_ids=(corpora[0],)), "hybrid"),  # 1 %
        (Filters(corpus_ids=(corpora[1],)), "hybrid"),  # exact scan of 9,000
        (Filters(corpus_ids=(corpora[2],)), "hybrid"),  # HNSW under a filter
        (Filters(document_ids=(UUID(int=3), UUID(int=900))), "hybrid"),
        (Filters(tags=("tag3",)), "hybrid"),
        (Filters(source="source 7"), "hybrid"),
        (Filters(file_name="file12.txt"), "hybrid"),
        (Filters(fields={"topic": "t1"}), "hybrid"),
        (Filters(territory="Madrid"), "hybrid"),
    ]
    for filters, mode in searches:
        watched.seen.clear()
        retrieval = await retriever.search(
            Question(QUESTION, identity=ADMIN, filters=filters, candidates=10, mode=mode)
        )
        assert len(retrieval.hits) == 10, filters
        scans = await find_seq_scans(database, ADMIN, watched.seen)
        assert scans == [], f"{filters} {mode}"


async def test_no_search_looks_at_the_corpora_of_all_users(
    database: Database, database_server: EmbeddedServer, fake_embedding: BaseEmbedding
) -> None:
    await store_texts(database, await make_corpus(database), ["Holidays are 24 days a year."], fake_embedding)
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as connection:
        connection.execute(
            "WITH made AS (INSERT INTO rag.users (name, role)"
            " SELECT 'user ' || number, 'user' FROM generate_series(1, 5000) number RETURNING id)"
            " INSERT INTO rag.corpora (name, kind, owner_id, index_name)"
            " SELECT 'mine', 'personal', id, 'general' FROM made"
        )
        connection.execute("ANALYZE rag.corpora")
    watched = WatchedDatabase(database)
    retriever = HybridRetriever(watched, fake_embedding, {"general": load_index("general")}, default_index="general")
    retrieval = await retriever.search(Question("holidays", identity=ADMIN, candidates=10))
    assert len(retrieval.hits) == 1
    assert len(watched.seen) > 3
    assert await find_seq_scans(database, ADMIN, watched.seen, tables=frozenset({"corpora"})) == []
