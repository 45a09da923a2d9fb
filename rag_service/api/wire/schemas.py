"""The shapes on the wire: requirement A1, A2 and A10. Names are camelCase there."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct, field

MAX_IDS = 1000
MAX_TAGS = 50
MAX_CHARS = 1000  # of a filter value, a tag or a title

Text = Annotated[str, Meta(max_length=MAX_CHARS)]
Name = Annotated[str, Meta(max_length=200)]
Tags = Annotated[list[Text], Meta(max_length=MAX_TAGS)]
Ids = Annotated[list[UUID], Meta(max_length=MAX_IDS)]
Fields = Annotated[dict[Text, Text], Meta(max_length=MAX_TAGS)]


# -- requests


class SearchRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What to search for, and where."""

    query: Annotated[str, Meta(description="The question, in any language; at most RAG_QUERY_MAX_CHARS characters.")]
    top_k: Annotated[int | None, Meta(description="Most passages returned, 1 to RAG_TOPK_MAX.")] = None
    similarity_threshold: Annotated[
        float | None, Meta(description="Least calibrated relevance of a passage, 0 to 1.")
    ] = None
    source: Annotated[Text | None, Meta(description="Only documents of this source.")] = None
    tags: Annotated[Tags, Meta(description="Only documents that carry all of these.")] = field(default_factory=list)
    file_name: Annotated[Text | None, Meta(description="Only the file of this name.")] = None
    document_ids: Annotated[Ids, Meta(description="Only these documents; all must exist. Empty: all.")] = field(
        default_factory=list
    )
    corpus_ids: Annotated[Ids, Meta(description="Only these corpora; all must exist. Empty: all.")] = field(
        default_factory=list
    )
    fields: Annotated[Fields, Meta(description="Filter fields declared by the index, equal to.")] = field(
        default_factory=dict
    )


class AnswerRequest(SearchRequest, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A question to answer."""

    stream: Annotated[bool, Meta(description="Answer with a stream of events.")] = False


class IngestRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A text to store as a document of the default corpus."""

    text: Annotated[str, Meta(description="The document's text.")]
    title: Text | None = None
    source: Annotated[Text | None, Meta(description="Where the text comes from.")] = None
    tags: Tags = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    file_name: Annotated[
        Text | None, Meta(description="Its ending tells the format; the same name replaces the document.")
    ] = None


# -- what replies are made of


class LocationBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A place in the original document; fields that do not apply are null or empty. Numbers begin at 1."""

    page: int | None
    headings: list[str]
    sheet: str | None
    cell: str | None
    row: int | None
    paragraph: int | None


class ScoresBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """The parts of a score; null where a leg of the search did not run."""

    relevance: Annotated[float, Meta(description="Calibrated, 0 to 1: what similarityThreshold applies to.")]
    dense: Annotated[float | None, Meta(description="Cosine similarity.")]
    bm25: Annotated[float | None, Meta(description="Okapi BM25, 0 and up.")]
    coverage: Annotated[float | None, Meta(description="Share of the question that it holds: BM25 without length.")]
    fused: Annotated[float | None, Meta(description="Weighted sum that ranked the candidates.")]
    rerank: Annotated[float | None, Meta(description="From the reranker, 0 to 1.")]


class PassageBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A retrieved passage."""

    chunk_id: str
    document_id: UUID
    corpus_id: UUID
    title: str
    file_name: str | None
    source: str | None
    tags: list[str]
    chunk_index: int
    score: Annotated[float, Meta(description="Calibrated relevance, 0 to 1.")]
    scores: ScoresBody
    text: str
    start: Annotated[int, Meta(description="First character in the document's stored text.")]
    end: int
    location: LocationBody | None
    place: Annotated[str, Meta(description='For people, e.g. "rapport.pdf, page 3".')]
    content_hash: str
    metadata: dict[str, Any]


class SearchBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """Passages above the threshold, best first."""

    passages: list[PassageBody]
    language: Annotated[str, Meta(description="Of the question, ISO 639-1.")]
    latency_ms: float


class SourceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A passage that the answer could draw on."""

    document_id: UUID
    title: str
    chunk_index: int
    score: float
    source: str | None
    tags: list[str]
    chunk_id: str
    file_name: str | None
    location: LocationBody | None
    place: str


class RelatedBody(SourceBody, kw_only=True, frozen=True, rename="camel"):
    """A passage that is near to the question, and not near enough to answer it."""

    text: str


class ContextBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A passage that was put before the model."""

    mark: Annotated[int, Meta(description="The number n of its mark [Cn].")]
    document_id: UUID
    chunk_index: int
    snippet: str


class CitationBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A mark in the answer, resolved and checked. Place and quote are null when nothing supports it."""

    mark: int
    status: Annotated[str, Meta(description="verified, misattributed or not_found.")]
    quote: str | None
    document_id: UUID | None
    title: str | None
    content_hash: str | None
    chunk_id: str | None
    start: Annotated[int | None, Meta(description="First character in the document's stored text.")]
    end: int | None
    location: LocationBody | None
    place: str | None
    support: float
    sentence_start: Annotated[int, Meta(description="The marked sentence in the answer, in characters.")]
    sentence_end: int


class ConfidenceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What the confidence is made of."""

    mean_relevance: float
    mean_rerank: float | None
    critical_boost: bool


class FlaggedBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A sentence of the answer that no verified citation proves."""

    start: Annotated[int, Meta(description="Its first character in the answer.")]
    end: int


class GuardrailCheckBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A rule of the knowledge base, and where the generated text says what it names."""

    kind: Annotated[str, Meta(description="never_say or always_mention.")]
    phrase: str
    passed: bool
    rule: Annotated[str, Meta(description="As the document words it.")]
    document_id: UUID
    chunk_id: str
    start: Annotated[int, Meta(description="The rule's first character in the document's stored text.")]
    end: int
    location: LocationBody | None
    found_in: Annotated[str | None, Meta(description="Part of the generated text that says it; null: none.")]
    found_start: Annotated[int | None, Meta(description="There, in characters.")]
    found_end: int | None


class GuardrailsBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What the knowledge base forbids to say or asks to mention, checked by code."""

    passed: bool = True
    checks: list[GuardrailCheckBody] = field(default_factory=list)
    violations: Annotated[list[GuardrailCheckBody], Meta(description="Those of the checks that did not pass.")] = field(
        default_factory=list
    )


class AnswerBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """An answer with its proof."""

    answer_id: UUID
    answer: str
    decision: Annotated[str, Meta(description="can_proceed, uncertain or out_of_scope.")]
    confidence: float
    confidence_parts: ConfidenceBody
    sources: list[SourceBody]
    context_used: list[ContextBody]
    citations: list[CitationBody]
    unmarked_sentences: int
    withheld_sentences: int
    flagged: Annotated[list[FlaggedBody], Meta(description="Sentences without a verified citation.")]
    guardrails: GuardrailsBody
    language: str
    model: str
    latency_ms: float
    prompt_tokens: int
    completion_tokens: int
    related: Annotated[
        list[RelatedBody],
        Meta(description="Where nothing was found: the nearest passages, at most three. They prove nothing."),
    ] = field(default_factory=list)


class IngestBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What became of a document."""

    document_id: UUID
    outcome: Annotated[str, Meta(description="added, replaced or unchanged.")]
    chunk_count: int


# -- data of streamed events; `citation` carries CitationBody, `final` AnswerBody, `error` a problem


class SourcesData(Struct, kw_only=True, frozen=True, rename="camel"):
    sources: list[SourceBody]
    context_used: list[ContextBody]


class DeltaData(Struct, kw_only=True, frozen=True):
    text: str


class DoneData(Struct, kw_only=True, frozen=True, rename="camel"):
    answer_id: UUID
