"""An answer in the making, and LlamaIndex around it: the query that carries it, nodes, the base of retrievers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from rag_service.domain import Hit, Identity, ModelCall, describe_place
from rag_service.errors import PermissionDeniedError
from rag_service.models.llm.model import ChatModel
from rag_service.retrieval.found import Found
from rag_service.retrieval.question import Question
from rag_service.unpicklable import Unpicklable

_EMBEDDED = {"title", "file_name", "source"}  # what embedding models and cross-encoders see of a node's metadata


def to_node(hit: Hit) -> NodeWithScore:
    """A passage as LlamaIndex sees it; the score is the calibrated relevance, 0..1."""
    chunk, document = hit.chunk, hit.chunk.document
    location = chunk.location
    return make_node(
        chunk.id,
        chunk.text,
        (chunk.start, chunk.end),
        score=hit.scores.relevance,
        ids={"document_id": str(document.id), "corpus_id": str(document.corpus_id), "chunk_index": chunk.index},
        extra=chunk.extra,
        metadata={
            **chunk.metadata,
            "title": document.title,
            "file_name": document.file_name,
            "source": document.source,
            "tags": list(document.tags),
            "language": document.language,
            "dated": None if document.dated is None else document.dated.isoformat(),
            "updated_at": document.updated_at.isoformat(),
            "place": describe_place(document, location),
            "page_label": None if location is None or location.page is None else str(location.page),
        },
    )


def make_node(
    chunk_id: str,
    text: str,
    offsets: tuple[int, int],
    *,
    score: float,
    ids: Mapping[str, Any],
    extra: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> NodeWithScore:
    """A passage as a node, of which postprocessors see all metadata.

    Args:
        ids: of its document and corpus, and its number: language models do not see them.
        extra: whatever documents and transformations bring, such as the `window` of a `SentenceWindowNodeParser`:
            language models do not see it either.
        metadata: what is known of every document; embedding models and cross-encoders see title, file and source of it.
    """
    empty = (key for key, value in metadata.items() if value in (None, "", []))  # a line of a prompt that says nothing
    hidden = [*ids, *(key for key in extra if key not in metadata), *empty]
    decided = {*_EMBEDDED, *hidden}
    node = TextNode(
        id_=chunk_id,
        text=text,
        start_char_idx=offsets[0],
        end_char_idx=offsets[1],
        metadata={**extra, **metadata, **ids},
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=[*hidden, *(key for key in metadata if key not in decided)],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=str(ids["document_id"]))},
    )
    return NodeWithScore(node=node, score=score)


async def ignore(event: Any) -> None:
    """Take an event that nobody listens to."""


@dataclass(kw_only=True)
class AnswerRun:
    """An answer in the making: the one object that changes while a question is answered, and the engine's.

    Questions, what is found for them and drafts are frozen; a step that has a new one puts it here.
    """

    question: Question  # replaced where a follow-up is made standalone
    model: ChatModel  # that answers
    retrieved: Found | None = None  # None: not yet
    calls: list[ModelCall] = field(default_factory=list, repr=False)  # of chat models, so far
    emit: Callable[[Any], Awaitable[None]] = field(default=ignore, repr=False)  # receives each answer event

    @property
    def found(self) -> Found:
        """What was found. Raises RuntimeError if the run has not passed a retriever of this service."""
        if self.retrieved is None:
            raise RuntimeError("This query has not been retrieved yet.")
        return self.retrieved

    @property
    def language(self) -> str:
        """The language of the answer."""
        return self.found.plan.language


@dataclass(kw_only=True)
class RagQuery(QueryBundle):
    """A LlamaIndex query with its run, which is how our steps find it: LlamaIndex passes nothing else from one to the
    next. Stock components see the question."""

    run: AnswerRun = field(repr=False)

    @classmethod
    def of(cls, run: AnswerRun) -> RagQuery:
        """Return the query of a run."""
        return cls(run.question.text, run=run)


class PassageRetriever(Unpicklable, BaseRetriever):
    """Base of the hybrid, the keyword and the replicated retriever."""

    def __init__(self, *, identity: Identity | None = None, top_k: int = 5):
        """`identity`: whose permissions a plain string or `QueryBundle` is searched with; None refuses these. `top_k`:
        number of passages returned for them."""
        super().__init__(CallbackManager([]))
        self._identity = identity
        self._top_k = top_k

    @abstractmethod
    async def search(self, question: Question) -> Found:
        """Find the best `question.candidates` passages.

        Raises:
            EmbeddingError: the question cannot be embedded.
            NotFoundError: the filters name a corpus or document that the identity cannot search, and require it.
            SearchTimeoutError: a statement takes longer than RAG_SEARCH_TIMEOUT.
            StoreError: the database fails.
        """

    def read_question(self, query: QueryBundle) -> Question:
        """Return the question of a query; that of a plain one has the defaults of this retriever.

        Raises PermissionDeniedError for a plain query if this retriever has no identity of its own.
        """
        if isinstance(query, RagQuery):
            return query.run.question
        if self._identity is None:
            raise PermissionDeniedError("A query without an identity is not answered; pass a RagQuery.")
        return Question(query.query_str, identity=self._identity, top_k=self._top_k)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question = self.read_question(query_bundle)
        if not isinstance(query_bundle, RagQuery):  # no postprocessors of ours will cut it
            question = replace(question, candidates=question.top_k)
        found = (await self.search(question)).all_visible(question.filters)
        if isinstance(query_bundle, RagQuery):
            query_bundle.run.retrieved = found
        return list(map(to_node, found.passages))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise RuntimeError("This retriever is asynchronous: use `aretrieve`, or the one of `open_service()`.")
