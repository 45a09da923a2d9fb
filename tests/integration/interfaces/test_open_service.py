"""`open_service`: embedded on a real database, and remote over a real socket."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest
from litestar import get
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import BaseModel

from rag_service import components, open_service
from rag_service.answering.drafts.events import AnswerComplete
from rag_service.api.http.events import WireEvent, present_events
from rag_service.api.http.schemas import AnswerRequest, DeltaData
from rag_service.client import CorpusView, Service, records, table
from rag_service.client.remote import RemoteBackend
from rag_service.domain import CitationStatus, ExtractedValue, Extraction
from rag_service.errors import (
    AuthenticationError,
    ConfigurationError,
    InputError,
    ModelBusyError,
    NotFoundError,
    ServiceUnreachableError,
)
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.sources.report import SyncProgress
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.serving import served
from tests.unit.api.samples import ADMIN, ANSWER, DOCUMENT, EVENTS, HIT, QUESTION, Script, application_over

LOANS = "# Loans\n\nThe maximum loan is 50,000 dollars.\n\n## Fees\n\nThe origination fee is 75 dollars."
KEY = "rag_very-secret-key"
LISTED: dict[str, Any] = {
    "id": str(UUID(int=2)), "title": "A", "fileName": "a.md", "source": None, "tags": ["x"], "language": "en",
    "mediaType": None, "contentHash": "0", "chunkCount": 1, "sizeBytes": 1, "expiresAt": None,
    "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z", "fields": {"year": "2026"},
    "warnings": [], "uploadId": None, "status": "indexed", "code": None, "reason": None,
    "progress": {"done": 1, "total": 1}, "stale": False,
}  # fmt: skip


@pytest.fixture
def embedded(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Service]:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    with open_service(database_url=database_server.service_conninfo, similarity_threshold=0.3) as service:
        yield service


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hr").mkdir()
    (tmp_path / "hr" / "loans.md").write_text(LOANS)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 no more")
    return tmp_path


def test_files_come_in_and_a_broken_one_does_not_stop_the_others(embedded: Service, folder: Path) -> None:
    told: list[SyncProgress] = []
    report = embedded.ingest(folder, on_progress=told.append)
    assert [(step.done, step.total, step.name) for step in told] == [
        (0, 2, "broken.pdf"), (1, 2, "hr/loans.md"), (2, 2, ""),
    ]  # fmt: skip
    assert [step.seconds_left for step in told] == [None, None, 0]  # the first file also waits for the readers
    assert [(item.name, item.outcome) for item in report] == [("broken.pdf", "failed"), ("hr/loans.md", "added")]
    assert report[0].reason
    assert [item.outcome for item in embedded.ingest(folder)] == ["failed", "unchanged"]
    (folder / "hr" / "loans.md").write_text(LOANS.replace("75", "80"))
    assert [item.outcome for item in embedded.ingest(str(folder))] == ["failed", "replaced"]


def test_questions_are_answered_with_citations(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    answer = embedded.ask("What is the maximum loan?")
    assert "50,000 dollars" in answer.text
    assert answer.citations[0].status == "verified"
    assert answer.citations[0].place is not None
    assert answer.citations[0].place.startswith("loans.md")
    assert embedded.ask("Who painted the ceiling?").decision == "out_of_scope"


def test_search_takes_filters_and_experiments(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    question = "What is the origination fee?"
    assert embedded.search(question)[0].file_name == "loans.md"
    assert len(embedded.search(question, file_name="other.md")) == 0
    with pytest.raises(NotFoundError, match="no document 00000000-0000-0000-0000-000000000005"):
        embedded.search(question, document_ids=[UUID(int=5)])
    lexical = embedded.search(question, mode="lexical", threshold=0.0)
    assert lexical[0].scores.dense is None
    blended = [embedded.search(question, alpha=alpha, threshold=0.0)[0].scores.fused for alpha in (0.0, 1.0)]
    assert blended[0] != blended[1]
    with pytest.raises(InputError, match="topK"):
        embedded.search(question, top_k=99)
    with pytest.raises(InputError, match="query"):
        embedded.ask(" ")


async def test_it_works_inside_a_running_loop_and_as_llamaindex_objects(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    question = "What is the maximum loan?"
    retriever, engine = embedded.retriever, embedded.query_engine
    assert isinstance(retriever, BaseRetriever)
    assert isinstance(engine, BaseQueryEngine)
    plain, awaited = retriever.retrieve(question), await retriever.aretrieve(question)
    assert [node.node_id for node in plain] == [node.node_id for node in awaited]
    assert plain[0].metadata["place"].startswith("loans.md")
    response, later = engine.query(question), await engine.aquery(question)
    assert str(response) == str(later)
    assert "50,000" in str(response)
    assert response.source_nodes[0].node_id == plain[0].node_id
    assert response.metadata["answer"].decision == "can_proceed"  # type: ignore[index]  # it has metadata
    both = await asyncio.gather(retriever.aretrieve(question), engine.aquery(question))
    assert len(both) == 2


def names(events: Iterable[WireEvent]) -> list[str]:
    return [name for name, _ in itertools.groupby(event.event for event in events)]


async def test_an_answer_is_streamed_as_the_api_streams_it(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    question = "What is the maximum loan?"
    stream = embedded.ask(question, stream=True, tags=[])
    events = list(stream)
    assert names(events) == ["sources", "delta", "citation", "final", "done"]
    text = "".join(event.data.text for event in events if isinstance(event.data, DeltaData))
    assert text == stream.finish().text
    assert [event.event async for event in embedded.ask(question, stream=True)] == [one.event for one in events]
    with pytest.raises(InputError, match="topK"):
        embedded.ask(question, stream=True, top_k=99)
    for _ in (left := embedded.ask(question, stream=True)):
        break
    with pytest.raises(RuntimeError, match="closed before"):
        left.finish()


async def test_a_conversation_is_kept_and_continued(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    first = embedded.ask("What is the maximum loan?", keep=True)
    assert first.conversation_id is not None
    second = embedded.ask("And the origination fee?", conversation_id=first.conversation_id)
    assert (second.conversation_id, "75 dollars" in second.text) == (first.conversation_id, True)
    assert embedded.ask("And the origination fee?").conversation_id is None
    with pytest.raises(NotFoundError):
        embedded.ask("And?", conversation_id=UUID(int=5))


async def test_the_query_engine_streams_retrieves_and_synthesizes(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    question = QueryBundle("What is the origination fee?")
    engine = embedded.as_query_engine(similarity_top_k=2, streaming=True)
    plain, streamed = embedded.query_engine.query(question), engine.query(question)
    assert isinstance(streamed, StreamingResponse)
    assert [node.node_id for node in streamed.source_nodes] == [node.node_id for node in plain.source_nodes]
    assert str(streamed) == str(plain)
    assert streamed.metadata is not None and streamed.metadata["decision"] == "can_proceed"
    later = await engine.aquery(question)
    assert isinstance(later, AsyncStreamingResponse)
    assert "".join([piece async for piece in later.async_response_gen()]) == str(plain)

    nodes = embedded.retriever(threshold=0.0).retrieve(question)
    fees = [node for node in nodes if "75 dollars" in node.text]
    others = [node for node in nodes if "75 dollars" not in node.text]
    assert "75 dollars" in str(engine.synthesize(question, fees))
    assert "75 dollars" not in str(await engine.asynthesize(question, others))
    with pytest.raises(InputError, match="1 of 1 nodes"):
        engine.synthesize(question, [NodeWithScore(node=TextNode(text="The origination fee is 5 dollars."))])


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_chat_engine_streams_where_it_is_asked_to(embedded: Service, folder: Path, streaming: bool) -> None:
    """Whatever the query engine does by itself, and that again afterwards."""
    embedded.ingest(folder / "hr")
    question, engine = "What is the origination fee?", embedded.query_engine(streaming=streaming)

    def begin() -> CondenseQuestionChatEngine:
        memory = ChatMemoryBuffer.from_defaults(token_limit=3000)
        return CondenseQuestionChatEngine.from_defaults(query_engine=engine, llm=MockLLM(), memory=memory)

    expected = embedded.ask(question).text
    assert "75 dollars" in expected
    assert "".join(begin().stream_chat(question).response_gen) == expected
    later = await begin().astream_chat(question)
    assert "".join([piece async for piece in later.async_response_gen()]) == expected
    assert begin().chat(question).response == expected
    assert (await begin().achat(question)).response == expected
    assert isinstance(engine.query(question), StreamingResponse) is streaming


def test_the_engine_answers_from_the_nodes_of_another_retriever(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    index = VectorStoreIndex.from_vector_store(embedded.vector_store, embed_model=embedded.embedding)
    engine = embedded.query_engine.with_retriever(index.as_retriever(similarity_top_k=5))
    response = engine.query("What is the origination fee?")
    assert "75 dollars" in str(response)
    assert response.metadata is not None and response.metadata["citations"][0].status == "verified"


async def test_the_vector_store_serves_a_llamaindex_index(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    index = VectorStoreIndex.from_vector_store(embedded.vector_store, embed_model=embedded.embedding)
    retriever = index.as_retriever(similarity_top_k=1)
    plain, awaited = retriever.retrieve("maximum loan"), await retriever.aretrieve("maximum loan")
    assert "50,000" in plain[0].text
    assert [node.node_id for node in plain] == [node.node_id for node in awaited]


async def test_the_tools_serve_anybodys_agent_in_plain_and_async_code(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder)
    tools = {tool.metadata.get_name(): tool for tool in embedded.tools}
    assert list(tools) == ["search", "read", "compute"]
    assert "50,000 dollars" in tools["search"].call(query="What is the maximum loan?").content
    assert "75 dollars" in (await tools["read"].acall(document="loans.md", place="Fees")).content
    assert "Error: There is no such document" in (await tools["read"].acall(document="nowhere.md")).content
    parameters = tools["search"].metadata.to_openai_tool()["function"]["parameters"]
    assert set(parameters["properties"]) == {"query", "documents", "after", "before"}


def test_corpora_have_retrievers_of_their_own(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    corpora = embedded.corpora()
    documents = corpora["documents"]
    assert documents.retriever.retrieve("maximum loan")
    assert "50,000" in str(documents.query_engine.query("What is the maximum loan?"))
    assert "global corpus 'documents' (index general" in repr(corpora)
    assert "documents" in corpora._repr_html_()
    with pytest.raises(KeyError):
        corpora["none"]


def test_documents_are_listed_with_their_corpus(embedded: Service, folder: Path) -> None:
    embedded.ingest(folder / "hr")
    (folder / "hr" / "fees.md").write_text(LOANS)
    embedded.sync(folder / "hr", corpus="Handbook")
    found = embedded.documents()
    assert [(one.corpus, one.name, one.status) for one in found] == [
        ("Handbook", "fees.md", "indexed"), ("Handbook", "loans.md", "indexed"), ("documents", "loans.md", "indexed"),
    ]  # fmt: skip
    assert "fees.md" in found._repr_html_()
    assert repr(found).splitlines()[0].split() == ["corpus", "name", "language", "status", "chunks", "bytes"]
    handbook = embedded.corpora()["Handbook"]
    assert [one.id for one in handbook.documents()] == [one.id for one in found[:2]]
    answer = embedded.ask("What is the maximum loan?", document_ids=[found[1].id])
    assert {source.document_id for source in answer.sources} == {found[1].id}
    gone = CorpusView(msgspec.structs.replace(handbook.info, id=UUID(int=5)), handbook._loop, handbook._backend)
    with pytest.raises(NotFoundError):
        gone.documents()


def test_results_are_records_of_plain_values(embedded: Service, folder: Path) -> None:
    ingested = records(embedded.ingest(folder))
    assert [(row["name"], row["outcome"]) for row in ingested] == [("broken.pdf", "failed"), ("hr/loans.md", "added")]
    (document,) = records(embedded.documents())
    assert (document["corpus"], document["name"]) == ("documents", "hr/loans.md")
    (passage, *_) = records(embedded.search("What is the maximum loan?"))
    assert (passage["file_name"], passage["document_id"]) == ("loans.md", document["id"])
    assert 0 < passage["scores.relevance"] <= 1
    asked = [embedded.ask("What is the maximum loan?"), embedded.ask("Who painted the ceiling?")]
    answers = records(asked)
    assert [(row["decision"], row["verified"]) for row in answers] == [("can_proceed", 1), ("out_of_scope", 0)]
    assert "50,000" in records(asked[0].citations)[0]["quote"]
    assert "50,000" in repr(table(("question", "answer"), answers))


def test_it_closes_once_and_says_so(embedded: Service, database_server: EmbeddedServer) -> None:
    assert repr(embedded) == "<rag_service embedded: external database>"
    assert database_server.service_conninfo not in repr(vars(embedded))
    embedded.close()
    embedded.close()
    assert repr(embedded).endswith(", closed>")
    with pytest.raises(RuntimeError, match="closed"):
        embedded.ask("Anything?")


def test_what_keeps_it_from_opening_is_raised() -> None:
    with pytest.raises(ConfigurationError, match="no index 'nowhere'"):
        open_service(index="nowhere")


# -- remote


@pytest.fixture
def connect() -> Iterator[Callable[..., Service]]:
    """Serves a script and opens a handle on it."""
    with ExitStack() as stack:

        def start(script: Script) -> Service:
            corpus = {
                "id": str(UUID(int=1)),
                "name": "hr",
                "kind": "global",
                "index": "general",
                "active": True,
                "ttlSeconds": None,
                "createdAt": "2026-01-01T00:00:00Z",
                "updatedAt": "2026-01-01T00:00:00Z",
            }

            @get("/api/v1/corpora")
            async def corpora(limit: int, offset: int) -> dict[str, Any]:
                return {"items": [corpus][offset : offset + limit], "total": 1}

            @get("/api/v1/corpora/{corpus_id:uuid}/documents")
            async def documents(corpus_id: UUID, limit: int, offset: int) -> dict[str, Any]:
                listed = [{**LISTED, "corpusId": str(corpus_id), "name": f"{number}.md"} for number in range(250)]
                return {"items": listed[offset : offset + limit], "total": len(listed)}

            application = application_over(script.services(Settings()), more_routes=[corpora, documents])
            return stack.enter_context(open_service(url=stack.enter_context(served(application)), api_key=KEY))

        yield start


def test_a_remote_service_gives_the_same_values(connect: Callable[..., Service], tmp_path: Path) -> None:
    script = Script()
    service = connect(script)
    answer, passages = service.ask(QUESTION, top_k=3), service.search(QUESTION, tags=["stock"], threshold=0.5)
    assert (answer.text, answer.id, len(answer.citations)) == (ANSWER.text, ANSWER.id, 2)
    assert (passages[0].text, passages[0].document_id, passages.language) == (HIT.chunk.text, DOCUMENT.id, "es")
    assert [(query.top_k, query.threshold, query.filters.tags) for query in script.queries] == [
        (3, None, ()), (5, 0.5, ("stock",)),
    ]  # fmt: skip
    (tmp_path / "a.md").write_text("# A")
    assert [item.outcome for item in service.ingest(tmp_path)] == ["added"]
    assert script.documents[0].file_name == "a.md"


def test_a_remote_service_lists_its_documents_page_by_page(connect: Callable[..., Service]) -> None:
    service = connect(Script())
    found = service.documents()
    assert [one.name for one in found] == [f"{number}.md" for number in range(250)]
    assert {one.corpus for one in found} == {"hr"}
    assert service.corpora()["hr"].documents() == found


async def test_a_remote_answer_is_streamed_with_the_same_events(connect: Callable[..., Service]) -> None:
    service = connect(Script())
    stream = service.ask(QUESTION, stream=True)
    events = list(stream)
    assert events == [event async for event in present_events(Script().answer(Question(QUESTION, identity=ADMIN)))]
    assert [event async for event in service.ask(QUESTION, stream=True)] == events
    assert stream.finish().text == ANSWER.text
    streamed = service.query_engine(streaming=True).query(QUESTION)
    assert (str(streamed).strip(), streamed.source_nodes[0].text) == (ANSWER.text, HIT.chunk.text)
    with pytest.raises(ConfigurationError, match="embedded"):
        service.query_engine.synthesize(QueryBundle(QUESTION), [])
    broken = connect(Script(events=[*EVENTS[:2], ModelBusyError("secret internals", retry_after=7)]))
    with pytest.raises(ModelBusyError):
        list(broken.ask(QUESTION, stream=True))


def test_a_remote_stream_that_breaks_off_is_no_answer() -> None:
    """U+2028 ends a line for some readers, and not in NDJSON."""
    lines = ['{"event":"heartbeat"}', '{"event":"delta","data":{"text":"a\u2028b"}}']

    def reply(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content="\n".join([*lines, ""]).encode())

    async def read() -> list[Any]:
        backend = RemoteBackend("http://x", None)
        backend._client = httpx.AsyncClient(base_url="http://x", transport=httpx.MockTransport(reply))
        read = []
        with pytest.raises(ServiceUnreachableError, match="ended the stream"):
            async for event in backend.stream(AnswerRequest(query=QUESTION)):
                read.append(event.data)  # noqa: PERF401 - the stream raises
        return read

    assert asyncio.run(read()) == [DeltaData(text="a\u2028b")]


async def test_a_remote_service_has_llamaindex_objects_and_corpora(connect: Callable[..., Service]) -> None:
    service = connect(Script())
    assert (await service.retriever.aretrieve(QUESTION))[0].text == HIT.chunk.text
    response = service.corpora()["hr"].query_engine.query(QUESTION)
    assert (str(response), response.source_nodes[0].text) == (ANSWER.text, HIT.chunk.text)
    with pytest.raises(ConfigurationError, match="vector_store needs an embedded service"):
        service.vector_store  # noqa: B018 - the access is the test
    with pytest.raises(InputError, match="embedded"):
        service.search(QUESTION, alpha=0.5)


def test_remote_errors_arrive_as_what_they_are(connect: Callable[..., Service]) -> None:
    busy = connect(Script(events=[ModelBusyError("secret internals", retry_after=7)]))
    with pytest.raises(ModelBusyError) as caught:
        busy.ask(QUESTION)
    assert (caught.value.retry_after, caught.value.message) == (7, "The language model is at its request limit.")
    refused = connect(Script(error=AuthenticationError("The key is revoked."), failing="authenticate"))
    with pytest.raises(AuthenticationError, match="The key is revoked"):
        refused.search(QUESTION)
    with pytest.raises(InputError) as wrong:
        busy.search("x", top_k=99)
    assert wrong.value.field == "topK"


def test_the_key_is_shown_nowhere(connect: Callable[..., Service]) -> None:
    service = connect(Script())
    backend = service._backend
    for shown in (repr(service), repr(backend), repr(vars(service)), repr(backend.where)):
        assert KEY not in shown


def test_a_service_that_is_not_there_is_told() -> None:
    with pytest.raises(ServiceUnreachableError, match=r"http://127\.0\.0\.1:9 does not respond") as caught:
        open_service(url="http://user:secret@127.0.0.1:9", api_key=KEY)
    assert "secret" not in str(caught.value)


class _Loan(BaseModel):
    maximum: float | None


def test_a_pydantic_class_is_asked_for_and_its_values_come_back(connect: Callable[..., Service]) -> None:
    value = ExtractedValue(pointer="/maximum", value=50.5, status=CitationStatus.VERIFIED)
    extraction = Extraction(data={"maximum": 50.5}, values=(value,))
    script = Script(events=(*EVENTS[:-1], AnswerComplete(answer=replace(ANSWER, extraction=extraction))))
    service = connect(script)
    answer = service.ask(QUESTION, schema=_Loan)
    assert _Loan.model_validate(answer.data) == _Loan(maximum=50.5)
    assert [(one.pointer, one.status) for one in answer.values] == [("/maximum", "verified")]
    (query,) = script.queries
    assert query.schema is not None
    assert list(query.schema.root.properties) == ["maximum"]
    with pytest.raises(InputError, match="fields"):
        service.ask(QUESTION, schema={"type": "object"})
    with pytest.raises(InputError, match="Pydantic"):
        service.ask(QUESTION, schema="maximum")  # type: ignore[arg-type]


def test_a_schema_without_a_chat_model_says_what_to_set(embedded: Service) -> None:
    with pytest.raises(InputError, match="RAG_CHAT_PROVIDER"):
        embedded.ask(QUESTION, schema=_Loan)
