"""LlamaIndex objects in the service (`open_service`, `create_app`), and the service's objects in stock LlamaIndex."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from llama_index.core import VectorStoreIndex, get_response_synthesizer
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import CustomLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter, SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document, NodeWithScore, QueryBundle, TransformComponent

from rag_service import components, open_service
from rag_service.app import create_app
from rag_service.client import Service
from rag_service.errors import ConfigurationError
from rag_service.models.servers.resilience import in_own_thread
from rag_service.settings import Settings
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding

TEXT = "Members may borrow up to 40 % of their plan.\n\nThe cafeteria opens at eight o'clock every morning."
QUESTION = "How much may members borrow from their plan?"
ANSWER = "Members may borrow up to 40 % of their plan [C1]."


class FixedLLM(CustomLLM):
    prompts: list[str] = []  # noqa: RUF012 - a pydantic field

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="fixed", context_window=8192, num_output=200)

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=ANSWER)

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:
        text = ""
        for word in ANSWER.split(" "):
            text = f"{text} {word}".strip()
            yield CompletionResponse(text=text, delta=word if text == word else f" {word}")


class LetterEmbedding(BaseEmbedding):
    """Counts letters: no model, but equal texts are near each other."""

    def _vector(self, text: str) -> list[float]:
        return [1.0 + text.lower().count(chr(97 + number % 26)) for number in range(384)]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vector(text)


class Seen(BaseNodePostprocessor):
    counts: list[int] = []  # noqa: RUF012 - a pydantic field

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.counts.append(len(nodes))
        return nodes


class Stamp(TransformComponent):
    def __call__(self, nodes: Any, **_: Any) -> Any:
        for node in nodes:
            node.metadata["stamped"] = "yes"
        return nodes


class LogReader(BaseReader):
    def load_data(self, file: Path, extra_info: Any = None) -> list[Document]:
        lines = file.read_text(encoding="utf-8").splitlines()
        return [Document(text=line.removeprefix("INFO ")) for line in lines if line.startswith("INFO ")]


class LongestFirst(BaseNodePostprocessor):
    """A reranker: rates passages by their length."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [NodeWithScore(node=node.node, score=min(1.0, len(node.text) / 1000)) for node in nodes]


def test_objects_given_to_open_service_write_and_postprocess_the_answer(
    database_server: EmbeddedServer, tmp_path: Path
) -> None:
    document = tmp_path / "rules.md"
    document.write_text(TEXT, encoding="utf-8")
    seen = Seen()
    with open_service(
        database_url=database_server.service_conninfo,
        similarity_threshold=0,
        llm=FixedLLM(),
        embedding=LetterEmbedding(model_name="letters"),
        postprocessors=[seen],
        transformations=[Stamp()],
    ) as service:
        assert service.ingest(document).items[0].outcome == "added"
        answer = service.ask(QUESTION)
        assert answer.text == ANSWER
        assert [citation.status for citation in answer.citations] == ["verified"]
        assert seen.counts and seen.counts[0] >= 1
        assert service.llm.metadata.model_name == "fixed"
        assert service.retriever.retrieve(QUESTION)[0].node.get_content().startswith("Members may borrow")


class Keep(BaseNodePostprocessor):
    """Keeps what it sees."""

    nodes: list[NodeWithScore] = []  # noqa: RUF012 - a pydantic field

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.nodes.extend(nodes)
        return nodes


def test_nodes_carry_the_metadata_of_documents_and_of_transformations(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, tmp_path: Path
) -> None:
    document = tmp_path / "rules.md"
    front = "---\ntags: [loans]\nowner: HR\nvalid_from: 2024-01-01\n---\n# Loans\n\n"
    document.write_text(f"{front}The fee is paid once. Members may borrow up to 40 % of their plan.", encoding="utf-8")
    seen = Keep()
    windows = SentenceWindowNodeParser.from_defaults(window_size=1)
    with open_service(
        database_url=database_server.service_conninfo,
        similarity_threshold=0,
        embedding=fake_embedding,
        transformations=[windows, Stamp()],
        postprocessors=[seen],
    ) as service:
        service.ingest(document)
        [passage, *_] = service.search(QUESTION)
        [node, *_] = service.retriever.retrieve(QUESTION)
    assert passage.metadata["owner"] == "HR"
    for metadata in (seen.nodes[0].metadata, node.metadata):
        assert (metadata["tags"], metadata["owner"], metadata["valid_from"]) == (["loans"], "HR", "2024-01-01")
        assert (metadata["language"], metadata["place"]) == ("en", "rules.md, section Loans")
        assert metadata["updated_at"]
        assert (metadata["stamped"], "paid once" in metadata["window"]) == ("yes", True)
    assert "paid once" not in node.text
    [whole] = MetadataReplacementPostProcessor(target_metadata_key="window").postprocess_nodes([node])
    assert "paid once" in whole.text


def test_a_document_is_ingested_again_when_a_given_transformation_changed(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, tmp_path: Path
) -> None:
    document = tmp_path / "rules.md"
    document.write_text(TEXT, encoding="utf-8")

    def outcome(*transformations: TransformComponent) -> str:
        with open_service(
            database_url=database_server.service_conninfo, embedding=fake_embedding, transformations=transformations
        ) as service:
            return service.ingest(document).items[0].outcome

    assert outcome() == "added"
    assert outcome(SentenceSplitter(chunk_size=64, chunk_overlap=8)) == "replaced"
    assert outcome(SentenceSplitter(chunk_size=64, chunk_overlap=8)) == "unchanged"
    assert outcome(SentenceSplitter(chunk_size=32, chunk_overlap=8)) == "replaced"
    assert outcome(SentenceSplitter(chunk_size=32, chunk_overlap=8), Stamp()) == "replaced"
    assert outcome() == "replaced"


def test_objects_given_to_create_app_answer_requests(database_server: EmbeddedServer) -> None:
    seen = Seen()
    settings = Settings(database_url=database_server.service_conninfo, similarity_threshold=0)
    application = create_app(
        settings, llm=FixedLLM(), embedding=LetterEmbedding(model_name="letters"), postprocessors=[seen]
    )
    with TestClient(application, base_url="http://127.0.0.1") as client:
        assert client.post("/api/ingest", json={"text": TEXT, "fileName": "rules.md"}).status_code == 201
        answer = client.post("/api/v1/query/answer", json={"query": QUESTION}).json()
        assert answer["answer"] == ANSWER
        assert [citation["status"] for citation in answer["citations"]] == ["verified"]
        assert seen.counts


def test_objects_given_to_create_app_take_part_in_keyword_mode_or_are_refused(tmp_path: Path) -> None:
    knowledge = tmp_path / "knowledge.json"
    knowledge.write_text(json.dumps({"documents": [{"id": "rules", "title": "Rules", "text": TEXT}]}), "utf-8")
    settings = Settings(enabled=False, knowledge_base_path=knowledge, similarity_threshold=0)
    seen = Seen(counts=[])
    with TestClient(create_app(settings, llm=FixedLLM(), postprocessors=[seen]), base_url="http://127.0.0.1") as client:
        answer = client.post("/api/v1/query/answer", json={"query": QUESTION}).json()
    assert (answer["answer"], answer["citations"][0]["status"]) == (ANSWER, "verified")
    assert seen.counts == [1]
    with pytest.raises(ConfigurationError, match="embedding"):
        create_app(settings, embedding=LetterEmbedding(model_name="letters"))


def test_a_reader_and_a_reranker_given_to_open_service_read_and_order(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, tmp_path: Path
) -> None:
    short, long = "Members may borrow.", "Members may borrow from their plan and then repay it in 60 monthly parts."
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "server.log").write_text(f"INFO {long}\nDEBUG Members may borrow nothing.\n", encoding="utf-8")
    (folder / "short.md").write_text(short, encoding="utf-8")
    with open_service(
        database_url=database_server.service_conninfo,
        similarity_threshold=0,
        embedding=fake_embedding,
        readers={".log": LogReader},
        reranker=LongestFirst(),
    ) as service:
        report = service.ingest(folder)
        assert [item.outcome for item in report] == ["added", "added"]
        assert [passage.text for passage in service.search("Members may borrow.")] == [long, short]
        citations = service.ask("May members borrow from their plan?").citations
        assert citations and {citation.status for citation in citations} == {"verified"}


@pytest.fixture
def service(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Service]:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    for name, text in zip(("loans", "cafeteria"), TEXT.split("\n\n"), strict=True):
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    with open_service(database_url=database_server.service_conninfo, similarity_threshold=0) as opened:
        opened.ingest(tmp_path)
        yield opened


async def test_the_retriever_serves_a_stock_query_engine_with_a_stock_postprocessor(service: Service) -> None:
    assert {node.node.metadata["title"] for node in service.retriever.retrieve(QUESTION)} == {"loans", "cafeteria"}
    llm = FixedLLM()
    engine = RetrieverQueryEngine(
        service.retriever,
        response_synthesizer=get_response_synthesizer(llm=llm),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.5)],
    )
    for response in (await asyncio.to_thread(engine.query, QUESTION), await engine.aquery(QUESTION)):
        assert [node.node.metadata["title"] for node in response.source_nodes] == ["loans"]
        assert str(response) == ANSWER
    assert len(llm.prompts) == 2
    assert all("40 % of their plan" in prompt and "cafeteria" not in prompt for prompt in llm.prompts)


async def test_the_retriever_serves_a_stock_chat_engine(service: Service) -> None:
    llm = FixedLLM()
    chat = CondensePlusContextChatEngine.from_defaults(
        retriever=service.retriever, llm=llm, memory=ChatMemoryBuffer.from_defaults(token_limit=3000)
    )
    replies = [await chat.achat(QUESTION), await asyncio.to_thread(chat.chat, "And how much is that?")]
    for reply in replies:
        assert reply.response == ANSWER
        assert reply.source_nodes[0].get_content().startswith("Members may borrow")
    assert "40 % of their plan" in llm.prompts[0]
    streamed = await chat.astream_chat(QUESTION)
    assert "".join([token async for token in streamed.async_response_gen()]) == ANSWER


def test_a_document_inserted_by_a_stock_index_is_found_and_cited_by_the_service(service: Service) -> None:
    index = VectorStoreIndex.from_vector_store(service.vector_store, embed_model=service.embedding)
    index.insert(Document(text="Parking permits cost 75 euros a year.", id_="parking", metadata={"title": "Parking"}))
    question = "How much do parking permits cost?"
    assert service.search(question)[0].text == "Parking permits cost 75 euros a year."
    answer = service.ask(question)
    assert "75 euros" in answer.text
    assert [citation.status for citation in answer.citations] == ["verified"]
    index.delete_ref_doc("parking")
    assert all("Parking" not in passage.text for passage in service.search(question))


async def test_the_objects_of_a_service_refuse_to_be_pickled_and_go_on(service: Service) -> None:
    inner = service._embedded("test")
    for thing in (
        service.embedding, service.vector_store, service.llm, service.retriever, service.query_engine,
        inner.embedding, inner.retriever, inner.engine, *inner.engine._node_postprocessors[:1],
    ):  # fmt: skip
        with pytest.raises(TypeError, match=f"{type(thing).__name__} cannot be pickled.* num_workers=None"):
            pickle.dumps(thing)
    assert "40 % of their plan" in service.ask(QUESTION).text


async def test_a_pipeline_with_worker_processes_is_refused_instead_of_hanging(service: Service) -> None:
    pipeline = IngestionPipeline(transformations=[SentenceSplitter(), service.embedding], disable_cache=True)
    documents = [Document(text="Gate 4 opens at six."), Document(text="Gate 5 opens at seven.")]

    def run() -> Any:
        return pipeline.run(documents=documents, num_workers=2)

    async with asyncio.timeout(60):
        with pytest.raises(TypeError, match="num_workers=None"):
            await in_own_thread(run)
    assert all(node.embedding for node in await pipeline.arun(documents=documents))
