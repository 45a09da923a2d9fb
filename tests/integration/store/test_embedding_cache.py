"""The embedding cache: nothing is embedded twice, and nobody sees what another one had embedded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pytest

from rag_service.domain import LOCAL_ADMIN, CorpusKind, Identity, ParsedDocument, Role
from rag_service.errors import EmbeddingError
from rag_service.indices import IndexDefinition, load_index
from rag_service.ingest.embedding_cache import (
    CachedEmbedding,
    embedding_key,
    purge_embeddings,
    read_embeddings,
    write_embeddings,
)
from rag_service.ingest.ingestor import Ingestor
from rag_service.readers.file_reader import FileReader
from rag_service.readers.parse import parse
from rag_service.store.accounts.users import create_user
from rag_service.store.corpora import Corpus, create_corpus
from rag_service.store.database import Database
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.loop_watch import apart

ADMIN = LOCAL_ADMIN
KEY = bytes(32)


class CountingEmbedding(FakeEmbedding):
    """Notes what it is asked to embed, and fails on texts that hold a given word."""

    asked: list[str] = []  # noqa: RUF012 - pydantic copies it
    fails_on: str = ""

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        if self.fails_on and any(self.fails_on in text for text in texts):
            raise EmbeddingError("The embedding service cannot be reached.")
        return [self._embed(text) for text in texts]


@pytest.fixture
def model() -> CountingEmbedding:
    return CountingEmbedding(model_name="counting", embed_batch_size=4)


def corpus_of(owner: Identity | None) -> Corpus:
    now = datetime.now(UTC)
    return Corpus(
        id=uuid4(),
        name="notes",
        kind=CorpusKind.GLOBAL if owner is None else CorpusKind.PERSONAL,
        owner_id=None if owner is None else owner.user_id,
        index_name="general",
        active=True,
        ttl_seconds=None,
        created_at=now,
        updated_at=now,
    )


async def add_user(database: Database, name: str) -> Identity:
    async with database.transaction(ADMIN) as connection:
        created = await create_user(connection, name=name, role=Role.USER)
    return Identity(user_id=created.id, role=Role.USER)


def cached(model: CountingEmbedding, database: Database, *, ttl: int = 60) -> CachedEmbedding:
    return CachedEmbedding(model, database, dimension=384, ttl_seconds=ttl)


async def embed(embedding: CachedEmbedding, texts: Sequence[str]) -> list[list[float]]:
    return await embedding.aget_text_embedding_batch(list(texts))


# -- vectors


async def test_vectors_come_back_in_order_and_only_new_texts_are_embedded(
    database: Database, model: CountingEmbedding
) -> None:
    bound = cached(model, database).for_corpus(corpus_of(None), ADMIN)
    texts = [f"passage number {number}" for number in range(230)]
    first = await embed(bound, texts)
    assert sorted(model.asked) == sorted(texts)
    model.asked.clear()
    mixed = ["a new one", *reversed(texts), "another new one", texts[7]]
    again = await embed(bound, mixed)
    assert sorted(model.asked) == ["a new one", "another new one"]
    for text, vector in zip(mixed, again, strict=True):
        assert vector == pytest.approx(model._embed(text), abs=1e-6)
    assert again[1] == pytest.approx(first[229], abs=1e-6)


async def test_equal_texts_of_one_call_are_embedded_once(database: Database, model: CountingEmbedding) -> None:
    bound = cached(model, database).for_corpus(corpus_of(None), ADMIN)
    vectors = await embed(bound, ["same", "other", "same"])
    assert model.asked == ["same", "other"]
    assert vectors[0] == vectors[2] != vectors[1]


async def test_a_batch_is_one_lookup_and_one_write(
    database: Database, model: CountingEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_service.ingest import embedding_cache

    sizes: list[tuple[str, int]] = []

    async def read(connection: object, keys: Sequence[bytes]) -> dict[bytes, list[float]]:
        sizes.append(("read", len(keys)))
        return await read_embeddings(connection, keys)  # type: ignore[arg-type]

    async def write(connection: object, vectors: dict[bytes, list[float]], **rest: object) -> None:
        sizes.append(("write", len(vectors)))
        await write_embeddings(connection, vectors, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(embedding_cache, "read_embeddings", read)
    monkeypatch.setattr(embedding_cache, "write_embeddings", write)
    await embed(cached(model, database).for_corpus(corpus_of(None), ADMIN), [str(number) for number in range(150)])
    assert sizes == [("read", 100), ("write", 100), ("read", 50), ("write", 50)]


async def test_hits_and_misses_are_counted(database: Database, model: CountingEmbedding) -> None:
    counts: list[tuple[int, int]] = []
    embedding = CachedEmbedding(
        model, database, dimension=384, ttl_seconds=60, observe=lambda hits, misses: counts.append((hits, misses))
    ).for_corpus(corpus_of(None), ADMIN)
    await embed(embedding, ["a", "b"])
    await embed(embedding, ["b", "c"])
    assert counts == [(0, 2), (1, 1)]


@pytest.mark.parametrize("different", ["model", "dimension", "role", "tenant", "content"])
def test_the_key_covers_everything_a_vector_depends_on(different: str) -> None:
    base = {"model": "m", "dimension": 384, "role": "passage", "tenant": None, "content": "text"}
    other = base | {
        different: {"model": "n", "dimension": 3, "role": "query", "tenant": uuid4(), "content": "text "}[different]
    }
    key, changed = (
        embedding_key(
            values["content"],  # type: ignore[arg-type]
            model=values["model"],  # type: ignore[arg-type]
            dimension=values["dimension"],  # type: ignore[arg-type]
            role=values["role"],  # type: ignore[arg-type]
            tenant=values["tenant"],  # type: ignore[arg-type]
        )
        for values in (base, other)
    )
    assert len(key) == 32
    assert key != changed


async def test_what_has_expired_is_embedded_again_and_purged(
    database: Database, database_server: EmbeddedServer, model: CountingEmbedding
) -> None:
    bound = cached(model, database).for_corpus(corpus_of(None), ADMIN)
    await embed(bound, ["a", "b"])
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as owner:
        owner.execute("UPDATE rag.embedding_cache SET expires_at = now() - interval '1 second'")
        model.asked.clear()
        await embed(bound, ["a"])
        assert model.asked == ["a"]
        async with database.transaction(None) as connection:
            assert await purge_embeddings(connection) == 1
        assert owner.execute("SELECT count(*) FROM rag.embedding_cache").fetchone() == (1,)


async def test_zero_seconds_turn_the_cache_off(database: Database, model: CountingEmbedding) -> None:
    bound = cached(model, database, ttl=0).for_corpus(corpus_of(None), ADMIN)
    await embed(bound, ["a"])
    await embed(bound, ["a"])
    assert model.asked == ["a", "a"]


async def test_without_its_table_everything_is_embedded(
    database: Database, database_server: EmbeddedServer, model: CountingEmbedding
) -> None:
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as owner:
        owner.execute("DROP TABLE rag.embedding_cache")
    vectors = await embed(cached(model, database).for_corpus(corpus_of(None), ADMIN), ["a"])
    assert vectors == [model._embed("a")]


async def test_after_a_failure_only_what_is_missing_is_embedded(database: Database, model: CountingEmbedding) -> None:
    bound = cached(model, database).for_corpus(corpus_of(None), ADMIN)
    texts = [f"text {number}" for number in range(10)] + ["broken"] + [f"late {number}" for number in range(120)]
    model.fails_on = "broken"
    with pytest.raises(EmbeddingError):
        await embed(bound, texts)
    model.fails_on = ""
    model.asked.clear()
    await embed(bound, texts)
    assert sorted(model.asked) == ["broken", "late 0", "text 8", "text 9"]  # the batch of four that failed


async def test_two_writers_of_the_same_texts_do_not_block_each_other(
    database: Database, model: CountingEmbedding
) -> None:
    bound = cached(model, database).for_corpus(corpus_of(None), ADMIN)
    texts = [f"text {number}" for number in range(100)]
    async with asyncio.timeout(60):
        await asyncio.gather(*(embed(bound, texts if turn % 2 else texts[::-1]) for turn in range(6)))
    asked = len(model.asked)
    await embed(bound, texts)
    assert len(model.asked) == asked, "every text is in the cache"


# -- whose they are


async def test_personal_texts_are_cached_for_their_owner_alone(database: Database, model: CountingEmbedding) -> None:
    anna, ben = await add_user(database, "anna"), await add_user(database, "ben")
    embedding = cached(model, database)
    await embed(embedding.for_corpus(corpus_of(None), ADMIN), ["the text"])
    for identity in (anna, ben, anna):
        await embed(embedding.for_corpus(corpus_of(identity), identity), ["the text"])
    assert model.asked == ["the text"] * 3  # global, Anna's, Ben's


async def test_rows_of_another_tenant_are_out_of_reach_even_by_their_key(database: Database) -> None:
    anna, ben = await add_user(database, "anna"), await add_user(database, "ben")
    async with database.transaction(anna) as connection:
        await write_embeddings(connection, {KEY: [1.0]}, tenant=anna.user_id, ttl_seconds=60)
        assert await read_embeddings(connection, [KEY]) == {KEY: [1.0]}
    for identity in (ben, ADMIN, None):
        async with database.transaction(identity) as connection:
            assert await read_embeddings(connection, [KEY]) == {}


async def test_nobody_plants_a_vector_for_others(database: Database) -> None:
    anna, ben = await add_user(database, "anna"), await add_user(database, "ben")
    for tenant in (None, ben.user_id):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with database.transaction(anna) as connection:
                await write_embeddings(connection, {KEY: [1.0]}, tenant=tenant, ttl_seconds=60)
    async with database.transaction(ADMIN) as connection:
        await write_embeddings(connection, {KEY: [2.0]}, tenant=None, ttl_seconds=60)
    async with database.transaction(anna) as connection:
        assert await read_embeddings(connection, [KEY]) == {KEY: [2.0]}
    async with database.transaction(None) as connection:
        assert await read_embeddings(connection, [KEY]) == {}


async def test_a_deleted_user_leaves_no_vectors(database: Database, database_server: EmbeddedServer) -> None:
    anna = await add_user(database, "anna")
    async with database.transaction(anna) as connection:
        await write_embeddings(connection, {KEY: [1.0]}, tenant=anna.user_id, ttl_seconds=60)
    with psycopg.connect(database_server.owner_conninfo, autocommit=True) as owner:
        owner.execute("DELETE FROM rag.users WHERE id = %s", [anna.user_id])
        assert owner.execute("SELECT count(*) FROM rag.embedding_cache").fetchone() == (0,)


async def test_a_reader_who_may_not_write_is_embedded_for_all_the_same(
    database: Database, model: CountingEmbedding
) -> None:
    anna = await add_user(database, "anna")
    assert await embed(cached(model, database).for_corpus(corpus_of(None), anna), ["a"]) == [model._embed("a")]


# -- documents


async def parse_here(data: bytes, file_name: str) -> ParsedDocument:
    with apart():
        return parse(data, file_name=file_name)


def handbook(changed: int | None = None) -> DocumentInput:
    filler = "Each rule is explained with an example that the staff can follow in their daily work. " * 8
    sections = [
        f"## Section {number}\n\nRule {number} {'was revised' if number == changed else 'applies'}. {filler}"
        for number in range(12)
    ]
    return DocumentInput(data=("# Handbook\n\n" + "\n\n".join(sections)).encode(), file_name="handbook.md")


@pytest.fixture
def index() -> IndexDefinition:
    loaded = load_index("general")
    return loaded.model_copy(
        update={"ingest": loaded.ingest.model_copy(update={"chunk_tokens": 150, "chunk_overlap": 0})}
    )


async def test_unchanged_text_is_not_embedded_again_and_of_a_changed_document_only_the_change(
    database: Database, model: CountingEmbedding, index: IndexDefinition
) -> None:
    async with database.transaction(ADMIN) as connection:
        corpus = await create_corpus(connection, ADMIN, name="handbooks", kind=CorpusKind.GLOBAL, index_name="general")
    embedding = cached(model, database)
    ingestor = Ingestor(database, embedding, FileReader(parse_here), model="counting", dimension=384)
    stored = await ingestor.ingest(handbook(), corpus=corpus, index=index, identity=ADMIN)
    assert len(model.asked) == stored.chunk_count > 6

    model.asked.clear()
    changed_index = index.model_copy(update={"ingest": index.ingest.model_copy(update={"filter_fields": ("plan",)})})
    again = await ingestor.ingest(handbook(), corpus=corpus, index=changed_index, identity=ADMIN)
    assert again.outcome.value == "replaced"  # the definition changed, the text did not
    assert model.asked == []

    changed = await ingestor.ingest(handbook(changed=5), corpus=corpus, index=index, identity=ADMIN)
    assert changed.chunk_count == stored.chunk_count
    assert len(model.asked) == 1
    assert "was revised" in model.asked[0]
