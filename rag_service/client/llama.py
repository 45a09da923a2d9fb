"""The service as LlamaIndex retriever, query engine and embedding, for plain and async code.

The work runs on the service's own loop, because the database's connections belong to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.tools import FunctionTool

from rag_service.answering.tools.definitions import make_function_tools
from rag_service.answering.tools.toolbox import Tools
from rag_service.api.http.schemas import PassageBody, SearchRequest
from rag_service.api.mcp.document_tools import describe_result
from rag_service.client.background_loop import BackgroundLoop
from rag_service.client.results import CitedAnswer
from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import InputError
from rag_service.unpicklable import Unpicklable

if TYPE_CHECKING:
    from rag_service.client.embedded import EmbeddedBackend
    from rag_service.client.remote import RemoteBackend


_NOT_OF_OTHERS = (
    "service.query_engine answers from what it searched for itself, so that every citation can be proved. To answer"
    " from other nodes, use LlamaIndex's get_response_synthesizer, and service.check for its answer."
)
# Metadata of a passage that say nothing to a model.
_IDS = ["document_id", "corpus_id", "chunk_index"]


def to_node(passage: PassageBody) -> NodeWithScore:
    """A passage as a node; its score is the calibrated relevance.

    Its metadata are the filter fields of its document, its tags and its place; a language model sees no ids.
    """
    document_id = str(passage.document_id)
    metadata: dict[str, Any] = {
        **passage.metadata,
        "document_id": document_id,
        "corpus_id": str(passage.corpus_id),
        "title": passage.title,
        "file_name": passage.file_name,
        "source": passage.source,
        "tags": passage.tags,
        "place": passage.place,
        "chunk_index": passage.chunk_index,
    }
    if passage.location is not None and passage.location.page is not None:
        metadata["page_label"] = str(passage.location.page)  # as LlamaIndex's readers of PDF files call it
    return NodeWithScore(
        node=TextNode(
            id_=passage.chunk_id,
            text=passage.text,
            start_char_idx=passage.start,
            end_char_idx=passage.end,
            metadata=metadata,
            excluded_llm_metadata_keys=list(_IDS),
            excluded_embed_metadata_keys=list(_IDS),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document_id)},
        ),
        score=passage.score,
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


class ServiceRetriever(Unpicklable, BaseRetriever):
    """Hybrid retrieval as requests get it: reranked, cut by threshold and top_k."""

    def __init__(self, loop: BackgroundLoop, backend: EmbeddedBackend | RemoteBackend, corpus_ids: list[UUID]):
        super().__init__(CallbackManager([]))
        self._loop = loop
        self._backend = backend
        self._corpus_ids = corpus_ids

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._loop.run(self._search(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self._loop.arun(self._search(query_bundle.query_str))

    async def _search(self, question: str) -> list[NodeWithScore]:
        found = await self._backend.search(SearchRequest(query=question, corpus_ids=self._corpus_ids))
        return [to_node(passage) for passage in found.passages]


class ServiceQueryEngine(Unpicklable, BaseQueryEngine):
    """Answers with checked citations; the `CitedAnswer` is in the response's metadata under `answer`."""

    def __init__(self, loop: BackgroundLoop, backend: EmbeddedBackend | RemoteBackend, corpus_ids: list[UUID]):
        super().__init__(CallbackManager([]))
        self._loop = loop
        self._backend = backend
        self._corpus_ids = corpus_ids

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The passages that an answer would be written from."""
        return ServiceRetriever(self._loop, self._backend, self._corpus_ids).retrieve(query_bundle)

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await ServiceRetriever(self._loop, self._backend, self._corpus_ids).aretrieve(query_bundle)

    def synthesize(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(_NOT_OF_OTHERS)

    async def asynthesize(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(_NOT_OF_OTHERS)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self._loop.run(self._ask(query_bundle.query_str))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await self._loop.arun(self._ask(query_bundle.query_str))

    async def _ask(self, question: str) -> Response:
        request = SearchRequest(query=question, corpus_ids=self._corpus_ids)
        body, passages = await self._backend.answer(request, with_passages=True)
        answer = CitedAnswer(question=question, body=body)
        return Response(
            response=answer.text,
            source_nodes=[to_node(passage) for passage in passages],
            metadata={"answer_id": str(answer.id), "decision": answer.decision, "answer": answer},
        )

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


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
