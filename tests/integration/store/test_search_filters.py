"""What a search may see: filters bound as values, expired documents out, other people's corpora never found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.domain import Condition, ConditionGroup, Filters, Hit, Identity, Operator
from rag_service.errors import InputError, NotFoundError
from rag_service.indices import load_index
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.retrieval.question import Question
from rag_service.store.corpora import update_corpus
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import mostly_slow
from tests.integration.store.texts import ADMIN, add_user, make_corpus, store_texts

QUESTION = "when does the delivery contract end"
TEXT = "the delivery contract ends in may"

ATTACKS = [
    "nobody' OR '1'='1",
    '" OR ""="',
    "'; DROP TABLE rag.documents; --",
    ":word :1 %(corpora)s %s {0}",
    "100% of_it\\",
    "007",
    "2024_123",
    "1e5",
    "true",
    "null",
    "{a,b}",
    '["x"]',
    "$1 $$ $tag$",
    "naïve ñandú 日本語 🦙 \u202e \u0301",
    "x" * 10_000,
    "a\tb\nc",
]


async def find(
    database: Database,
    embedding: BaseEmbedding,
    filters: Filters,
    *,
    identity: Identity = ADMIN,
    question: str = QUESTION,
) -> set[UUID]:
    """Documents that hybrid, dense and lexical search find, which must agree."""
    retriever = HybridRetriever(database, embedding, {"general": load_index("general")}, default_index="general")
    found = []
    for mode in ("hybrid", "dense", "lexical"):
        retrieval = await retriever.search(
            Question(question, identity=identity, filters=filters, candidates=50, mode=mode)
        )
        found.append({hit.chunk.document.id for hit in retrieval.hits})
    assert found[0] == found[1] == found[2], f"the searches differ under {filters}"
    return found[0]


def described(name: str, value: str) -> dict[str, Any]:
    """Fields of a document that the filter `name` with this value matches."""
    return {
        "source": {"source": value},
        "tags": {"tags": (value, "other")},
        "file_name": {"file_name": value},
        "fields": {"fields": {"topic": value}},
        "territory": {"territory": value},
        "chunk_types": {"chunk_type": value},
    }[name]


def asking(name: str, value: str) -> Filters:
    """The filter `name` with this value."""
    return {
        "source": Filters(source=value),
        "tags": Filters(tags=(value,)),
        "file_name": Filters(file_name=value),
        "fields": Filters(fields={"topic": value}),
        "territory": Filters(territory=value),
        "chunk_types": Filters(chunk_types=(value,)),
    }[name]


@pytest.mark.parametrize(
    "name",
    mostly_slow(["source", "tags", "file_name", "fields", "territory", "chunk_types"], fast=["tags", "chunk_types"]),
)
async def test_an_attack_string_as_a_filter_matches_the_document_that_has_it_and_no_other(
    database: Database, fake_embedding: BaseEmbedding, name: str
) -> None:
    corpus = await make_corpus(database)
    # A document without a declared field or territory is valid for every request: here all have one.
    plain = await store_texts(database, corpus, [TEXT], fake_embedding, **described(name, "plain"))
    stored = {
        value: await store_texts(database, corpus, [TEXT], fake_embedding, **described(name, value))
        for value in ATTACKS
    }
    for value, document in stored.items():
        assert await find(database, fake_embedding, asking(name, value)) == {document}, value[:40]
        assert await find(database, fake_embedding, asking(name, value + "?")) == set(), value[:40]
    assert await find(database, fake_embedding, asking(name, "plain")) == {plain}
    assert await find(database, fake_embedding, Filters()) == {plain, *stored.values()}


async def test_a_filter_tree_restricts_every_mode(database: Database, fake_embedding: BaseEmbedding) -> None:
    corpus = await make_corpus(database)
    old, new, undated = [
        await store_texts(database, corpus, [TEXT], fake_embedding, fields=fields, tags=tags)
        for fields, tags in (({"year": "2019"}, ("draft",)), ({"year": "2023"}, ()), ({}, ("draft", "may")))
    ]
    recent = Condition(field="year", operator=Operator.GREATER, value=2020)
    draft = Condition(field="tags", operator=Operator.ANY, value=("draft",))
    for tree, expected in (
        (recent, {new}),
        (ConditionGroup(combine="not", parts=(recent,)), {old, undated}),
        (ConditionGroup(combine="or", parts=(recent, draft)), {old, new, undated}),
        (ConditionGroup(combine="and", parts=(draft, Condition(field="year", operator=Operator.IS_EMPTY))), {undated}),
    ):
        assert await find(database, fake_embedding, Filters(where=tree)) == expected


@pytest.mark.parametrize("key", ATTACKS)
async def test_an_attack_string_as_the_name_of_a_field_is_a_name(
    database: Database, fake_embedding: BaseEmbedding, key: str
) -> None:
    corpus = await make_corpus(database)
    mine = await store_texts(database, corpus, [TEXT], fake_embedding, fields={key: "a"})
    await store_texts(database, corpus, [TEXT], fake_embedding, fields={key: "b"})
    everywhere = await store_texts(database, corpus, [TEXT], fake_embedding)
    assert await find(database, fake_embedding, Filters(fields={key: "a"})) == {mine, everywhere}


@pytest.mark.slow
async def test_attack_strings_as_questions_find_what_their_words_say(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    corpus = await make_corpus(database)
    document = await store_texts(database, corpus, [TEXT], fake_embedding)
    for value in ATTACKS:
        assert await find(database, fake_embedding, Filters(), question=f"delivery contract {value}") == {document}


async def test_numbers_as_text_are_compared_as_text(database: Database, fake_embedding: BaseEmbedding) -> None:
    corpus = await make_corpus(database)
    agent = await store_texts(database, corpus, [TEXT], fake_embedding, source="007", fields={"plan": "401"})
    seven = await store_texts(database, corpus, [TEXT], fake_embedding, source="7", fields={"plan": "401.0"})
    assert await find(database, fake_embedding, Filters(source="007")) == {agent}
    assert await find(database, fake_embedding, Filters(source="7")) == {seven}
    assert await find(database, fake_embedding, Filters(fields={"plan": "401"})) == {agent}


async def test_filters_hold_together_and_before_ranking(database: Database, fake_embedding: BaseEmbedding) -> None:
    corpus = await make_corpus(database)
    both = await store_texts(database, corpus, [TEXT], fake_embedding, tags=("a", "b"), source="s")
    one = await store_texts(database, corpus, [TEXT], fake_embedding, tags=("a",), source="s", chunk_type="rules")
    # Many better matches that the filter forbids: filtering after ranking would return nothing.
    for _ in range(12):
        await store_texts(database, corpus, [QUESTION] * 20, fake_embedding, tags=("b",), source="s")
    assert await find(database, fake_embedding, Filters(tags=("a", "b"), source="s")) == {both}
    assert await find(database, fake_embedding, Filters(tags=("a",))) == {both, one}
    assert await find(database, fake_embedding, Filters(chunk_types=("rules",))) == {one}
    assert await find(database, fake_embedding, Filters(document_ids=(one, uuid4()))) == {one}
    assert await find(database, fake_embedding, Filters(corpus_ids=(uuid4(),))) == set()


async def test_a_territory_never_hides_what_is_valid_everywhere(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    corpus = await make_corpus(database)
    madrid = await store_texts(database, corpus, [TEXT], fake_embedding, territory="Madrid")
    await store_texts(database, corpus, [TEXT], fake_embedding, territory="Galicia")
    state = await store_texts(database, corpus, [TEXT], fake_embedding)
    assert await find(database, fake_embedding, Filters(territory="Madrid")) == {madrid, state}


async def test_a_question_that_names_a_file_searches_that_file_only(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    corpus = await make_corpus(database)
    report = await store_texts(database, corpus, [TEXT], fake_embedding, file_name="Report Q3.pdf")
    other = await store_texts(database, corpus, [TEXT], fake_embedding, file_name="other.pdf")
    asked = "What does report q3.pdf say about the end of the delivery contract?"
    assert await find(database, fake_embedding, Filters(), question=asked) == {report}
    unknown = "What does missing.pdf say about the end of the delivery contract?"
    assert await find(database, fake_embedding, Filters(), question=unknown) == {report, other}


async def test_expired_documents_are_not_found_even_when_they_are_named(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    corpus = await make_corpus(database)
    now = datetime.now(UTC)
    gone = await store_texts(database, corpus, [TEXT], fake_embedding, expires_at=now - timedelta(seconds=1))
    soon = await store_texts(database, corpus, [TEXT], fake_embedding, expires_at=now + timedelta(hours=1))
    assert await find(database, fake_embedding, Filters()) == {soon}
    assert await find(database, fake_embedding, Filters(document_ids=(gone, soon))) == {soon}


async def test_ids_that_must_exist_are_looked_for(database: Database, fake_embedding: BaseEmbedding) -> None:
    corpus = await make_corpus(database)
    gone = await store_texts(
        database, corpus, [TEXT], fake_embedding, expires_at=datetime.now(UTC) - timedelta(seconds=1)
    )
    here = await store_texts(database, corpus, [TEXT], fake_embedding)
    named = Filters(corpus_ids=(corpus,), document_ids=(here,), must_exist=True)
    assert await find(database, fake_embedding, named) == {here}
    for missing in (gone, uuid4()):
        with pytest.raises(NotFoundError, match=f"no document {missing} ") as caught:
            await find(database, fake_embedding, replace(named, document_ids=(here, missing)))
        assert caught.value.field == "documentIds"
    async with database.transaction(ADMIN) as connection:
        await update_corpus(connection, corpus, active=False)
    with pytest.raises(NotFoundError, match=f"no corpus {corpus} ") as caught:
        await find(database, fake_embedding, named)
    assert caught.value.field == "corpusIds"


async def test_a_field_that_no_index_in_reach_declares_is_refused(
    database: Database, fake_embedding: BaseEmbedding
) -> None:
    general = load_index("general")
    declaring = general.model_copy(
        update={"ingest": general.ingest.model_copy(update={"filter_fields": ("topic", "plan")})}
    )
    retriever = HybridRetriever(database, fake_embedding, {"general": declaring}, default_index="general")

    async def ask(**fields: str) -> list[Hit]:
        filters = Filters(fields=fields, must_exist=True)
        return list((await retriever.search(Question(QUESTION, identity=ADMIN, filters=filters, candidates=5))).hits)

    assert await ask(colour="red") == []  # nothing is in reach that could declare anything
    document = await store_texts(database, await make_corpus(database), [TEXT], fake_embedding, fields={"topic": "a"})
    assert [hit.chunk.document.id for hit in await ask(topic="a", plan="b")] == [document]
    assert await ask(topic="b") == []
    with pytest.raises(InputError, match="no filter field 'colour'") as caught:
        await ask(topic="a", colour="red")
    assert caught.value.field == "fields"


async def test_nobody_finds_what_is_anothers(
    database: Database, database_server: EmbeddedServer, fake_embedding: BaseEmbedding
) -> None:
    anna = add_user(database_server.owner_conninfo, "anna")
    ben = add_user(database_server.owner_conninfo, "ben")
    hers = await make_corpus(database, "hers", identity=anna)
    document = await store_texts(database, hers, [TEXT], fake_embedding, identity=anna, source="s")
    assert await find(database, fake_embedding, Filters(), identity=anna) == {document}
    for identity in (ben, ADMIN, Identity(user_id=uuid4())):
        for filters in (
            Filters(),
            Filters(corpus_ids=(hers,)),
            Filters(document_ids=(document,)),
            Filters(source="s", corpus_ids=(hers,)),
        ):
            assert await find(database, fake_embedding, filters, identity=identity) == set()


async def test_what_one_may_read_does_not_depend_on_who_used_the_connection_before(
    database: Database, database_server: EmbeddedServer, fake_embedding: BaseEmbedding
) -> None:
    anna = add_user(database_server.owner_conninfo, "anna")
    hers = await make_corpus(database, "hers", identity=anna)
    await store_texts(database, hers, [TEXT], fake_embedding, identity=anna)
    for _ in range(6):  # more often than the pool has connections
        assert await find(database, fake_embedding, Filters(), identity=anna)
        assert await find(database, fake_embedding, Filters(), identity=replace(ADMIN)) == set()
        async with database.transaction(None) as connection:
            cursor = await connection.execute("SELECT count(*) FROM data_chunks")
            assert await cursor.fetchone() == (0,)
