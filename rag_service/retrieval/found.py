"""What was found for a question: returned by the retriever, and again by each postprocessor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from llama_index.core.schema import NodeWithScore

from rag_service.domain import Filters, Hit
from rag_service.indices import IndexDefinition
from rag_service.retrieval.named_files import NamedFiles
from rag_service.retrieval.planner import QueryPlan
from rag_service.retrieval.question import Question
from rag_service.retrieval.versions import AskedVersions
from rag_service.store.search.scope import SearchScope


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search found and how, and what was chosen of it."""

    plan: QueryPlan
    index: IndexDefinition
    scope: SearchScope
    hits: tuple[Hit, ...]  # best first, before reranking and threshold
    weights: Mapping[str, float] = field(default_factory=dict)  # index term → idf in the scope
    absent: tuple[str, ...] = ()  # names in the question that no chunk in scope contains, as written
    timings_ms: Mapping[str, float] = field(default_factory=dict, compare=False)  # step → milliseconds
    files: NamedFiles | None = None  # that the question names; None: it names none
    is_chain: bool = False  # whether the question is about something that it does not name, see `parts.py`
    # What postprocessors and the engine add.
    passages: tuple[Hit, ...] = ()  # those to answer from, best first
    known: Mapping[str, Hit] = field(default_factory=dict, compare=False)  # node id → passage with its current scores
    versions: AskedVersions | None = None  # of documents that were found in several
    is_doubtful: bool = False  # no passage reaches the threshold: an answer is uncertain
    is_filtered: bool = False  # by postprocessors that are not ours: what they dropped is used for nothing
    parts: tuple[Part, ...] = ()  # what the question asks for; several, or none
    searches: int = 1  # the passages are those of so many

    @property
    def of_several(self) -> bool:
        """Whether the answer is to come from each of several files, or versions of one."""
        is_over_files = self.files is not None and len(self.files.found) > 1
        return is_over_files or (self.versions is not None and self.versions.compares)

    @property
    def other_versions(self) -> frozenset[UUID]:
        """Documents found in several versions, in those that the question does not ask for."""
        return frozenset() if self.versions is None else self.versions.others

    @property
    def named_documents(self) -> tuple[UUID, ...]:
        """Documents that the answer may mention, cited or not."""
        own = () if self.files is None else self.files.told
        return tuple(dict.fromkeys([*own, *(one for part in self.parts for one in part.found.named_documents)]))

    def with_passages(self, hits: Iterable[Hit]) -> Found:
        """Return the same with these passages, whose scores replace the ones known."""
        passages = tuple(hits)
        return replace(self, passages=passages, known={**self.known, **{hit.chunk.id: hit for hit in passages}})

    def all_visible(self, filters: Filters) -> Found:
        """Return the same with all hits as passages, without the internal rules of the index.

        Where corpora of several index definitions are searched at once, the rules of one are no answers for another.
        """
        if filters.chunk_types:
            return self.with_passages(self.hits)
        hidden = self.index.ingest.hidden_types
        visible = tuple(hit for hit in self.hits if hit.chunk.type not in hidden)
        return replace(self, hits=visible).with_passages(visible)

    def choose(self, nodes: Iterable[NodeWithScore]) -> Found:
        """Return the same with the passages of these nodes, in their order.

        Only what was found for this question counts: other nodes and repeated ones are left out, and text that a
        postprocessor changed is the stored text again, because citations are checked against that.
        """
        chosen: dict[str, Hit] = {}
        for node in nodes:
            if hit := self.known.get(node.node.node_id):
                chosen[hit.chunk.id] = hit
        return replace(self, passages=tuple(chosen.values()))

    def order(self, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes of the passages, in the order of the passages."""
        by_id = {node.node.node_id: node for node in nodes}
        return [by_id[hit.chunk.id] for hit in self.passages]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of several things that a question asks for."""

    text: str  # as the question says it
    question: Question  # the same as a question of its own
    found: Found  # for it
    is_clause: bool  # with a question word of its own; else it may be no part: "rent a desk and have it reimbursed"
