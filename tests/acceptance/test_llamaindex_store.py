"""Stock LlamaIndex classes on the vector store insert, find and delete for one user, and no other sees it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    Document,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
    TransformComponent,
)
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from rag_service.domain import Filters, Identity
from rag_service.errors import ConflictError, InputError, NotFoundError, PermissionDeniedError
from rag_service.indices import IndexDefinition, PluginUse, load_index
from rag_service.ingest.ingestor import Ingestor
from rag_service.store.corpora import default_corpus
from rag_service.store.database import Database
from rag_service.store.documents.chunk_store import ChunkStore
from rag_service.store.documents.chunks import CORPUS_ID
from rag_service.store.documents.documents import DocumentInput, read_text
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import DIMENSION, FakeEmbedding
from tests.integration.store.test_search_filters import find
from tests.integration.store.texts import add_user

TEXT = "The delivery contract ends in May. It is renewed by letter. Pallets are stacked four high in hall seven."
QUESTION = "when does the delivery contract end"


@dataclass(frozen=True, kw_only=True)
class Two:
    """Two users of one database."""

    database: Database
    embedding: FakeEmbedding
    ingestor: Ingestor
    index: IndexDefinition
    anna: Identity
    ben: Identity

    def store(self, identity: Identity) -> ChunkStore:
        return self.ingestor.vector_store(self.index, identity)

    async def found(self, identity: Identity, filters: MetadataFilters | None = None, **query: Any) -> list[str]:
        """Texts that a plain vector search finds."""
        vector = await self.embedding.aget_query_embedding(QUESTION)
        asked = VectorStoreQuery(query_embedding=vector, similarity_top_k=50, filters=filters, **query)
        return [node.get_content() for node in (await self.store(identity).aquery(asked)).nodes or ()]

    async def count(self, table: str) -> int:
        """Rows that Anna sees."""
        async with self.database.transaction(self.anna) as connection:
            row = await (await connection.execute(f"SELECT count(*) FROM {table}")).fetchone()  # type: ignore[arg-type]
            assert row is not None
            return int(row[0])


@pytest.fixture
def two(database: Database, database_server: EmbeddedServer, fake_embedding: FakeEmbedding) -> Two:
    return Two(
        database=database,
        embedding=fake_embedding,
        ingestor=Ingestor(database, fake_embedding, model="fake", dimension=DIMENSION),
        index=load_index("general"),
        anna=add_user(database_server.owner_conninfo, "anna"),
        ben=add_user(database_server.owner_conninfo, "ben"),
    )


async def test_a_vector_store_index_inserts_finds_and_deletes_for_its_user_alone(two: Two) -> None:
    index = VectorStoreIndex.from_vector_store(two.store(two.anna), embed_model=two.embedding)
    await asyncio.to_thread(index.insert, Document(text=TEXT, id_="contract", metadata={"title": "Contract"}))
    retriever = index.as_retriever(similarity_top_k=3)
    for hits in (await asyncio.to_thread(retriever.retrieve, QUESTION), await retriever.aretrieve(QUESTION)):
        assert [(hit.node.ref_doc_id, hit.get_content()) for hit in hits] == [("contract", TEXT)]
        assert hits[0].score is not None and hits[0].score > 0.3
    [document] = await find(two.database, two.embedding, Filters(), identity=two.anna, question=QUESTION)
    async with two.database.transaction(two.anna) as connection:
        assert await read_text(connection, document) == TEXT
    assert await find(two.database, two.embedding, Filters(), identity=two.ben, question=QUESTION) == set()
    assert await two.found(two.ben) == []
    others = VectorStoreIndex.from_vector_store(two.store(two.ben), embed_model=two.embedding)
    await asyncio.to_thread(others.delete_ref_doc, "contract")  # deletes nothing that is not Ben's
    assert await two.found(two.anna) == [TEXT]
    await asyncio.to_thread(index.delete_ref_doc, "contract")
    assert await two.found(two.anna) == []
    assert [await two.count(table) for table in ("documents", "data_chunks", "postings", "term_statistics")] == [0] * 4


async def test_inserting_the_same_document_again_replaces_it(two: Two) -> None:
    index = VectorStoreIndex.from_vector_store(two.store(two.anna), embed_model=two.embedding)
    await index.ainsert(Document(text="The contract ends in May.", id_="contract"))
    await index.ainsert(Document(text="The contract ends in June.", id_="contract"))
    others = VectorStoreIndex.from_vector_store(two.store(two.ben), embed_model=two.embedding)
    await others.ainsert(Document(text="The contract ends in July.", id_="contract"))
    assert await two.found(two.anna) == ["The contract ends in June."]
    assert await two.found(two.ben) == ["The contract ends in July."]
    assert await two.count("documents") == 1


async def test_a_document_that_comes_in_several_batches_is_stored_whole(two: Two) -> None:
    """`VectorStoreIndex` sends so many nodes at a time; the later ones must not replace the earlier ones."""
    text = " ".join(f"Pallet {number} stands in hall {number % 7}." for number in range(300))
    splitter = SentenceSplitter(chunk_size=40, chunk_overlap=0)
    index = VectorStoreIndex.from_vector_store(
        two.store(two.anna), embed_model=two.embedding, insert_batch_size=5, transformations=[splitter]
    )
    await index.ainsert(Document(text="An earlier version.", id_="halls"))
    await index.ainsert(Document(text=text, id_="halls"))
    expected = [node.get_content() for node in splitter.get_nodes_from_documents([Document(text=text)])]
    assert len(expected) > 10
    async with two.database.transaction(two.anna) as connection:
        cursor = await connection.execute(
            "SELECT c.text, substr(t.text, c.char_start + 1, c.char_end - c.char_start), d.chunk_count"
            " FROM data_chunks c JOIN documents d ON d.id = c.document_id JOIN document_texts t ON t.document_id = d.id"
            " ORDER BY c.chunk_index"
        )
        rows = await cursor.fetchall()
    assert rows == [(content, content, len(expected)) for content in expected]


async def test_a_stock_pipeline_stores_slices_of_the_text_in_order(two: Two) -> None:
    text = "\n\n".join(
        f"Paragraph {number} says that pallet {number} stands in hall {number % 7}." for number in range(80)
    )
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=100, chunk_overlap=20), two.embedding],
        vector_store=two.store(two.anna),
        disable_cache=True,
    )
    nodes = await pipeline.arun(documents=[Document(text=text, id_="halls", metadata={"file_name": "halls.txt"})])
    assert len(nodes) > 5
    async with two.database.transaction(two.anna) as connection:
        cursor = await connection.execute(
            "SELECT c.text, c.char_start, c.char_end, d.file_name, d.chunk_count, t.text FROM data_chunks c"
            " JOIN documents d ON d.id = c.document_id JOIN document_texts t ON t.document_id = d.id"
            " ORDER BY c.chunk_index"
        )
        rows = await cursor.fetchall()
    assert [row[0] for row in rows] == [node.get_content() for node in nodes]
    assert {row[3:5] for row in rows} == {("halls.txt", len(nodes))}
    assert all(whole[start:end] == content for content, start, end, _, _, whole in rows)
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    [document] = await find(two.database, two.embedding, Filters(), identity=two.anna, question="pallet 41")
    assert document is not None
    assert await find(two.database, two.embedding, Filters(), identity=two.ben, question="pallet 41") == set()


# (filter, years of the documents that it finds)
FILTERS: list[tuple[MetadataFilter | MetadataFilters, set[int]]] = [
    (MetadataFilter(key="year", value=2021, operator=FilterOperator.EQ), {2021}),
    (MetadataFilter(key="year", value=2021, operator=FilterOperator.NE), {2019, 2023}),
    (MetadataFilter(key="year", value=2020, operator=FilterOperator.GT), {2021, 2023}),
    (MetadataFilter(key="year", value=2021, operator=FilterOperator.GTE), {2021, 2023}),
    (MetadataFilter(key="year", value=2020.5, operator=FilterOperator.LT), {2019}),
    (MetadataFilter(key="year", value=2021, operator=FilterOperator.LTE), {2019, 2021}),
    (MetadataFilter(key="signed", value="2021-06-01", operator=FilterOperator.GT), {2023}),
    (MetadataFilter(key="year", value=[2019, 2023], operator=FilterOperator.IN), {2019, 2023}),
    (MetadataFilter(key="year", value=[2019, 2023], operator=FilterOperator.NIN), {2021}),
    (MetadataFilter(key="tags", value=["draft", "old"], operator=FilterOperator.ANY), {2019, 2021}),
    (MetadataFilter(key="tags", value=["draft", "old"], operator=FilterOperator.ALL), {2019}),
    (MetadataFilter(key="tags", value="draft", operator=FilterOperator.CONTAINS), {2019, 2021}),
    (MetadataFilter(key="topic", value="eliver", operator=FilterOperator.TEXT_MATCH), {2019, 2021}),
    (MetadataFilter(key="topic", value="DELIVERY", operator=FilterOperator.TEXT_MATCH_INSENSITIVE), {2019, 2021}),
    (MetadataFilter(key="note", value=None, operator=FilterOperator.IS_EMPTY), {2021, 2023}),
    (MetadataFilter(key="topic", value="x' OR '1'='1"), set()),
    (MetadataFilter(key="topic' OR '1'='1", value="x"), set()),
    (MetadataFilter(key="ref_doc_id", value="c2021"), {2021}),
    (
        MetadataFilters(
            filters=[
                MetadataFilter(key="year", value=2019),
                MetadataFilters(
                    filters=[
                        MetadataFilter(key="year", value=2022, operator=FilterOperator.GT),
                        MetadataFilter(key="topic", value="lease"),
                    ],
                    condition=FilterCondition.AND,
                ),
            ],
            condition=FilterCondition.OR,
        ),
        {2019, 2023},
    ),
    (
        MetadataFilters(
            filters=[MetadataFilter(key="year", value=2019), MetadataFilter(key="topic", value="lease")],
            condition=FilterCondition.NOT,
        ),
        {2021},
    ),
]


async def test_every_filter_operator_of_llamaindex_finds_the_right_documents(two: Two) -> None:
    store = two.store(two.anna)
    index = VectorStoreIndex.from_vector_store(store, embed_model=two.embedding)
    for year, topic, signed, tags, more in (
        (2019, "delivery", "2019-05-31", ["draft", "old"], {"note": "see annex"}),
        (2021, "Delivery", "2021-05-31", ["draft"], {"note": ""}),
        (2023, "lease", "2023-05-31T10:00:00+02:00", [], {}),
    ):
        metadata = {"year": year, "topic": topic, "signed": signed, "tags": tags, **more}
        await index.ainsert(Document(text=f"contract of {year}", id_=f"c{year}", metadata=metadata))
    for item, years in FILTERS:
        filters = item if isinstance(item, MetadataFilters) else MetadataFilters(filters=[item])
        expected = {f"contract of {year}" for year in years}
        assert set(await two.found(two.anna, filters)) == expected, item
        assert {node.get_content() for node in await store.aget_nodes(filters=filters)} == expected, item
        assert await two.found(two.ben, filters) == []
    assert await two.found(two.anna, doc_ids=["c2021"]) == ["contract of 2021"]
    with pytest.raises(InputError, match="number or an ISO date"):
        await two.found(
            two.anna, MetadataFilters(filters=[MetadataFilter(key="year", value="x", operator=FilterOperator.GT)])
        )


def node(name: str, text: str, embedding: FakeEmbedding, *, of: str | None = None, **metadata: Any) -> TextNode:
    made = TextNode(id_=name, text=text, metadata=metadata, embedding=embedding.get_text_embedding(text))
    if of is not None:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=of)
    return made


async def test_nodes_are_filtered_by_their_own_metadata_and_deleted_one_by_one(two: Two) -> None:
    store = two.store(two.anna)
    texts = ["the contract ends in may", "the contract ends in june", "the contract ends in july"]
    nodes = [node(f"n{page}", text, two.embedding, of="book", page=page) for page, text in enumerate(texts)]
    assert await asyncio.to_thread(store.add, nodes) == ["n0", "n1", "n2"]
    second = MetadataFilters(filters=[MetadataFilter(key="page", value=1)])
    assert await two.found(two.anna, second) == [texts[1]]
    await two.store(two.ben).adelete_nodes(["n0"])
    await asyncio.to_thread(store.delete_nodes, ["n0"])
    assert sorted(await two.found(two.anna)) == sorted(texts[1:])
    assert [item.node_id for item in await asyncio.to_thread(store.get_nodes, ["n0", "n1", "n2"])] == ["n1", "n2"]
    assert await find(two.database, two.embedding, Filters(), identity=two.anna, question="june") != set()
    await store.adelete_nodes(
        filters=MetadataFilters(filters=[MetadataFilter(key="page", value=0, operator=FilterOperator.GT)])
    )
    assert [await two.count(table) for table in ("documents", "data_chunks", "postings")] == [0, 0, 0]


async def test_metadata_that_are_called_as_ours_stay_the_users(two: Two) -> None:
    theirs = {"corpus_id": str(uuid4()), "document_id": "D-7", "chunk_index": 12, "char_start": -1, "spans": [[0, 1]]}
    await two.store(two.anna).async_add([node("n", "the contract ends in may", two.embedding, **theirs)])
    [found] = await two.store(two.anna).aget_nodes(["n"])
    assert {key: found.metadata[key] for key in theirs} == theirs
    assert "rag_" not in found.get_content(MetadataMode.LLM) + found.get_content(MetadataMode.EMBED)
    for key in ("corpus_id", "document_id", "chunk_index"):
        filters = MetadataFilters(filters=[MetadataFilter(key=key, value=theirs[key])])  # type: ignore[arg-type]
        assert await two.found(two.anna, filters) == ["the contract ends in may"], key


async def test_the_store_searches_by_words_by_both_and_for_different_nodes(two: Two) -> None:
    texts = {
        "may": "the contract ends in may", "again": "the contract ends in may again",
        "fox": "a fox sleeps in hall seven", "lease": "the lease of hall seven is renewed in june",
    }  # fmt: skip
    nodes = [node(name, text, two.embedding, kind="rent" if name == "lease" else "") for name, text in texts.items()]
    await two.store(two.anna).async_add(nodes)
    vector = await two.embedding.aget_query_embedding("the contract ends in may")

    async def ids(question: str, mode: VectorStoreQueryMode, who: Identity = two.anna, **more: Any) -> list[str]:
        query = VectorStoreQuery(query_str=question, query_embedding=vector, mode=mode, similarity_top_k=2, **more)
        return (await two.store(who).aquery(query)).ids or []

    rent = MetadataFilters(filters=[MetadataFilter(key="kind", value="rent")])
    for mode in (VectorStoreQueryMode.SPARSE, VectorStoreQueryMode.TEXT_SEARCH):
        assert await ids("where does the fox sleep?", mode) == ["fox"]
        assert await ids("the seventh hall, hall seven", mode, filters=rent) == ["lease"]
        assert await ids("is of the", mode) == []
    assert await ids("fox", VectorStoreQueryMode.HYBRID) == ["may", "again", "fox"]
    assert await ids("fox", VectorStoreQueryMode.HYBRID, alpha=0.1, hybrid_top_k=1) == ["fox"]
    assert await ids("", VectorStoreQueryMode.MMR, mmr_threshold=1) == ["may", "again"]
    assert (await ids("", VectorStoreQueryMode.MMR, mmr_threshold=0.1))[1] not in ("may", "again")
    assert await ids("fox", VectorStoreQueryMode.HYBRID, two.ben) == []
    with pytest.raises(InputError, match="needs a query_str"):
        await ids("", VectorStoreQueryMode.HYBRID)
    with pytest.raises(InputError, match="between 0 and 1"):
        await ids("", VectorStoreQueryMode.MMR, mmr_threshold=7)
    with pytest.raises(InputError, match="mode 'svm'"):
        await ids("fox", VectorStoreQueryMode.SVM)


async def test_what_cannot_be_stored_is_refused_and_leaves_nothing(two: Two) -> None:
    store = two.store(two.anna)
    with pytest.raises(InputError, match="needs an embedding of 384"):
        await store.async_add([TextNode(text="x", embedding=[1.0])])
    await store.async_add([node("taken", "the contract", two.embedding)])
    with pytest.raises(ConflictError, match="already stored, in a corpus that you cannot read"):
        await two.store(two.ben).async_add([node("taken", "the contract of ben", two.embedding)])
    with pytest.raises(ConflictError, match="Node 'taken' is already stored, in the document 'taken'"):
        await store.async_add([node("taken", "the contract", two.embedding, of="another")])
    with pytest.raises(ConflictError, match="The id 'same' is given to several nodes"):
        await store.async_add([node("same", "one", two.embedding, of="a"), node("same", "two", two.embedding, of="b")])
    async with two.database.transaction(two.anna) as connection:
        hers = await default_corpus(connection, two.anna, index_name="general")
    with pytest.raises(NotFoundError, match="no corpus"):
        await two.store(two.ben).async_add([node("n", "planted", two.embedding, **{CORPUS_ID: str(hers.id)})])
    with pytest.raises(InputError, match="asynchronous methods"):
        store.add([node("n", "x", two.embedding)])
    hostile = "The contract \0 ends \ud800 in {May} %(x)s '; DROP TABLE rag.documents; --"
    await store.async_add([node("odd", hostile, two.embedding, **{"a\0b": "\0", "nested": {"x": ["\ud800"]}})])
    cleaned = hostile.replace("\0", "").replace("\ud800", "")
    assert set(await two.found(two.anna)) == {"the contract", cleaned}
    assert await two.found(two.ben) == []


class Shout(TransformComponent):
    """Somebody's own transformation, which adds metadata and rewrites the text."""

    suffix: str = "!"

    def __call__(self, nodes: Any, **_: Any) -> Any:
        for item in nodes:
            item.metadata["loud"] = True
            item.set_content(item.get_content().upper() + self.suffix)
        return nodes


@pytest.mark.parametrize("own", [False, True])
async def test_transformations_of_an_index_run_in_its_ingestion(two: Two, own: bool) -> None:
    splitter = PluginUse.model_validate(
        {"use": "llama_index.core.node_parser:SentenceSplitter", "with": {"chunk_size": 60, "chunk_overlap": 0}}
    )
    shout = PluginUse.model_validate({"use": f"{__name__}:Shout", "with": {"suffix": "?"}})
    used = (splitter, shout) if own else (splitter,)
    index = two.index.model_copy(update={"ingest": two.index.ingest.model_copy(update={"transformations": used})})
    text = "\n\n".join(f"Paragraph {number} is about the contract of pallet {number}." for number in range(30))
    async with two.database.transaction(two.anna) as connection:
        corpus = await default_corpus(connection, two.anna, index_name="general")
    source = DocumentInput(data=text.encode(), file_name="halls.txt")
    done = await two.ingestor.ingest(source, corpus=corpus, index=index, identity=two.anna)
    assert done.chunk_count > 3
    async with two.database.transaction(two.anna) as connection:
        whole = await read_text(connection, done.document_id)
        cursor = await connection.execute(
            "SELECT text, char_start, char_end, spans FROM data_chunks ORDER BY chunk_index"
        )
        chunks = await cursor.fetchall()
    assert whole is not None
    assert all(whole[start:end] == content for content, start, end, _ in chunks)
    assert chunks[0][0].isupper() is own
    assert own or chunks[-1][3][-1][2] == {"paragraph": 30}  # places survive a foreign splitter


async def test_an_identity_without_rights_cannot_write(two: Two) -> None:
    nobody = Identity(user_id=uuid4())
    with pytest.raises(PermissionDeniedError):
        await two.store(nobody).async_add([node("n", "x", two.embedding)])
