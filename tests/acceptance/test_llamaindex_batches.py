"""Nodes of a document may come in any batches and any order: the store keeps what it is given, once, in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    NodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    get_leaf_nodes,
)
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from rag_service.domain import Filters
from rag_service.errors import InputError
from rag_service.indices import load_index
from rag_service.ingest.ingestor import Ingestor
from rag_service.retrieval.hybrid import HybridRetriever
from rag_service.retrieval.question import Question
from rag_service.store.database import Database
from rag_service.store.documents.chunk_store import ChunkStore
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import DIMENSION, FakeEmbedding, make_fake_embedding
from tests.integration.store.texts import add_user

TEXT = " ".join(f"Pallet {number} stands in hall {number % 7}." for number in range(40))
SENTENCES = st.sampled_from(["Gate 4 opens at six.", "Nobody is there.", "Why?", "Pallets wait in hall 7 until May."])
TEXTS = st.lists(st.lists(SENTENCES, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=3)


def splitter(words: int, overlap: int = 0) -> SentenceSplitter:
    return SentenceSplitter(chunk_size=words, chunk_overlap=overlap, tokenizer=str.split)


def hierarchical(*words: int) -> HierarchicalNodeParser:
    parsers = {str(size): splitter(size) for size in words}
    return HierarchicalNodeParser.from_defaults(node_parser_ids=list(parsers), node_parser_map=dict(parsers))


PARSERS: dict[str, NodeParser] = {
    "sentences": splitter(6),
    "overlapping": splitter(12, 6),
    "windows": SentenceWindowNodeParser.from_defaults(window_size=1),
    "leaves": hierarchical(24, 12, 6),
}


def embedded(nodes: Sequence[BaseNode]) -> list[BaseNode]:
    for node in nodes:
        node.embedding = make_fake_embedding().get_text_embedding(node.get_content(MetadataMode.EMBED))
    return list(nodes)


def parse(parser: str, *documents: Document) -> list[BaseNode]:
    nodes = PARSERS[parser].get_nodes_from_documents(documents)
    return embedded(get_leaf_nodes(nodes) if parser == "leaves" else nodes)


def open_store(server: EmbeddedServer, database: Database, user: str = "anna") -> ChunkStore:
    ingestor = Ingestor(database, make_fake_embedding(), model="fake", dimension=DIMENSION)
    return ingestor.vector_store(load_index("general"), add_user(server.owner_conninfo, user))


@pytest.fixture
def store(database_server: EmbeddedServer, database: Database) -> ChunkStore:
    return open_store(database_server, database)


async def stored(store: ChunkStore, name: str = "halls") -> list[BaseNode]:
    """The nodes of a document in its order, each a slice of its text."""
    async with store.client.transaction(store._identity) as connection:
        cursor = await connection.execute(
            """SELECT c.node_id, c.text, substr(t.text, c.char_start + 1, c.char_end - c.char_start), d.chunk_count
               FROM documents d JOIN document_texts t ON t.document_id = d.id
               LEFT JOIN data_chunks c ON c.document_id = d.id WHERE d.name = %s ORDER BY c.chunk_index""",
            [name],
        )
        rows = await cursor.fetchall()
    assert all(text == piece and count == len(rows) for _, text, piece, count in rows)
    nodes = {node.node_id: node for node in await store.aget_nodes([row[0] for row in rows])}
    return [nodes[row[0]] for row in rows]


async def stored_ids(store: ChunkStore, name: str = "halls") -> list[str]:
    return [node.node_id for node in await stored(store, name)]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(texts=TEXTS, parser=st.sampled_from(sorted(PARSERS)), data=st.data())
def test_the_stored_nodes_are_the_given_ones_whatever_the_batches_and_their_order(
    database_server: EmbeddedServer, texts: list[str], parser: str, data: st.DataObject
) -> None:
    documents = [Document(text=text, id_=str(uuid4())) for text in texts]
    nodes = parse(parser, *documents)
    ordered = data.draw(st.just(nodes) | st.permutations(nodes), label="order")
    size = data.draw(st.integers(1, len(nodes)), label="batch size")
    earlier = data.draw(st.booleans(), label="earlier version")

    async def check() -> None:
        database = Database(database_server.service_conninfo, pool_size=2, timeout=5)
        await database.open()
        try:
            store = open_store(database_server, database, user=str(uuid4()))
            if earlier:
                before = [Document(text=f"Before: {document.text}", id_=document.id_) for document in documents]
                await store.async_add(parse(parser, *before))
            for start in range(0, len(nodes), size):
                await store.async_add(ordered[start : start + size])
            for document in documents:
                given_ids = [node.node_id for node in nodes if node.ref_doc_id == document.id_]
                found = await stored_ids(store, document.id_)
                assert sorted(found) == sorted(given_ids)
                if parser != "leaves":  # which count within a parent that is not stored
                    assert found == given_ids
        finally:
            await database.close()

    asyncio.run(check())


async def test_all_leaves_of_a_hierarchy_are_stored(store: ChunkStore, fake_embedding: FakeEmbedding) -> None:
    leaves = parse("leaves", Document(text=TEXT, id_="halls"))
    index = VectorStoreIndex.from_vector_store(store, embed_model=fake_embedding, insert_batch_size=3)
    await index.ainsert_nodes(leaves)
    assert await stored_ids(store) == [node.node_id for node in leaves]


async def test_calls_that_name_one_document_add_to_it(store: ChunkStore) -> None:
    first, second = parse("sentences", Document(text="Gate 4 opens at six. It closes at ten.", id_="halls"))
    for node in (first, second):
        node.relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="halls")}
        await asyncio.to_thread(store.add, [node])
    assert await stored_ids(store) == [first.node_id, second.node_id]


@pytest.mark.parametrize("placed", [True, False])
async def test_nodes_that_come_backwards_stand_in_the_order_of_the_document(store: ChunkStore, placed: bool) -> None:
    nodes = parse("sentences", Document(text=TEXT, id_="halls"))
    for node in nodes:
        assert isinstance(node, TextNode)
        node.start_char_idx = node.start_char_idx if placed else None
    for node in reversed(nodes):
        await store.async_add([node])
    assert await stored_ids(store) == [node.node_id for node in nodes]


async def test_an_offset_that_no_text_has_is_not_believed(store: ChunkStore) -> None:
    nodes = [TextNode(text="Gate 4.", start_char_idx=-5), TextNode(text="Gate 5.", start_char_idx=10**12)]
    for node in nodes:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="halls")
    await store.async_add(embedded(nodes))
    assert [node.get_content() for node in await stored(store)] == ["Gate 4.", "Gate 5."]


async def test_a_node_that_is_added_again_takes_its_own_place(store: ChunkStore) -> None:
    nodes = parse("sentences", Document(text=TEXT, id_="halls"))
    await store.async_add(nodes)
    await store.async_add(nodes[3:5])
    nodes[4].metadata["reviewed"] = True
    await store.async_add(nodes[4:5])
    found = await stored(store)
    assert [node.node_id for node in found] == [node.node_id for node in nodes]
    assert [node.metadata.get("reviewed") for node in found[3:6]] == [None, True, None]


async def test_a_batch_that_continues_a_document_leaves_its_stored_chunks_untouched(
    store: ChunkStore, fake_embedding: FakeEmbedding
) -> None:
    nodes = parse("sentences", Document(text=TEXT, id_="halls"))
    ids = []
    for start in range(0, len(nodes), 10):
        await store.async_add(nodes[start : start + 10])
        async with store.client.transaction(store._identity) as connection:
            cursor = await connection.execute("SELECT id FROM data_chunks ORDER BY chunk_index")
            ids.append([row[0] for row in await cursor.fetchall()])
    assert ids == [ids[-1][:count] for count in (10, 20, 30, 40)]
    retriever = HybridRetriever(
        store.client, fake_embedding, {"general": load_index("general")}, default_index="general"
    )
    for number in (12, 35):
        query = Question(f"Where is pallet {number}?", identity=store._identity, filters=Filters(), mode="lexical")
        assert (await retriever.search(query)).hits[0].chunk.text == nodes[number].get_content()


async def test_a_new_index_refreshes_documents_without_doubling_them(
    store: ChunkStore, fake_embedding: FakeEmbedding
) -> None:
    texts = ["The contract ends in May. It is renewed by letter.", "The contract ends in June. It is not renewed."]
    for text in (texts[0], texts[0], texts[1], texts[1]):  # a script that runs every night
        index = VectorStoreIndex.from_vector_store(
            store, embed_model=fake_embedding, transformations=[PARSERS["sentences"]]
        )
        document = Document(text=text, id_="halls")
        assert await asyncio.to_thread(index.refresh_ref_docs, [document]) == [True]
        assert " ".join(node.get_content() for node in await stored(store)) == text
    await asyncio.to_thread(index.update_ref_doc, Document(text=texts[0], id_="halls"))
    assert " ".join(node.get_content() for node in await stored(store)) == texts[0]


async def test_batches_that_come_at_the_same_time_are_all_kept(store: ChunkStore) -> None:
    nodes = parse("leaves", Document(text=TEXT, id_="halls"))
    await asyncio.gather(*(store.async_add(nodes[start::4]) for start in range(4)))
    assert set(await stored_ids(store)) == {node.node_id for node in nodes}


async def test_two_versions_of_a_document_in_one_batch_are_refused(store: ChunkStore) -> None:
    versions = [Document(text="The contract ends in May.", id_="x"), Document(text="It ends in June.", id_="x")]
    nodes = [node for version in versions for node in parse("sentences", version)]
    with pytest.raises(InputError, match="give each its own id"):
        await store.async_add(nodes)
    assert await stored(store, "x") == []


async def test_index_nodes_do_not_hide_the_other_nodes(store: ChunkStore, fake_embedding: FakeEmbedding) -> None:
    index = VectorStoreIndex.from_vector_store(store, embed_model=fake_embedding)
    nodes = [TextNode(text="Gate 4 opens at six."), IndexNode(text="All about gate 4.", index_id="gates")]
    await index.ainsert_nodes(nodes)
    found = await index.as_retriever(similarity_top_k=5).aretrieve("gate 4")
    assert {hit.node.get_content() for hit in found} == {"Gate 4 opens at six.", "All about gate 4."}
