"""A question with everything that decides how it is searched and answered, and the base of what searches for it.

They are a LlamaIndex `QueryBundle` and a LlamaIndex `BaseRetriever`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal
from uuid import UUID, uuid4

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from rag_service.domain import Filters, Hit, Identity, ModelCall, Turn, describe_place
from rag_service.errors import PermissionDeniedError
from rag_service.indices import IndexDefinition
from rag_service.retrieval.named_files import NamedFiles
from rag_service.retrieval.planner import QueryPlan
from rag_service.retrieval.versions import AskedVersions
from rag_service.store.search.scope import SearchScope
from rag_service.unpicklable import Unpicklable

Mode = Literal["hybrid", "dense", "lexical"]

RERANKED = 20  # passages that the postprocessors see
# Fields of a query that say nothing about its answer; `Retrieval.timings_ms` is left out as well.
_NOT_ANSWERED = frozenset(
    {"agent_id", "answer_id", "said", "calls", "emit", "evidence", "passages", "parts", "recorded", "retrieval"}
)
_EMBEDDED = {"title", "file_name", "source"}  # what embedding models and cross-encoders see of a node's metadata


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """What a search found and how."""

    plan: QueryPlan
    index: IndexDefinition
    scope: SearchScope
    hits: tuple[Hit, ...]  # best first, before reranking and threshold
    weights: Mapping[str, float] = field(default_factory=dict)  # index term → idf in the scope
    absent: tuple[str, ...] = ()  # names in the question that no chunk in scope contains, as written
    timings_ms: Mapping[str, float] = field(default_factory=dict)  # step → milliseconds
    files: NamedFiles | None = None  # that the question names; None: it names none
    is_chain: bool = False  # whether the question is about something that it does not name, see `hops.py`


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """How the question that is searched for was made of one that needs what was said before it."""

    asked: str  # the question itself
    joined: bool  # to the questions that it needs; False: a chat model rewrote it


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a program asks of the model alone, such as a title of the conversation: without a search and citations."""

    prompt: str
    otherwise: str  # the reply without a model


async def ignore(event: Any) -> None:
    """Nobody listens."""


@dataclass(kw_only=True)
class RagQuery(QueryBundle):
    """A request. Stock LlamaIndex components see a `QueryBundle`; ours find the rest of the request in it.

    One object serves one request, and LlamaIndex passes nothing else from step to step. So each step leaves in it what
    the next ones need, in the groups of fields below. (A `QueryBundle` can be assigned to, so nothing derived from it
    can be frozen.)
    """

    # What is asked. Only a follow-up changes: its question becomes one that needs no conversation.
    identity: Identity  # whose permissions the search has
    filters: Filters = field(default_factory=Filters)
    top_k: int = 5  # maximum number of passages returned
    threshold: float | None = None  # every passage must reach it, 0..1; None: see `ChoosePassages`
    candidates: int = RERANKED  # passages that the retriever returns, unless `top_k` is larger
    mode: Mode | None = None  # None: as the settings say
    alpha: float | None = None  # weight of the vector search, 0..1; None: the index definition's
    as_asked: bool = False  # one search, whatever it asks for
    task: Task | None = None  # what a program wants instead of an answer
    answer_id: UUID = field(default_factory=uuid4)  # under which the answer is recorded
    said: tuple[Turn, ...] = ()  # what is recorded of the conversation; empty where nobody goes on from it by its id
    given: tuple[Hit, ...] | None = None  # answered from these passages only, in this order; None: from what is found
    turns: tuple[Turn, ...] = ()  # what was said before, oldest first: the engine makes the question standalone
    languages: tuple[str, ...] = ()  # that the user may write in, likeliest first: of the conversation, and as set
    prompt: str | None = None  # template; None: the index's
    instructions: str = ""  # an agent's, added to the rules of the template
    personal_corpora: frozenset[UUID] = frozenset()  # their passages are shown in a block of their own
    agent_id: UUID | None = None  # the agent that answers, for the record
    recorded: bool = True  # whether the answer is stored
    retractable: bool = True  # whether the reader of the stream can take back text: `AnswerDelta.restart`
    emit: Callable[[Any], Awaitable[None]] = field(default=ignore, repr=False)  # receives each answer event
    model: Any = field(default=None, repr=False)  # the `ChatModel` that answers; None: the engine's

    # What became of the conversation.
    history: str = ""  # neutralised, for the prompt
    remembered: tuple[int, ...] = ()  # places of earlier turns that the question comes back to, for the prompt
    earlier: tuple[Hit, ...] = ()  # passages that the last answers cited and that may still be read, for the prompt
    earlier_still: tuple[Hit, ...] = ()  # likewise of the remembered answers
    follow_up: FollowUp | None = None  # what the question was made of; None: it is searched for as asked

    # What the retriever, the engine and the postprocessors found.
    retrieval: Retrieval | None = field(default=None, repr=False)
    passages: dict[str, Hit] = field(default_factory=dict, repr=False)  # node id → passage with its current scores
    parts: tuple[Part, ...] = ()  # what it asks for; several, or none
    searches: int = 1  # the passages are those of so many
    postprocessed: bool = False  # by postprocessors that are not ours: what they dropped is used for nothing
    versions: AskedVersions | None = None  # of documents that were found in several
    doubtful: bool = False  # no passage reaches the threshold: an answer is uncertain

    # What the synthesizer tells of the answer.
    calls: list[ModelCall] = field(default_factory=list, repr=False)  # of chat models, so far
    model_error: str | None = None  # code of the error of the model that was to answer
    evidence: Any = field(default=None, repr=False)  # the `Evidence` that quotes and places are chosen from
    degraded: bool = False  # the answer was made without what failed, and would be better another time
    signals: Mapping[str, float] = field(default_factory=dict, repr=False)  # what the answer's confidence is made of

    @property
    def question(self) -> str:
        return self.query_str

    @property
    def asked(self) -> str:
        """The question as the user wrote it."""
        return self.question if self.follow_up is None else self.follow_up.asked

    @property
    def of_several(self) -> bool:
        """Whether it is to be answered from each of several files, or versions of one."""
        files = self.found.files
        return (files is not None and len(files.found) > 1) or (self.versions is not None and self.versions.compares)

    @property
    def searched_for(self) -> str | None:
        """The question with what it needs of the conversation; None: it was searched for as asked."""
        return None if self.follow_up is None else self.question

    @property
    def found(self) -> Retrieval:
        """What the retriever found. Raises RuntimeError if the query has not passed a retriever of this service."""
        if self.retrieval is None:
            raise RuntimeError("This query has not been retrieved yet.")
        return self.retrieval

    @property
    def told_files(self) -> tuple[UUID, ...]:
        """Documents whose names the answer may tell, also where it cites none of them."""
        files = None if self.retrieval is None else self.retrieval.files
        own = () if files is None else files.told
        return tuple(dict.fromkeys([*own, *(told for part in self.parts for told in part.query.told_files)]))

    def keep(self, retrieval: Retrieval) -> list[NodeWithScore]:
        """Store what was found; its passages as nodes, best first.

        Where corpora of several index definitions are searched at once, the internal rules of one are no answers for
        another.
        """
        if not self.filters.chunk_types:
            hidden = retrieval.index.ingest.hidden_types
            retrieval = replace(retrieval, hits=tuple(hit for hit in retrieval.hits if hit.chunk.type not in hidden))
        self.retrieval = retrieval
        self.passages = {hit.chunk.id: hit for hit in retrieval.hits}
        return list(map(to_node, retrieval.hits))

    def hits(self, nodes: Iterable[NodeWithScore]) -> tuple[Hit, ...]:
        """The passages of nodes, in their order.

        Only what the retriever found for this query counts: other nodes and repeated ones are left out, and text
        that a postprocessor changed is the stored text again, because citations are checked against that.
        """
        found: dict[str, Hit] = {}
        for node in nodes:
            if hit := self.passages.get(node.node.node_id):
                found[hit.chunk.id] = hit
        return tuple(found.values())

    def all_asked(self, nodes: Iterable[NodeWithScore]) -> tuple[Any, ...]:
        """All that an answer without a chat model is made of: who asks what, and what was found for it.

        Two that are equal have the same answer. Every field counts that is not known to say nothing about it.
        """
        own = tuple(getattr(self, one.name) for one in fields(self) if one.name not in _NOT_ANSWERED)
        found = None if self.retrieval is None else replace(self.retrieval, timings_ms={})
        parts = tuple((part.text, part.is_clause, part.query.all_asked(part.nodes)) for part in self.parts)
        return own, found, self.hits(nodes), parts

    def reorder(self, nodes: Sequence[NodeWithScore], hits: Iterable[Hit]) -> list[NodeWithScore]:
        """The nodes in the order of these hits, whose scores replace the ones held here."""
        by_id = {node.node.node_id: node for node in nodes}
        ordered = []
        for hit in hits:
            self.passages[hit.chunk.id] = hit
            ordered.append(by_id[hit.chunk.id])
        return ordered


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of several things that a question asks for."""

    text: str  # as the question says it
    query: RagQuery  # the same as a question of its own
    nodes: Sequence[NodeWithScore]  # found for it, best first
    is_clause: bool  # with a question word of its own; else it may be no part: "rent a desk and have it reimbursed"


class PassageRetriever(Unpicklable, BaseRetriever):
    """Base of the hybrid, the keyword and the replicated retriever."""

    def __init__(self, *, identity: Identity | None = None, top_k: int = 5):
        """`identity`: whose permissions a plain string or `QueryBundle` is searched with; None refuses these. `top_k`:
        number of passages returned for them."""
        super().__init__(CallbackManager([]))
        self._identity = identity
        self._top_k = top_k

    @abstractmethod
    async def search(self, query: RagQuery) -> Retrieval:
        """Find the best `query.candidates` passages.

        Raises:
            EmbeddingError: the question cannot be embedded.
            NotFoundError: the filters name a corpus or document that the identity cannot search, and require it.
            SearchTimeoutError: a statement takes longer than RAG_SEARCH_TIMEOUT.
            StoreError: the database fails.
        """

    def as_query(self, query: QueryBundle) -> RagQuery:
        """The query itself, or a plain one with the defaults of this retriever.

        Raises PermissionDeniedError for a plain query if this retriever has no identity of its own.
        """
        if isinstance(query, RagQuery):
            return query
        if self._identity is None:
            raise PermissionDeniedError("A query without an identity is not answered; pass a RagQuery.")
        return RagQuery(query.query_str, identity=self._identity, top_k=self._top_k)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = self.as_query(query_bundle)
        if query is not query_bundle:  # no postprocessors of ours will cut it
            query.candidates = query.top_k
        return query.keep(await self.search(query))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise RuntimeError("This retriever is asynchronous: use `aretrieve`, or the one of `open_service()`.")


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
    hidden = [*ids, *(key for key in extra if key not in metadata)]
    node = TextNode(
        id_=chunk_id,
        text=text,
        start_char_idx=offsets[0],
        end_char_idx=offsets[1],
        metadata={**extra, **metadata, **ids},
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=[*hidden, *(key for key in metadata if key not in _EMBEDDED)],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=str(ids["document_id"]))},
    )
    return NodeWithScore(node=node, score=score)
