"""The service as LlamaIndex retriever, query engine and embedding, for plain and async code.

The work runs on the service's own loop, because the database's connections belong to it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.query_engine.retriever_query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import FunctionTool

from rag_service.answering.tools.definitions import make_function_tools
from rag_service.answering.tools.toolbox import Tools
from rag_service.api.http.events import WireEvent
from rag_service.api.http.schemas import AnswerBody, AnswerRequest, DeltaData, PassageBody, SearchRequest, SourcesData
from rag_service.api.mcp.document_tools import describe_result
from rag_service.client.asking import SearchOptions, make_request
from rag_service.client.background_loop import BackgroundLoop
from rag_service.client.remote import RemoteBackend
from rag_service.client.results import CitedAnswer
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import ConfigurationError, InputError
from rag_service.retrieval.query import make_node
from rag_service.unpicklable import Unpicklable

if TYPE_CHECKING:
    from rag_service.client.embedded import EmbeddedBackend


def to_node(passage: PassageBody) -> NodeWithScore:
    """A passage as a node with the metadata that the service's own postprocessors see."""
    page = None if passage.location is None else passage.location.page
    return make_node(
        passage.chunk_id,
        passage.text,
        (passage.start, passage.end),
        score=passage.score,
        ids={
            "document_id": str(passage.document_id),
            "corpus_id": str(passage.corpus_id),
            "chunk_index": passage.chunk_index,
        },
        extra={key: value for key, value in passage.metadata.items() if key not in passage.fields},
        metadata={
            **passage.fields,
            "title": passage.title,
            "file_name": passage.file_name,
            "source": passage.source,
            "tags": passage.tags,
            "language": passage.language,
            "dated": None if passage.dated is None else passage.dated.isoformat(),
            "updated_at": None if passage.updated_at is None else passage.updated_at.isoformat(),
            "place": passage.place,
            "page_label": None if page is None else str(page),
        },
    )


def make_tools(loop: BackgroundLoop, tools: Tools) -> list[FunctionTool]:
    """The tools as the local administrator; a wrong call tells the agent what is wrong."""
    toolbox = tools.of(LOCAL_ADMIN)

    async def use(name: str, arguments: dict[str, Any]) -> str:
        async def call() -> str:
            try:
                return describe_result(await toolbox.call(name, arguments))
            except InputError as error:
                return f"Error: {error.message}"

        return await loop.arun(call())

    return make_function_tools(use, run=loop.run)


def _within(request: SearchRequest, asked: SearchRequest) -> SearchRequest:
    """Return `asked`, in the corpora of `request` if it names none."""
    return msgspec.structs.replace(asked, corpus_ids=asked.corpus_ids or request.corpus_ids)


class ServiceRetriever(Unpicklable, BaseRetriever):
    """Hybrid retrieval as requests get it: reranked, cut by threshold and top_k."""

    def __init__(self, loop: BackgroundLoop, backend: EmbeddedBackend | RemoteBackend, request: SearchRequest):
        """`request`: all but the question."""
        super().__init__(CallbackManager([]))
        self._loop = loop
        self._backend = backend
        self._request = request

    def __call__(self, **options: Unpack[SearchOptions]) -> ServiceRetriever:
        """Return one like this with these options of `Service.search`. Without `corpus_ids`, the corpora stay."""
        asked = _within(self._request, make_request("", **options))
        return ServiceRetriever(self._loop, self._backend, asked)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._loop.run(self._search(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self._loop.arun(self._search(query_bundle.query_str))

    async def _search(self, question: str) -> list[NodeWithScore]:
        found = await self._backend.search(msgspec.structs.replace(self._request, query=question))
        return [to_node(passage) for passage in found.passages]


class ServiceQueryEngine(Unpicklable, RetrieverQueryEngine):
    """Answers with checked citations; the `CitedAnswer` is in the response's metadata under `answer`.

    LlamaIndex's chat engines turn streaming on and off in a `RetrieverQueryEngine` only. `retrieve` finds passages as
    `ServiceRetriever`; `synthesize` answers from nodes as `_Synthesizer`.
    """

    def __init__(
        self,
        loop: BackgroundLoop,
        backend: EmbeddedBackend | RemoteBackend,
        request: AnswerRequest,
        *,
        streaming: bool = False,
    ):
        """
        Args:
            request: all but the question.
            streaming: reply with a `StreamingResponse`, whose metadata are complete once it is read.
        """
        synthesizer = _Synthesizer(loop, backend, request, streaming=streaming)
        super().__init__(
            ServiceRetriever(loop, backend, request),
            synthesizer,  # type: ignore[arg-type]  # a BaseSynthesizer would need a language model
            callback_manager=CallbackManager([]),
        )
        self._loop = loop
        self._backend = backend
        self._request = request

    def __call__(self, *, streaming: bool = False, **options: Unpack[SearchOptions]) -> ServiceQueryEngine:
        """Return one like this with these options of `Service.search`. Without `corpus_ids`, the corpora stay."""
        asked = _within(self._request, make_request("", **options))
        request = AnswerRequest(**msgspec.structs.asdict(asked))
        return ServiceQueryEngine(self._loop, self._backend, request, streaming=streaming)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        if not self._response_synthesizer._streaming:
            return self._loop.run(self._ask(query_bundle.query_str))
        streamed = self._loop.run(self._stream(query_bundle.query_str))
        return StreamingResponse(streamed.pieces(self._loop), streamed.nodes, streamed.metadata)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        if not self._response_synthesizer._streaming:
            return await self._loop.arun(self._ask(query_bundle.query_str))
        streamed = await self._loop.arun(self._stream(query_bundle.query_str))
        return AsyncStreamingResponse(streamed.apieces(self._loop), streamed.nodes, streamed.metadata)

    async def _ask(self, question: str) -> Response:
        request = msgspec.structs.replace(self._request, query=question)
        body = await self._backend.answer(request)
        passages = await self._backend.read_passages(request, body.sources)
        return Response(
            response=body.answer, source_nodes=[to_node(one) for one in passages], metadata=_describe(question, body)
        )

    async def _stream(self, question: str) -> _Streamed:
        request = msgspec.structs.replace(self._request, query=question)
        events = self._backend.stream(request, retractable=False)
        try:
            first = await anext(events)
            sources = first.data.sources if isinstance(first.data, SourcesData) else []
            passages = await self._backend.read_passages(request, sources)
        except BaseException:
            await events.aclose()
            raise
        return _Streamed(question=question, events=events, nodes=[to_node(one) for one in passages])

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


class _Synthesizer:
    """The part of a query engine that answers from nodes, in their order. Embedded only."""

    def __init__(
        self,
        loop: BackgroundLoop,
        backend: EmbeddedBackend | RemoteBackend,
        request: AnswerRequest,
        *,
        streaming: bool,
    ):
        self.callback_manager = CallbackManager([])
        self._loop = loop
        self._backend = backend
        self._request = request
        self._streaming = streaming  # of the engine; LlamaIndex's chat engines set it while they query

    def synthesize(
        self,
        query: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return an answer from stored passages.

        `additional_source_nodes` are added to the response. Raises InputError if a node is no stored passage: only
        these can be cited.
        """
        return self._loop.run(self._synthesize(query.query_str, nodes, additional_source_nodes or ()))

    async def asynthesize(
        self,
        query: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        return await self._loop.arun(self._synthesize(query.query_str, nodes, additional_source_nodes or ()))

    async def _synthesize(
        self, question: str, nodes: Sequence[NodeWithScore], more: Sequence[NodeWithScore]
    ) -> Response:
        backend = self._backend
        if isinstance(backend, RemoteBackend):
            raise ConfigurationError("synthesize needs an embedded service; this one is remote.")
        relevance = {node.node.node_id: min(1.0, max(0.0, 1.0 if node.score is None else node.score)) for node in nodes}
        body = await backend.answer_from(msgspec.structs.replace(self._request, query=question), relevance)
        return Response(response=body.answer, source_nodes=[*nodes, *more], metadata=_describe(question, body))


@dataclass(kw_only=True)
class _Streamed:
    """An answer after its first event, as LlamaIndex streams it: pieces of text."""

    question: str
    events: AsyncGenerator[WireEvent, None]
    nodes: list[NodeWithScore]  # that it may be written from
    metadata: dict[str, Any] = field(default_factory=dict)  # filled at the end

    def pieces(self, loop: BackgroundLoop) -> Generator[str, None, None]:
        try:
            while (piece := loop.run(self._next())) is not None:
                yield piece
        finally:
            if not loop.is_closed:
                loop.run(self.events.aclose())

    async def apieces(self, loop: BackgroundLoop) -> AsyncGenerator[str, None]:
        try:
            while (piece := await loop.arun(self._next())) is not None:
                yield piece
        finally:
            await loop.arun(self.events.aclose())

    async def _next(self) -> str | None:
        """The next piece of text; None at the end."""
        async for event in self.events:
            match event.data:
                case AnswerBody():
                    self.metadata |= _describe(self.question, event.data)
                case DeltaData(restart=True):  # of a remote service: what was read cannot be taken back
                    return f"\n\n{event.data.text}"
                case DeltaData() if event.data.text:
                    return event.data.text
        return None


def _describe(question: str, body: AnswerBody) -> dict[str, Any]:
    """The metadata of a response."""
    answer = CitedAnswer(question=question, body=body)
    return {
        "answer_id": str(answer.id),
        "decision": answer.decision,
        "confidence": answer.confidence,
        "citations": answer.citations,
        "answer": answer,
    }


class ServiceEmbedding(Unpicklable, BaseEmbedding):
    """The embedding model in plain and in async code."""

    _loop: BackgroundLoop = PrivateAttr()
    _inner: BaseEmbedding = PrivateAttr()

    def __init__(self, loop: BackgroundLoop, inner: BaseEmbedding):
        super().__init__(model_name=inner.model_name, embed_batch_size=inner.embed_batch_size)
        self._loop = loop
        self._inner = inner

    @classmethod
    def class_name(cls) -> str:
        return "ServiceEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._loop.run(self._inner.aget_query_embedding(query))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self._loop.arun(self._inner.aget_query_embedding(query))

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._loop.run(self._inner.aget_text_embedding(text))

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await self._loop.arun(self._inner.aget_text_embedding(text))
