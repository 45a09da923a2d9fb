"""LlamaIndex classes of the user's own, named by their class path, in the running service: from socket to socket."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatStartEvent
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document, NodeWithScore, QueryBundle, TextNode

from rag_service import components
from rag_service.answering import engine
from rag_service.app import create_app
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Identity, Role
from rag_service.indices import shipped_folder
from rag_service.models.embedding.embeddings import build_embedding
from rag_service.store.accounts.keys import ALL_SCOPES, create_key
from rag_service.store.accounts.users import create_user
from rag_service.store.documents.documents import DocumentInput
from tests.conftest import mostly_slow
from tests.integration.answers.conftest import OpenService, open_service
from tests.serving import serving_here

__all__ = ["open_service"]  # a fixture

QUESTION: dict[str, Any] = {"query": "How many days of vacation do employees receive?", "similarityThreshold": 0.1}
FACT = "Employees receive 25 days of vacation per calendar year."
REPLY = f"{FACT} [C1]"
FOREIGN = "Text that was never in a document of this service."
RELEASE = threading.Event()  # ends what hangs


class OwnLLM(CustomLLM):
    """Streams the right answer word by word from a blocking method, and misbehaves on request."""

    empty_deltas: bool = False
    fails_after: int | None = None
    exits_after: int | None = None
    hangs_after: int | None = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="own", context_window=8192)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=REPLY)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        def stream() -> CompletionResponseGen:
            text = ""
            for number, word in enumerate(REPLY.split(" ")):
                if number == self.fails_after:
                    raise RuntimeError("secret detail")
                if number == self.exits_after:
                    raise SystemExit("secret detail")
                if number == self.hangs_after:
                    RELEASE.wait(300)
                delta = word if not text else f" {word}"
                text += delta
                yield CompletionResponse(text=text, delta=delta)
                if self.empty_deltas:
                    yield CompletionResponse(text=text, delta="")

        return stream()


class Misbehaving(BaseNodePostprocessor):
    """Does one of the things that a postprocessor must not do harm with."""

    how: str

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        match self.how:
            case "raise":
                raise RuntimeError("secret detail")
            case "hang":
                RELEASE.wait(300)
            case "none":
                return None  # type: ignore[return-value]
            case "nothing":
                return []
            case "rewrite":
                for node in nodes:
                    node.node.set_content(FOREIGN)
            case "foreign":
                return [NodeWithScore(node=TextNode(text=FOREIGN), score=1.0), *nodes]
            case "twice":
                return [*nodes, *nodes]
            case "generator":
                return (node for node in nodes)  # type: ignore[return-value]
            case "exit":
                raise SystemExit("secret detail")
            case "no scores":
                return [NodeWithScore(node=node.node) for node in nodes]
        return list(reversed(nodes))


@pytest.fixture(autouse=True)
def hanging_ends() -> Iterator[None]:
    RELEASE.clear()
    yield
    RELEASE.set()


@asynccontextmanager
async def serving(open_service: OpenService, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """The service with these settings on a real socket, with one document."""
    async with open_service(**settings) as opened:
        await opened.ingest(DocumentInput(data=FACT.encode(), file_name="leave.md"), LOCAL_ADMIN)
        async with client_of(opened) as client:
            yield client


def client_of(opened: Components) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return serving_here(create_app(opened.settings, components=opened))


async def read_events(client: httpx.AsyncClient) -> list[tuple[str, dict[str, Any]]]:
    headers = {"Accept": "application/x-ndjson"}
    async with client.stream("POST", "/api/v1/query/answer/stream", json=QUESTION, headers=headers) as response:
        return [(event["event"], event["data"]) async for line in response.aiter_lines() if (event := json.loads(line))]


async def check_answer(client: httpx.AsyncClient) -> dict[str, Any]:
    """The answer with the fact, which was streamed, cited, decided and recorded."""
    events = await read_events(client)
    final = dict(events)["final"]
    assert "".join(data["text"] for name, data in events if name == "delta") == final["answer"]
    assert FACT in final["answer"]
    assert [citation["status"] for citation in final["citations"]] == ["verified"]
    assert final["decision"] in {"can_proceed", "uncertain"}
    record = (await client.get(f"/api/v1/answers/{final['answerId']}")).json()
    assert QUESTION["query"] in json.dumps(record)
    return final


def index_with(folder: Path, section: str, entry: str) -> Path:
    """A folder of index definitions whose default has one more line in a section."""
    target = folder / "general"
    shutil.copytree(shipped_folder("indices") / "general", target)
    text = (target / "index.yaml").read_text(encoding="utf-8")
    (target / "index.yaml").write_text(text.replace(f"\n{section}:\n", f"\n{section}:\n  {entry}\n"), encoding="utf-8")
    return folder


def postprocessor(folder: Path, use: str, **options: Any) -> Path:
    return index_with(folder, "query", f"postprocessors: [{{use: '{use}', with: {json.dumps(options)}}}]")


@pytest.mark.parametrize("options", [{}, {"empty_deltas": True}], ids=str)
async def test_an_own_llm_streams_cited_answers_that_are_recorded(
    open_service: OpenService, options: dict[str, Any]
) -> None:
    async with serving(open_service, chat_provider=f"{__name__}:OwnLLM", chat_options=json.dumps(options)) as client:
        assert (await check_answer(client))["answer"].startswith(FACT)
        assert sum(name == "delta" for name, _ in await read_events(client)) > 1


@pytest.mark.parametrize("way", ["fails_after", "exits_after"])
async def test_an_own_llm_that_raises_midway_is_followed_by_quotes(open_service: OpenService, way: str) -> None:
    options = json.dumps({way: 3})
    async with serving(open_service, chat_provider=f"{__name__}:OwnLLM", chat_options=options) as client:
        events = await read_events(client)
        assert dict(events)["final"]["modelError"] == "llm_unavailable"
        assert FACT in dict(events)["final"]["answer"]
        assert "secret" not in json.dumps(events)
        assert (await client.get("/health")).is_success


@pytest.mark.parametrize("hangs_after", [0, 3])
async def test_an_own_llm_that_hangs_gives_way_to_quotes_in_time(open_service: OpenService, hangs_after: int) -> None:
    options = json.dumps({"hangs_after": hangs_after})
    limits = {"first_token_timeout": 0.5, "token_timeout": 0.5}
    async with serving(open_service, chat_provider=f"{__name__}:OwnLLM", chat_options=options, **limits) as client:
        async with asyncio.timeout(120):
            events = await read_events(client)
        assert dict(events)["final"]["modelError"] == "llm_unavailable"
        assert (await client.get("/health")).is_success


async def test_a_stock_postprocessor_leaves_streaming_citations_decision_and_record(
    open_service: OpenService, tmp_path: Path
) -> None:
    indices = postprocessor(tmp_path, "llama_index.core.postprocessor:LongContextReorder")
    async with serving(open_service, indices_path=indices) as client:
        await check_answer(client)


@pytest.mark.parametrize(
    "how",
    mostly_slow(
        [
            "raise",
            "hang",
            "none",
            "nothing",
            "foreign",
            "rewrite",
            "twice",
            "no scores",
            "reorder",
            "generator",
            "exit",
        ],
        fast=["raise", "none", "foreign", "reorder"],
    ),
)
async def test_a_postprocessor_that_misbehaves_gives_a_right_answer_or_a_clear_error(
    open_service: OpenService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "hang":
        monkeypatch.setattr(engine, "PLUGIN_SECONDS", 0.5)
    indices = postprocessor(tmp_path, f"{__name__}:Misbehaving", how=how)
    async with serving(open_service, indices_path=indices) as client:
        response = await client.post("/api/v1/query/answer", json=QUESTION)
        assert FOREIGN not in response.text
        assert "secret" not in response.text
        if how in {"raise", "hang", "none", "exit"}:
            assert response.status_code == 500
            assert response.headers["content-type"].startswith("application/problem+json")
            assert response.json()["code"] == "plugin_failed"
            streamed = await client.post("/api/v1/query/answer/stream", json=QUESTION)
            assert (streamed.status_code, streamed.json()["code"]) == (500, "plugin_failed")
        elif how == "nothing":
            assert response.json()["decision"] == "out_of_scope"
        else:
            assert FACT in response.json()["answer"]
            assert len(response.json()["sources"]) == 1
            await check_answer(client)
        assert (await client.get("/health")).is_success


class Hoarder(BaseNodePostprocessor):
    """Returns the passages of earlier questions too, whoever asked them."""

    kept: list[NodeWithScore] = []  # noqa: RUF012 - a pydantic field

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.kept.extend(nodes)
        return list(self.kept)


async def test_a_postprocessor_that_keeps_passages_shows_them_to_no_other_user(
    open_service: OpenService, tmp_path: Path
) -> None:
    indices = postprocessor(tmp_path, f"{__name__}:Hoarder")
    texts = {"anna": FACT, "ben": FACT.replace("25", "31")}
    async with open_service(indices_path=indices, auth="required") as opened:
        keys = {name: await user_with_document(opened, name, text) for name, text in texts.items()}
        async with client_of(opened) as client:
            for asking, other in (("anna", "ben"), ("ben", "anna"), ("anna", "ben")):
                headers = {"X-API-Key": keys[asking]}
                response = await client.post("/api/v1/query/answer", json=QUESTION, headers=headers)
                assert texts[asking] in response.json()["answer"]
                assert texts[other] not in response.text
                assert len(response.json()["sources"]) == 1


async def user_with_document(opened: Components, name: str, text: str) -> str:
    """The API key of a new user who has a document of their own."""
    async with opened.database.transaction(LOCAL_ADMIN) as connection:
        user = Identity(user_id=(await create_user(connection, name=name, role=Role.USER)).id, role=Role.USER)
    await opened.ingest(DocumentInput(data=text.encode(), file_name=f"{name}.md"), user)
    async with opened.database.transaction(user) as connection:
        return (await create_key(connection, user_id=user.user_id, name="key", scopes=ALL_SCOPES))[1]


class OwnEmbedding(BaseEmbedding):
    """Hashes words, and only blocks."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.001] * 384
        for word in re.findall(r"\w+", text.lower()):
            vector[sum(word.encode()) % 384] += 1.0
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


async def test_an_own_embedding_finds_what_it_embedded(
    open_service: OpenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "build_embedding", build_embedding)
    async with serving(open_service, embedding_provider=f"{__name__}:OwnEmbedding") as client:
        found = (await client.post("/api/v1/query", json=QUESTION)).json()
        assert FACT in json.dumps(found)
        await check_answer(client)


class LogReader(BaseReader):
    """The messages of a log, without their time."""

    def load_data(self, file: Path, extra_info: Any = None) -> list[Document]:
        lines = file.read_text(encoding="utf-8").splitlines()
        return [
            Document(text=line.split(" ", 1)[1], metadata={"page_label": str(number)})
            for number, line in enumerate(lines, start=1)
        ]


async def test_an_own_reader_reads_the_files_of_its_suffix(open_service: OpenService, tmp_path: Path) -> None:
    indices = index_with(tmp_path, "ingest", f"readers: {{.log: '{__name__}:LogReader'}}")
    log = f"09:00 The disk of the print server is full.\n09:05 {FACT}\n"
    async with open_service(indices_path=indices) as opened, client_of(opened) as client:
        sent = await client.post("/api/ingest", json={"text": log, "fileName": "server.log"})
        assert sent.status_code == 201
        citation = (await check_answer(client))["citations"][0]
        assert "09:05" not in citation["quote"]
        assert citation["location"]["page"] == 2


async def test_a_stock_splitter_cuts_what_is_ingested(open_service: OpenService, tmp_path: Path) -> None:
    use = "llama_index.core.node_parser:SentenceSplitter"
    entry = f"transformations: [{{use: '{use}', with: {{chunk_size: 60, chunk_overlap: 0}}}}]"
    text = " ".join(f"Pallet {number} stands in hall {number % 7} of the warehouse." for number in range(40))
    async with (
        open_service(indices_path=index_with(tmp_path, "ingest", entry)) as opened,
        client_of(opened) as client,
    ):
        sent = await client.post("/api/ingest", json={"text": f"{text} {FACT}", "fileName": "handbook.txt"})
        assert sent.json()["chunkCount"] > 5  # one chunk of the built-in chunker
        await check_answer(client)


@pytest.mark.parametrize("provider", ["extractive", f"{__name__}:OwnLLM"])
async def test_a_listener_of_llama_index_sees_the_steps_of_an_answer(open_service: OpenService, provider: str) -> None:
    seen: list[BaseEvent] = []

    class Listener(BaseEventHandler):
        def handle(self, event: BaseEvent, **kwargs: Any) -> None:
            seen.append(event)

    listener, root = Listener(), get_dispatcher()
    root.add_event_handler(listener)
    try:
        async with serving(open_service, chat_provider=provider, judge="none") as client:
            seen.clear()
            answer = await check_answer(client)
    finally:
        root.event_handlers.remove(listener)
    expected = [
        QueryStartEvent, RetrievalStartEvent, RetrievalEndEvent, ReRankStartEvent, ReRankEndEvent,
        SynthesizeStartEvent, LLMChatStartEvent, LLMChatEndEvent, SynthesizeEndEvent, QueryEndEvent,
    ]  # fmt: skip
    steps: list[Any] = [event for event in seen if type(event) in expected]
    assert [type(step) for step in steps] == expected
    query, retrieval, retrieved, rerank, reranked, synthesis, chat, chatted, synthesized, queried = steps
    assert query.query.query_str == synthesis.query.query_str == QUESTION["query"]
    assert retrieval.str_or_query_bundle.query_str == rerank.query.query_str == QUESTION["query"]
    for step in (retrieved, rerank, reranked):
        assert [node.get_content() for node in step.nodes] == [FACT]
    assert QUESTION["query"] in str(chat.messages)
    assert (FACT in str(chat.messages)) is (provider != "extractive")  # what quotes reads no prompt
    assert FACT in chatted.response.message.content
    assert answer["answer"] == str(synthesized.response) == str(queried.response)
