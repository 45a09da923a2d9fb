"""The service as LlamaIndex objects: retriever, query engine, vector store, embedding.

Each works in plain and in async code. What happens inside happens on the handle's own loop, because
the database's connections belong to it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from rag_service.api.wire.schemas import PassageBody
from rag_service.notebook.loop import BackgroundLoop
from rag_service.notebook.results import CitedAnswer, Passages

Search = Callable[[str], Coroutine[Any, Any, Passages]]
Ask = Callable[[str], Coroutine[Any, Any, tuple[CitedAnswer, Passages]]]


def to_node(passage: PassageBody) -> NodeWithScore:
    """A passage as a node; its score is the calibrated relevance, its metadata names the place."""
    return NodeWithScore(
        node=TextNode(
            id_=passage.chunk_id,
            text=passage.text,
            start_char_idx=passage.start,
            end_char_idx=passage.end,
            metadata={
                "document_id": str(passage.document_id),
                "corpus_id": str(passage.corpus_id),
                "title": passage.title,
                "file_name": passage.file_name,
                "source": passage.source,
                "place": passage.place,
                "chunk_index": passage.chunk_index,
            },
        ),
        score=passage.score,
    )


class ServiceRetriever(BaseRetriever):
    """Hybrid retrieval as requests get it: reranked, cut by threshold and top_k."""

    def __init__(self, loop: BackgroundLoop, search: Search):
        super().__init__(CallbackManager([]))
        self._loop = loop
        self._search = search

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [to_node(passage) for passage in self._loop.run(self._search(query_bundle.query_str))]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [to_node(passage) for passage in await self._loop.arun(self._search(query_bundle.query_str))]


class ServiceQueryEngine(BaseQueryEngine):
    """Answers with checked citations; the `CitedAnswer` is in the response's metadata under `answer`."""

    def __init__(self, loop: BackgroundLoop, ask: Ask):
        super().__init__(CallbackManager([]))
        self._loop = loop
        self._ask = ask

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return _to_response(*self._loop.run(self._ask(query_bundle.query_str)))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return _to_response(*await self._loop.arun(self._ask(query_bundle.query_str)))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


def _to_response(answer: CitedAnswer, passages: Passages) -> Response:
    return Response(
        response=answer.text,
        source_nodes=[to_node(passage) for passage in passages],
        metadata={"answer_id": str(answer.id), "decision": answer.decision, "answer": answer},
    )


class ServiceVectorStore(BasePydanticVectorStore):
    """The chunk store in plain and in async code; dense search over what the caller may read."""

    stores_text: bool = True
    flat_metadata: bool = False
    _loop: BackgroundLoop = PrivateAttr()
    _inner: BasePydanticVectorStore = PrivateAttr()

    def __init__(self, loop: BackgroundLoop, inner: BasePydanticVectorStore):
        super().__init__(stores_text=True)
        self._loop = loop
        self._inner = inner

    @classmethod
    def class_name(cls) -> str:
        return "ServiceVectorStore"

    @property
    def client(self) -> Any:
        return self._inner.client

    def query(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        return self._loop.run(self._inner.aquery(query))

    async def aquery(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        return await self._loop.arun(self._inner.aquery(query))

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        return self._loop.run(self._inner.aget_nodes(node_ids, filters))

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        return await self._loop.arun(self._inner.aget_nodes(node_ids, filters))

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        return self._loop.run(self._inner.async_add(list(nodes)))

    async def async_add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        return await self._loop.arun(self._inner.async_add(list(nodes)))

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        self._loop.run(self._inner.adelete(ref_doc_id))

    async def adelete(self, ref_doc_id: str, **_: Any) -> None:
        await self._loop.arun(self._inner.adelete(ref_doc_id))


class ServiceEmbedding(BaseEmbedding):
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
